/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops on images and texts through the C interface, in maps of datasets: against what Pillow and plain Python make of
 * the same (image_text_golden.h); random ones by what holds for every draw.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capi_testing.h"
#include "image_text_golden.h"

enum { CHANNELS = 3, NUMBERS = IMAGE_HEIGHT * IMAGE_WIDTH * CHANNELS };

/* The op under test: from "x" and, where there are targets, from "t". */
typedef void (*build_fn)(tutti_graph *g, tutti_value x, tutti_value t);

struct map {
  build_fn build;
  int has_targets;
};

static int32_t build_map(tutti_graph *g, void *user, tutti_error **err) {
  const struct map *map = user;
  const tutti_value none = {0};
  map->build(g, tutti_graph_get_feature(g, "x"), map->has_targets ? tutti_graph_get_feature(g, "t") : none);
  return tutti_graph_check(g, err);
}

/* What a map gives of the first element or, with a batch size, of the first batch: component `name`, owned. */
static tutti_tensor *mapped(tutti_tensor *x, tutti_tensor *targets, int64_t batch, build_fn build, int64_t seed,
                            const char *name) {
  struct map map = {build, targets != NULL};
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  tutti_tensor *result = NULL;
  uint8_t more = 0;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  if (targets != NULL) tutti_pipeline_add_slices(pipeline, "t", TUTTI_ROLE_FEATURE, targets);
  if (batch > 0) tutti_pipeline_batch(pipeline, batch, NULL);
  tutti_pipeline_map_graph(pipeline, build_map, &map, 1);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_iterator_create(dataset, seed, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_true(more);
  for (int64_t i = 0; i < tutti_dataset_get_component_count(dataset); i++) {
    if (strcmp(tutti_dataset_get_component_name(dataset, i), name) == 0)
      result = tutti_iterator_get_component(iterator, i);
  }
  assert_non_null(result);
  tutti_tensor_ref(result);
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  return result;
}

/* --- images ------------------------------------------------------------------------------------------------------- */

static tutti_tensor *image_tensor(void) {
  return make_tensor(TUTTI_DTYPE_U8, 4, (int64_t[]){1, IMAGE_HEIGHT, IMAGE_WIDTH, CHANNELS}, image);
}

static tutti_tensor *float_image_tensor(void) {
  return make_tensor(TUTTI_DTYPE_F32, 4, (int64_t[]){1, IMAGE_HEIGHT, IMAGE_WIDTH, CHANNELS}, as_floats);
}

/* Drops both tensors. `most`: of the difference of two pixels. */
static void expect_pixels(tutti_tensor *x, build_fn build, int64_t height, int64_t width, int64_t channels,
                          const uint8_t *expected, int most) {
  tutti_tensor *y = mapped(x, NULL, 0, build, 0, "y");
  assert_int_equal(tutti_tensor_get_dtype(y), TUTTI_DTYPE_U8);
  assert_int_equal(tutti_tensor_get_rank(y), 3);
  assert_int_equal(tutti_tensor_get_dim(y, 0), height);
  assert_int_equal(tutti_tensor_get_dim(y, 1), width);
  assert_int_equal(tutti_tensor_get_dim(y, 2), channels);
  const uint8_t *got = tutti_tensor_get_data(y);
  for (int64_t i = 0; i < height * width * channels; i++) {
    if (abs(got[i] - expected[i]) > most) fail_msg("pixel number %d is %d, expected %d", (int)i, got[i], expected[i]);
  }
  tutti_tensor_unref(x), tutti_tensor_unref(y);
}

static void expect_floats(build_fn build, const float *expected) {
  tutti_tensor *x = float_image_tensor(), *y = mapped(x, NULL, 0, build, 0, "y");
  assert_int_equal(tutti_tensor_get_dtype(y), TUTTI_DTYPE_F32);
  assert_int_equal(tutti_tensor_get_element_count(y), NUMBERS);
  const float *got = tutti_tensor_get_data(y);
  for (int i = 0; i < NUMBERS; i++)
    assert_float_equal(got[i], expected[i], 2e-6);
  tutti_tensor_unref(x), tutti_tensor_unref(y);
}

static void build_crop(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_crop_attrs attrs = {.size = {3, 3}, .offset = {1, 2}};
  tutti_graph_set_output(g, "y", tutti_crop(g, x, &attrs));
}

static void build_crop_middle(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_crop_attrs attrs = {.size = {3, 3}, .centered = 1};
  tutti_graph_set_output(g, "y", tutti_crop(g, x, &attrs));
}

static void test_crop(void **state) {
  (void)state;
  expect_pixels(image_tensor(), build_crop, 3, 3, CHANNELS, cropped, 0);
  expect_pixels(image_tensor(), build_crop_middle, 3, 3, CHANNELS, cropped, 0); /* which begins at 1, 2, too */
}

static void build_pad(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_pad_image_attrs attrs = {.value = 9};
  tutti_graph_set_output(g, "y", tutti_pad_image(g, x, (int64_t[]){1, 0, 1, 2}, &attrs));
}

static void build_pad_edge(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_pad_image_attrs attrs = {.mode = TUTTI_PAD_IMAGE_MODE_EDGE};
  tutti_graph_set_output(g, "y", tutti_pad_image(g, x, (int64_t[]){1, 1, 0, 2}, &attrs));
}

static void build_pad_reflect(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_pad_image_attrs attrs = {.mode = TUTTI_PAD_IMAGE_MODE_REFLECT};
  tutti_graph_set_output(g, "y", tutti_pad_image(g, x, (int64_t[]){2, 0, 0, 1}, &attrs));
}

static void test_pad(void **state) {
  (void)state;
  expect_pixels(image_tensor(), build_pad, IMAGE_HEIGHT + 1, IMAGE_WIDTH + 3, CHANNELS, padded, 0);
  expect_pixels(image_tensor(), build_pad_edge, IMAGE_HEIGHT + 2, IMAGE_WIDTH + 2, CHANNELS, padded_edge, 0);
  expect_pixels(image_tensor(), build_pad_reflect, IMAGE_HEIGHT + 2, IMAGE_WIDTH + 1, CHANNELS, padded_reflect, 0);
}

static void build_turn(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_rotate90(g, x, NULL));
}

static void build_half_turn(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_rotate90_attrs attrs = {.has_turns = 1, .turns = 2};
  tutti_graph_set_output(g, "y", tutti_rotate90(g, x, &attrs));
}

static void test_rotate90(void **state) {
  (void)state;
  expect_pixels(image_tensor(), build_turn, IMAGE_WIDTH, IMAGE_HEIGHT, CHANNELS, turned_once, 0);
  expect_pixels(image_tensor(), build_half_turn, IMAGE_HEIGHT, IMAGE_WIDTH, CHANNELS, turned_twice, 0);
}

static void build_to_bytes(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_convert_image_dtype_attrs to_bytes = {.dtype = TUTTI_DTYPE_U8};
  tutti_graph_set_output(g, "y", tutti_convert_image_dtype(g, x, &to_bytes));
}

static void build_to_floats(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_convert_image_dtype_attrs to_bytes = {.dtype = TUTTI_DTYPE_U8};
  tutti_value bytes = tutti_convert_image_dtype(g, x, &to_bytes);
  tutti_graph_set_output(g, "y", tutti_convert_image_dtype(g, bytes, NULL));
}

static void test_convert_image_dtype(void **state) {
  (void)state;
  expect_pixels(float_image_tensor(), build_to_bytes, IMAGE_HEIGHT, IMAGE_WIDTH, CHANNELS, image, 0);
  expect_floats(build_to_floats, as_floats);
}

static void build_brightness(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_adjust_brightness(g, x, 0.25));
}

static void build_contrast(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_adjust_contrast(g, x, 0.5));
}

static void build_saturation(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_adjust_saturation(g, x, 0.5));
}

static void build_hue(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_adjust_hue(g, x, 0.3));
}

static void test_colors(void **state) {
  (void)state;
  expect_floats(build_brightness, brighter);
  expect_floats(build_contrast, less_contrast);
  expect_floats(build_saturation, less_saturated);
  expect_floats(build_hue, hue_turned);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* [1, count] texts: one element, in which they are a vector. */
static tutti_tensor *text_tensor(const struct golden_text *list, int64_t count) {
  char data[4096];
  int64_t end = (int64_t)sizeof(int64_t) * (count + 1), ends[TEXTS + 1] = {end};
  for (int64_t i = 0; i < count; i++) {
    assert_true(end + list[i].size <= (int64_t)sizeof data);
    memcpy(data + end, list[i].bytes, (size_t)list[i].size);
    end += list[i].size, ends[i + 1] = end;
  }
  memcpy(data, ends, sizeof *ends * (size_t)(count + 1));
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_BYTES, (int64_t[]){1, count}, 2, data, end, &tensor, &err));
  return tensor;
}

static void expect_texts(build_fn build, const struct golden_text *expected, int64_t count) {
  tutti_tensor *x = text_tensor(texts, TEXTS), *y = mapped(x, NULL, 0, build, 0, "y");
  assert_int_equal(tutti_tensor_get_dtype(y), TUTTI_DTYPE_BYTES);
  assert_int_equal(tutti_tensor_get_element_count(y), count);
  for (int64_t i = 0; i < count; i++) {
    assert_int_equal(tutti_tensor_get_element_size(y, i), expected[i].size);
    if (expected[i].size > 0)
      assert_memory_equal(tutti_tensor_get_element_data(y, i), expected[i].bytes, (size_t)expected[i].size);
  }
  tutti_tensor_unref(x), tutti_tensor_unref(y);
}

static void expect_indices(build_fn build, const int64_t *expected) {
  tutti_tensor *x = text_tensor(texts, TEXTS), *y = mapped(x, NULL, 0, build, 0, "y");
  assert_int_equal(tutti_tensor_get_dtype(y), TUTTI_DTYPE_I64);
  assert_int_equal(tutti_tensor_get_element_count(y), TEXTS);
  assert_memory_equal(tutti_tensor_get_data(y), expected, TEXTS * sizeof *expected);
  tutti_tensor_unref(x), tutti_tensor_unref(y);
}

static void build_length(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_bytes_length(g, x, NULL));
}

static void build_characters(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_bytes_length_attrs attrs = {.unit = TUTTI_BYTES_LENGTH_UNIT_CHARACTERS};
  tutti_graph_set_output(g, "y", tutti_bytes_length(g, x, &attrs));
}

static void build_substring(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_bytes_substring_attrs attrs = {.start = 1, .has_length = 1, .length = 3};
  tutti_graph_set_output(g, "y", tutti_bytes_substring(g, x, &attrs));
}

static void build_last_characters(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_bytes_substring_attrs attrs = {.start = -3, .unit = TUTTI_BYTES_SUBSTRING_UNIT_CHARACTERS};
  tutti_graph_set_output(g, "y", tutti_bytes_substring(g, x, &attrs));
}

static void build_lower(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_bytes_lower(g, x));
}

static void build_join(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_bytes_join_attrs attrs = {.separator = " | "};
  tutti_graph_set_output(g, "y", tutti_bytes_join(g, x, &attrs));
}

static void build_hash(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_bytes_hash_bucket(g, x, 1000, NULL));
}

static void build_salted_hash(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_bytes_hash_bucket_attrs attrs = {.salt = -5};
  tutti_graph_set_output(g, "y", tutti_bytes_hash_bucket(g, x, 7, &attrs));
}

static void test_texts(void **state) {
  (void)state;
  expect_indices(build_length, text_bytes);
  expect_indices(build_characters, text_characters);
  expect_texts(build_substring, from_second_byte, TEXTS);
  expect_texts(build_last_characters, last_characters, TEXTS);
  expect_texts(build_lower, in_small_letters, TEXTS);
  expect_texts(build_join, all_joined, 1);
  expect_indices(build_hash, hash_buckets);
  expect_indices(build_salted_hash, salted_hash_buckets);
}

static void build_little_values(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_bytes_to_values_attrs attrs = {.dtype = TUTTI_DTYPE_I16, .count = 4};
  tutti_graph_set_output(g, "y", tutti_bytes_to_values(g, x, &attrs));
}

static void build_big_values(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_bytes_to_values_attrs attrs = {.dtype = TUTTI_DTYPE_I16,
                                             .byte_order = TUTTI_BYTES_TO_VALUES_BYTE_ORDER_BIG};
  tutti_graph_set_output(g, "y", tutti_bytes_to_values(g, x, &attrs));
}

static void test_bytes_to_values(void **state) {
  (void)state;
  for (int is_big = 0; is_big <= 1; is_big++) {
    tutti_tensor *x = text_tensor(is_big ? big_i16 : little_i16, 1);
    tutti_tensor *y = mapped(x, NULL, 0, is_big ? build_big_values : build_little_values, 0, "y");
    assert_int_equal(tutti_tensor_get_dtype(y), TUTTI_DTYPE_I16);
    assert_int_equal(tutti_tensor_get_element_count(y), 4);
    assert_memory_equal(tutti_tensor_get_data(y), i16_values, sizeof i16_values);
    tutti_tensor_unref(x), tutti_tensor_unref(y);
  }
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static tutti_tensor *file_tensor(const void *contents, int64_t size) {
  char data[4096];
  const int64_t ends[2] = {2 * sizeof(int64_t), 2 * (int64_t)sizeof(int64_t) + size};
  assert_true(ends[1] <= (int64_t)sizeof data);
  memcpy(data, ends, sizeof ends), memcpy(data + sizeof ends, contents, (size_t)size);
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_BYTES, (int64_t[]){1}, 1, data, ends[1], &tensor, &err));
  return tensor;
}

static void build_jpeg(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_decode_jpeg(g, x, NULL));
}

static void build_gray_jpeg(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  const tutti_decode_jpeg_attrs attrs = {.channels = 1};
  tutti_graph_set_output(g, "y", tutti_decode_jpeg(g, x, &attrs));
}

static void build_image(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_decode_image(g, x, NULL));
}

static void build_size(tutti_graph *g, tutti_value x, tutti_value t) {
  (void)t;
  tutti_graph_set_output(g, "y", tutti_image_size(g, x));
}

static void expect_size(tutti_tensor *x, int64_t height, int64_t width) {
  tutti_tensor *y = mapped(x, NULL, 0, build_size, 0, "y");
  const int64_t expected[] = {height, width};
  assert_int_equal(tutti_tensor_get_dtype(y), TUTTI_DTYPE_I64);
  assert_int_equal(tutti_tensor_get_element_count(y), 2);
  assert_memory_equal(tutti_tensor_get_data(y), expected, sizeof expected);
  tutti_tensor_unref(x), tutti_tensor_unref(y);
}

/* As libjpeg-turbo, which Pillow has, too; another version may round a pixel otherwise. */
static void test_jpeg(void **state) {
  (void)state;
  if (!tutti_has_feature("format:jpeg")) skip();
  const int64_t size = sizeof jpeg_file;
  expect_pixels(file_tensor(jpeg_file, size), build_jpeg, JPEG_HEIGHT, JPEG_WIDTH, 3, jpeg_pixels, 1);
  expect_pixels(file_tensor(jpeg_file, size), build_gray_jpeg, JPEG_HEIGHT, JPEG_WIDTH, 1, jpeg_gray, 1);
  expect_pixels(file_tensor(jpeg_file, size), build_image, JPEG_HEIGHT, JPEG_WIDTH, 3, jpeg_pixels, 1);
  expect_size(file_tensor(jpeg_file, size), JPEG_HEIGHT, JPEG_WIDTH);
}

static void test_png(void **state) {
  (void)state;
  if (!tutti_has_feature("format:png")) skip();
  expect_pixels(file_tensor(png_file, sizeof png_file), build_image, IMAGE_HEIGHT, IMAGE_WIDTH, 3, image, 0);
  expect_size(file_tensor(png_file, sizeof png_file), IMAGE_HEIGHT, IMAGE_WIDTH);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_crop),
    cmocka_unit_test(test_pad),
    cmocka_unit_test(test_rotate90),
    cmocka_unit_test(test_convert_image_dtype),
    cmocka_unit_test(test_colors),
    cmocka_unit_test(test_texts),
    cmocka_unit_test(test_bytes_to_values),
    cmocka_unit_test(test_jpeg),
    cmocka_unit_test(test_png),
};
CAPI_TEST_MAIN(tests)
