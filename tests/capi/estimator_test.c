/* SPDX-License-Identifier: Apache-2.0
 * Estimators through the C interface: how long training runs and why it ends, hooks, cancelling, checkpoints,
 * variables, sessions, and mistakes. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capi_testing.h"

struct outcome {
  int32_t reason;
  int64_t step, examples;
  double loss, accuracy;
};

static struct outcome take(tutti_result *result) {
  struct outcome outcome = {tutti_result_get_reason(result), tutti_result_get_step(result),
                            tutti_result_get_examples(result), tutti_result_get_loss(result),
                            tutti_result_get_metric(result, "accuracy")};
  tutti_result_unref(result);
  return outcome;
}

static struct outcome train(tutti_estimator *estimator, const tutti_dataset *dataset, const char *options) {
  tutti_options *train_options = options != NULL ? make_options("train", options) : NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, dataset, train_options, NULL, NULL, &result, &err));
  tutti_options_unref(train_options);
  return take(result);
}

static struct outcome evaluate(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t steps) {
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_evaluate(estimator, dataset, steps, NULL, &result, &err));
  return take(result);
}

/* --- it learns ---------------------------------------------------------------------------------------------------- */

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

/* y = w x with w = 2 at first, SGD: the step can be worked out by hand. */
struct line {
  int reduction; /* 0: TUTTI_LOSS_..._MEAN by default */
  int use_weights, apply_twice_the_gradient, clip;
};

static int32_t line_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct line *line = user;
  int64_t one = 1;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "constant", 2.0, 1);
  tutti_value y = tutti_mul(g, x, w);
  tutti_graph_set_output(g, "y", y);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_loss_mean_squared_error_attrs attrs = {.reduction = line->reduction};
    if (line->use_weights) attrs.weights = tutti_graph_get_sample_weight(g, "weight");
    tutti_value loss = tutti_loss_mean_squared_error(g, y, tutti_graph_get_label(g, "y"), &attrs);
    tutti_graph_set_loss(g, loss);
    tutti_optimizer_sgd(g, tutti_graph_host_scalar(g, "rate", 0.1), NULL);
    if (line->clip) tutti_graph_set_gradient_clip_norm(g, 1.0);
    if (line->apply_twice_the_gradient) {
      tutti_value gradient;
      tutti_gradients(g, loss, &w, 1, &gradient);
      gradient = tutti_mul(g, gradient, tutti_graph_constant(g, TUTTI_DTYPE_F32, 2));
      tutti_apply_gradients(g, &w, &gradient, 1);
    }
  }
  return tutti_graph_check(g, err);
}

/* Rows (x, y, weight) = (1, 1, 1), (2, 2, 0), (3, 0, 2). */
static tutti_dataset *line_dataset(int64_t batch) {
  static const float x[] = {1, 2, 3}, y[] = {1, 2, 0}, weight[] = {1, 0, 2};
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_tensor *xs = make_vector(TUTTI_DTYPE_F32, 3, x), *ys = make_vector(TUTTI_DTYPE_F32, 3, y),
               *weights = make_vector(TUTTI_DTYPE_F32, 3, weight);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_add_slices(pipeline, "weight", TUTTI_ROLE_WEIGHT, weights);
  tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(xs), tutti_tensor_unref(ys), tutti_tensor_unref(weights);
  return dataset;
}

static tutti_estimator *line_estimator(struct line *line) {
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, line_model, line, NULL, NULL, NULL, &estimator, &err));
  return estimator;
}

static double read_scalar(tutti_estimator *estimator, const char *name) {
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_F32);
  double value = ((const float *)tutti_tensor_get_data(tensor))[0];
  tutti_tensor_unref(tensor);
  return value;
}

static void assert_close(double got, double expected) {
  if (!(fabs(got - expected) <= 1e-5 * fmax(1, fabs(expected)))) {
    print_error("got %.9g, expected %.9g\n", got, expected);
    assert_true(0);
  }
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

/* --- how long it runs --------------------------------------------------------------------------------------------- */

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
  tutti_options_unref(options);
  assert_error(TUTTI_INVALID_ARGUMENT, "'dataset'",
               tutti_estimator_train(estimator, NULL, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(endless), tutti_dataset_unref(once);
}

/* --- hooks -------------------------------------------------------------------------------------------------------- */

struct hook_record {
  int count;
  int32_t kinds[128];
  int64_t steps[128];
  double loss, accuracy;
  int destroyed, wrong_thread;
  pthread_t thread;
  int64_t stop_at, fail_at, cancel_at;
  tutti_cancel *cancel;
  int32_t strength;
  tutti_estimator *train_again;
  const tutti_dataset *dataset;
  int32_t again_code;
};

static int32_t record_event(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct hook_record *r = user;
  int32_t kind = tutti_hook_event_get_kind(event);
  int64_t step = tutti_hook_event_get_step(event);
  if (r->count < 128) r->kinds[r->count] = kind, r->steps[r->count] = step, r->count++;
  if (!pthread_equal(pthread_self(), r->thread)) r->wrong_thread = 1;
  if (kind != TUTTI_EVENT_STEP) return TUTTI_OK;
  r->loss = tutti_hook_event_get_loss(event);
  r->accuracy = tutti_hook_event_get_metric(event, "accuracy");
  if (r->train_again != NULL)
    r->again_code = tutti_estimator_train(r->train_again, r->dataset, NULL, NULL, NULL, NULL, NULL);
  if (r->cancel_at == step) return tutti_cancel_request(r->cancel, r->strength, err);
  if (r->fail_at == step) return tutti_error_set(err, TUTTI_DATA_LOSS, "the hook has seen enough");
  return r->stop_at == step ? TUTTI_HOOK_STOP : TUTTI_OK;
}

static void count_destroy(void *user) { ((struct hook_record *)user)->destroyed++; }

static struct hook_record new_record(void) {
  struct hook_record record = {.stop_at = -1, .fail_at = -1, .cancel_at = -1};
  record.thread = pthread_self();
  return record;
}

static tutti_hooks *hooks_of(struct hook_record *record, int64_t every) {
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, record_event, record, count_destroy, every, &err));
  return hooks;
}

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

/* --- cancelling --------------------------------------------------------------------------------------------------- */

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

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

enum wrong_model {
  LOSS_IS_NO_SCALAR,
  NO_LOSS,
  NO_OPTIMIZER,
  TWO_OPTIMIZERS,
  NAN_LOSS,
  NO_OUTPUTS,
  UNKNOWN_FEATURE,
  LABEL_WHILE_PREDICTING,
  OUTPUT_WITHOUT_ROWS,
  VARIABLE_TWICE,
  USER_ERROR,
  OTHER_VARIABLES_IN_EVAL,
  WRONG_INITIALIZER,
  CLIP_OF_ZERO
};

static int32_t wrong_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  enum wrong_model wrong = *(enum wrong_model *)user;
  int64_t one = 1;
  tutti_value x = tutti_graph_get_feature(g, wrong == UNKNOWN_FEATURE ? "X" : "x");
  tutti_layer_dense_attrs attrs = {.kernel_initializer = wrong == WRONG_INITIALIZER ? "glorot_unifrm" : NULL};
  tutti_value logits =
      tutti_layer_dense(g, x, wrong == OTHER_VARIABLES_IN_EVAL && mode != TUTTI_MODE_TRAIN ? 3 : 2, &attrs);
  if (wrong != NO_OUTPUTS) tutti_graph_set_output(g, "logits", logits);
  if (wrong == OUTPUT_WITHOUT_ROWS) tutti_graph_set_output(g, "sum", tutti_reduce_sum(g, logits, NULL));
  if (wrong == VARIABLE_TWICE)
    for (int i = 0; i < 2; i++)
      tutti_graph_variable(g, "scale", TUTTI_DTYPE_F32, &one, 1, "ones", 0, 1);
  if (wrong == USER_ERROR) return tutti_error_set(err, TUTTI_NOT_FOUND, "no recipe for this model");
  if (mode == TUTTI_MODE_PREDICT && wrong != LABEL_WHILE_PREDICTING) return tutti_graph_check(g, err);
  tutti_value losses = tutti_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_value loss = wrong == LOSS_IS_NO_SCALAR ? losses : tutti_reduce_mean(g, losses, NULL);
  if (wrong == NAN_LOSS) /* 0 / 0 once three steps have been done */
    loss = tutti_mul(
        g, loss,
        tutti_log(g, tutti_sub(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 2.5),
                               tutti_div(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1),
                                         tutti_schedule_piecewise(g, (int64_t[]){3}, 1, (double[]){1, 0.25}, 2)))));
  if (wrong != NO_LOSS) tutti_graph_set_loss(g, loss);
  tutti_value rate = tutti_schedule_constant(g, 1e-3);
  if (wrong != NO_OPTIMIZER) tutti_optimizer_adam(g, rate, NULL);
  if (wrong == TWO_OPTIMIZERS) tutti_optimizer_sgd(g, rate, NULL);
  if (wrong == CLIP_OF_ZERO) tutti_graph_set_gradient_clip_norm(g, 0);
  return tutti_graph_check(g, err);
}

static tutti_estimator *wrong_estimator(enum wrong_model *wrong) {
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, wrong_model, wrong, NULL, NULL, NULL, &estimator, &err));
  return estimator;
}

static void test_wrong_models(void **state) {
  (void)state;
  static const struct {
    enum wrong_model wrong;
    int32_t code;
    const char *messages[2];
  } cases[] = {
      {LOSS_IS_NO_SCALAR, TUTTI_INVALID_ARGUMENT, {"[batch]", "expected a floating point scalar"}},
      {NO_LOSS, TUTTI_FAILED_PRECONDITION, {"optimizer", "loss"}},
      {NO_OPTIMIZER, TUTTI_INVALID_ARGUMENT, {"no optimizer", "TRAIN"}},
      {TWO_OPTIMIZERS, TUTTI_INVALID_ARGUMENT, {"already has an optimizer", "optimizer_sgd"}},
      {NAN_LOSS, TUTTI_OUT_OF_RANGE, {"step 4", "not finite"}},
      {UNKNOWN_FEATURE, TUTTI_NOT_FOUND, {"no feature 'X'", "it has x"}},
      {OUTPUT_WITHOUT_ROWS, TUTTI_INVALID_ARGUMENT, {"output 'sum'", "one row for each row"}},
      {VARIABLE_TWICE, TUTTI_ALREADY_EXISTS, {"variable 'scale'", ""}},
      {USER_ERROR, TUTTI_NOT_FOUND, {"the model function", "no recipe for this model"}},
      {WRONG_INITIALIZER,
       TUTTI_INVALID_ARGUMENT,
       {"'dense/kernel' has initializer 'glorot_unifrm'", "did you mean 'glorot_uniform'?"}},
      {CLIP_OF_ZERO, TUTTI_INVALID_ARGUMENT, {"clip norm", "0"}},
  };
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  int failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    enum wrong_model wrong = cases[i].wrong;
    tutti_estimator *estimator = wrong_estimator(&wrong);
    tutti_options *options = make_options("train", "{\"steps\": 6}");
    tutti_error *error = NULL;
    int32_t code = tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, &error);
    const char *text = tutti_error_get_text(error);
    if (code != cases[i].code || strstr(text, cases[i].messages[0]) == NULL ||
        strstr(text, cases[i].messages[1]) == NULL) {
      print_error("model %d: code %d: %s\n", (int)wrong, (int)code, text);
      failures++;
    }
    tutti_error_unref(error);
    tutti_options_unref(options);
    tutti_estimator_unref(estimator);
  }
  tutti_dataset_unref(dataset);
  assert_int_equal(failures, 0);
}

static void test_wrong_models_for_prediction_and_evaluation(void **state) {
  (void)state;
  static const struct {
    enum wrong_model wrong;
    int32_t code;
    const char *message;
  } cases[] = {{NO_OUTPUTS, TUTTI_INVALID_ARGUMENT, "predictions are the outputs"},
               {LABEL_WHILE_PREDICTING, TUTTI_FAILED_PRECONDITION, "label 'y' was asked for in a model for prediction"},
               {OTHER_VARIABLES_IN_EVAL, TUTTI_INVALID_ARGUMENT, "variable 'dense/kernel'"}};
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    enum wrong_model wrong = cases[i].wrong;
    tutti_estimator *estimator = wrong_estimator(&wrong);
    tutti_predictor *predictor = NULL;
    train(estimator, dataset, "{\"steps\": 1}");
    assert_error(cases[i].code, cases[i].message, tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
    assert_null(predictor);
    if (wrong == OTHER_VARIABLES_IN_EVAL)
      assert_error(cases[i].code, cases[i].message, tutti_estimator_evaluate(estimator, dataset, 1, NULL, NULL, &err));
    tutti_estimator_unref(estimator);
  }
  tutti_dataset_unref(dataset);
}

static void test_no_weights(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(8, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_result *result = (tutti_result *)(uintptr_t)1;
  tutti_predictor *predictor = NULL;
  tutti_tensor *tensor = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights",
               tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err));
  assert_null(result);
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights",
               tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights", tutti_estimator_read_variable(estimator, "w", &tensor, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights", tutti_estimator_save(estimator, "/tmp", NULL, &err));
  assert_int_equal(tutti_estimator_get_variable_count(estimator), 0);
  assert_int_equal(tutti_estimator_get_global_step(estimator), 0);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_label_out_of_range(void **state) {
  (void)state;
  static float x[20][4];
  static int32_t y[20];
  y[13] = 9;
  int64_t dims[] = {20, 4};
  tutti_tensor *xs = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *ys = make_vector(TUTTI_DTYPE_I32, 20, y);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(xs), tutti_tensor_unref(ys);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_error *error = NULL;
  assert_int_equal(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error), TUTTI_INVALID_ARGUMENT);
  assert_contains(tutti_error_get_text(error), "row 5"); /* of the second batch */
  assert_contains(tutti_error_get_text(error), "9");
  tutti_error_unref(error);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
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

/* --- model_dir ---------------------------------------------------------------------------------------------------- */

static void test_goes_on_from_the_model_dir(void **state) {
  (void)state;
  char directory[64], run[160];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"seed\": 5, \"model_dir\": \"%s\", \"determinism\": \"repeatable\"}", directory);
  tutti_dataset *dataset = toy_dataset(64, 16, 1);
  tutti_estimator *estimator = toy_estimator("{\"seed\": 5, \"determinism\": \"repeatable\"}");
  struct outcome whole = train(estimator, dataset, "{\"epochs\": 3}");
  tutti_tensor *expected = NULL, *got = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &expected, &err));
  tutti_estimator_unref(estimator);

  estimator =
      toy_estimator(run); /* the same in three pieces by three estimators, the second in the middle of an epoch */
  assert_int_equal(train(estimator, dataset, "{\"steps\": 3}").step, 3);
  tutti_estimator_unref(estimator);
  estimator = toy_estimator(run);
  assert_int_equal(tutti_estimator_get_global_step(estimator), 3);
  assert_int_equal(train(estimator, dataset, NULL).step, 4);
  assert_int_equal(train(estimator, dataset, NULL).step, 8);
  tutti_estimator_unref(estimator);
  estimator = toy_estimator(run);
  struct outcome pieces = train(estimator, dataset, "{\"max_steps\": 12}");
  assert_int_equal(pieces.step, whole.step);
  assert_true(pieces.loss == whole.loss);
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &got, &err));
  assert_int_equal(tutti_tensor_get_size_bytes(got), 4 * 16 * 4);
  assert_memory_equal(tutti_tensor_get_data(got), tutti_tensor_get_data(expected), 4 * 16 * 4);
  tutti_tensor_unref(got), tutti_tensor_unref(expected);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  remove_directory(directory);
}

static void test_unwritable_model_dir(void **state) {
  (void)state;
  char directory[64], file[128], run[256];
  make_directory(directory);
  join_path(file, sizeof file, directory, "occupied"); /* a file where a directory is wanted: holds for root too */
  FILE *out = fopen(file, "w");
  assert_non_null(out);
  fclose(out);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s/models\"}", file);
  tutti_dataset *dataset = toy_dataset(16, 8, 1);
  tutti_estimator *estimator = toy_estimator(run);
  tutti_error *error = NULL;
  assert_int_not_equal(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error), TUTTI_OK);
  assert_contains(tutti_error_get_text(error), "occupied/models");
  tutti_error_unref(error);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  remove_directory(directory);
}

static void test_checkpoints_are_announced_and_limited(void **state) {
  (void)state;
  char directory[64], run[200];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\", \"save_checkpoints_steps\": 2, \"keep_checkpoint_max\": 2}",
           directory);
  struct hook_record record = new_record();
  tutti_hooks *hooks = hooks_of(&record, 0);
  tutti_dataset *dataset = toy_dataset(64, 8, 1);
  tutti_estimator *estimator = toy_estimator(run);
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, NULL, &err));
  int saved = 0, newest = 0;
  for (int i = 0; i < record.count; i++) {
    saved += record.kinds[i] == TUTTI_EVENT_CHECKPOINT_SAVED;
    newest += record.kinds[i] == TUTTI_EVENT_CHECKPOINT_SAVED && record.steps[i] == 8;
    assert_int_not_equal(record.kinds[i], TUTTI_EVENT_STEP);
  }
  assert_true(saved >= 2);
  assert_true(newest >= 1);
  char path[128];
  struct stat status;
  join_path(path, sizeof path, directory, "checkpoint-8");
  assert_int_equal(stat(path, &status), 0);
  join_path(path, sizeof path, directory, "checkpoint-2");
  assert_int_not_equal(stat(path, &status), 0);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  remove_directory(directory);
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

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
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

static void test_session(void **state) {
  (void)state;
  struct line line = {0};
  tutti_dataset *dataset = line_dataset(1);
  tutti_estimator *estimator = line_estimator(&line);
  tutti_session *session = NULL, *second = NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "training already",
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_toy_learns),
    cmocka_unit_test(test_one_step_by_hand),
    cmocka_unit_test(test_steps_max_steps_and_epochs),
    cmocka_unit_test(test_limits_that_exclude_each_other),
    cmocka_unit_test(test_order_of_events),
    cmocka_unit_test(test_a_hook_stops),
    cmocka_unit_test(test_a_hook_fails),
    cmocka_unit_test(test_training_inside_a_hook),
    cmocka_unit_test(test_hook_arguments),
    cmocka_unit_test(test_stop_and_cancel),
    cmocka_unit_test(test_wrong_models),
    cmocka_unit_test(test_wrong_models_for_prediction_and_evaluation),
    cmocka_unit_test(test_no_weights),
    cmocka_unit_test(test_label_out_of_range),
    cmocka_unit_test(test_create_arguments),
    cmocka_unit_test(test_goes_on_from_the_model_dir),
    cmocka_unit_test(test_unwritable_model_dir),
    cmocka_unit_test(test_checkpoints_are_announced_and_limited),
    cmocka_unit_test(test_variables),
    cmocka_unit_test(test_frozen_variables),
    cmocka_unit_test(test_session),
    cmocka_unit_test(test_train_and_evaluate),
    cmocka_unit_test(test_evaluate_endless),
    cmocka_unit_test(test_no_batch),
    cmocka_unit_test(test_mirrored_gives_the_same),
};
CAPI_TEST_MAIN(tests)
