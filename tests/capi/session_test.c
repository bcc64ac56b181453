/* SPDX-License-Identifier: Apache-2.0
 * Variables of an estimator and training sessions through the C interface. */
#include <math.h>
#include <time.h>

#include "dataset_fixtures.h"
#include "estimator_fixtures.h"

static int has_variable(tutti_estimator *estimator, const char *name) {
  for (int64_t i = 0; i < tutti_estimator_get_variable_count(estimator); i++)
    if (strcmp(tutti_estimator_get_variable_name(estimator, i), name) == 0) return 1;
  return 0;
}

static void test_variables(void **state) {
  (void)state;
  struct line line = {0};
  tutti_dataset *dataset = line_dataset(3);
  tutti_estimator *estimator = line_estimator(&line);
  train(estimator, dataset, NULL);
  assert_true(has_variable(estimator, "w"));
  assert_null(tutti_estimator_get_variable_name(estimator, -1));
  assert_null(tutti_estimator_get_variable_name(estimator, 1000));
  const char *lent = tutti_estimator_get_variable_name(estimator, 0);
  assert_string_equal(lent, "w");
  assert_true(tutti_estimator_get_variable_count(estimator) >= 1);
  assert_string_equal(lent, "w"); /* still there */

  float new_value = 5, pair[] = {1, 2};
  tutti_tensor *five = make_vector(TUTTI_DTYPE_F32, 1, &new_value), *two = make_vector(TUTTI_DTYPE_F32, 2, pair);
  assert_ok(tutti_estimator_write_variable(estimator, "w", five, &err));
  assert_close(read_scalar(estimator, "w"), 5);
  struct outcome outcome = train(estimator, dataset, NULL); /* from there: errors 4, 8, 15 */
  assert_close(outcome.loss, (16 + 64 + 225) / 3.0);
  assert_error(TUTTI_INVALID_ARGUMENT, "[1]", tutti_estimator_write_variable(estimator, "w", two, &err));
  assert_error(TUTTI_NOT_FOUND, "no variable 'v'", tutti_estimator_write_variable(estimator, "v", five, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'value'", tutti_estimator_write_variable(estimator, "w", NULL, &err));
  tutti_tensor *none = NULL;
  assert_error(TUTTI_NOT_FOUND, "no variable 'v'", tutti_estimator_read_variable(estimator, "v", &none, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'name' is NULL", tutti_estimator_read_variable(estimator, NULL, &none, &err));
  tutti_tensor_unref(five), tutti_tensor_unref(two);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_frozen_variables(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  tutti_estimator *estimator = toy_estimator("{\"seed\": 1}");
  assert_ok(tutti_estimator_set_trainable(estimator, "dense/*", 0, &err));
  train(estimator, dataset, "{\"steps\": 1}");
  tutti_tensor *before[2], *after[2];
  static const char *const names[] = {"dense/kernel", "dense_1/kernel"};
  for (int i = 0; i < 2; i++)
    assert_ok(tutti_estimator_read_variable(estimator, names[i], &before[i], &err));
  train(estimator, dataset, "{\"steps\": 3}");
  for (int i = 0; i < 2; i++)
    assert_ok(tutti_estimator_read_variable(estimator, names[i], &after[i], &err));
  assert_memory_equal(tutti_tensor_get_data(before[0]), tutti_tensor_get_data(after[0]), 4 * 16 * 4);
  assert_memory_not_equal(tutti_tensor_get_data(before[1]), tutti_tensor_get_data(after[1]), 16 * 2 * 4);
  for (int i = 0; i < 2; i++)
    tutti_tensor_unref(before[i]), tutti_tensor_unref(after[i]);
  assert_error(TUTTI_FAILED_PRECONDITION, "before", tutti_estimator_set_trainable(estimator, "*", 1, &err));
  assert_int_equal(tutti_estimator_get_trainable_count(estimator), 2);
  assert_string_equal(tutti_estimator_get_trainable_name(estimator, 0), "dense_1/kernel");
  assert_string_equal(tutti_estimator_get_trainable_name(estimator, 1), "dense_1/bias");
  assert_int_equal(tutti_estimator_get_trainable_count(NULL), -1);
  assert_null(tutti_estimator_get_trainable_name(NULL, 0));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

/* A map that takes five milliseconds. */
static int32_t slow_map(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                        tutti_error **error) {
  (void)user, (void)error;
  const struct timespec pause = {0, 5000000};
  nanosleep(&pause, NULL);
  for (int64_t i = 0; i < count; i++)
    tutti_tensor_ref(outputs[i] = inputs[i]);
  return TUTTI_OK;
}

static void test_waiting_for_input_is_told(void **state) {
  (void)state;
  struct line line = {0};
  tutti_dataset *quick = line_dataset(1), *slow = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, quick);
  tutti_pipeline_map(pipeline, slow_map, NULL, NULL, 1);
  tutti_pipeline_repeat(pipeline, NULL);
  slow = build(pipeline);
  tutti_estimator *estimator = line_estimator(&line);
  tutti_session *session = NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_session_open(estimator, slow, NULL, NULL, NULL, &session, &err));
  /* More than may be ready before the first of them. */
  assert_ok(tutti_session_run(session, 30, &result, &err));
  const double waited = tutti_result_get_input_wait(result);
  assert_true(waited > 0.004 && waited <= tutti_result_get_seconds(result));
  assert_string_equal(tutti_result_get_input_report(result), "");
  tutti_result_unref(result);
  assert_ok(tutti_session_close(session, &result, &err));
  assert_true(tutti_result_get_input_wait(result) >= waited);
  assert_contains(tutti_result_get_input_report(result), "\"stage\":\"map_callback\"");
  assert_contains(tutti_result_get_input_report(result), "\"limit\"");
  tutti_result_unref(result);
  assert_ok(tutti_estimator_evaluate(estimator, quick, 1, NULL, &result, &err));
  assert_true(tutti_result_get_input_wait(result) == 0);
  assert_string_equal(tutti_result_get_input_report(result), "");
  tutti_result_unref(result);
  tutti_session_unref(session), tutti_estimator_unref(estimator);
  tutti_dataset_unref(slow), tutti_dataset_unref(quick);
}

static void test_session(void **state) {
  (void)state;
  struct line line = {0};
  tutti_dataset *dataset = line_dataset(1);
  tutti_estimator *estimator = line_estimator(&line);
  tutti_session *session = NULL, *second = NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "already training",
               tutti_session_open(estimator, dataset, NULL, NULL, NULL, &second, &err));
  assert_null(second);
  assert_ok(tutti_session_run(session, 1, &result, &err)); /* (1, 1): error 1, gradient 2 */
  struct outcome outcome = take(result);
  assert_int_equal(outcome.reason, 0);
  assert_int_equal(outcome.step, 1);
  assert_close(outcome.loss, 1);
  assert_ok(tutti_session_set_scalar(session, "rate", 0.0, &err));
  assert_ok(tutti_session_run(session, 1, NULL, &err)); /* learns nothing */
  assert_ok(tutti_session_set_scalar(session, "rate", 0.5, &err));
  assert_error(TUTTI_NOT_FOUND, "", tutti_session_set_scalar(session, "rat", 0.5, &err));
  assert_ok(tutti_session_run(session, 10, &result, &err)); /* (3, 0): w = 1.8, error 5.4, gradient 32.4 */
  outcome = take(result);
  assert_int_equal(outcome.reason, TUTTI_REASON_END_OF_INPUT);
  assert_int_equal(outcome.step, 3);
  assert_error(TUTTI_INVALID_ARGUMENT, "'steps'", tutti_session_run(session, 0, NULL, &err));
  assert_ok(tutti_session_close(session, &result, &err));
  outcome = take(result);
  assert_int_equal(outcome.step, 3);
  assert_int_equal(outcome.examples, 3);
  assert_error(TUTTI_FAILED_PRECONDITION, "closed", tutti_session_close(session, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "closed", tutti_session_run(session, 1, NULL, &err));
  tutti_session_unref(session);
  assert_close(read_scalar(estimator, "w"), 1.8 - 0.5 * 32.4);
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  tutti_session_unref(session); /* dropped without close: the estimator is free again */
  train(estimator, dataset, NULL);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_session_whose_run_failed(void **state) {
  (void)state;
  struct line line = {0};
  tutti_dataset *dataset = line_dataset(1);
  tutti_estimator *estimator = line_estimator(&line);
  tutti_session *session = NULL;
  tutti_cancel *cancel = NULL;
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, cancel, &session, &err));
  assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, &err));
  assert_error(TUTTI_CANCELLED, "", tutti_session_run(session, 1, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "the training session has failed",
               tutti_session_set_scalar(session, "rate", 0.5, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "has failed", tutti_session_run(session, 1, NULL, &err));
  assert_error(TUTTI_CANCELLED, "", tutti_session_close(session, NULL, &err));
  tutti_session_unref(session), tutti_cancel_unref(cancel);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
}

/* The weight stays what it was, with clips, which look at the gradients' norm, too. */
static void test_rates_that_are_not_finite(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct line line = {.clip = i % 2};
    tutti_dataset *dataset = line_dataset(1);
    tutti_estimator *estimator = line_estimator(&line);
    tutti_session *session = NULL;
    tutti_tensor *before = NULL, *after = NULL;
    assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
    assert_ok(tutti_session_run(session, 1, NULL, &err));
    assert_ok(tutti_estimator_read_variable(estimator, "w", &before, &err));
    assert_ok(tutti_session_set_scalar(session, "rate", i < 2 ? (double)NAN : (double)INFINITY, &err));
    assert_error(TUTTI_OUT_OF_RANGE, "step 2: ", tutti_session_run(session, 1, NULL, &err));
    assert_ok(tutti_estimator_read_variable(estimator, "w", &after, &err));
    assert_memory_equal(tutti_tensor_get_data(after), tutti_tensor_get_data(before), sizeof(float));
    tutti_tensor_unref(before), tutti_tensor_unref(after), tutti_session_unref(session);
    tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rates_that_are_not_finite),
    cmocka_unit_test(test_session_whose_run_failed),
    cmocka_unit_test(test_variables),
    cmocka_unit_test(test_frozen_variables),
    cmocka_unit_test(test_waiting_for_input_is_told),
    cmocka_unit_test(test_session),
};
CAPI_TEST_MAIN(tests)
