/* SPDX-License-Identifier: Apache-2.0
 * Maps and filters through the C interface: as graphs, and as functions in C. */
#include "dataset_fixtures.h"

static int32_t is_above_two(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value two = tutti_graph_constant(g, TUTTI_DTYPE_F32, 2);
  tutti_graph_set_output(g, "keep", tutti_greater(g, tutti_graph_get_feature(g, "x"), two));
  return tutti_graph_check(g, err);
}

static int32_t is_below_four(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value four = tutti_graph_constant(g, TUTTI_DTYPE_F32, 4);
  tutti_graph_set_output(g, "goes_on", tutti_less(g, tutti_graph_get_feature(g, "x"), four));
  return tutti_graph_check(g, err);
}

static int32_t is_no_truth(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_graph_set_output(g, "keep", tutti_graph_get_feature(g, "x"));
  return tutti_graph_check(g, err);
}

static void test_map_graph(void **state) {
  (void)state;
  for (int64_t parallelism = 1; parallelism <= 4; parallelism += 3) {
    tutti_pipeline *pipeline = count_to(6);
    tutti_pipeline_map_graph(pipeline, add_double, NULL, parallelism);
    tutti_dataset *dataset = build(pipeline);
    assert_int_equal(tutti_dataset_get_component_count(dataset), 2);
    assert_string_equal(tutti_dataset_get_component_name(dataset, 1), "double");
    assert_int_equal(tutti_dataset_get_component_role(dataset, 1), TUTTI_ROLE_FEATURE);
    static const float shifted[] = {100, 101, 102, 103, 104, 105}, doubled[] = {0, 2, 4, 6, 8, 10};
    float got[6];
    assert_walk(dataset, shifted, 6);
    assert_int_equal(walk(dataset, 0, 1, got, 6), 6);
    assert_memory_equal(got, doubled, sizeof doubled);
    tutti_dataset_unref(dataset);
  }
}

static void test_filter_graph(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(6);
  tutti_pipeline_filter_graph(pipeline, is_above_two, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), TUTTI_CARDINALITY_UNKNOWN);
  static const float expected[] = {3, 4, 5};
  assert_walk(dataset, expected, 3);
  tutti_dataset_unref(dataset);
  pipeline = count_to(6);
  tutti_pipeline_filter_graph(pipeline, is_no_truth, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "bool", pipeline);
}

static void test_take_while_graph(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(6);
  tutti_pipeline_begin(pipeline, "take_while", 1);
  tutti_pipeline_set_graph(pipeline, is_below_four, NULL);
  tutti_pipeline_end(pipeline);
  tutti_dataset *dataset = build(pipeline);
  static const float expected[] = {0, 1, 2, 3};
  assert_walk(dataset, expected, 4);
  tutti_dataset_unref(dataset);

  pipeline = count_to(3); /* a map written the long way keeps what its graph does not give */
  tutti_pipeline_begin(pipeline, "map", 1);
  tutti_pipeline_set_graph(pipeline, add_double, NULL);
  tutti_pipeline_end(pipeline);
  dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_component_count(dataset), 2);
  tutti_dataset_unref(dataset);

  pipeline = count_to(3);
  tutti_pipeline_set_graph(pipeline, add_double, NULL);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "a graph was set, but no transform was begun", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "take_while", 1);
  tutti_pipeline_set_graph(pipeline, NULL, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "argument 'build' is NULL", pipeline);
}

struct predicate_record {
  float bound;
  int destroyed;
};

static int32_t is_below_bound(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer,
                              tutti_error **err) {
  struct predicate_record *record = user;
  float value = *(const float *)tutti_tensor_get_data(inputs[0]);
  if (count != 1 || value == 5) return tutti_error_set(err, TUTTI_DATA_LOSS, "no opinion on five");
  *answer = value < record->bound || value > 3;
  return TUTTI_OK;
}

static void count_destroyed(void *user) { ((struct predicate_record *)user)->destroyed++; }

static void test_predicates(void **state) {
  (void)state;
  static const char *const transforms[] = {"filter_callback", "take_while_callback"};
  static const float expected[] = {0, 1, 4};
  for (int i = 0; i < 2; i++) {
    struct predicate_record record = {.bound = 2};
    tutti_pipeline *pipeline = count_to(6);
    tutti_pipeline_begin(pipeline, transforms[i], 1);
    tutti_pipeline_set_predicate(pipeline, is_below_bound, &record, count_destroyed);
    tutti_pipeline_end(pipeline);
    tutti_dataset *dataset = build(pipeline);
    tutti_iterator *iterator = NULL;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    for (int k = 0; k < 3 - i; k++) {
      uint8_t more = 0;
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_true(more);
      assert_true(*(const float *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)) == expected[k]);
    }
    uint8_t more = 1;
    if (i == 0) {
      assert_error(TUTTI_DATA_LOSS, "no opinion on five", tutti_iterator_next(iterator, NULL, &more, &err));
    } else {
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_false(more);
    }
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
    assert_int_equal(record.destroyed, 1);
  }
  struct predicate_record record = {.bound = 2};
  tutti_pipeline *pipeline = count_to(6);
  tutti_pipeline_set_predicate(pipeline, is_below_bound, &record, count_destroyed);
  assert_int_equal(record.destroyed, 1); /* also when the registration fails */
  assert_build_error(TUTTI_FAILED_PRECONDITION, "a predicate was set, but no transform was begun", pipeline);
  pipeline = count_to(6);
  tutti_pipeline_set_predicate(pipeline, NULL, NULL, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "argument 'predicate' is NULL", pipeline);
}

struct expand_record {
  int destroyed, calls;
  tutti_dataset *other;
};

/* The dataset 0 .. x - 1; no dataset for 2; one of another kind for 3. */
static int32_t count_up(void *user, tutti_tensor *const *inputs, int64_t count, tutti_dataset **dataset,
                        tutti_error **error) {
  struct expand_record *record = user;
  int64_t rows = (int64_t) * (const float *)tutti_tensor_get_data(inputs[0]);
  record->calls++;
  if (count != 1 || rows == 4) return tutti_error_set(error, TUTTI_NOT_FOUND, "no such file");
  if (rows == 2) return TUTTI_OK;
  *dataset = rows == 3 ? record->other : counting_dataset(rows);
  if (rows == 3) tutti_dataset_ref(record->other);
  return TUTTI_OK;
}

static void expand_destroyed(void *user) { ((struct expand_record *)user)->destroyed++; }

static void test_flat_map(void **state) {
  (void)state;
  struct expand_record record = {0};
  tutti_pipeline *pipeline = count_to(3);
  tutti_pipeline_map_graph(pipeline, add_double, NULL, 1);
  record.other = build(pipeline);
  static const char *const transforms[] = {"flat_map", "interleave_callback"};
  for (int i = 0; i < 2; i++) {
    record.destroyed = record.calls = 0;
    pipeline = count_to(6);
    tutti_pipeline_begin(pipeline, transforms[i], 1);
    tutti_pipeline_set_expand(pipeline, count_up, &record, expand_destroyed);
    if (i == 1) tutti_pipeline_set_i64(pipeline, "cycle_length", 1);
    tutti_pipeline_end(pipeline);
    tutti_dataset *dataset = build(pipeline);
    tutti_iterator *iterator = NULL;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    uint8_t more = 0;
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err)); /* the one element of 1 */
    assert_true(more);
    assert_error(TUTTI_INVALID_ARGUMENT, "expected a dataset handle, got NULL",
                 tutti_iterator_next(iterator, NULL, &more, &err));
    assert_error(TUTTI_INVALID_ARGUMENT, "equal specs", tutti_iterator_next(iterator, NULL, &more, &err));
    assert_error(TUTTI_NOT_FOUND, "no such file", tutti_iterator_next(iterator, NULL, &more, &err));
    for (int k = 0; k < 5; k++) {
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_true(more);
      assert_true(*(const float *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)) == (float)k);
    }
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_false(more);
    assert_int_equal(record.calls, 6);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
    assert_int_equal(record.destroyed, 1);
  }
  pipeline = count_to(4); /* what the datasets are like */
  tutti_pipeline_skip(pipeline, 3);
  tutti_pipeline_begin(pipeline, "flat_map", 1);
  tutti_pipeline_set_dataset(pipeline, "like", record.other);
  tutti_pipeline_set_expand(pipeline, count_up, &record, NULL);
  tutti_pipeline_end(pipeline);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_component_count(dataset), 2);
  static const float expected[] = {100, 101, 102};
  assert_walk(dataset, expected, 3);
  tutti_dataset_unref(dataset);
  tutti_dataset_unref(record.other);
  pipeline = count_to(4);
  tutti_pipeline_set_expand(pipeline, NULL, NULL, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "argument 'expand' is NULL", pipeline);
}

struct scan_record {
  int destroyed;
};

/* The sum of x so far, and "double" of it; no opinion on five; nothing at all for six. */
static int32_t add_up(void *user, tutti_tensor *const *state, tutti_tensor **new_state, int64_t state_count,
                      tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs, int64_t output_count,
                      tutti_error **error) {
  float value = *(const float *)tutti_tensor_get_data(inputs[0]);
  float sum = *(const float *)tutti_tensor_get_data(state[0]) + value, twice = 2 * sum;
  (void)user;
  if (state_count != 1 || count != 1 || output_count != 2 || value == 5)
    return tutti_error_set(error, TUTTI_DATA_LOSS, "no opinion on five");
  if (value == 6) return TUTTI_OK;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &sum, sizeof sum, &outputs[0], error);
  if (code == TUTTI_OK)
    code = tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &twice, sizeof twice, &outputs[1], error);
  if (code != TUTTI_OK) return code;
  tutti_tensor_ref(outputs[0]);
  new_state[0] = outputs[0];
  return TUTTI_OK;
}

static void scan_destroyed(void *user) { ((struct scan_record *)user)->destroyed++; }

static int32_t add_up_graph(tutti_graph *g, void *user, tutti_error **error) {
  (void)user;
  tutti_value sum = tutti_add(g, tutti_graph_get_feature(g, "sum"), tutti_graph_get_feature(g, "x"));
  tutti_graph_set_output(g, "sum", sum);
  tutti_graph_set_output(g, "x", sum);
  return tutti_graph_check(g, error);
}

static tutti_tensor *scalar(float value) {
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &value, sizeof value, &tensor, &err));
  return tensor;
}

static void test_scan_callback(void **state) {
  (void)state;
  struct scan_record record = {0};
  tutti_tensor *initial = scalar(10);
  tutti_pipeline *pipeline = count_to(3);
  tutti_pipeline_map_graph(pipeline, add_double, NULL, 1);
  tutti_dataset *like = build(pipeline);
  pipeline = count_to(8);
  tutti_pipeline_begin(pipeline, "scan_callback", 1);
  tutti_pipeline_set_state(pipeline, "sum", initial);
  tutti_pipeline_set_scan(pipeline, add_up, &record, scan_destroyed);
  tutti_pipeline_set_dataset(pipeline, "like", like);
  tutti_pipeline_end(pipeline);
  tutti_dataset *dataset = build(pipeline);
  tutti_dataset_unref(like);
  assert_int_equal(tutti_dataset_get_component_count(dataset), 2);
  static const float sums[] = {10, 11, 13, 16, 20, 0, 0, 27};
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int i = 0; i < 8; i++) {
    uint8_t more = 0;
    if (i == 5) {
      assert_error(TUTTI_DATA_LOSS, "no opinion on five", tutti_iterator_next(iterator, NULL, &more, &err));
    } else if (i == 6) {
      assert_error(TUTTI_INVALID_ARGUMENT, "left an output without a tensor",
                   tutti_iterator_next(iterator, NULL, &more, &err));
    } else {
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_true(more);
      assert_true(*(const float *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)) == sums[i]);
      assert_true(*(const float *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 1)) == 2 * sums[i]);
    }
  }
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_int_equal(record.destroyed, 1);

  pipeline = count_to(6);
  tutti_pipeline_set_scan(pipeline, add_up, &record, scan_destroyed);
  assert_int_equal(record.destroyed, 2);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "a function was set, but no transform was begun", pipeline);
  pipeline = count_to(6);
  tutti_pipeline_set_scan(pipeline, NULL, NULL, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "argument 'scan' is NULL", pipeline);
  pipeline = count_to(6);
  tutti_pipeline_set_state(pipeline, "sum", initial);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "a state was set, but no transform was begun", pipeline);
  pipeline = count_to(6);
  tutti_pipeline_begin(pipeline, "scan_callback", 1);
  tutti_pipeline_set_scan(pipeline, add_up, &record, NULL);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "expected the argument 'state'", pipeline);
  tutti_tensor_unref(initial);
}

static void test_scan_graph(void **state) {
  (void)state;
  tutti_tensor *initial = scalar(10);
  tutti_pipeline *pipeline = count_to(4);
  tutti_pipeline_begin(pipeline, "scan", 1);
  tutti_pipeline_set_state(pipeline, "sum", initial);
  tutti_pipeline_set_graph(pipeline, add_up_graph, NULL);
  tutti_pipeline_end(pipeline);
  tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_component_count(dataset), 1);
  static const float expected[] = {10, 11, 13, 16, 10, 11, 13, 16};
  assert_walk(dataset, expected, 8);
  tutti_dataset_unref(dataset);
  tutti_tensor_unref(initial);
}

struct map_record {
  float fail_at; /* < 0: never */
  int leave_empty;
  int destroyed;
};

static int32_t negate(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                      tutti_error **err) {
  struct map_record *record = user;
  if (count != 1) return tutti_error_set(err, TUTTI_INTERNAL, "expected one component");
  float value = *(const float *)tutti_tensor_get_data(inputs[0]);
  if (value == record->fail_at) return tutti_error_set(err, TUTTI_DATA_LOSS, "row is torn");
  if (record->leave_empty) return TUTTI_OK;
  if (value == 0) { /* the input itself is allowed */
    tutti_tensor_ref(inputs[0]);
    outputs[0] = inputs[0];
    return TUTTI_OK;
  }
  value = -value;
  return tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &value, sizeof value, &outputs[0], err);
}

static void count_destroy(void *user) { ((struct map_record *)user)->destroyed++; }

static void test_map_callback(void **state) {
  (void)state;
  static const float expected[] = {0, -1, -2, -3, -4, -5, -6, -7};
  for (int64_t parallelism = 1; parallelism <= 4; parallelism += 3) {
    struct map_record record = {.fail_at = -1};
    tutti_pipeline *pipeline = count_to(8);
    tutti_pipeline_map(pipeline, negate, &record, count_destroy, parallelism);
    tutti_dataset *dataset = build(pipeline);
    assert_walk(dataset, expected, 8); /* in order */
    assert_int_equal(record.destroyed, 0);
    tutti_dataset_unref(dataset);
    assert_int_equal(record.destroyed, 1);
  }
}

static void test_map_callback_errors(void **state) {
  (void)state;
  for (int leave_empty = 0; leave_empty < 2; leave_empty++) {
    struct map_record record = {.fail_at = leave_empty ? -1.0f : 2.0f, .leave_empty = leave_empty};
    tutti_pipeline *pipeline = count_to(5);
    tutti_pipeline_map(pipeline, negate, &record, count_destroy, 1);
    tutti_dataset *dataset = build(pipeline);
    tutti_iterator *iterator = NULL;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    uint8_t more = 0;
    if (leave_empty) {
      assert_error(TUTTI_INVALID_ARGUMENT, "left an output without a tensor",
                   tutti_iterator_next(iterator, NULL, &more, &err));
    } else {
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_error(TUTTI_DATA_LOSS, "row is torn", tutti_iterator_next(iterator, NULL, &more, &err));
    }
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
    assert_int_equal(record.destroyed, 1);
  }
}

struct kept_line {
  int count;
  char text[512];
};

static void keep_line(void *user, int32_t severity, const char *text) {
  struct kept_line *kept = user;
  if (severity != TUTTI_LOG_WARNING) return;
  kept->count++;
  snprintf(kept->text, sizeof kept->text, "%s", text);
}

static void test_what_is_left_out_is_in_the_log(void **state) {
  (void)state;
  static const float expected[] = {0, -1, -3};
  struct map_record record = {.fail_at = 2};
  struct kept_line kept = {.count = 0};
  tutti_pipeline *pipeline = count_to(4);
  tutti_pipeline_map(pipeline, negate, &record, NULL, 1);
  tutti_pipeline_ignore_errors(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_ok(tutti_context_set_log(NULL, keep_line, &kept, NULL, TUTTI_LOG_INFO, &err));
  assert_walk(dataset, expected, 3);
  assert_ok(tutti_context_set_log(NULL, NULL, NULL, NULL, TUTTI_LOG_INFO, &err));
  tutti_dataset_unref(dataset);
  assert_int_equal(kept.count, 1);
  assert_contains(kept.text, "ignore_errors: left out: ");
  assert_contains(kept.text, "row is torn");
}

/* x as an f32 vector of its value many, and whether it is odd; no vector for 3; another type of the answer for 4. */
static int32_t count_out(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                         int64_t output_count, tutti_error **error) {
  struct map_record *record = user;
  float value = *(const float *)tutti_tensor_get_data(inputs[0]), ones[8];
  if (count != 1 || output_count != 2) return tutti_error_set(error, TUTTI_INTERNAL, "expected one and two components");
  if (value == record->fail_at) return tutti_error_set(error, TUTTI_DATA_LOSS, "row is torn");
  int64_t size = (int64_t)value;
  int32_t is_odd = (int32_t)size % 2;
  for (int64_t i = 0; i < size; i++)
    ones[i] = value;
  int32_t type = value == 4 ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32;
  int32_t code = tutti_tensor_from_data(type, NULL, 0, &is_odd, sizeof is_odd, &outputs[1], error);
  if (code != TUTTI_OK || value == 3) return code;
  return tutti_tensor_from_data(TUTTI_DTYPE_F32, &size, 1, ones, (int64_t)sizeof *ones * size, &outputs[0], error);
}

static int32_t no_elements(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                           uint8_t *has_element, tutti_error **error) {
  (void)user, (void)pass, (void)index, (void)outputs, (void)count, (void)error;
  *has_element = 0;
  return TUTTI_OK;
}

/* A dataset of the components that count_out gives. */
static tutti_dataset *counted_out(void) {
  static const int64_t any[] = {-1};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "values", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, any, 1);
  tutti_pipeline_declare(pipeline, "is_odd", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0);
  tutti_pipeline_add_generator(pipeline, no_elements, NULL, NULL);
  return build(pipeline);
}

static tutti_pipeline *begin_map(int64_t rows, int64_t parallelism) {
  tutti_pipeline *pipeline = count_to(rows);
  tutti_pipeline_begin(pipeline, "map_callback", 1);
  tutti_pipeline_set_i64(pipeline, "parallelism", parallelism);
  return pipeline;
}

static void assert_counted_out(tutti_iterator *iterator, float value) {
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_true(more);
  tutti_tensor *values = tutti_iterator_get_component(iterator, 0);
  assert_int_equal(tutti_tensor_get_dim(values, 0), (int64_t)value);
  if (value > 0) assert_true(*(const float *)tutti_tensor_get_data(values) == value);
  const int32_t *is_odd = tutti_tensor_get_data(tutti_iterator_get_component(iterator, 1));
  assert_int_equal(*is_odd, (int)value % 2);
}

static void test_map_to_other_components(void **state) {
  (void)state;
  tutti_dataset *like = counted_out();
  for (int64_t parallelism = 1; parallelism <= 4; parallelism += 3) {
    struct map_record record = {.fail_at = 2};
    tutti_pipeline *pipeline = begin_map(7, parallelism);
    tutti_pipeline_set_map(pipeline, count_out, &record, count_destroy);
    tutti_pipeline_set_dataset(pipeline, "like", like);
    tutti_pipeline_end(pipeline);
    tutti_dataset *dataset = build(pipeline);
    assert_string_equal(tutti_dataset_get_spec(dataset), tutti_dataset_get_spec(like));
    assert_int_equal(tutti_dataset_get_cardinality(dataset), 7);
    tutti_iterator *iterator = NULL;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    uint8_t more = 0;
    assert_counted_out(iterator, 0);
    assert_counted_out(iterator, 1);
    assert_error(TUTTI_DATA_LOSS, "row is torn", tutti_iterator_next(iterator, NULL, &more, &err));
    assert_error(TUTTI_INVALID_ARGUMENT, "expected (values: f32[unknown], is_odd: i32[] label)",
                 tutti_iterator_next(iterator, NULL, &more, &err));
    assert_error(TUTTI_INVALID_ARGUMENT, "is_odd", tutti_iterator_next(iterator, NULL, &more, &err));
    assert_counted_out(iterator, 5);
    assert_counted_out(iterator, 6);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
    assert_int_equal(record.destroyed, 1);
  }
  tutti_dataset_unref(like);
}

/* Without "like" there are as many outputs as inputs. */
static int32_t negate_all(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                          int64_t output_count, tutti_error **error) {
  if (count != output_count) return tutti_error_set(error, TUTTI_INTERNAL, "expected as many outputs");
  return negate(user, inputs, outputs, count, error);
}

static void test_map_to_the_same_components(void **state) {
  (void)state;
  static const float expected[] = {0, -1, -2};
  struct map_record record = {.fail_at = -1};
  tutti_pipeline *pipeline = begin_map(3, 1);
  tutti_pipeline_set_map(pipeline, negate_all, &record, count_destroy);
  tutti_pipeline_end(pipeline);
  tutti_dataset *dataset = build(pipeline);
  assert_walk(dataset, expected, 3);
  tutti_dataset_unref(dataset);
  assert_int_equal(record.destroyed, 1);
  pipeline = count_to(3);
  tutti_pipeline_set_map(pipeline, negate_all, &record, count_destroy);
  assert_int_equal(record.destroyed, 2); /* also when the registration fails */
  assert_build_error(TUTTI_FAILED_PRECONDITION, "a function was set, but no transform was begun", pipeline);
  pipeline = begin_map(3, 1);
  tutti_pipeline_set_map(pipeline, NULL, &record, count_destroy);
  assert_int_equal(record.destroyed, 3);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "argument 'map' is NULL", pipeline);
  pipeline = begin_map(3, 1);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "expected the argument 'map'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err)); /* no source */
  tutti_pipeline_begin(pipeline, "map_callback", 1);
  tutti_pipeline_set_map(pipeline, negate_all, &record, NULL);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "no source yet", pipeline);
}

static void test_map_callback_is_destroyed_without_a_dataset(void **state) {
  (void)state;
  struct map_record record = {.fail_at = -1};
  tutti_pipeline *pipeline = count_to(5);
  tutti_pipeline_map(pipeline, NULL, &record, count_destroy, 1);
  assert_int_equal(record.destroyed, 1); /* also when the registration fails */
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'map' is NULL", pipeline);
  pipeline = count_to(5);
  tutti_pipeline_map(pipeline, negate, &record, count_destroy, 1);
  tutti_pipeline_unref(pipeline);
  assert_int_equal(record.destroyed, 2);
  tutti_pipeline_map(NULL, negate, &record, count_destroy, 1);
  assert_int_equal(record.destroyed, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_map_graph),
    cmocka_unit_test(test_filter_graph),
    cmocka_unit_test(test_take_while_graph),
    cmocka_unit_test(test_predicates),
    cmocka_unit_test(test_flat_map),
    cmocka_unit_test(test_scan_callback),
    cmocka_unit_test(test_scan_graph),
    cmocka_unit_test(test_map_callback),
    cmocka_unit_test(test_map_callback_errors),
    cmocka_unit_test(test_what_is_left_out_is_in_the_log),
    cmocka_unit_test(test_map_to_other_components),
    cmocka_unit_test(test_map_to_the_same_components),
    cmocka_unit_test(test_map_callback_is_destroyed_without_a_dataset),
};
CAPI_TEST_MAIN(tests)
