/* SPDX-License-Identifier: Apache-2.0
 * Datasets through the C interface: sources, and mistakes of a pipeline. */
#include "dataset_fixtures.h"

/* --- sources ------------------------------------------------------------------------------------------------------ */

static void test_slices(void **state) {
  (void)state;
  static const float x[] = {1, 2, 3, 4, 5, 6};
  static const int32_t y[] = {7, 8, 9};
  static const float w[] = {0.5f, 1, 2};
  int64_t dims[] = {3, 2};
  tutti_tensor *images = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *labels = make_vector(TUTTI_DTYPE_I32, 3, y),
               *weights = make_vector(TUTTI_DTYPE_F32, 3, w);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, labels);
  tutti_pipeline_add_slices(pipeline, "weight", TUTTI_ROLE_WEIGHT, weights);
  tutti_tensor_unref(images), tutti_tensor_unref(labels), tutti_tensor_unref(weights);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 3);
  assert_int_equal(tutti_dataset_get_component_count(dataset), 3);
  assert_string_equal(tutti_dataset_get_component_name(dataset, 1), "label");
  assert_int_equal(tutti_dataset_get_component_role(dataset, 0), TUTTI_ROLE_FEATURE);
  assert_int_equal(tutti_dataset_get_component_role(dataset, 1), TUTTI_ROLE_LABEL);
  assert_int_equal(tutti_dataset_get_component_role(dataset, 2), TUTTI_ROLE_WEIGHT);
  assert_int_equal(tutti_dataset_get_component_role(dataset, 3), 0);
  assert_null(tutti_dataset_get_component_name(dataset, -1));
  assert_contains(tutti_dataset_get_spec(dataset), "\"image\"");
  assert_contains(tutti_dataset_get_lint(dataset), "no prefetch at the end");
  assert_walk(dataset, x, 6);
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_null(tutti_iterator_get_component(iterator, 0)); /* before the first */
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(*(const int32_t *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 1)), 8);
  assert_int_equal(tutti_tensor_get_rank(tutti_iterator_get_component(iterator, 1)), 0);
  assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(iterator, 0), 0), 2);
  assert_null(tutti_iterator_get_component(iterator, 3));
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static void test_slices_of_different_length(void **state) {
  (void)state;
  static const float numbers[] = {1, 2, 3, 4};
  tutti_tensor *four = make_vector(TUTTI_DTYPE_F32, 4, numbers), *three = make_vector(TUTTI_DTYPE_F32, 3, numbers);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, four);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, three);
  tutti_pipeline_batch(pipeline, 2, NULL);
  tutti_dataset *dataset = NULL;
  tutti_error *err = NULL;
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, &err), TUTTI_INVALID_ARGUMENT);
  assert_contains(tutti_error_get_text(err), "'label'");
  assert_contains(tutti_error_get_text(err), "3");
  assert_contains(tutti_error_get_text(err), "4");
  tutti_error_unref(err);
  /* The pipeline is empty afterwards and can be used again. */
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, three);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(four), tutti_tensor_unref(three);
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void test_idx(void **state) {
  (void)state;
  char directory[64], path[128];
  make_directory(directory);
  join_path(path, sizeof path, directory, "labels.idx");
  static const unsigned char good[] = {0, 0, 0x0D, 1, 0, 0, 0, 2, 0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0}; /* f32 {1, -2} */
  write_file(path, good, sizeof good);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, path);
  tutti_dataset *dataset = build(pipeline);
  static const float expected[] = {1, -2};
  assert_walk(dataset, expected, 2);
  tutti_dataset_unref(dataset);

  static const struct {
    size_t size;
    unsigned char bytes[20];
  } corrupt[] = {
      {0, {0}},
      {3, {0, 0, 8}},
      {8, {1, 2, 3, 4, 5, 6, 7, 8}},                                         /* no magic */
      {10, {0, 0, 0x07, 1, 0, 0, 0, 2, 1, 2}},                               /* no such type */
      {9, {0, 0, 0x08, 1, 0, 0, 0, 2, 1}},                                   /* too short */
      {11, {0, 0, 0x08, 1, 0, 0, 0, 2, 1, 2, 3}},                            /* too long */
      {12, {0, 0, 0x08, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}}, /* huge */
      {12, {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0, 9, 9}},                      /* torn gzip */
  };
  for (size_t i = 0; i < sizeof corrupt / sizeof *corrupt; i++) {
    write_file(path, corrupt[i].bytes, corrupt[i].size);
    assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
    tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, path);
    assert_build_error(TUTTI_DATA_LOSS, "labels.idx", pipeline);
  }
  join_path(path, sizeof path, directory, "missing.idx");
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, path);
  assert_build_error(TUTTI_NOT_FOUND, "missing.idx", pipeline);
  remove_directory(directory);
}

/* --- mistakes of a pipeline --------------------------------------------------------------------------------------- */

static void test_pipeline_mistakes(void **state) {
  (void)state;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  assert_build_error(TUTTI_FAILED_PRECONDITION, "no source", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_batch(pipeline, 0, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "batch_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shufle", 1);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "did you mean 'shuffle'?", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  tutti_pipeline_set_i64(pipeline, "bufer_size", 3);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "buffer_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "buffer_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  tutti_pipeline_set_string(pipeline, "buffer_size", "many");
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "buffer_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "'shuffle' was begun but not ended", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "none was begun", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_set_i64(pipeline, "buffer_size", 3);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "no transform was begun", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_zip(pipeline, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "other", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, "x");
  assert_build_error(TUTTI_FAILED_PRECONDITION, "cannot be added after", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'tensor'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_tensor *scalar = NULL;
  assert_ok(tutti_tensor_create(TUTTI_DTYPE_F32, NULL, 0, &scalar, &err));
  tutti_pipeline_add_slices(pipeline, "x", 4, scalar);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "component 'x': argument 'role'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "pixels", TUTTI_ROLE_FEATURE, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "component 'pixels'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_tensor(pipeline, "pixels", TUTTI_ROLE_FEATURE, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "component 'pixels'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, scalar); /* no first dimension */
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'x'", pipeline);
  tutti_tensor_unref(scalar);
}

/* Whole tensors: one element, of any shapes. */
static void test_tensors(void **state) {
  (void)state;
  static const float values[] = {1, 2, 3, 4};
  tutti_tensor *vector = make_vector(TUTTI_DTYPE_F32, 4, values), *scalar = NULL;
  assert_ok(tutti_tensor_create(TUTTI_DTYPE_I64, NULL, 0, &scalar, &err));
  int64_t references = tutti_debug_live_objects(NULL);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_tensor(pipeline, "x", TUTTI_ROLE_FEATURE, vector);
  tutti_pipeline_add_tensor(pipeline, "n", TUTTI_ROLE_LABEL, scalar);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 1);
  assert_contains(tutti_dataset_get_spec(dataset), "\"label\"");
  assert_walk(dataset, values, 4);
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_true(more);
  assert_ptr_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), tutti_tensor_get_data(vector));
  assert_int_equal(tutti_tensor_get_rank(tutti_iterator_get_component(iterator, 1)), 0);
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_false(more);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_int_equal(tutti_debug_live_objects(NULL), references);

  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_tensor(pipeline, "x", TUTTI_ROLE_FEATURE, vector);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, vector);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "cannot be mixed", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, "x");
  tutti_pipeline_add_tensor(pipeline, "y", TUTTI_ROLE_LABEL, vector);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "cannot be mixed", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_tensor(pipeline, "x", TUTTI_ROLE_FEATURE, vector);
  tutti_pipeline_add_tensor(pipeline, "x", TUTTI_ROLE_FEATURE, vector);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'x'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_tensor(pipeline, "x", TUTTI_ROLE_FEATURE, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'tensor'", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_add_tensor(pipeline, "x", TUTTI_ROLE_FEATURE, vector);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "cannot be added after", pipeline);
  tutti_tensor_unref(scalar);
  tutti_tensor_unref(vector);
}

static void test_contexts_do_not_mix(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"backend\": \"reference\"}");
  tutti_context *other = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_context_create(options, &other, &err));
  assert_ok(tutti_pipeline_create(other, &pipeline, &err));
  tutti_dataset *dataset = counting_dataset(3); /* of the default context */
  tutti_pipeline_add_dataset(pipeline, dataset);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'dataset' belongs to another context", pipeline);
  tutti_dataset_unref(dataset);
  tutti_context_unref(other);
  tutti_options_unref(options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_slices),  cmocka_unit_test(test_slices_of_different_length),
    cmocka_unit_test(test_idx),     cmocka_unit_test(test_pipeline_mistakes),
    cmocka_unit_test(test_tensors), cmocka_unit_test(test_contexts_do_not_mix),
};
CAPI_TEST_MAIN(tests)
