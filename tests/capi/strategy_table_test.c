/* SPDX-License-Identifier: Apache-2.0
 * Every feature on every strategy: the weights, the evaluation and the predictions are those of one device. The rows of
 * the table are features, its columns strategies; the data have odd sizes. With PJRT where TUTTI_PJRT_PLUGIN names a
 * library. The program starts itself as workers.
 *
 * usage: strategy_table_test TUTTI_PJRT TUTTI_GLOO */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker_fixtures.h"

enum { ROWS = 61, BATCH = 8, WIDTH = 16, CLASSES = 2, STEP_ROWS = 7 };

/* What the model has is said by letters of the run option params. Normalised batches are trained by sgd: adam makes
 * steps of full length of gradients that are zero but for their rounding, such as those of units that are never
 * active. */
struct feature {
  const char *name, *params, *run;
};
static const struct feature features[] = {
    {"adam", "", ""},
    {"sgd with momentum", "m", ""},
    {"decay of weights", "mw", ""},
    {"batch normalisation", "mb", ""},
    {"dropout", "d", ""},
    {"gradients clipped by value and norm", "mc", ""},
    {"gradients clipped by their global norm", "mg", ""},
    {"moving averages of weights", "a", ""},
    {"accumulation", "m", ", \"accumulation_steps\": 3"},
    {"kept gradients and outputs", "", ", \"keep_gradients\": true, \"keep_outputs\": true"},
    {"repeatable", "mbd", ", \"determinism\": \"repeatable\""},
    {"step functions", "s", ""},
    {"all of it", "mbdcga", ", \"accumulation_steps\": 2"},
};
enum { FEATURES = sizeof features / sizeof *features };

/* What came of one feature. */
struct outcome {
  float kernel[WIDTH * CLASSES];
  float logits[ROWS * CLASSES];
  double loss, accuracy;
  int64_t steps, examples;
  float probed[STEP_ROWS * CLASSES], means[CLASSES]; /* what a step function computed last */
};

struct answer {
  int32_t code;
  char error[500];
  struct outcome outcomes[FEATURES];
};

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const char *has = tutti_graph_get_params(g);
  const tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), WIDTH, &relu);
  if (strchr(has, 'b')) x = tutti_layer_batch_norm(g, x, NULL);
  if (strchr(has, 'd')) x = tutti_layer_dropout(g, x, 0.25);
  const tutti_value logits = tutti_layer_dense(g, x, CLASSES, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  const tutti_value label = tutti_graph_get_label(g, "y"), rate = tutti_schedule_constant(g, 0.02);
  tutti_metric_accuracy(g, "accuracy", logits, label, NULL);
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, label, NULL));
  if (strchr(has, 'g')) tutti_graph_set_gradient_clip_norm(g, 0.1);
  const double clip_value = strchr(has, 'c') ? 0.02 : 0, clip_norm = strchr(has, 'c') ? 0.05 : 0;
  const double decay = strchr(has, 'a') ? 0.9 : 0;
  if (strchr(has, 'm')) {
    const tutti_optimizer_sgd_attrs attrs = {.momentum = 0.9,
                                             .weight_decay = strchr(has, 'w') ? 0.1 : 0,
                                             .clip_value = clip_value,
                                             .clip_norm = clip_norm,
                                             .average_decay = decay};
    tutti_optimizer_sgd(g, rate, &attrs);
  } else {
    const tutti_optimizer_adam_attrs attrs = {.clip_value = clip_value, .clip_norm = clip_norm, .average_decay = decay};
    tutti_optimizer_adam(g, rate, &attrs);
  }
  return tutti_graph_check(g, err);
}

static tutti_dataset *rows_of(tutti_context *context) {
  tutti_pipeline *pipeline = toy_rows(context, ROWS);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static int32_t evaluate(tutti_estimator *estimator, const tutti_dataset *dataset, struct outcome *outcome,
                        tutti_error **err) {
  tutti_result *result = NULL;
  const int32_t code = tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, err);
  outcome->loss = tutti_result_get_metric(result, "loss");
  outcome->accuracy = tutti_result_get_metric(result, "accuracy");
  tutti_result_unref(result);
  return code;
}

static int32_t predict(tutti_estimator *estimator, const tutti_dataset *dataset, struct outcome *outcome,
                       tutti_error **err) {
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  int32_t code = tutti_predictor_from_estimator(estimator, NULL, &predictor, err);
  if (code == TUTTI_OK) code = tutti_predictor_run_all(predictor, dataset, NULL, &batch, err);
  if (code == TUTTI_OK) {
    const tutti_tensor *logits = tutti_batch_get_output(batch, "logits");
    if (tutti_tensor_get_size_bytes(logits) == sizeof outcome->logits)
      memcpy(outcome->logits, tutti_tensor_get_data(logits), sizeof outcome->logits);
  }
  tutti_batch_unref(batch), tutti_predictor_unref(predictor);
  return code;
}

/* Copies an f32 tensor of so many numbers, and drops it. */
static int32_t copy_numbers(tutti_tensor *tensor, float *numbers, int count) {
  const int fits = tutti_tensor_get_size_bytes(tensor) == (int64_t)sizeof *numbers * count;
  if (fits) memcpy(numbers, tutti_tensor_get_data(tensor), sizeof *numbers * (size_t)count);
  tutti_tensor_unref(tensor);
  return fits ? TUTTI_OK : TUTTI_INTERNAL;
}

/* Two steps on rows of its own beside a step of the training: one that trains, one that only computes. */
static int32_t run_step_functions(tutti_session *session, struct outcome *outcome, tutti_error **err) {
  float x[STEP_ROWS][4];
  int32_t y[STEP_ROWS];
  for (int r = 0; r < STEP_ROWS; r++)
    toy_row(100 + r, x[r], &y[r]);
  const int64_t dims[] = {STEP_ROWS, 4};
  tutti_tensor *batch[] = {make_tensor(TUTTI_DTYPE_F32, 2, dims, x), make_vector(TUTTI_DTYPE_I32, STEP_ROWS, y)};
  tutti_replica_values *values = NULL;
  tutti_tensor *whole = NULL, *mean = NULL;
  int32_t code = tutti_session_run_step_function(session, "again", batch, 2, NULL, NULL, err);
  if (code == TUTTI_OK) code = tutti_session_run_step_function(session, "probe", batch, 2, NULL, &values, err);
  if (code == TUTTI_OK) code = tutti_replica_values_gather(values, "logits", 0, &whole, err);
  if (code == TUTTI_OK) code = tutti_replica_values_reduce(values, "logits", TUTTI_REDUCE_MEAN, 0, &mean, err);
  if (code == TUTTI_OK) code = copy_numbers(whole, outcome->probed, STEP_ROWS * CLASSES);
  if (code == TUTTI_OK) code = copy_numbers(mean, outcome->means, CLASSES);
  tutti_replica_values_unref(values), tutti_tensor_unref(batch[0]), tutti_tensor_unref(batch[1]);
  return code;
}

/* A loop of the program, with step functions, in place of train. */
static int32_t run_loop(tutti_estimator *estimator, const tutti_dataset *dataset, const tutti_options *options,
                        struct outcome *outcome, tutti_result **result, tutti_error **err) {
  tutti_session *session = NULL;
  int32_t code = tutti_estimator_add_step_function(estimator, "again", TUTTI_MODE_TRAIN, model, NULL, NULL, NULL, err);
  if (code == TUTTI_OK)
    code = tutti_estimator_add_step_function(estimator, "probe", TUTTI_MODE_EVAL, model, NULL, NULL, NULL, err);
  if (code == TUTTI_OK) code = tutti_session_open(estimator, dataset, options, NULL, NULL, &session, err);
  for (int32_t reason = 0; code == TUTTI_OK && reason == 0;) {
    tutti_result *step = NULL;
    code = tutti_session_run(session, 1, &step, err);
    reason = tutti_result_get_reason(step);
    tutti_result_unref(step);
    if (code == TUTTI_OK) code = run_step_functions(session, outcome, err);
  }
  if (code == TUTTI_OK) code = tutti_session_close(session, result, err);
  tutti_session_unref(session);
  return code;
}

/* Trains a feature on a strategy, evaluates and predicts. */
static int32_t run_feature(tutti_strategy *strategy, const struct feature *feature, struct outcome *outcome,
                           tutti_error **err) {
  tutti_context *scope = tutti_strategy_get_context(strategy);
  char json[200];
  snprintf(json, sizeof json, "{\"seed\": 5, \"params\": \"%s\"%s}", feature->params, feature->run);
  tutti_options *run = make_options("run", json), *train = make_options("train", "{\"epochs\": 3}");
  tutti_dataset *dataset = rows_of(scope);
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  int32_t code = tutti_estimator_create(scope, model, NULL, NULL, NULL, run, &estimator, err);
  if (code == TUTTI_OK) {
    code = strchr(feature->params, 's') ? run_loop(estimator, dataset, train, outcome, &result, err)
                                        : tutti_estimator_train(estimator, dataset, train, NULL, NULL, &result, err);
  }
  if (code == TUTTI_OK) {
    outcome->steps = tutti_result_get_step(result);
    outcome->examples = tutti_result_get_examples(result);
    code = read_numbers(estimator, "dense_1/kernel", outcome->kernel, WIDTH * CLASSES, err);
  }
  if (code == TUTTI_OK) code = evaluate(estimator, dataset, outcome, err);
  if (code == TUTTI_OK) code = predict(estimator, dataset, outcome, err);
  tutti_result_unref(result), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  tutti_options_unref(run), tutti_options_unref(train);
  return code;
}

static tutti_context *make_context(const char *json) {
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

/* ---- a worker ---- */

static int worker_main(const char *directory) {
  static struct answer answer;
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_error *err = NULL;
  answer.code = join_workers("{\"connect_timeout_ms\": 60000}", &context, &strategy, &err);
  for (int f = 0; f < FEATURES && answer.code == TUTTI_OK; f++)
    answer.code = run_feature(strategy, &features[f], &answer.outcomes[f], &err);
  if (err != NULL) snprintf(answer.error, sizeof answer.error, "%s", tutti_error_get_text(err));
  tutti_error_unref(err), tutti_strategy_unref(strategy), tutti_context_unref(context);
  return leave_answer(directory, &answer, sizeof answer, answer.code);
}

/* ---- the table ---- */

static struct outcome alone[FEATURES];

static void compare(const char *feature, const char *what, const float *got, const float *expected, int count) {
  for (int i = 0; i < count; i++) {
    if (fabsf(got[i] - expected[i]) <= 2e-4f * (1 + fabsf(expected[i]))) continue;
    fail_msg("%s: %s %d is %g, on one device %g", feature, what, i, (double)got[i], (double)expected[i]);
  }
}

static void compare_outcome(int f, const struct outcome *got) {
  const char *const name = features[f].name;
  assert_int_equal(got->steps, alone[f].steps);
  assert_int_equal(got->examples, 3 * ROWS);
  compare(name, "weight", got->kernel, alone[f].kernel, WIDTH * CLASSES);
  compare(name, "logit", got->logits, alone[f].logits, ROWS * CLASSES);
  compare(name, "logit of a step function", got->probed, alone[f].probed, STEP_ROWS * CLASSES);
  compare(name, "mean of a step function", got->means, alone[f].means, CLASSES);
  if (fabs(got->loss - alone[f].loss) > 2e-4 * (1 + alone[f].loss))
    fail_msg("%s: the loss is %g, on one device %g", name, got->loss, alone[f].loss);
  /* One row may lie on the border of two classes. */
  if (fabs(got->accuracy - alone[f].accuracy) > 1.5 / ROWS)
    fail_msg("%s: the accuracy is %g, on one device %g", name, got->accuracy, alone[f].accuracy);
}

static void check_strategy(tutti_strategy *strategy) {
  for (int f = 0; f < FEATURES; f++) {
    struct outcome got = {0};
    assert_ok(run_feature(strategy, &features[f], &got, &err));
    compare_outcome(f, &got);
  }
  tutti_strategy_unref(strategy);
}

static int train_on_one_device(void **state) {
  (void)state;
  tutti_context *context = make_context("{\"backend\": \"reference\", \"logical_devices\": 1}");
  tutti_strategy *one = NULL;
  assert_ok(tutti_strategy_create_one_device(context, NULL, &one, &err));
  for (int f = 0; f < FEATURES; f++)
    assert_ok(run_feature(one, &features[f], &alone[f], &err));
  tutti_strategy_unref(one), tutti_context_unref(context);
  /* The rows of the table differ from each other, or they would show nothing. */
  for (int f = 1; f < FEATURES; f++) {
    const int is_same = strcmp(features[f].params, "") == 0;
    if (!is_same) assert_true(memcmp(&alone[f], &alone[0], sizeof alone[0]) != 0);
  }
  return remember_live_objects(state);
}

static void test_c1_c3_mirrored_3(void **state) {
  (void)state;
  tutti_context *context = make_context("{\"backend\": \"reference\", \"logical_devices\": 3}");
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  check_strategy(strategy);
  tutti_context_unref(context);
}

static void test_c20_central_storage(void **state) {
  (void)state;
  tutti_context *context = make_context("{\"backend\": \"reference\", \"logical_devices\": 4}");
  const char *const devices[] = {"reference:0", "reference:1", "reference:2"};
  for (int apart = 0; apart < 2; apart++) {
    tutti_strategy *strategy = NULL;
    assert_ok(tutti_strategy_create_central_storage(context, apart ? "reference:3" : "reference:1", devices, 3,
                                                    &strategy, &err));
    check_strategy(strategy);
  }
  tutti_context_unref(context);
}

static void test_c10_two_workers(void **state) {
  (void)state;
  static struct answer all[2];
  char directory[64];
  int codes[2];
  make_directory(directory);
  run_workers("table", directory, 2, 2, codes, all, sizeof all[0]);
  for (int w = 0; w < 2; w++) {
    assert_string_equal(all[w].error, "");
    for (int f = 0; f < FEATURES; f++)
      compare_outcome(f, &all[w].outcomes[f]);
  }
  remove_directory(directory);
}

static void test_c16_pjrt_1_2_8(void **state) {
  (void)state;
  const char *const library = getenv("TUTTI_PJRT_PLUGIN");
  if (library == NULL) {
    print_message("TUTTI_PJRT_PLUGIN names no library with PJRT's C interface\n");
    skip();
  }
  const int counts[] = {1, 2, 8}; /* more devices than a batch has rows for are there, too */
  for (int i = 0; i < 3; i++) {
    char json[PATH_MAX + 100];
    snprintf(json, sizeof json, "{\"backend\": \"pjrt\", \"pjrt_plugin\": \"%s\", \"logical_devices\": %d}", library,
             counts[i]);
    tutti_context *context = make_context(json);
    tutti_strategy *strategy = NULL;
    assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
    check_strategy(strategy);
    if (counts[i] == 2) {
      assert_ok(tutti_strategy_create_central_storage(context, NULL, NULL, 0, &strategy, &err));
      check_strategy(strategy);
    }
    tutti_context_unref(context);
  }
}

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS && strcmp(arguments[1], "table") == 0) return worker_main(arguments[2]);
  char folder[64];
  if (count != 3 || link_plugins(folder, arguments[1], arguments[2]) != 0) return 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_c1_c3_mirrored_3),
      cmocka_unit_test(test_c20_central_storage),
      cmocka_unit_test(test_c10_two_workers),
      cmocka_unit_test(test_c16_pjrt_1_2_8),
  };
  const int failed = cmocka_run_group_tests(tests, train_on_one_device, assert_nothing_left);
  remove_directory(folder);
  return failed;
}
