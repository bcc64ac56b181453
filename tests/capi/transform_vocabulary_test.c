/* SPDX-License-Identifier: Apache-2.0
 * Transforms that no other test reaches through the C interface, each against elements worked out here. */
#include "capi_testing.h"

enum { MOST = 64 };

static tutti_pipeline *numbers(int64_t count) {
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_range(pipeline, count, NULL);
  return pipeline;
}

/* All numbers of a component, those of one element behind those of another, with the number of elements before them. */
static int read_all(tutti_pipeline *pipeline, int64_t component, int64_t *values, int64_t *elements) {
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  assert_ok(tutti_iterator_create(dataset, 7, &iterator, &err));
  int count = 0;
  uint8_t more = 1;
  for (*elements = 0;; ++*elements) {
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    if (!more) break;
    const tutti_tensor *const tensor = tutti_iterator_get_component(iterator, component);
    assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_I64);
    const int64_t *const numbers = tutti_tensor_get_data(tensor);
    for (int64_t i = 0; i < tutti_tensor_get_element_count(tensor); i++) {
      assert_true(count < MOST);
      values[count++] = numbers[i];
    }
  }
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
  return count;
}

static void expect(tutti_pipeline *pipeline, int64_t component, int64_t elements, const int64_t *expected, int count) {
  int64_t values[MOST], got;
  assert_int_equal(read_all(pipeline, component, values, &got), count);
  assert_int_equal(got, elements);
  assert_memory_equal(values, expected, (size_t)count * sizeof *expected);
}

static void test_enumerate(void **state) {
  (void)state;
  tutti_pipeline *pipeline = numbers(4);
  const tutti_pipeline_enumerate_attrs from_five = {.start = 5, .name = "place"};
  tutti_pipeline_enumerate(pipeline, &from_five);
  expect(pipeline, 1, 4, (int64_t[]){5, 6, 7, 8}, 4);
}

static void test_rebatch(void **state) {
  (void)state;
  for (int drops = 0; drops <= 1; drops++) {
    tutti_pipeline *pipeline = numbers(11);
    const tutti_pipeline_rebatch_attrs attrs = {.drop_remainder = (uint8_t)drops};
    tutti_pipeline_batch(pipeline, 4, NULL);
    tutti_pipeline_rebatch(pipeline, 3, &attrs);
    expect(pipeline, 0, drops ? 3 : 4, (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, drops ? 9 : 11);
  }
}

static void test_unbatch(void **state) {
  (void)state;
  tutti_pipeline *pipeline = numbers(5);
  tutti_pipeline_batch(pipeline, 2, NULL);
  tutti_pipeline_unbatch(pipeline);
  expect(pipeline, 0, 5, (int64_t[]){0, 1, 2, 3, 4}, 5);
}

static void test_window(void **state) {
  (void)state;
  const tutti_pipeline_window_attrs overlapping = {.shift = 2, .stride = 2, .drop_remainder = 1};
  tutti_pipeline *pipeline = numbers(9);
  tutti_pipeline_window(pipeline, 3, &overlapping);
  expect(pipeline, 0, 3, (int64_t[]){0, 2, 4, 2, 4, 6, 4, 6, 8}, 9);
  pipeline = numbers(5);
  tutti_pipeline_window(pipeline, 2, NULL);
  expect(pipeline, 0, 3, (int64_t[]){0, 1, 2, 3, 4}, 5);
}

static void test_split(void **state) {
  (void)state;
  const tutti_pipeline_split_attrs third = {.has_fraction = 1, .fraction = 1.0 / 3};
  tutti_pipeline *first = numbers(10), *second = numbers(10);
  tutti_pipeline_split(first, "first", &third), tutti_pipeline_split(second, "second", &third);
  int64_t values[MOST], more[MOST], elements, others, seen[10] = {0};
  const int count = read_all(first, 0, values, &elements), rest = read_all(second, 0, more, &others);
  assert_int_equal(count, 3);
  assert_int_equal(rest, 7);
  for (int i = 0; i < count; i++)
    seen[values[i]]++;
  for (int i = 0; i < rest; i++)
    seen[more[i]]++;
  for (int i = 0; i < 10; i++)
    assert_int_equal(seen[i], 1);
}

static tutti_pipeline *classes(const int64_t *values, int64_t count) {
  tutti_pipeline *pipeline = NULL;
  tutti_tensor *tensor = make_tensor(TUTTI_DTYPE_I64, 1, &count, values);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "class", TUTTI_ROLE_LABEL, tensor);
  tutti_tensor_unref(tensor);
  return pipeline;
}

static void test_unique(void **state) {
  (void)state;
  tutti_pipeline *pipeline = classes((int64_t[]){3, 1, 3, 2, 1, 3, 7}, 7);
  tutti_pipeline_unique(pipeline, "class");
  expect(pipeline, 0, 4, (int64_t[]){3, 1, 2, 7}, 4);
}

/* One in four is of class 1: with equal shares wanted every one stays, and about a third of the others. */
static void test_resample(void **state) {
  (void)state;
  int64_t values[60], kept[MOST], elements, of_class[2] = {0, 0};
  for (int i = 0; i < 60; i++)
    values[i] = i % 4 == 0;
  tutti_pipeline *pipeline = classes(values, 60);
  tutti_pipeline_resample(pipeline, "class", (double[]){0.75, 0.25}, 2, NULL);
  const int count = read_all(pipeline, 0, kept, &elements);
  for (int i = 0; i < count; i++)
    of_class[kept[i]]++;
  assert_int_equal(of_class[1], 15);
  assert_true(of_class[0] >= 5 && of_class[0] <= 27); /* 15 on average; beyond four deviations otherwise */
}

/* Multiples of 3. */
static int32_t build_filter(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value rest = tutti_mod(g, tutti_graph_get_feature(g, "value"), tutti_graph_constant(g, TUTTI_DTYPE_I64, 3));
  tutti_graph_set_output(g, "keep", tutti_equal(g, rest, tutti_graph_constant(g, TUTTI_DTYPE_I64, 0)));
  return tutti_graph_check(g, err);
}

static void test_filter(void **state) {
  (void)state;
  tutti_pipeline *pipeline = numbers(11);
  tutti_pipeline_filter_graph(pipeline, build_filter, NULL);
  expect(pipeline, 0, 4, (int64_t[]){0, 3, 6, 9}, 4);
  pipeline = numbers(11);
  tutti_pipeline_begin(pipeline, "filter", 1);
  tutti_pipeline_set_graph(pipeline, build_filter, NULL);
  tutti_pipeline_end(pipeline);
  expect(pipeline, 0, 4, (int64_t[]){0, 3, 6, 9}, 4);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_enumerate), cmocka_unit_test(test_rebatch), cmocka_unit_test(test_unbatch),
    cmocka_unit_test(test_window),    cmocka_unit_test(test_split),   cmocka_unit_test(test_unique),
    cmocka_unit_test(test_resample),  cmocka_unit_test(test_filter),
};
CAPI_TEST_MAIN(tests)
