/* SPDX-License-Identifier: Apache-2.0
 * Hooks and cancelling through the C interface. */
#include "estimator_fixtures.h"

static void test_order_of_events(void **state) {
  (void)state;
  struct hook_record record = new_record();
  tutti_hooks *hooks = hooks_of(&record, 2);
  tutti_dataset *dataset = toy_dataset(32, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_options *options = make_options("train", "{\"epochs\": 2}");
  assert_ok(tutti_estimator_train(estimator, dataset, options, hooks, NULL, NULL, &err));
  static const int32_t kinds[] = {TUTTI_EVENT_BEGIN, TUTTI_EVENT_STEP, TUTTI_EVENT_STEP,      TUTTI_EVENT_EPOCH_END,
                                  TUTTI_EVENT_STEP,  TUTTI_EVENT_STEP, TUTTI_EVENT_EPOCH_END, TUTTI_EVENT_END};
  static const int64_t steps[] = {0, 2, 4, 4, 6, 8, 8, 8};
  assert_int_equal(record.count, 8);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(record.kinds[i], kinds[i]);
    assert_int_equal(record.steps[i], steps[i]);
  }
  assert_false(record.wrong_thread);
  assert_true(record.loss > 0 && record.loss < 5);
  assert_true(record.accuracy >= 0 && record.accuracy <= 1);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  assert_int_equal(record.destroyed, 1);
  tutti_options_unref(options);
  tutti_dataset_unref(dataset);
}

static void test_a_hook_stops(void **state) {
  (void)state;
  struct hook_record record = new_record();
  record.stop_at = 3;
  tutti_hooks *hooks = hooks_of(&record, 1);
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, &result, &err));
  struct outcome outcome = take(result);
  assert_int_equal(outcome.reason, TUTTI_REASON_STOPPED);
  assert_int_equal(outcome.step, 3);
  assert_int_equal(record.kinds[record.count - 1], TUTTI_EVENT_END);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_a_hook_fails(void **state) {
  (void)state;
  struct hook_record record = new_record();
  record.fail_at = 2;
  tutti_hooks *hooks = hooks_of(&record, 1);
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_error *error = NULL;
  assert_int_equal(tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, NULL, &error), TUTTI_DATA_LOSS);
  assert_contains(tutti_error_get_text(error), "the hook has seen enough");
  assert_contains(tutti_error_get_text(error), "step 2");
  int user_errors = 0;
  for (tutti_error *e = error; e != NULL; e = tutti_error_get_cause(e))
    user_errors += strcmp(tutti_error_get_domain(e), "user") == 0;
  assert_true(user_errors >= 1);
  tutti_error_unref(error);
  assert_int_equal(record.kinds[record.count - 1], TUTTI_EVENT_ERROR);
  /* The estimator goes on from where it was. */
  assert_int_equal(train(estimator, dataset, "{\"steps\": 1}").step, 3);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_training_inside_a_hook(void **state) {
  (void)state;
  struct hook_record record = new_record();
  tutti_hooks *hooks = hooks_of(&record, 1);
  tutti_dataset *dataset = toy_dataset(32, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  record.train_again = estimator;
  record.dataset = dataset;
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, NULL, &err));
  assert_int_equal(record.again_code, TUTTI_FAILED_PRECONDITION);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_hook_arguments(void **state) {
  (void)state;
  struct hook_record record = new_record();
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'hook' is NULL", tutti_hooks_add(hooks, NULL, &record, count_destroy, 1, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'every_steps'",
               tutti_hooks_add(hooks, record_event, &record, count_destroy, -1, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'hooks'", tutti_hooks_add(NULL, record_event, &record, count_destroy, 1, &err));
  assert_int_equal(record.destroyed, 3); /* also when the registration fails */
  tutti_hooks_unref(hooks);
}

static void test_stop_and_cancel(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  for (int32_t strength = TUTTI_CANCEL_STOP; strength <= TUTTI_CANCEL_CANCEL; strength++) {
    struct hook_record record = new_record();
    tutti_hooks *hooks = hooks_of(&record, 1);
    tutti_estimator *estimator = toy_estimator(NULL);
    assert_ok(tutti_cancel_create(&record.cancel, &err));
    record.cancel_at = 4;
    record.strength = strength;
    tutti_result *result = NULL;
    if (strength == TUTTI_CANCEL_STOP) {
      assert_ok(tutti_estimator_train(estimator, dataset, NULL, hooks, record.cancel, &result, &err));
      struct outcome outcome = take(result);
      assert_int_equal(outcome.reason, TUTTI_REASON_STOPPED);
      assert_int_equal(outcome.step, 4);
    } else {
      assert_error(TUTTI_CANCELLED, "",
                   tutti_estimator_train(estimator, dataset, NULL, hooks, record.cancel, &result, &err));
      assert_null(result);
      assert_int_equal(record.kinds[record.count - 1], TUTTI_EVENT_ERROR);
    }
    assert_int_equal(train(estimator, dataset, "{\"steps\": 2}").step, 6); /* nothing is broken */
    tutti_cancel_unref(record.cancel);
    tutti_hooks_unref(hooks);
    tutti_estimator_unref(estimator);
  }
  tutti_dataset_unref(dataset);
}

/* Training on a falling loss, in `json` what else the options say; of the reason and the steps. */
static struct outcome train_and_evaluate(const char *json) {
  tutti_dataset *endless = toy_dataset(32, 8, 0), *some = toy_dataset(32, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_options *options = make_options("train", json);
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train_and_evaluate(estimator, endless, some, 2, options, NULL, NULL, &result, &err));
  struct outcome outcome = take(result);
  tutti_options_unref(options);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(some);
  tutti_dataset_unref(endless);
  return outcome;
}

static void test_early_stopping_at_evaluations(void **state) {
  (void)state;
  /* No loss is higher than the first one, of step 2. */
  struct outcome outcome = train_and_evaluate(
      "{\"max_steps\": 20, \"early_stopping\": \"loss\", \"early_stopping_higher_is_better\": true, "
      "\"early_stopping_patience_steps\": 5}");
  assert_int_equal(outcome.reason, TUTTI_REASON_STOPPED);
  assert_int_equal(outcome.step, 8);
  outcome = train_and_evaluate(
      "{\"max_steps\": 20, \"early_stopping\": \"loss\", \"early_stopping_higher_is_better\": true, "
      "\"early_stopping_patience_steps\": 5, \"early_stopping_min_steps\": 11}");
  assert_int_equal(outcome.step, 12);
  outcome =
      train_and_evaluate("{\"max_steps\": 20, \"early_stopping\": \"loss\", \"early_stopping_patience_steps\": 5}");
  assert_int_equal(outcome.reason, TUTTI_REASON_MAX_STEPS);
  assert_int_equal(outcome.step, 20);
}

static void test_early_stopping_at_steps(void **state) {
  (void)state;
  tutti_dataset *endless = toy_dataset(32, 8, 0);
  tutti_estimator *estimator = toy_estimator(NULL);
  /* A learning rate that stays the same is best at the first step. */
  struct outcome outcome = train(estimator, endless,
                                 "{\"max_steps\": 20, \"early_stopping\": \"learning_rate\", "
                                 "\"early_stopping_patience_steps\": 4, \"early_stopping_every_steps\": 1}");
  assert_int_equal(outcome.reason, TUTTI_REASON_STOPPED);
  assert_int_equal(outcome.step, 5);
  static const struct {
    const char *json, *text;
  } wrong[] = {
      {"{\"early_stopping\": \"loss\", \"early_stopping_patience_steps\": 5}", "early_stopping_every_steps"},
      {"{\"early_stopping\": \"loss\", \"early_stopping_every_steps\": 5}", "early_stopping_patience_steps is 0"},
      {"{\"early_stopping_patience_steps\": 5}", "need early_stopping"},
      {"{\"early_stopping\": \"los\", \"early_stopping_patience_steps\": 5, \"early_stopping_every_steps\": 1}",
       "did you mean 'loss'"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tutti_options *options = make_options("train", wrong[i].json);
    assert_error(TUTTI_INVALID_ARGUMENT, wrong[i].text,
                 tutti_estimator_train(estimator, endless, options, NULL, NULL, NULL, &err));
    tutti_options_unref(options);
  }
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(endless);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_order_of_events),
    cmocka_unit_test(test_a_hook_stops),
    cmocka_unit_test(test_a_hook_fails),
    cmocka_unit_test(test_training_inside_a_hook),
    cmocka_unit_test(test_hook_arguments),
    cmocka_unit_test(test_stop_and_cancel),
    cmocka_unit_test(test_early_stopping_at_evaluations),
    cmocka_unit_test(test_early_stopping_at_steps),
};
CAPI_TEST_MAIN(tests)
