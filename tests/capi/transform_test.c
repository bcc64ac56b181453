/* SPDX-License-Identifier: Apache-2.0
 * Transforms through the C interface: batch, shuffle, take, skip, shard, repeat, zip, concatenate, select, split;
 * the lint. */
#define _XOPEN_SOURCE 700
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset_fixtures.h"

static void test_batch(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(5);
  tutti_pipeline_batch(pipeline, 2, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 3);
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  static const int64_t rows[] = {2, 2, 1};
  for (int i = 0; i < 3; i++) {
    uint8_t more = 0;
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_true(more);
    assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(iterator, 0), 0), rows[i]);
  }
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);

  pipeline = count_to(5);
  tutti_pipeline_batch_attrs drop = {.drop_remainder = 1};
  tutti_pipeline_batch(pipeline, 2, &drop);
  dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 2);
  static const float four[] = {0, 1, 2, 3};
  assert_walk(dataset, four, 4);
  tutti_dataset_unref(dataset);
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static void test_shuffle(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(50);
  tutti_pipeline_shuffle(pipeline, 50, NULL);
  tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_dataset *dataset = build(pipeline);
  float first[100], again[100], other[100];
  assert_int_equal(walk(dataset, 7, 0, first, 100), 100);
  assert_int_equal(walk(dataset, 7, 0, again, 100), 100);
  assert_int_equal(walk(dataset, 8, 0, other, 100), 100);
  assert_memory_equal(first, again, sizeof first); /* the seed decides */
  assert_memory_not_equal(first, other, sizeof first);
  assert_memory_not_equal(first, first + 50, 50 * sizeof *first); /* another order in every pass */
  for (int pass = 0; pass < 2; pass++) {
    qsort(first + pass * 50, 50, sizeof *first, by_value);
    for (int i = 0; i < 50; i++)
      assert_true(first[pass * 50 + i] == (float)i); /* every row once in each pass */
  }
  tutti_dataset_unref(dataset);
}

static void test_take_skip_shard_repeat(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(10);
  tutti_pipeline_skip(pipeline, 1);
  tutti_pipeline_shard(pipeline, 3, 1);
  tutti_pipeline_take(pipeline, 2);
  tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  static const float expected[] = {2, 5, 2, 5};
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 4);
  assert_walk(dataset, expected, 4);
  tutti_dataset_unref(dataset);
  pipeline = count_to(3);
  tutti_pipeline_repeat(pipeline, NULL);
  dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), TUTTI_CARDINALITY_INFINITE);
  tutti_dataset_unref(dataset);
}

static void test_zip_and_concatenate(void **state) {
  (void)state;
  tutti_dataset *three = counting_dataset(3);
  tutti_pipeline *pipeline = count_to(2);
  tutti_pipeline_concatenate(pipeline, three);
  tutti_dataset *joined = build(pipeline);
  static const float expected[] = {0, 1, 0, 1, 2};
  assert_walk(joined, expected, 5);
  tutti_dataset_unref(joined);

  static const float squares[] = {0, 1, 4, 9, 16};
  tutti_tensor *tensor = make_vector(TUTTI_DTYPE_F32, 5, squares);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "square", TUTTI_ROLE_LABEL, tensor);
  tutti_pipeline_zip(pipeline, three);
  tutti_dataset *zipped = build(pipeline);
  assert_int_equal(tutti_dataset_get_component_count(zipped), 2);
  assert_int_equal(tutti_dataset_get_cardinality(zipped), 3);
  float got[8];
  assert_int_equal(walk(zipped, 0, 0, got, 8), 3);
  assert_memory_equal(got, squares, 3 * sizeof *got);
  tutti_dataset_unref(zipped);

  pipeline = count_to(2); /* the name "x" twice */
  tutti_pipeline_zip(pipeline, three);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'x'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err)); /* another spec */
  tutti_pipeline_add_slices(pipeline, "square", TUTTI_ROLE_LABEL, tensor);
  tutti_pipeline_concatenate(pipeline, three);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "square", pipeline);
  tutti_tensor_unref(tensor);
  tutti_dataset_unref(three);
}

static void test_lists_of_numbers(void **state) {
  (void)state;
  static const int64_t boundaries[] = {1, 3}, sizes[] = {2};
  static const float values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  tutti_tensor *tensor = NULL;
  static const int64_t dims[] = {4, 2};
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, values, sizeof values, &tensor, &err));
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  static const double padding[] = {-1};
  tutti_pipeline_bucket_by_length_attrs attrs = {.padding = padding, .padding_count = 1};
  tutti_pipeline_bucket_by_length(pipeline, "x", boundaries, 2, sizes, 1, &attrs);
  tutti_dataset *dataset = build(pipeline);
  float got[8];
  assert_int_equal(walk(dataset, 0, 0, got, 8), 8);
  assert_memory_equal(got, values, sizeof values);
  tutti_dataset_unref(dataset);

  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_pipeline_bucket_by_length(pipeline, "x", boundaries, 2, NULL, 1, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'values' is NULL", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_pipeline_bucket_by_length(pipeline, "x", boundaries, -2, sizes, 1, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'count' must be 0 or more, got -2", pipeline);
  tutti_tensor_unref(tensor);
}

static void test_select(void **state) {
  (void)state;
  static const float squares[] = {0, 1, 4};
  tutti_tensor *tensor = make_vector(TUTTI_DTYPE_F32, 3, squares);
  static const char *const features[] = {"area = square"}, *const labels[] = {"x"}, *const missing[] = {"area"};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_pipeline_add_slices(pipeline, "square", TUTTI_ROLE_FEATURE, tensor);
  tutti_pipeline_select_attrs attrs = {.features = features, .features_count = 1, .labels = labels, .labels_count = 1};
  tutti_pipeline_select(pipeline, &attrs);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_component_count(dataset), 2);
  assert_string_equal(tutti_dataset_get_component_name(dataset, 0), "area");
  assert_int_equal(tutti_dataset_get_component_role(dataset, 0), TUTTI_ROLE_FEATURE);
  assert_string_equal(tutti_dataset_get_component_name(dataset, 1), "x");
  assert_int_equal(tutti_dataset_get_component_role(dataset, 1), TUTTI_ROLE_LABEL);
  assert_walk(dataset, squares, 3);
  tutti_dataset_unref(dataset);
  attrs.labels = missing;
  pipeline = count_to(3);
  tutti_pipeline_select(pipeline, &attrs);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "square", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_select(pipeline, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "at least one of (x: f32[])", pipeline);
  tutti_tensor_unref(tensor);
}

static void test_split(void **state) {
  (void)state;
  tutti_dataset *dataset = counting_dataset(5), *first = NULL, *rest = NULL;
  assert_ok(tutti_dataset_split(dataset, 2, &first, &rest, &err));
  static const float head[] = {0, 1}, tail[] = {2, 3, 4};
  assert_walk(first, head, 2);
  assert_walk(rest, tail, 3);
  tutti_dataset_unref(first), tutti_dataset_unref(rest);
  assert_error(TUTTI_INVALID_ARGUMENT, "argument 'count' is 6, but the dataset has 5 elements",
               tutti_dataset_split(dataset, 6, &first, &rest, &err));
  assert_null(first);
  assert_null(rest);
  tutti_pipeline *pipeline = count_to(5);
  const tutti_pipeline_split_attrs six = {.has_count = 1, .count = 6};
  tutti_pipeline_split(pipeline, "first", &six);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "is to have 6 elements, but the dataset has 5", pipeline);
  pipeline = count_to(5);
  tutti_pipeline_take(pipeline, 6); /* may be more than there is */
  tutti_dataset *taken = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(taken), 5);
  tutti_dataset_unref(taken);
  assert_ok(tutti_dataset_split(dataset, 5, &first, &rest, &err));
  assert_int_equal(tutti_dataset_get_cardinality(first), 5);
  assert_int_equal(tutti_dataset_get_cardinality(rest), 0);
  tutti_dataset_unref(first), tutti_dataset_unref(rest);
  assert_error(TUTTI_INVALID_ARGUMENT, "'count'", tutti_dataset_split(dataset, -1, &first, &rest, &err));
  assert_null(first);
  assert_null(rest);
  assert_error(TUTTI_INVALID_ARGUMENT, "'rest' is NULL", tutti_dataset_split(dataset, 1, &first, NULL, &err));
  assert_null(first);
  rest = dataset;
  assert_error(TUTTI_INVALID_ARGUMENT, "'first' is NULL", tutti_dataset_split(dataset, 1, NULL, &rest, &err));
  assert_null(rest);
  tutti_dataset_unref(dataset);
}

static void test_lint(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(10);
  tutti_pipeline_shuffle(pipeline, 5, NULL);
  tutti_pipeline_cache(pipeline, NULL); /* every epoch repeats the first order */
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_contains(tutti_dataset_get_lint(dataset), "cache after shuffle");
  tutti_dataset_unref(dataset);
  pipeline = count_to(10);
  tutti_pipeline_cache(pipeline, NULL);
  tutti_pipeline_shuffle(pipeline, 5, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  dataset = build(pipeline);
  assert_string_equal(tutti_dataset_get_lint(dataset), "");
  tutti_dataset_unref(dataset);
}

static int remove_entry(const char *path, const struct stat *entry, int kind, struct FTW *place) {
  (void)entry, (void)kind, (void)place;
  return remove(path);
}

static void test_caches_in_files(void **state) {
  (void)state;
  char folder[] = "/tmp/tutti-cache-XXXXXX", file[64], pattern[64];
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/cache", folder);
  snprintf(pattern, sizeof pattern, "%s/deep/*.elements", folder);
  static const float expected[] = {0, 1, 2, 3, 4};
  for (int i = 0; i < 2; i++) {
    tutti_pipeline *pipeline = count_to(5);
    tutti_pipeline_cache_attrs attrs = {.path = file};
    tutti_pipeline_cache(pipeline, &attrs);
    tutti_dataset *dataset = build(pipeline);
    assert_walk(dataset, expected, 5);
    tutti_dataset_unref(dataset);
  }
  char *deep = strcat(strcpy(file, folder), "/deep");
  tutti_pipeline *pipeline = count_to(5);
  tutti_pipeline_snapshot(pipeline, deep, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_walk(dataset, expected, 5);
  tutti_dataset_unref(dataset);

  pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  const char *const paths[] = {pattern};
  tutti_source_element_files(pipeline, paths, 1);
  dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 5);
  assert_walk(dataset, expected, 5);
  tutti_dataset_unref(dataset);
  assert_int_equal(nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_batch),
    cmocka_unit_test(test_shuffle),
    cmocka_unit_test(test_take_skip_shard_repeat),
    cmocka_unit_test(test_zip_and_concatenate),
    cmocka_unit_test(test_lists_of_numbers),
    cmocka_unit_test(test_select),
    cmocka_unit_test(test_split),
    cmocka_unit_test(test_lint),
    cmocka_unit_test(test_caches_in_files),
};
CAPI_TEST_MAIN(tests)
