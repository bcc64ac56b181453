/* SPDX-License-Identifier: Apache-2.0
 *
 * Random ops on images through the C interface, by what holds for every draw: the same seed gives the same, another one
 * something else, and what comes is what the op says.
 */
#include <math.h>
#include <string.h>

#include "capi_testing.h"

enum { HEIGHT = 21, WIDTH = 31, ROWS = 4, SEEDS = 25 };

typedef void (*build_fn)(tutti_graph *g, tutti_value x);

static int32_t build_map(tutti_graph *g, void *user, tutti_error **err) {
  const build_fn *build = user;
  (*build)(g, tutti_graph_get_feature(g, "x"));
  return tutti_graph_check(g, err);
}

static tutti_tensor *component(tutti_dataset *dataset, tutti_iterator *iterator, const char *name) {
  for (int64_t i = 0; i < tutti_dataset_get_component_count(dataset); i++) {
    if (strcmp(tutti_dataset_get_component_name(dataset, i), name) != 0) continue;
    tutti_tensor *tensor = tutti_iterator_get_component(iterator, i);
    tutti_tensor_ref(tensor);
    return tensor;
  }
  fail_msg("no component '%s'", name);
  return NULL;
}

/* "y" of the batch of all rows of x, and, where `more` is not NULL, "more"; owned. */
static tutti_tensor *mapped(tutti_tensor *x, build_fn build, int64_t seed, tutti_tensor **more) {
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  uint8_t is_there = 0;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_batch(pipeline, tutti_tensor_get_dim(x, 0), NULL);
  tutti_pipeline_map_graph(pipeline, build_map, &build, 1);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_iterator_create(dataset, seed, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &is_there, &err));
  assert_true(is_there);
  tutti_tensor *y = component(dataset, iterator, "y");
  if (more != NULL) *more = component(dataset, iterator, "more");
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  return y;
}

static int is_equal(const tutti_tensor *a, const tutti_tensor *b) {
  const int64_t size = tutti_tensor_get_size_bytes(a);
  assert_int_equal(tutti_tensor_get_size_bytes(b), size);
  return memcmp(tutti_tensor_get_data(a), tutti_tensor_get_data(b), (size_t)size) == 0;
}

typedef void (*check_fn)(const tutti_tensor *x, const tutti_tensor *y);

/* For many seeds: each gives the same twice, and not all the same. Drops x. */
static void check_draws(tutti_tensor *x, build_fn build, check_fn check) {
  tutti_tensor *first = mapped(x, build, 0, NULL);
  int different = 0;
  for (int64_t seed = 0; seed < SEEDS; seed++) {
    tutti_tensor *y = mapped(x, build, seed, NULL), *again = mapped(x, build, seed, NULL);
    assert_true(is_equal(y, again));
    different += !is_equal(y, first);
    check(x, y);
    tutti_tensor_unref(y), tutti_tensor_unref(again);
  }
  assert_in_range(different, SEEDS / 2, SEEDS);
  tutti_tensor_unref(first), tutti_tensor_unref(x);
}

static const float *pixel(const tutti_tensor *images, int64_t row, int64_t y, int64_t x) {
  const int64_t width = tutti_tensor_get_dim(images, 2), channels = tutti_tensor_get_dim(images, 3);
  const float *numbers = tutti_tensor_get_data(images);
  return numbers + ((row * tutti_tensor_get_dim(images, 1) + y) * width + x) * channels;
}

/* Pixels that tell where they are: row, column, number of the image, all from 0 to 1. */
static tutti_tensor *places(void) {
  static float numbers[ROWS][HEIGHT][WIDTH][3];
  for (int row = 0; row < ROWS; row++) {
    for (int y = 0; y < HEIGHT; y++) {
      for (int x = 0; x < WIDTH; x++) {
        numbers[row][y][x][0] = (float)y / (HEIGHT - 1), numbers[row][y][x][1] = (float)x / (WIDTH - 1);
        numbers[row][y][x][2] = (float)row / ROWS;
      }
    }
  }
  return make_tensor(TUTTI_DTYPE_F32, 4, (int64_t[]){ROWS, HEIGHT, WIDTH, 3}, numbers);
}

/* --- one image by itself ------------------------------------------------------------------------------------------ */

static void build_rotate(tutti_graph *g, tutti_value x) {
  const tutti_random_rotate_attrs attrs = {.value = -1, .method = TUTTI_RANDOM_ROTATE_METHOD_NEAREST};
  tutti_graph_set_output(g, "y", tutti_random_rotate(g, x, 45, &attrs));
}

/* A pixel is as far from the middle as the one it shows, and by one angle for all, of 45 degrees at most. */
static void check_rotated(const tutti_tensor *x, const tutti_tensor *y) {
  (void)x;
  for (int64_t row = 0; row < ROWS; row++) {
    double least = 4, most = -4;
    for (int64_t i = 0; i < HEIGHT; i++) {
      for (int64_t j = 0; j < WIDTH; j++) {
        const float *shown = pixel(y, row, i, j);
        const double down = (double)i - HEIGHT / 2, right = (double)j - WIDTH / 2, distance = hypot(down, right);
        if (shown[0] < 0 || distance < 6) continue;
        const double from_down = shown[0] * (HEIGHT - 1) - HEIGHT / 2, from_right = shown[1] * (WIDTH - 1) - WIDTH / 2;
        assert_float_equal(hypot(from_down, from_right), distance, 1);
        const double turn = remainder(atan2(from_down, from_right) - atan2(down, right), 2 * 3.14159265358979);
        least = fmin(least, turn), most = fmax(most, turn);
      }
    }
    assert_true(most - least < 0.35 && most < 3.15 / 4 + 0.2 && least > -3.15 / 4 - 0.2);
    assert_float_equal(pixel(y, row, HEIGHT / 2, WIDTH / 2)[2], (double)row / ROWS, 1e-6);
  }
}

static void test_rotate(void **state) {
  (void)state;
  check_draws(places(), build_rotate, check_rotated);
}

static void build_resized_crop(tutti_graph *g, tutti_value x) {
  const tutti_random_resized_crop_attrs attrs = {.area = {0.3, 0.6}, .aspect = {0.8, 1.25}, .flip_probability = 0.5};
  tutti_graph_set_output(g, "y", tutti_random_resized_crop(g, x, (int64_t[]){8, 12}, &attrs));
}

/* A part of the image with about so much of its area, upright, mirrored or not. */
static void check_resized_crop(const tutti_tensor *x, const tutti_tensor *y) {
  (void)x;
  assert_int_equal(tutti_tensor_get_dim(y, 1), 8);
  assert_int_equal(tutti_tensor_get_dim(y, 2), 12);
  for (int64_t row = 0; row < ROWS; row++) {
    const double across = pixel(y, row, 0, 11)[1] - pixel(y, row, 0, 0)[1],
                 down = pixel(y, row, 7, 0)[0] - pixel(y, row, 0, 0)[0];
    assert_true(down > 0);
    /* Centres of the first and the last pixel are 7 and 11 pixels apart, of 8 and 12. */
    const double part = down * (HEIGHT - 1) * 8 / 7 / HEIGHT * fabs(across) * (WIDTH - 1) * 12 / 11 / WIDTH;
    assert_true(part > 0.2 && part < 0.7);
    for (int64_t i = 0; i < 8; i++) {
      for (int64_t j = 0; j < 12; j++) {
        const float *shown = pixel(y, row, i, j);
        assert_true(shown[0] >= 0 && shown[0] <= 1 && shown[1] >= 0 && shown[1] <= 1);
        assert_float_equal(shown[2], (double)row / ROWS, 1e-5);
        if (j > 0) assert_true((shown[1] - pixel(y, row, i, j - 1)[1]) * across >= 0);
        if (i > 0) assert_true(shown[0] >= pixel(y, row, i - 1, j)[0]);
      }
    }
  }
}

static void test_resized_crop(void **state) {
  (void)state;
  check_draws(places(), build_resized_crop, check_resized_crop);
}

static void build_crop_window(tutti_graph *g, tutti_value x) {
  const tutti_random_crop_window_attrs attrs = {.area = {0.25, 0.5}, .aspect = {0.5, 2}};
  tutti_graph_set_output(g, "y", tutti_random_crop_window(g, x, &attrs));
}

static void check_crop_window(const tutti_tensor *sizes, const tutti_tensor *windows) {
  for (int64_t row = 0; row < ROWS; row++) {
    const int64_t *size = (const int64_t *)tutti_tensor_get_data(sizes) + 2 * row;
    const int64_t *window = (const int64_t *)tutti_tensor_get_data(windows) + 4 * row;
    const double part = (double)(window[2] * window[3]) / (double)(size[0] * size[1]);
    const double aspect = (double)window[3] / (double)window[2];
    assert_true(window[0] >= 0 && window[1] >= 0 && window[2] > 0 && window[3] > 0);
    assert_true(window[0] + window[2] <= size[0] && window[1] + window[3] <= size[1]);
    assert_true(part > 0.24 && part < 0.51 && aspect > 0.49 && aspect < 2.05);
  }
}

static void test_crop_window(void **state) {
  (void)state;
  const int64_t sizes[ROWS][2] = {{300, 400}, {400, 300}, {1000, 1000}, {200, 211}};
  check_draws(make_tensor(TUTTI_DTYPE_I64, 2, (int64_t[]){ROWS, 2}, sizes), build_crop_window, check_crop_window);
}

static void build_cutout(tutti_graph *g, tutti_value x) {
  const tutti_random_cutout_attrs attrs = {.value = -2};
  tutti_graph_set_output(g, "y", tutti_random_cutout(g, x, (int64_t[]){6, 10}, &attrs));
}

/* One rectangle of that size, less what lies outside; nothing else changes. */
static void check_cutout(const tutti_tensor *x, const tutti_tensor *y) {
  for (int64_t row = 0; row < ROWS; row++) {
    int64_t top = HEIGHT, bottom = -1, left = WIDTH, right = -1, count = 0;
    for (int64_t i = 0; i < HEIGHT; i++) {
      for (int64_t j = 0; j < WIDTH; j++) {
        if (pixel(y, row, i, j)[0] >= 0) {
          assert_memory_equal(pixel(x, row, i, j), pixel(y, row, i, j), 3 * sizeof(float));
          continue;
        }
        for (int c = 0; c < 3; c++)
          assert_true(pixel(y, row, i, j)[c] == -2);
        top = i < top ? i : top, bottom = i > bottom ? i : bottom, left = j < left ? j : left;
        right = j > right ? j : right, count++;
      }
    }
    assert_int_equal(count, (bottom - top + 1) * (right - left + 1));
    assert_true(bottom - top + 1 == 6 || top == 0 || bottom == HEIGHT - 1);
    assert_true(right - left + 1 == 10 || left == 0 || right == WIDTH - 1);
    assert_true(bottom - top < 6 && right - left < 10 && count >= 15);
  }
}

static void test_cutout(void **state) {
  (void)state;
  check_draws(places(), build_cutout, check_cutout);
}

static void build_jitter(tutti_graph *g, tutti_value x) {
  const tutti_random_color_jitter_attrs attrs = {.brightness = 0.3};
  tutti_graph_set_output(g, "y", tutti_random_color_jitter(g, x, &attrs));
}

/* Of brightness alone: the same summand for all of an image. */
static void check_jitter(const tutti_tensor *x, const tutti_tensor *y) {
  for (int64_t row = 0; row < ROWS; row++) {
    const float delta = pixel(y, row, 0, 0)[0] - pixel(x, row, 0, 0)[0];
    assert_true(fabsf(delta) <= 0.3f);
    for (int64_t i = 0; i < HEIGHT * WIDTH * 3; i++)
      assert_float_equal(pixel(y, row, 0, 0)[i] - pixel(x, row, 0, 0)[i], delta, 1e-6);
  }
}

static void test_color_jitter(void **state) {
  (void)state;
  check_draws(places(), build_jitter, check_jitter);
}

/* --- images of a batch -------------------------------------------------------------------------------------------- */

/* Image i is i everywhere, so that its mean tells how much of which image is in it; targets are one-hot. */
static tutti_tensor *numbered(void) {
  static float numbers[ROWS][HEIGHT][WIDTH][1];
  for (int row = 0; row < ROWS; row++) {
    for (int i = 0; i < HEIGHT * WIDTH; i++)
      numbers[row][i / WIDTH][i % WIDTH][0] = (float)row;
  }
  return make_tensor(TUTTI_DTYPE_F32, 4, (int64_t[]){ROWS, HEIGHT, WIDTH, 1}, numbers);
}

static tutti_value one_hot_rows(tutti_graph *g, tutti_value x) {
  const tutti_reduce_mean_attrs all = {.axes = (int64_t[]){1, 2, 3}, .axes_count = 3};
  return tutti_one_hot(g, tutti_cast(g, tutti_reduce_mean(g, x, &all), TUTTI_DTYPE_I32), ROWS, NULL);
}

static void build_mixup(tutti_graph *g, tutti_value x) {
  const tutti_mixup_attrs attrs = {.alpha = 1};
  tutti_value more[1];
  tutti_graph_set_output(g, "y", tutti_mixup(g, x, one_hot_rows(g, x), &attrs, more));
  tutti_graph_set_output(g, "more", more[0]);
}

static void build_cutmix(tutti_graph *g, tutti_value x) {
  tutti_value more[1];
  tutti_graph_set_output(g, "y", tutti_cutmix(g, x, one_hot_rows(g, x), NULL, more));
  tutti_graph_set_output(g, "more", more[0]);
}

/* Image `row` is its own one and that of one other row, and its targets say how much of either. Gives how much of the
 * other. `is_mixed`: every pixel is, else each is of one of the two. */
static double check_mixture(const tutti_tensor *y, const float *targets, int64_t row, int64_t rotation, int is_mixed) {
  const int64_t partner = (row + rotation) % ROWS;
  double mean = 0, sum = 0;
  for (int64_t j = 0; j < ROWS; j++) {
    assert_true(targets[j] >= 0 && targets[j] <= 1 + 1e-6);
    if (j != row && j != partner) assert_true(targets[j] == 0);
    mean += targets[j] * (double)j, sum += targets[j];
  }
  assert_float_equal(sum, 1, 1e-5);
  double total = 0;
  for (int64_t i = 0; i < HEIGHT * WIDTH; i++) {
    const float shown = pixel(y, row, 0, 0)[i];
    total += shown;
    if (is_mixed) assert_float_equal(shown, mean, 1e-5);
    if (!is_mixed) assert_true(shown == (float)row || shown == (float)partner);
  }
  assert_float_equal(total / (HEIGHT * WIDTH), mean, 1e-4);
  return partner == row ? 0 : targets[partner];
}

/* By how much the rows are rotated: the partner of a row whose targets are mixed. */
static int64_t rotation_of(const float *targets) {
  for (int64_t row = 0; row < ROWS; row++) {
    for (int64_t j = 0; j < ROWS; j++) {
      if (j != row && targets[row * ROWS + j] > 0) return (j - row + ROWS) % ROWS;
    }
  }
  return 0;
}

static void check_mixing(build_fn build, int is_mixed) {
  tutti_tensor *x = numbered();
  double least = 1, most = 0;
  for (int64_t seed = 0; seed < SEEDS; seed++) {
    tutti_tensor *targets = NULL, *same_targets = NULL;
    tutti_tensor *y = mapped(x, build, seed, &targets), *again = mapped(x, build, seed, &same_targets);
    assert_true(is_equal(y, again) && is_equal(targets, same_targets));
    const float *numbers = tutti_tensor_get_data(targets);
    const int64_t rotation = rotation_of(numbers);
    for (int64_t row = 0; row < ROWS; row++) {
      const double part = check_mixture(y, numbers + row * ROWS, row, rotation, is_mixed);
      least = fmin(least, part), most = fmax(most, part);
    }
    tutti_tensor_unref(y), tutti_tensor_unref(again), tutti_tensor_unref(targets), tutti_tensor_unref(same_targets);
  }
  assert_true(least < 0.1 && most > 0.8); /* Beta(1, 1) is even */
  tutti_tensor_unref(x);
}

static void test_mixup(void **state) {
  (void)state;
  check_mixing(build_mixup, 1);
}

static void test_cutmix(void **state) {
  (void)state;
  check_mixing(build_cutmix, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rotate), cmocka_unit_test(test_resized_crop), cmocka_unit_test(test_crop_window),
    cmocka_unit_test(test_cutout), cmocka_unit_test(test_color_jitter), cmocka_unit_test(test_mixup),
    cmocka_unit_test(test_cutmix),
};
CAPI_TEST_MAIN(tests)
