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

/* What every event says of its pass, its loss, and the time left. */
struct pass_record {
  int count;
  int32_t kinds[32];
  int64_t epochs[32];
  double losses[32], accuracies[32], seconds_left[32];
};

static int32_t record_pass(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct pass_record *r = user;
  (void)err;
  if (r->count == 32) return TUTTI_OK;
  r->kinds[r->count] = tutti_hook_event_get_kind(event);
  r->epochs[r->count] = tutti_hook_event_get_epoch(event);
  r->losses[r->count] = tutti_hook_event_get_loss(event);
  r->accuracies[r->count] = tutti_hook_event_get_metric(event, "accuracy");
  r->seconds_left[r->count++] = tutti_hook_event_get_remaining_seconds(event);
  return TUTTI_OK;
}

static int32_t keep_all(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer, tutti_error **err) {
  (void)user, (void)inputs, (void)count, (void)err;
  *answer = 1;
  return TUTTI_OK;
}

/* Two steps a pass; nobody knows how many rows a filter keeps. */
static tutti_dataset *filtered_toy(void) {
  tutti_pipeline *pipeline = toy_rows(NULL, 16);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_begin(pipeline, "filter_callback", 1);
  tutti_pipeline_set_predicate(pipeline, keep_all, NULL, NULL);
  tutti_pipeline_end(pipeline);
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static void test_passes_are_counted_alike(void **state) {
  (void)state;
  struct pass_record record = {.count = 0};
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, record_pass, &record, NULL, 1, &err));
  tutti_dataset *dataset = filtered_toy();
  assert_int_equal(tutti_dataset_get_cardinality(dataset), TUTTI_CARDINALITY_UNKNOWN);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_options *options = make_options("train", "{\"epochs\": 3}");
  assert_ok(tutti_estimator_train(estimator, dataset, options, hooks, NULL, NULL, &err));
  static const int32_t kinds[] = {TUTTI_EVENT_BEGIN,     TUTTI_EVENT_STEP, TUTTI_EVENT_STEP,
                                  TUTTI_EVENT_EPOCH_END, TUTTI_EVENT_STEP, TUTTI_EVENT_STEP,
                                  TUTTI_EVENT_EPOCH_END, TUTTI_EVENT_STEP, TUTTI_EVENT_STEP,
                                  TUTTI_EVENT_EPOCH_END, TUTTI_EVENT_END};
  static const int64_t epochs[] = {0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2};
  assert_int_equal(record.count, 11);
  for (int i = 0; i < 11; i++) {
    assert_int_equal(record.kinds[i], kinds[i]);
    assert_int_equal(record.epochs[i], epochs[i]);
    const int is_last_of_pass = kinds[i] == TUTTI_EVENT_EPOCH_END || kinds[i] == TUTTI_EVENT_END;
    if (is_last_of_pass) {
      assert_true(record.losses[i] == record.losses[i - 1]);
      assert_true(record.accuracies[i] == record.accuracies[i - 1]);
    }
    /* The first pass tells how long the others are. */
    const int is_known = kinds[i] == TUTTI_EVENT_STEP && epochs[i] > 0;
    assert_int_equal(record.seconds_left[i] == record.seconds_left[i], is_known);
  }
  assert_true(record.seconds_left[8] == 0);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
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
      {"{\"early_stopping_patience_steps\": 5}", "need the option early_stopping"},
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
    cmocka_unit_test(test_passes_are_counted_alike),
    cmocka_unit_test(test_a_hook_stops),
    cmocka_unit_test(test_a_hook_fails),
    cmocka_unit_test(test_training_inside_a_hook),
    cmocka_unit_test(test_hook_arguments),
    cmocka_unit_test(test_stop_and_cancel),
    cmocka_unit_test(test_early_stopping_at_evaluations),
    cmocka_unit_test(test_early_stopping_at_steps),
};
CAPI_TEST_MAIN(tests)
