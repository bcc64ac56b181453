/* SPDX-License-Identifier: Apache-2.0
 * Writing record files, and reading them back. */
#include <stdio.h>

#include "dataset_fixtures.h"

static char folder[64];
static char path[100];

static tutti_record_writer *new_writer(const char *compression) {
  tutti_record_writer *writer = NULL;
  assert_ok(tutti_record_writer_create(NULL, path, compression, &writer, &err));
  return writer;
}

/* The file as a source. */
static tutti_pipeline *read_file(void) {
  const char *paths[] = {path};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_tfrecord(pipeline, paths, 1, NULL);
  return pipeline;
}

static void test_records(void **state) {
  (void)state;
  static const char *const compressions[] = {NULL, "", "none", "gzip", "zlib"};
  for (int i = 0; i < 5; i++) {
    tutti_record_writer *writer = new_writer(compressions[i]);
    assert_ok(tutti_record_writer_write(writer, "one", 3, &err));
    assert_ok(tutti_record_writer_write(writer, NULL, 0, &err));
    assert_ok(tutti_record_writer_close(writer, &err));
    assert_error(TUTTI_FAILED_PRECONDITION, "is already closed", tutti_record_writer_write(writer, "x", 1, &err));
    assert_error(TUTTI_FAILED_PRECONDITION, "is already closed", tutti_record_writer_close(writer, &err));
    tutti_record_writer_unref(writer);
    tutti_pipeline *pipeline = read_file();
    tutti_pipeline_batch(pipeline, 9, NULL);
    tutti_dataset *dataset = build(pipeline);
    tutti_iterator *iterator = NULL;
    uint8_t more = 0;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    const tutti_tensor *records = tutti_iterator_get_component(iterator, 0);
    assert_int_equal(tutti_tensor_get_dim(records, 0), 2);
    assert_int_equal(tutti_tensor_get_element_size(records, 0), 3);
    assert_int_equal(tutti_tensor_get_element_size(records, 1), 0);
    assert_memory_equal(tutti_tensor_get_element_data(records, 0), "one", 3);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
  }
}

static void test_examples(void **state) {
  (void)state;
  tutti_record_writer *writer = new_writer("gzip");
  for (int i = 0; i < 3; i++) {
    const float x[] = {(float)i, (float)(10 * i)};
    const int32_t y = i;
    tutti_tensor *numbers = make_vector(TUTTI_DTYPE_F32, 2, x), *label = make_tensor(TUTTI_DTYPE_I32, 0, NULL, &y);
    assert_ok(tutti_record_writer_add_feature(writer, "x", label, &err)); /* replaced */
    assert_ok(tutti_record_writer_add_feature(writer, "x", numbers, &err));
    assert_ok(tutti_record_writer_add_feature(writer, "y", label, &err));
    tutti_tensor_unref(numbers), tutti_tensor_unref(label);
    assert_ok(tutti_record_writer_write_example(writer, &err));
  }
  assert_ok(tutti_record_writer_close(writer, &err));
  tutti_record_writer_unref(writer);
  tutti_pipeline *pipeline = read_file();
  const char *features[] = {"x: f32[2]", "y: i32"}, *labels[] = {"y"};
  tutti_pipeline_parse_example_attrs attrs = {.labels = labels, .labels_count = 1};
  tutti_pipeline_parse_example(pipeline, features, 2, &attrs);
  tutti_pipeline_batch(pipeline, 3, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_component_role(dataset, 1), TUTTI_ROLE_LABEL);
  static const float expected[] = {0, 0, 1, 10, 2, 20};
  assert_walk(dataset, expected, 6);
  tutti_dataset_unref(dataset);
}

static void test_sequence_examples(void **state) {
  (void)state;
  static const float frames[] = {0, 1, 2, 3, 4, 5};
  static const int64_t tokens[] = {7, 8, 0, 0, 9, 0}, counts[] = {2, 0, 1}, too_long[] = {2, 3, 1};
  const int64_t shape[] = {3, 2};
  tutti_tensor *steps = make_tensor(TUTTI_DTYPE_F32, 2, shape, frames);
  tutti_tensor *padded = make_tensor(TUTTI_DTYPE_I64, 2, shape, tokens);
  tutti_tensor *lengths = make_vector(TUTTI_DTYPE_I64, 3, counts), *wrong = make_vector(TUTTI_DTYPE_I64, 3, too_long);
  tutti_record_writer *writer = new_writer(NULL);
  assert_ok(tutti_record_writer_add_feature(writer, "counts", lengths, &err));
  assert_ok(tutti_record_writer_add_feature_list(writer, "frames", padded, NULL, &err)); /* replaced */
  assert_ok(tutti_record_writer_add_feature_list(writer, "frames", steps, NULL, &err));
  assert_ok(tutti_record_writer_add_feature_list(writer, "tokens", padded, lengths, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "feature list 'frames' was added",
               tutti_record_writer_write_example(writer, &err));
  assert_ok(tutti_record_writer_write_sequence_example(writer, &err));
  assert_ok(tutti_record_writer_add_feature_list(writer, "tokens", padded, wrong, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "feature list 'tokens' cannot be written",
               tutti_record_writer_write_sequence_example(writer, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "feature list 'x'",
               tutti_record_writer_add_feature_list(writer, "x", NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'name'", tutti_record_writer_add_feature_list(writer, NULL, steps, NULL, &err));
  assert_ok(tutti_record_writer_close(writer, &err));
  tutti_record_writer_unref(writer);
  tutti_pipeline *pipeline = read_file();
  const char *sequences[] = {"frames: f32[2]", "tokens: i64[?]"}, *context[] = {"counts: i64[3]"};
  tutti_pipeline_parse_sequence_example_attrs attrs = {.context = context, .context_count = 1};
  tutti_pipeline_parse_sequence_example(pipeline, sequences, 2, &attrs);
  tutti_dataset *dataset = build(pipeline);
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), counts, sizeof counts);
  assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 1)), frames, sizeof frames);
  assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 2)), tokens, sizeof tokens);
  assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 3)), counts, sizeof counts);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  tutti_tensor_unref(steps), tutti_tensor_unref(padded), tutti_tensor_unref(lengths), tutti_tensor_unref(wrong);
}

static void test_mistakes(void **state) {
  (void)state;
  tutti_record_writer *writer = (tutti_record_writer *)(uintptr_t)1;
  assert_error(TUTTI_INVALID_ARGUMENT, "'path'", tutti_record_writer_create(NULL, NULL, NULL, &writer, &err));
  assert_null(writer);
  assert_error(TUTTI_INVALID_ARGUMENT, "got 'zip'", tutti_record_writer_create(NULL, path, "zip", &writer, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "expected none", tutti_record_writer_create(NULL, path, "auto", &writer, &err));
  assert_error(TUTTI_NOT_FOUND, "/none/", tutti_record_writer_create(NULL, "/none/x", NULL, &writer, &err));
  writer = new_writer(NULL);
  assert_error(TUTTI_INVALID_ARGUMENT, "'size_bytes'", tutti_record_writer_write(writer, "x", -1, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'data'", tutti_record_writer_write(writer, NULL, 1, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "feature 'x'", tutti_record_writer_add_feature(writer, "x", NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'name'", tutti_record_writer_add_feature(writer, NULL, NULL, &err));
  tutti_record_writer_unref(writer);
}

static int make_folder(void **state) {
  make_directory(folder);
  join_path(path, sizeof path, folder, "file");
  return remember_live_objects(state);
}

static int remove_folder(void **state) {
  remove_directory(folder);
  return assert_nothing_left(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_records),
      cmocka_unit_test(test_examples),
      cmocka_unit_test(test_sequence_examples),
      cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
