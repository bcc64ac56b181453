/* SPDX-License-Identifier: Apache-2.0
 * Estimators whose datasets are made by a function: params reach it and the model, it is called once for each call, and
 * evaluations may have devices of their own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capi_testing.h"

static const char *const kParams = "{\"batch_size\": 7}";

/* What a function was called with. */
struct seen {
  int calls;
  int64_t id, count;
  char params[64];
};

static int32_t model_with_params(tutti_graph *graph, int32_t mode, void *user, tutti_error **err) {
  struct seen *seen = user;
  seen->calls++;
  snprintf(seen->params, sizeof seen->params, "%s", tutti_graph_get_params(graph));
  return toy_model(graph, mode, NULL, err);
}

static int32_t rows_of_seven(void *user, const char *params, int64_t id, int64_t count, tutti_dataset **out,
                             tutti_error **err) {
  struct seen *seen = user;
  seen->calls++;
  seen->id = id, seen->count = count;
  snprintf(seen->params, sizeof seen->params, "%s", params);
  int batch = 0;
  if (sscanf(params, "{\"batch_size\": %d}", &batch) != 1)
    return tutti_error_set(err, TUTTI_INVALID_ARGUMENT, "no batch_size"), TUTTI_INVALID_ARGUMENT;
  tutti_pipeline *pipeline = toy_rows(NULL, 40);
  tutti_pipeline_batch(pipeline, batch, NULL);
  const int32_t code = tutti_pipeline_build(pipeline, out, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

static int32_t nothing(void *user, const char *params, int64_t id, int64_t count, tutti_dataset **out,
                       tutti_error **err) {
  (void)user, (void)params, (void)id, (void)count, (void)out, (void)err;
  return TUTTI_OK;
}

static tutti_estimator *make_estimator(tutti_context *context, struct seen *seen, const char *params) {
  tutti_options *run = make_options("run", "{\"seed\": 5}");
  tutti_options_set_string(run, "params", params);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(context, model_with_params, seen, NULL, NULL, run, &estimator, &err));
  tutti_options_unref(run);
  return estimator;
}

static void test_a4_a10_a11_params_reach_both_functions(void **state) {
  (void)state;
  struct seen model = {0}, input = {0};
  tutti_estimator *estimator = make_estimator(NULL, &model, kParams);
  assert_string_equal(tutti_estimator_get_params(estimator), kParams);
  tutti_options *train = make_options("train", "{\"epochs\": 2}");
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train_fn(estimator, rows_of_seven, &input, train, NULL, NULL, &result, &err));
  assert_int_equal(tutti_result_get_step(result), 2 * 6);
  assert_int_equal(tutti_result_get_examples(result), 80);
  assert_int_equal(input.calls, 1);
  assert_int_equal(input.id, 0);
  assert_int_equal(input.count, 1);
  assert_string_equal(input.params, kParams);
  assert_int_equal(model.calls, 1);
  assert_string_equal(model.params, kParams);
  tutti_result_unref(result);
  assert_ok(tutti_estimator_evaluate_fn(estimator, rows_of_seven, &input, 0, NULL, &result, &err));
  assert_int_equal(tutti_result_get_examples(result), 40);
  assert_int_equal(input.calls, 2);
  tutti_result_unref(result);
  tutti_options_unref(train), tutti_estimator_unref(estimator);
}

static void test_input_functions_that_fail(void **state) {
  (void)state;
  struct seen model = {0}, input = {0};
  tutti_estimator *estimator = make_estimator(NULL, &model, "nothing to read");
  tutti_result *result = (tutti_result *)(uintptr_t)1;
  assert_error(TUTTI_INVALID_ARGUMENT, "no batch_size",
               tutti_estimator_train_fn(estimator, rows_of_seven, &input, NULL, NULL, NULL, &result, &err));
  assert_null(result);
  assert_error(TUTTI_INVALID_ARGUMENT, "made no dataset",
               tutti_estimator_train_fn(estimator, nothing, NULL, NULL, NULL, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "made no dataset",
               tutti_estimator_evaluate_fn(estimator, nothing, NULL, 0, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "input_fn",
               tutti_estimator_evaluate_fn(estimator, NULL, NULL, 0, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "estimator",
               tutti_estimator_train_fn(NULL, nothing, NULL, NULL, NULL, NULL, NULL, &err));
  assert_null(tutti_estimator_get_params(NULL));
  assert_int_equal(tutti_estimator_get_input_pipeline_count(NULL, TUTTI_MODE_TRAIN), -1);
  assert_int_equal(tutti_estimator_get_input_pipeline_id(NULL, TUTTI_MODE_EVAL), -1);
  assert_null(tutti_graph_get_params(NULL));
  tutti_estimator_unref(estimator);
}

static void test_a24_evaluations_have_devices_of_their_own(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"backend\": \"reference\", \"logical_devices\": 3}");
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_strategy *all = NULL, *foreign = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &all, &err));
  assert_ok(tutti_strategy_create_one_device(NULL, NULL, &foreign, &err));
  struct seen model = {0}, input = {0};
  tutti_estimator *estimator = make_estimator(context, &model, kParams);
  tutti_options *train = make_options("train", "{\"epochs\": 1}");
  /* The dataset of the function is of the default context. */
  assert_error(TUTTI_INVALID_ARGUMENT, "belongs to another context",
               tutti_estimator_train_fn(estimator, rows_of_seven, &input, train, NULL, NULL, NULL, &err));
  tutti_pipeline *pipeline = toy_rows(context, 40);
  tutti_pipeline_batch(pipeline, 7, NULL);
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, train, NULL, NULL, NULL, &err));
  const char *profile = NULL;
  double losses[3];
  for (int i = 0; i < 3; i++) {
    assert_ok(tutti_estimator_set_evaluation_strategy(estimator, i == 1 ? all : NULL, &err));
    tutti_result *result = NULL;
    assert_ok(tutti_context_start_profile(context, NULL, &err));
    assert_ok(tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err));
    assert_ok(tutti_context_stop_profile(context, &profile, &err));
    losses[i] = tutti_result_get_metric(result, "loss");
    assert_int_equal(tutti_result_get_examples(result), 40);
    assert_true((strstr(profile, "reference:2") != NULL) == (i == 1));
    tutti_result_unref(result);
  }
  assert_true(fabs(losses[0] - losses[1]) <= 1e-6 * fabs(losses[0]));
  assert_true(losses[0] == losses[2]);
  assert_error(TUTTI_INVALID_ARGUMENT, "belongs to another context",
               tutti_estimator_set_evaluation_strategy(estimator, foreign, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "estimator", tutti_estimator_set_evaluation_strategy(NULL, all, &err));
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_options_unref(train);
  tutti_options_unref(options), tutti_strategy_unref(all), tutti_strategy_unref(foreign);
  tutti_estimator_unref(estimator), tutti_context_unref(context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a4_a10_a11_params_reach_both_functions),
    cmocka_unit_test(test_input_functions_that_fail),
    cmocka_unit_test(test_a24_evaluations_have_devices_of_their_own),
};

int main(void) { return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left); }
