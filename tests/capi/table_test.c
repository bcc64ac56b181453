/* SPDX-License-Identifier: Apache-2.0
 * Tables that a model looks rows up in, with a lazy Adam: on workers of several processes, in lengths that only the
 * data tells, at every level of determinism, over an interruption; and what cannot be done. The numbers themselves are
 * checked by golden_tables_test. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "worker_fixtures.h"

enum { ROWS = 37, COUNT = 50, WIDTH = 3, MOST_IDS = 4, NUMBERS = COUNT * WIDTH, STEPS = 11 };

struct table_case {
  int64_t length;  /* ids of each example; -1: 1 to MOST_IDS, the same in each batch */
  int64_t bad_row; /* whose first id is COUNT + 9; -1 = none */
  int64_t batch;
};

static int64_t length_of(const struct table_case *one, int64_t row) {
  return one->length > 0 ? one->length : 1 + row / one->batch % MOST_IDS;
}

static int32_t make_example(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                            uint8_t *has_element, tutti_error **err) {
  const struct table_case *one = user;
  (void)pass, (void)count;
  if (index >= ROWS) return TUTTI_OK;
  const int64_t length = length_of(one, index);
  int32_t ids[MOST_IDS];
  for (int64_t i = 0; i < length; i++)
    ids[i] = (int32_t)((index * index + 5 * i) % (COUNT - 6));
  if (index == one->bad_row) ids[0] = COUNT + 9;
  const float target = (float)sin((double)index);
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_I32, &length, 1, ids, length * 4, &outputs[0], err);
  if (code == TUTTI_OK) code = tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &target, 4, &outputs[1], err);
  *has_element = code == TUTTI_OK;
  return code;
}

static int32_t table_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const int64_t dims[] = {COUNT, WIDTH}, axes[] = {1, 2};
  tutti_value table = tutti_graph_variable(g, "table", TUTTI_DTYPE_F32, dims, 2, "glorot_uniform", 0, 1);
  tutti_value rows = tutti_gather(g, table, tutti_graph_get_feature(g, "ids"), NULL);
  tutti_reduce_sum_attrs along = {.axes = axes, .axes_count = 2};
  tutti_value sum = tutti_reduce_sum(g, tutti_tanh(g, rows), &along);
  tutti_graph_set_output(g, "sum", sum);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value error = tutti_square(g, tutti_sub(g, sum, tutti_graph_get_feature(g, "target")));
  tutti_graph_set_loss(g, tutti_reduce_mean(g, error, NULL));
  tutti_optimizer_adam_attrs lazy = {.lazy = 1};
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.0625), &lazy);
  return tutti_graph_check(g, err);
}

static int32_t make_data(tutti_context *context, struct table_case *one, tutti_dataset **dataset, tutti_error **err) {
  tutti_pipeline *pipeline = NULL;
  int32_t code = tutti_pipeline_create(context, &pipeline, err);
  if (code != TUTTI_OK) return code;
  tutti_pipeline_declare(pipeline, "ids", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I32, &one->length, 1);
  tutti_pipeline_declare(pipeline, "target", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, NULL, 0);
  tutti_pipeline_add_generator(pipeline, make_example, one, NULL);
  tutti_pipeline_repeat_attrs passes = {.has_count = 1, .count = 3};
  tutti_pipeline_repeat(pipeline, &passes);
  tutti_pipeline_padded_batch(pipeline, one->batch, NULL);
  code = tutti_pipeline_build(pipeline, dataset, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

/* ---- a worker: table_test SCENARIO DIRECTORY; the scenario is what worker_input is ---- */

struct trained {
  int32_t code;
  int64_t step;
  float table[NUMBERS];
  char error[400];
};

static struct trained train(tutti_strategy *strategy, const char *run_json, struct table_case *one, int64_t max_steps) {
  struct trained trained = {0};
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_options *run = make_options("run", run_json);
  tutti_error *err = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_dataset *dataset = NULL;
  char json[64];
  snprintf(json, sizeof json, "{\"max_steps\": %lld}", (long long)max_steps);
  tutti_options *options = make_options("train", json);
  int32_t code = make_data(context, one, &dataset, &err);
  if (code == TUTTI_OK)
    code = tutti_estimator_create(context, table_model, NULL, NULL, strategy, run, &estimator, &err);
  if (code == TUTTI_OK) code = tutti_estimator_train(estimator, dataset, options, NULL, NULL, &result, &err);
  if (code == TUTTI_OK) {
    trained.step = tutti_result_get_step(result);
    code = read_numbers(estimator, "table", trained.table, NUMBERS, &err);
  }
  trained.code = code;
  if (err != NULL) snprintf(trained.error, sizeof trained.error, "%s", tutti_error_get_text(err));
  tutti_error_unref(err);
  tutti_result_unref(result);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  tutti_options_unref(options);
  tutti_options_unref(run);
  return trained;
}

static int worker_main(const char *scenario, const char *directory) {
  struct trained trained = {0};
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_error *err = NULL;
  struct table_case one = {.length = 3, .bad_row = -1, .batch = 7};
  const int lengths_differ = strcmp(scenario, "lengths") == 0;
  if (lengths_differ) one.length = -1;
  char json[200];
  snprintf(json, sizeof json, "{\"connect_timeout_ms\": 60000, \"worker_input\": \"%s\"}",
           lengths_differ ? "auto" : scenario);
  trained.code = join_workers(json, &context, &strategy, &err);
  if (err != NULL) snprintf(trained.error, sizeof trained.error, "%s", tutti_error_get_text(err));
  tutti_error_unref(err);
  if (trained.code == TUTTI_OK)
    trained = train(strategy, "{\"seed\": 5, \"collective_timeout_ms\": 60000}", &one, STEPS);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  return leave_answer(directory, &trained, sizeof trained, trained.code);
}

/* ---- the test ---- */

static struct trained train_alone(int replicas, const char *run_json, struct table_case one, int64_t max_steps) {
  char json[80];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *devices = make_options("context", json);
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_context_create(devices, &context, &err));
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  struct trained trained = train(strategy, run_json, &one, max_steps);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  tutti_options_unref(devices);
  return trained;
}

static void assert_same_table(const struct trained *got, const struct trained *expected) {
  assert_string_equal(got->error, "");
  assert_string_equal(expected->error, "");
  assert_int_equal(got->step, expected->step);
  for (int i = 0; i < NUMBERS; i++)
    assert_true(fabsf(got->table[i] - expected->table[i]) <= 2e-5f * (1 + fabsf(expected->table[i])));
}

static const struct table_case plain = {.length = 3, .bad_row = -1, .batch = 7};

/* "own": each worker goes through all rows by itself, so two of them have steps of twice the batch. */
static void test_workers_train_as_one(void **state) {
  (void)state;
  for (int is_own = 0; is_own < 2; is_own++) {
    char directory[64];
    make_directory(directory);
    struct trained all[MOST_WORKERS];
    int codes[MOST_WORKERS];
    run_workers(is_own ? "own" : "auto", directory, 2, 2, codes, all, sizeof *all);
    assert_same_table(&all[0], &all[1]);
    assert_memory_equal(all[0].table, all[1].table, sizeof all[0].table);
    if (!is_own) {
      const struct trained alone = train_alone(1, "{\"seed\": 5}", plain, STEPS);
      assert_same_table(&all[0], &alone);
    }
    remove_directory(directory);
  }
}

static void test_workers_need_known_lengths(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run_workers("lengths", directory, 2, 1, codes, all, sizeof *all);
  for (int w = 0; w < 2; w++) {
    assert_int_equal(all[w].code, TUTTI_UNIMPLEMENTED);
    assert_contains(all[w].error, "rows of variable 'table' cannot be updated alone: how many an example looks up");
  }
  remove_directory(directory);
}

static void test_replicas_train_as_one(void **state) {
  (void)state;
  for (int has_lengths = 0; has_lengths < 2; has_lengths++) {
    struct table_case one = plain;
    if (has_lengths) one.length = -1;
    const struct trained alone = train_alone(1, "{\"seed\": 5}", one, STEPS);
    for (int replicas = 2; replicas <= 5; replicas++) {
      const struct trained several = train_alone(replicas, "{\"seed\": 5}", one, STEPS);
      assert_same_table(&several, &alone);
    }
  }
}

/* The last step has micro-batches of 7 and of 6 rows. */
static void test_micro_batches_of_other_sizes(void **state) {
  (void)state;
  struct table_case whole = plain;
  whole.batch = 2 * plain.batch;
  const struct trained expected = train_alone(1, "{\"seed\": 5}", whole, STEPS);
  for (int replicas = 1; replicas <= 3; replicas++) {
    const struct trained got = train_alone(replicas, "{\"seed\": 5, \"accumulation_steps\": 2}", plain, STEPS);
    assert_same_table(&got, &expected);
  }
}

static void test_levels_of_determinism(void **state) {
  (void)state;
  const char *const invariant = "{\"seed\": 5, \"determinism\": \"invariant\", \"logical_replicas\": 4}";
  const struct trained expected = train_alone(1, invariant, plain, STEPS);
  const struct trained fast = train_alone(1, "{\"seed\": 5}", plain, STEPS);
  assert_same_table(&expected, &fast);
  for (int replicas = 2; replicas <= 4; replicas *= 2) {
    const struct trained got = train_alone(replicas, invariant, plain, STEPS);
    assert_same_table(&got, &expected);
    assert_memory_equal(got.table, expected.table, sizeof got.table);
  }
}

/* Rows that are never looked up keep what they began with; the others do not. */
static void test_other_rows_stay(void **state) {
  (void)state;
  const struct trained before = train_alone(2, "{\"seed\": 5}", plain, 4);
  const struct trained after = train_alone(2, "{\"seed\": 5}", plain, STEPS);
  assert_memory_equal(before.table + (COUNT - 6) * WIDTH, after.table + (COUNT - 6) * WIDTH, 6 * WIDTH * sizeof(float));
  assert_true(before.table[0] != after.table[0]);
}

static void test_an_interruption_changes_nothing(void **state) {
  (void)state;
  char directory[64], json[200];
  make_directory(directory);
  snprintf(json, sizeof json, "{\"seed\": 5, \"determinism\": \"repeatable\", \"model_dir\": \"%s\"}", directory);
  const char *const whole = "{\"seed\": 5, \"determinism\": \"repeatable\"}";
  (void)train_alone(2, json, plain, 4);
  const struct trained resumed = train_alone(2, json, plain, STEPS), expected = train_alone(2, whole, plain, STEPS);
  assert_same_table(&resumed, &expected);
  assert_memory_equal(resumed.table, expected.table, sizeof resumed.table);
  remove_directory(directory);
}

static void test_an_id_that_is_none(void **state) {
  (void)state;
  struct table_case bad = plain;
  bad.bad_row = 12;
  for (int replicas = 1; replicas <= 3; replicas++) {
    const struct trained got = train_alone(replicas, "{\"seed\": 5}", bad, STEPS);
    assert_int_equal(got.code, TUTTI_INVALID_ARGUMENT);
    assert_contains(got.error, "59");
    assert_contains(got.error, "row 5");
  }
}

static void test_what_cannot_be_lazy(void **state) {
  (void)state;
  struct table_case lengths = plain;
  lengths.length = -1;
  const struct trained accumulated = train_alone(1, "{\"accumulation_steps\": 2}", lengths, STEPS);
  assert_int_equal(accumulated.code, TUTTI_UNIMPLEMENTED);
  assert_contains(accumulated.error, "the optimizer is lazy, but rows of variable 'table' cannot be updated alone");
}

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return worker_main(arguments[1], arguments[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_train_as_one),
      cmocka_unit_test(test_workers_need_known_lengths),
      cmocka_unit_test(test_replicas_train_as_one),
      cmocka_unit_test(test_levels_of_determinism),
      cmocka_unit_test(test_other_rows_stay),
      cmocka_unit_test(test_an_interruption_changes_nothing),
      cmocka_unit_test(test_micro_batches_of_other_sizes),
      cmocka_unit_test(test_an_id_that_is_none),
      cmocka_unit_test(test_what_cannot_be_lazy),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
