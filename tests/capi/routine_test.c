/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that run element by element on the host, in maps of pipelines: images and texts, from files to batches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset_fixtures.h"

/* Gray PNG files of 4 x 4 pixels: pixel (row, column) is 16 * (4 * row + column), and 3 more in the second. */
static const unsigned char first_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
    0x00, 0x04, 0x00, 0x00, 0x00, 0x04, 0x08, 0x00, 0x00, 0x00, 0x00, 0x8c, 0x9a, 0xc1, 0xa2, 0x00, 0x00, 0x00,
    0x1d, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x60, 0x10, 0x50, 0x30, 0x60, 0x70, 0x08, 0x48, 0x28, 0x60,
    0x68, 0x98, 0xb0, 0x60, 0x03, 0xc3, 0x81, 0x0b, 0x0f, 0x3e, 0x00, 0x00, 0x30, 0xd4, 0x07, 0x81, 0xca, 0x38,
    0xd4, 0x9d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
static const unsigned char second_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
    0x00, 0x04, 0x00, 0x00, 0x00, 0x04, 0x08, 0x00, 0x00, 0x00, 0x00, 0x8c, 0x9a, 0xc1, 0xa2, 0x00, 0x00, 0x00,
    0x1d, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x60, 0x16, 0x56, 0x36, 0x66, 0x70, 0x0e, 0x4e, 0x2e, 0x66,
    0x68, 0x9e, 0xbc, 0x78, 0x33, 0xc3, 0xe1, 0xcb, 0x8f, 0x3f, 0x03, 0x00, 0x32, 0xb4, 0x07, 0xb1, 0x12, 0x8f,
    0x91, 0x49, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

static char folder[64], path[100];

static void write_records(const unsigned char *const *records, const size_t *sizes, int count) {
  tutti_record_writer *writer = NULL;
  assert_ok(tutti_record_writer_create(NULL, path, NULL, &writer, &err));
  for (int i = 0; i < count; i++)
    assert_ok(tutti_record_writer_write(writer, records[i], (int64_t)sizes[i], &err));
  assert_ok(tutti_record_writer_close(writer, &err));
  tutti_record_writer_unref(writer);
}

static tutti_pipeline *new_pipeline(void) {
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  return pipeline;
}

/* Every second pixel, mirrored, as numbers from 0 to 1. */
static int32_t prepare_image(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  const int64_t size[] = {2, 2};
  tutti_decode_png_attrs gray = {.channels = 1};
  tutti_resize_attrs nearest = {.method = TUTTI_RESIZE_METHOD_NEAREST};
  tutti_normalize_image_attrs unit = {.has_scale = 1, .scale = 1.0 / 255};
  tutti_value image = tutti_decode_png(g, tutti_graph_get_feature(g, "record"), &gray);
  image = tutti_flip(g, tutti_resize(g, image, size, &nearest), NULL);
  tutti_graph_set_output(g, "record", tutti_normalize_image(g, image, &unit));
  return tutti_graph_check(g, err);
}

static tutti_dataset *prepared_images(int64_t parallelism, int64_t batch) {
  const char *paths[] = {path};
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_tfrecord(pipeline, paths, 1, NULL);
  tutti_pipeline_map_graph(pipeline, prepare_image, NULL, parallelism);
  if (batch > 0) tutti_pipeline_batch(pipeline, batch, NULL);
  return build(pipeline);
}

/* The pixels that are left of file `number`: the nearest to the middle of 2 x 2 is the last of them. */
static void assert_prepared(const float *got, int number) {
  for (int row = 0; row < 2; row++) {
    for (int column = 0; column < 2; column++) {
      int pixel = 16 * (4 * (1 + 2 * row) + 1 + 2 * (1 - column)) + 3 * number;
      float difference = got[2 * row + column] - (float)pixel / 255;
      assert_true(difference < 1e-6f && difference > -1e-6f);
    }
  }
}

static void test_files_become_batches_of_pixels(void **state) {
  (void)state;
  const unsigned char *const records[] = {first_png, second_png, first_png};
  const size_t sizes[] = {sizeof first_png, sizeof second_png, sizeof first_png};
  write_records(records, sizes, 3);
  for (int64_t parallelism = 1; parallelism < 4; parallelism++) {
    tutti_dataset *dataset = prepared_images(parallelism, 2);
    tutti_iterator *iterator = NULL;
    uint8_t more = 0;
    int seen = 0;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    for (;;) {
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      if (!more) break;
      const tutti_tensor *batch = tutti_iterator_get_component(iterator, 0);
      assert_int_equal(tutti_tensor_get_dtype(batch), TUTTI_DTYPE_F32);
      assert_int_equal(tutti_tensor_get_rank(batch), 4);
      for (int64_t row = 0; row < tutti_tensor_get_dim(batch, 0); row++)
        assert_prepared((const float *)tutti_tensor_get_data(batch) + 4 * row, seen++ % 2);
    }
    assert_int_equal(seen, 3);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
  }
}

/* A file that is cut is its element's error; what comes behind is given. */
static void test_a_corrupt_file_is_one_element(void **state) {
  (void)state;
  const unsigned char *const records[] = {first_png, second_png, second_png};
  const size_t sizes[] = {sizeof first_png, sizeof second_png - 20, sizeof second_png};
  write_records(records, sizes, 3);
  for (int64_t parallelism = 1; parallelism < 3; parallelism++) {
    tutti_dataset *dataset = prepared_images(parallelism, 0);
    tutti_iterator *iterator = NULL;
    uint8_t more = 0;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_prepared(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), 0);
    assert_error(TUTTI_DATA_LOSS, "PNG", tutti_iterator_next(iterator, NULL, &more, &err));
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(more, 1);
    assert_prepared(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), 1);
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(more, 0);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
  }
}

/* The two numbers of a line. */
static int32_t read_numbers(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_bytes_split_attrs two = {.separator = ",", .count = 2};
  tutti_bytes_to_number_attrs integer = {.dtype = TUTTI_DTYPE_I32};
  tutti_value parts = tutti_bytes_split(g, tutti_graph_get_feature(g, "text"), &two);
  tutti_graph_set_output(g, "numbers", tutti_bytes_to_number(g, parts, &integer));
  return tutti_graph_check(g, err);
}

static void test_texts_become_numbers(void **state) {
  (void)state;
  const char *paths[] = {path};
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("3, 4\n-5,x\n60,7\n", file);
  fclose(file);
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_text_lines(pipeline, paths, 1, NULL);
  tutti_pipeline_map_graph(pipeline, read_numbers, NULL, 1);
  tutti_dataset *dataset = build(pipeline);
  assert_string_equal(tutti_dataset_get_component_name(dataset, 1), "numbers");
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  const int32_t first[] = {3, 4}, last[] = {60, 7};
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 1)), first, sizeof first);
  assert_error(TUTTI_INVALID_ARGUMENT, "'x'", tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 1)), last, sizeof last);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

enum { IMAGES = 6, SIDE = 8, PART = 5 };

static int32_t crop(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  const int64_t size[] = {PART, PART};
  tutti_graph_set_output(g, "x", tutti_random_crop(g, tutti_graph_get_feature(g, "x"), size, NULL));
  return tutti_graph_check(g, err);
}

/* All crops of a walk. */
static void read_crops(const tutti_dataset *dataset, int64_t seed, unsigned char out[IMAGES][PART * PART]) {
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, seed, &iterator, &err));
  for (int i = 0; i < IMAGES; i++) {
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    memcpy(out[i], tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), PART * PART);
  }
  tutti_iterator_unref(iterator);
}

static void test_random_crops_are_those_of_the_seed(void **state) {
  (void)state;
  unsigned char pixels[IMAGES][SIDE][SIDE], crops[3][IMAGES][PART * PART];
  for (int i = 0; i < IMAGES * SIDE * SIDE; i++)
    pixels[i / (SIDE * SIDE)][i / SIDE % SIDE][i % SIDE] = (unsigned char)(i % (SIDE * SIDE));
  const int64_t dims[] = {IMAGES, SIDE, SIDE, 1};
  tutti_tensor *tensor = make_tensor(TUTTI_DTYPE_U8, 4, dims, pixels);
  tutti_pipeline *pipeline = new_pipeline();
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_tensor_unref(tensor);
  tutti_pipeline_map_graph(pipeline, crop, NULL, 0);
  tutti_dataset *dataset = build(pipeline);
  read_crops(dataset, 1, crops[0]), read_crops(dataset, 1, crops[1]), read_crops(dataset, 2, crops[2]);
  tutti_dataset_unref(dataset);
  assert_memory_equal(crops[0], crops[1], sizeof crops[0]);
  assert_memory_not_equal(crops[0], crops[2], sizeof crops[0]);
  for (int i = 0; i < IMAGES; i++) {
    for (int pixel = 0; pixel < PART * PART; pixel++)
      assert_int_equal(crops[0][i][pixel], crops[0][i][0] + SIDE * (pixel / PART) + pixel % PART);
  }
}

static int begin(void **state) {
  make_directory(folder);
  join_path(path, sizeof path, folder, "file");
  return remember_live_objects(state);
}

static int end(void **state) {
  remove_directory(folder);
  return assert_nothing_left(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_files_become_batches_of_pixels),
    cmocka_unit_test(test_a_corrupt_file_is_one_element),
    cmocka_unit_test(test_texts_become_numbers),
    cmocka_unit_test(test_random_crops_are_those_of_the_seed),
};

int main(void) { return cmocka_run_group_tests(tests, begin, end); }
