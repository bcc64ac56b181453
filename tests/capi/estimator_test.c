/* SPDX-License-Identifier: Apache-2.0
 * Estimators through the C interface: that they learn, how long training runs and why it ends, and evaluation. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "estimator_fixtures.h"

static void test_toy_learns(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(512, 64, 0), *test = toy_dataset(300, 64, 1);
  tutti_estimator *estimator = toy_estimator("{\"seed\": 3}");
  struct outcome first = train(estimator, dataset, "{\"steps\": 1}");
  assert_int_equal(first.reason, TUTTI_REASON_MAX_STEPS);
  assert_int_equal(first.step, 1);
  assert_int_equal(first.examples, 64);
  assert_true(first.loss > 0.3 && first.loss < 3);
  struct outcome last = train(estimator, dataset, "{\"steps\": 199}");
  assert_int_equal(last.step, 200);
  assert_int_equal(tutti_estimator_get_global_step(estimator), 200);
  assert_true(last.loss < first.loss / 2);
  struct outcome evaluated = evaluate(estimator, test, 0);
  assert_int_equal(evaluated.reason, 0);
  assert_int_equal(evaluated.step, 200);
  assert_int_equal(evaluated.examples, 300);
  assert_true(evaluated.accuracy > 0.93);
  assert_true(evaluated.loss < 0.3);
  assert_int_equal(evaluate(estimator, test, 2).examples, 128);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset), tutti_dataset_unref(test);
}

static void check_line(struct line line, double loss, double gradient) {
  tutti_dataset *dataset = line_dataset(3);
  tutti_estimator *estimator = line_estimator(&line);
  struct outcome outcome = train(estimator, dataset, NULL);
  assert_int_equal(outcome.reason, TUTTI_REASON_END_OF_INPUT);
  assert_int_equal(outcome.step, 1);
  assert_close(outcome.loss, loss);
  assert_close(read_scalar(estimator, "w"), 2 - 0.1 * gradient);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_one_step_by_hand(void **state) {
  (void)state;
  /* Errors w x - y: 1, 2, 6. Squares 1, 4, 36; gradients 2 e x: 2, 8, 36. */
  check_line((struct line){0}, 41 / 3.0, 46 / 3.0);
  check_line((struct line){.reduction = TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_SUM}, 41, 46);
  check_line((struct line){.use_weights = 1}, 73 / 3.0, 74 / 3.0);
  check_line((struct line){.use_weights = 1, .reduction = TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_WEIGHTED_MEAN},
             73 / 3.0, 74 / 3.0);
  check_line((struct line){.clip = 1}, 41 / 3.0, 1);
}

/* The gradient of w is -1, the rate 2 max(piecewise, 0.5): an ordinary value, computed from a schedule. */
static int32_t computed_rate_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const int64_t one = 1;
  (void)user;
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "zeros", 0, 1);
  tutti_graph_set_loss(
      g, tutti_sub(g, tutti_reduce_mean(g, tutti_graph_get_feature(g, "x"), NULL), tutti_reduce_sum(g, w, NULL)));
  if (mode == TUTTI_MODE_TRAIN) {
    tutti_value rate = tutti_schedule_piecewise(g, (int64_t[]){2}, 1, (double[]){1, 0.25}, 2);
    rate = tutti_maximum(g, rate, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5));
    tutti_optimizer_sgd(g, tutti_mul(g, rate, tutti_graph_host_scalar(g, "factor", 2)), NULL);
  }
  return tutti_graph_check(g, err);
}

static void test_a_learning_rate_is_computed(void **state) {
  (void)state;
  static const double expected[] = {2, 4, 5, 6};
  tutti_dataset *dataset = toy_dataset(8, 4, 0);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, computed_rate_model, NULL, NULL, NULL, NULL, &estimator, &err));
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    train(estimator, dataset, "{\"steps\": 1}");
    assert_close(read_scalar(estimator, "w"), expected[i]);
  }
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_steps_max_steps_and_epochs(void **state) {
  (void)state;
  tutti_dataset *endless = toy_dataset(32, 8, 0), *once = toy_dataset(32, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  assert_int_equal(train(estimator, endless, "{\"steps\": 3}").step, 3);
  assert_int_equal(train(estimator, endless, "{\"steps\": 3}").step, 6); /* more */
  struct outcome outcome = train(estimator, endless, "{\"max_steps\": 10}");
  assert_int_equal(outcome.step, 10); /* in all */
  assert_int_equal(outcome.examples, 32);
  outcome = train(estimator, endless, "{\"max_steps\": 10}");
  assert_int_equal(outcome.reason, TUTTI_REASON_MAX_STEPS);
  assert_int_equal(outcome.step, 10);
  assert_int_equal(outcome.examples, 0);
  tutti_estimator_unref(estimator);

  estimator = toy_estimator(NULL);
  outcome = train(estimator, once, NULL);
  assert_int_equal(outcome.reason, TUTTI_REASON_END_OF_INPUT);
  assert_int_equal(outcome.step, 4);
  outcome = train(estimator, once, "{\"epochs\": 2}");
  assert_int_equal(outcome.reason, TUTTI_REASON_EPOCHS);
  assert_int_equal(outcome.step, 12);
  assert_int_equal(outcome.examples, 64);
  outcome = train(estimator, once, "{\"steps\": 100}"); /* the input ends first */
  assert_int_equal(outcome.reason, TUTTI_REASON_END_OF_INPUT);
  assert_int_equal(outcome.step, 16);
  outcome = train(estimator, once, "{\"steps\": 0, \"max_steps\": 0, \"epochs\": 0}"); /* 0 = no limit */
  assert_int_equal(outcome.reason, TUTTI_REASON_END_OF_INPUT);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(endless), tutti_dataset_unref(once);
}

static void test_time_limits(void **state) {
  (void)state;
  tutti_dataset *endless = toy_dataset(32, 8, 0), *once = toy_dataset(32, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  const time_t begin = time(NULL);
  struct outcome outcome = train(estimator, endless, "{\"max_seconds\": 0.25}");
  assert_int_equal(outcome.reason, TUTTI_REASON_MAX_SECONDS);
  assert_true(outcome.step > 0);
  assert_true(time(NULL) - begin < 30);
  const int64_t steps = outcome.step;
  outcome = train(estimator, endless, "{\"steps\": 3, \"max_seconds\": 1000}");
  assert_int_equal(outcome.reason, TUTTI_REASON_MAX_STEPS);
  assert_int_equal(outcome.step, steps + 3);
  /* Over before the first step; the same passes are still to be made. */
  outcome = train(estimator, once, "{\"epochs\": 2, \"max_seconds\": 1e-9}");
  assert_int_equal(outcome.reason, TUTTI_REASON_MAX_SECONDS);
  assert_int_equal(outcome.step, steps + 3);
  outcome = train(estimator, once, "{\"epochs\": 2}");
  assert_int_equal(outcome.reason, TUTTI_REASON_EPOCHS);
  assert_int_equal(outcome.step, steps + 3 + 8);
  tutti_options *options = make_options("train", "{}");
  tutti_options_set_f64(options, "max_seconds", -1);
  assert_error(TUTTI_INVALID_ARGUMENT, "max_seconds",
               tutti_estimator_train(estimator, once, options, NULL, NULL, NULL, &err));
  tutti_options_unref(options);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(endless), tutti_dataset_unref(once);
}

/* All is kept, but that is known only when it is read. */
static int32_t keep_all(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *keep, tutti_error **error) {
  (void)user, (void)inputs, (void)count, (void)error;
  *keep = 1;
  return TUTTI_OK;
}

static tutti_dataset *endless_of_unknown_size(void) {
  tutti_dataset *once = toy_dataset(32, 8, 1), *dataset = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, once);
  tutti_pipeline_begin(pipeline, "filter_callback", 1);
  tutti_pipeline_set_predicate(pipeline, keep_all, NULL, NULL);
  tutti_pipeline_end(pipeline);
  tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_dataset_unref(once);
  return dataset;
}

static void test_limits_that_exclude_each_other(void **state) {
  (void)state;
  tutti_dataset *endless = toy_dataset(32, 8, 0), *once = toy_dataset(32, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  static const struct {
    const char *options, *message;
  } wrong[] = {{"{\"steps\": 1, \"max_steps\": 2}", "max_steps"}, {"{\"steps\": 1, \"epochs\": 2}", "epochs"}};
  for (int i = 0; i < 2; i++) {
    tutti_options *options = make_options("train", wrong[i].options);
    tutti_result *result = (tutti_result *)(uintptr_t)1;
    assert_error(TUTTI_INVALID_ARGUMENT, wrong[i].message,
                 tutti_estimator_train(estimator, once, options, NULL, NULL, &result, &err));
    assert_null(result);
    tutti_options_unref(options);
  }
  tutti_options *options = make_options("train", "{\"epochs\": 1}");
  assert_error(TUTTI_INVALID_ARGUMENT, "never ends",
               tutti_estimator_train(estimator, endless, options, NULL, NULL, NULL, &err));
  /* The same where nobody knows how long a pass is. */
  tutti_dataset *unknown = endless_of_unknown_size();
  assert_int_equal(tutti_dataset_get_cardinality(unknown), TUTTI_CARDINALITY_INFINITE);
  assert_error(TUTTI_INVALID_ARGUMENT, "the dataset never ends: leave out repeat() or set steps",
               tutti_estimator_train(estimator, unknown, options, NULL, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "never ends", tutti_estimator_evaluate(estimator, unknown, 0, NULL, NULL, &err));
  tutti_dataset_unref(unknown);
  tutti_options_unref(options);
  assert_error(TUTTI_INVALID_ARGUMENT, "'dataset'",
               tutti_estimator_train(estimator, NULL, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(endless), tutti_dataset_unref(once);
}

static void test_create_arguments(void **state) {
  (void)state;
  struct hook_record record = new_record();
  tutti_estimator *estimator = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "'model_fn' is NULL",
               tutti_estimator_create(NULL, NULL, &record, count_destroy, NULL, NULL, &estimator, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL",
               tutti_estimator_create(NULL, toy_model, &record, count_destroy, NULL, NULL, NULL, &err));
  assert_int_equal(record.destroyed, 2);
  tutti_options *options = make_options("run", "{\"save_checkpoints_steps\": 5, \"save_checkpoints_secs\": 5}");
  assert_error(TUTTI_INVALID_ARGUMENT, "save_checkpoints_secs",
               tutti_estimator_create(NULL, toy_model, &record, count_destroy, NULL, options, &estimator, &err));
  tutti_options_unref(options);
  assert_int_equal(record.destroyed, 3);
}

static void test_train_and_evaluate(void **state) {
  (void)state;
  struct hook_record record = new_record();
  tutti_hooks *hooks = hooks_of(&record, 0);
  tutti_dataset *dataset = toy_dataset(64, 8, 1), *test = toy_dataset(30, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train_and_evaluate(estimator, dataset, test, 3, NULL, hooks, NULL, &result, &err));
  assert_true(tutti_result_get_metric_count(result) >= 1);
  assert_null(tutti_result_get_metric_name(result, 1000));
  assert_true(isnan(tutti_result_get_metric(result, "no_such")));
  struct outcome outcome = take(result);
  assert_int_equal(outcome.step, 8);
  assert_int_equal(outcome.examples, 30);
  assert_true(outcome.accuracy >= 0 && outcome.accuracy <= 1);
  int evaluations = 0;
  for (int i = 0; i < record.count; i++)
    evaluations += record.kinds[i] == TUTTI_EVENT_EVALUATED;
  assert_int_equal(evaluations, 3); /* steps 3, 6 and 8 */
  assert_error(TUTTI_INVALID_ARGUMENT, "'every_steps'",
               tutti_estimator_train_and_evaluate(estimator, dataset, test, -1, NULL, NULL, NULL, NULL, &err));
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset), tutti_dataset_unref(test);
}

static void test_evaluate_endless(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(16, 8, 0);
  tutti_estimator *estimator = toy_estimator(NULL);
  train(estimator, dataset, "{\"steps\": 1}");
  assert_error(TUTTI_INVALID_ARGUMENT, "never ends", tutti_estimator_evaluate(estimator, dataset, 0, NULL, NULL, &err));
  assert_int_equal(evaluate(estimator, dataset, 5).examples, 40);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_no_batch(void **state) {
  (void)state;
  tutti_dataset *rows = counting_dataset(4);
  tutti_estimator *estimator = toy_estimator(NULL);
  assert_error(TUTTI_INVALID_ARGUMENT, "single examples",
               tutti_estimator_train(estimator, rows, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(rows);
}

static void test_mirrored_gives_the_same(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"logical_devices\": 3}");
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  double losses[3];
  for (int64_t replicas = 1; replicas <= 3; replicas++) {
    char names[3][32];
    const char *devices[3];
    for (int i = 0; i < 3; i++) {
      snprintf(names[i], sizeof names[i], "%s", tutti_context_get_device_name(context, i));
      devices[i] = names[i];
    }
    tutti_strategy *strategy = NULL;
    tutti_estimator *estimator = NULL;
    tutti_pipeline *pipeline = NULL;
    tutti_dataset *dataset = NULL;
    tutti_result *result = NULL;
    assert_ok(tutti_strategy_create_mirrored(context, devices, replicas, &strategy, &err));
    assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
    static float x[25][4];
    static int32_t y[25];
    for (int i = 0; i < 25; i++)
      toy_row(i, x[i], &y[i]);
    int64_t dims[] = {25, 4};
    tutti_tensor *xs = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *ys = make_vector(TUTTI_DTYPE_I32, 25, y);
    assert_ok(tutti_pipeline_create(context, &pipeline, &err));
    tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
    tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, ys);
    tutti_pipeline_batch(pipeline, 7, NULL); /* the last one has four rows */
    assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
    assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
    assert_int_equal(tutti_result_get_step(result), 4);
    losses[replicas - 1] = tutti_result_get_loss(result);
    tutti_result_unref(result), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
    tutti_tensor_unref(xs), tutti_tensor_unref(ys);
    tutti_estimator_unref(estimator), tutti_strategy_unref(strategy);
  }
  assert_close(losses[1], losses[0]);
  assert_close(losses[2], losses[0]);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

/* Steps of which the log tells loss and speed, each a bit. */
static void note_step(void *user, int32_t severity, const char *text) {
  unsigned *steps = user, step = 0;
  (void)severity;
  if (sscanf(text, "step %u of 10: loss ", &step) == 1 && strstr(text, " examples/s, ") != NULL) *steps |= 1u << step;
}

static unsigned logged_steps(const char *run) {
  unsigned steps = 0;
  tutti_context *context = NULL;
  tutti_estimator *estimator = NULL;
  tutti_options *options = make_options("run", run);
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_context_create(NULL, &context, &err));
  tutti_pipeline *pipeline = toy_rows(context, 40);
  tutti_pipeline_batch(pipeline, 4, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_context_set_log(context, note_step, &steps, NULL, TUTTI_LOG_INFO, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, options, &estimator, &err));
  assert_int_equal(train(estimator, dataset, NULL).step, 10);
  assert_ok(tutti_context_set_log(context, NULL, NULL, NULL, TUTTI_LOG_INFO, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_options_unref(options);
  tutti_pipeline_unref(pipeline), tutti_context_unref(context);
  return steps;
}

static void keep_options(void *user, int32_t severity, const char *text) {
  char *const kept = user;
  if (severity == TUTTI_LOG_INFO && strncmp(text, "run options: ", 13) == 0) snprintf(kept, 4096, "%s", text);
}

/* Once for each estimator: what was set, then the defaults. */
static void test_options_in_the_log(void **state) {
  (void)state;
  char kept[4096] = "";
  tutti_context *context = NULL;
  tutti_estimator *estimator = NULL;
  tutti_options *options = make_options("run", "{\"keep_checkpoint_max\": 3, \"seed\": 8}");
  assert_ok(tutti_context_create(NULL, &context, &err));
  assert_ok(tutti_context_set_log(context, keep_options, kept, NULL, TUTTI_LOG_INFO, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, options, &estimator, &err));
  assert_contains(kept, "run options: seed 8, keep_checkpoint_max 3; defaults: ");
  assert_contains(kept, "determinism \"fast\"");
  assert_ok(tutti_context_set_log(context, NULL, NULL, NULL, TUTTI_LOG_INFO, &err));
  tutti_estimator_unref(estimator), tutti_context_unref(context), tutti_options_unref(options);
}

static void test_steps_in_the_log(void **state) {
  (void)state;
  assert_int_equal(logged_steps("{\"log_step_count_steps\": 3}"), 1u << 3 | 1u << 6 | 1u << 9);
  assert_int_equal(logged_steps("{\"log_step_count_steps\": 5}"), 1u << 5 | 1u << 10);
  assert_int_equal(logged_steps("{\"log_step_count_steps\": 0}"), 0);
  assert_int_equal(logged_steps("{}"), 0); /* every 100 */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_toy_learns),
    cmocka_unit_test(test_one_step_by_hand),
    cmocka_unit_test(test_a_learning_rate_is_computed),
    cmocka_unit_test(test_steps_max_steps_and_epochs),
    cmocka_unit_test(test_time_limits),
    cmocka_unit_test(test_limits_that_exclude_each_other),
    cmocka_unit_test(test_create_arguments),
    cmocka_unit_test(test_train_and_evaluate),
    cmocka_unit_test(test_evaluate_endless),
    cmocka_unit_test(test_no_batch),
    cmocka_unit_test(test_mirrored_gives_the_same),
    cmocka_unit_test(test_options_in_the_log),
    cmocka_unit_test(test_steps_in_the_log),
};
CAPI_TEST_MAIN(tests)
