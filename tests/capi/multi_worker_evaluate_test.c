/* SPDX-License-Identifier: Apache-2.0
 * Evaluation on several processes gives every one of them the report of one process; and what happens when one of them
 * dies, hangs, fails, or evaluates something else. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "estimator_fixtures.h"
#include "worker_fixtures.h"

enum { ROWS = 61, BATCH = 8 };

/* ---- a worker ---- */

struct evaluated {
  int32_t code;
  int64_t step, examples;
  double loss, accuracy, seconds;
  float logits[2]; /* of row 0, by a predictor of the estimator in its open session */
  char error[500];
};

/* What a predictor says of row 0. */
static int32_t predict_row(tutti_predictor *predictor, float logits[2], tutti_error **err) {
  float x[4];
  int32_t label;
  toy_row(0, x, &label);
  const int64_t dims[] = {1, 4};
  const char *name = "x";
  tutti_tensor *input = make_tensor(TUTTI_DTYPE_F32, 2, dims, x);
  tutti_batch *batch = NULL;
  const int32_t code = tutti_predictor_run(predictor, &name, &input, 1, NULL, &batch, err);
  if (code == TUTTI_OK) memcpy(logits, tutti_tensor_get_data(tutti_batch_get_output(batch, "logits")), 2 * sizeof *x);
  tutti_batch_unref(batch), tutti_tensor_unref(input);
  return code;
}

static int32_t predict_now(tutti_estimator *estimator, struct evaluated *evaluated, tutti_error **err) {
  tutti_predictor *predictor = NULL;
  int32_t code = tutti_predictor_from_estimator(estimator, NULL, &predictor, err);
  if (code == TUTTI_OK) code = predict_row(predictor, evaluated->logits, err);
  if (code == TUTTI_OK && tutti_predictor_get_step(predictor) != evaluated->step)
    code = tutti_error_set(err, TUTTI_INTERNAL, "the predictor is of another step than the evaluation");
  tutti_predictor_unref(predictor);
  return code;
}

static void keep(struct evaluated *evaluated, tutti_result *result) {
  const struct outcome outcome = take(result);
  evaluated->step = outcome.step;
  evaluated->examples = outcome.examples;
  evaluated->loss = outcome.loss;
  evaluated->accuracy = outcome.accuracy;
}

struct watch {
  const char *scenario;
  tutti_cancel *cancel;
  int rows;
};

struct saving {
  tutti_estimator *estimator;
  const char *directory;
};

static int is(const char *scenario, const char *name) { return strcmp(scenario, name) == 0; }

/* In the pipeline of worker 1: what its scenario says happens at row 20. */
static int32_t at_row(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                      tutti_error **err) {
  struct watch *watch = user;
  for (int64_t i = 0; i < count; i++) {
    tutti_tensor_ref(inputs[i]);
    outputs[i] = inputs[i];
  }
  if (worker_tested() != 1 || ++watch->rows != 20) return TUTTI_OK;
  if (is(watch->scenario, "kill")) raise(SIGKILL);
  if (is(watch->scenario, "hang")) sleep(8);
  if (is(watch->scenario, "cancel")) tutti_cancel_request(watch->cancel, TUTTI_CANCEL_CANCEL, NULL);
  if (!is(watch->scenario, "data_error")) return TUTTI_OK;
  for (int64_t i = 0; i < count; i++)
    tutti_tensor_unref(outputs[i]);
  return tutti_error_set(err, TUTTI_DATA_LOSS, "row 20 cannot be read");
}

/* The rows that a worker is given. */
static tutti_dataset *rows_of(tutti_context *context, const char *scenario, tutti_strategy *strategy,
                              struct watch *watch) {
  const int64_t count = is(scenario, "few") ? 5 : is(scenario, "no_rows") ? 0 : ROWS;
  tutti_pipeline *pipeline = toy_rows(context, is(scenario, "other_data") && worker_tested() == 1 ? ROWS - 1 : count);
  if (is(scenario, "own"))
    tutti_pipeline_shard(pipeline, tutti_strategy_get_input_pipeline_count(strategy),
                         tutti_strategy_get_input_pipeline_id(strategy));
  if (is(scenario, "own_of_last") && worker_tested() + 1 != tutti_strategy_get_worker_count(strategy))
    tutti_pipeline_take(pipeline, 0);
  tutti_pipeline_map(pipeline, at_row, watch, NULL, 1);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static int32_t evaluate_on(tutti_strategy *strategy, const char *scenario, const char *model_dir,
                           struct evaluated *evaluated, tutti_error **err) {
  char json[300];
  snprintf(json, sizeof json, "{\"model_dir\": \"%s%s\", \"collective_timeout_ms\": %d}", model_dir,
           is(scenario, "other_weights") && worker_tested() == 1 ? "-other" : "", is(scenario, "hang") ? 3000 : 60000);
  struct watch watch = {scenario, NULL, 0};
  assert_ok(tutti_cancel_create(&watch.cancel, &err));
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_dataset *dataset = rows_of(context, scenario, strategy, &watch);
  tutti_options *run = make_options("run", json);
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  const time_t begin = time(NULL);
  int32_t code = tutti_estimator_create(context, toy_model, NULL, NULL, strategy, run, &estimator, err);
  /* Twice: workers meet again for each. */
  for (int turn = 0; code == TUTTI_OK && turn < 2; turn++) {
    tutti_result_unref(result);
    code = tutti_estimator_evaluate(estimator, dataset, is(scenario, "steps") ? 5 : 0, watch.cancel, &result, err);
  }
  if (code == TUTTI_OK) keep(evaluated, result);
  evaluated->seconds = difftime(time(NULL), begin);
  tutti_estimator_unref(estimator);
  tutti_options_unref(run);
  tutti_dataset_unref(dataset);
  tutti_cancel_unref(watch.cancel);
  return code;
}

/* Evaluates while it trains, and once more afterwards: worker 0, which writes checkpoints, has other things in memory
 * then than the others. */
static int32_t train_and_evaluate_on(tutti_strategy *strategy, const char *model_dir, struct evaluated evaluated[2],
                                     tutti_error **err) {
  char json[300];
  snprintf(json, sizeof json, "{\"seed\": 5, \"model_dir\": \"%s\"}", model_dir);
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_pipeline *pipeline = toy_rows(context, ROWS);
  tutti_dataset *dataset = NULL;
  tutti_options *run = make_options("run", json), *options = make_options("train", "{\"epochs\": 2}");
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  if (code == TUTTI_OK) code = tutti_estimator_create(context, toy_model, NULL, NULL, strategy, run, &estimator, err);
  if (code == TUTTI_OK)
    code = tutti_estimator_train_and_evaluate(estimator, dataset, dataset, 3, options, NULL, NULL, &result, err);
  if (code == TUTTI_OK) {
    keep(&evaluated[0], result);
    code = tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, err);
  }
  if (code == TUTTI_OK) keep(&evaluated[1], result);
  tutti_estimator_unref(estimator);
  tutti_options_unref(run);
  tutti_options_unref(options);
  tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline);
  return code;
}

/* All workers save into one directory, at the same time. */
static int32_t save_on_step(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct saving *saving = user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP) return TUTTI_OK;
  return tutti_estimator_save(saving->estimator, saving->directory, NULL, err);
}

/* Evaluates twice while a session is open, in whose hook all workers save: in the midst of a pass, and behind it. */
static int32_t evaluate_in_session_on(tutti_strategy *strategy, const char *directory, struct evaluated evaluated[2],
                                      tutti_error **err) {
  struct saving saving = {.directory = directory};
  tutti_hooks *hooks = NULL;
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_pipeline *pipeline = toy_rows(context, ROWS), *endless = toy_rows(context, ROWS);
  tutti_dataset *dataset = NULL, *training = NULL;
  tutti_options *run = make_options("run", "{\"seed\": 5}");
  tutti_estimator *estimator = NULL;
  tutti_session *session = NULL;
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_pipeline_repeat(endless, NULL), tutti_pipeline_batch(endless, BATCH, NULL);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  if (code == TUTTI_OK) code = tutti_pipeline_build(endless, &training, err);
  if (code == TUTTI_OK) code = tutti_estimator_create(context, toy_model, NULL, NULL, strategy, run, &estimator, err);
  saving.estimator = estimator;
  if (code == TUTTI_OK) code = tutti_hooks_create(&hooks, err);
  if (code == TUTTI_OK) code = tutti_hooks_add(hooks, save_on_step, &saving, NULL, 1, err);
  if (code == TUTTI_OK) code = tutti_session_open(estimator, training, NULL, hooks, NULL, &session, err);
  for (int piece = 0; code == TUTTI_OK && piece < 2; piece++) {
    tutti_result *result = NULL;
    code = tutti_session_run(session, 5, NULL, err);
    if (code == TUTTI_OK) code = tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, err);
    if (code == TUTTI_OK) keep(&evaluated[piece], result);
    if (code == TUTTI_OK) code = predict_now(estimator, &evaluated[piece], err);
  }
  tutti_session_unref(session), tutti_estimator_unref(estimator), tutti_hooks_unref(hooks);
  tutti_dataset_unref(dataset), tutti_dataset_unref(training);
  tutti_pipeline_unref(pipeline), tutti_pipeline_unref(endless), tutti_options_unref(run);
  return code;
}

static int worker_main(const char *scenario, const char *directory) {
  struct evaluated evaluated = {0}, both[2] = {{0}};
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_error *err = NULL;
  char model_dir[200];
  snprintf(model_dir, sizeof model_dir, "%s/model", directory);
  const char *cluster = strncmp(scenario, "own", 3) == 0 ? "{\"worker_input\": \"own\"}" : "{}";
  int32_t code = join_workers(cluster, &context, &strategy, &err);
  if (code == TUTTI_OK && strncmp(scenario, "session", 7) == 0) {
    code = evaluate_in_session_on(strategy, model_dir, both, &err);
    evaluated = both[is(scenario, "session_later")];
  } else if (code == TUTTI_OK && strncmp(scenario, "train", 5) != 0) {
    code = evaluate_on(strategy, scenario, model_dir, &evaluated, &err);
  } else if (code == TUTTI_OK) {
    code = train_and_evaluate_on(strategy, model_dir, both, &err);
    evaluated = both[is(scenario, "train_then_evaluate")];
  }
  evaluated.code = code;
  if (err != NULL) snprintf(evaluated.error, sizeof evaluated.error, "%s", tutti_error_get_text(err));
  tutti_error_unref(err);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  return leave_answer(directory, &evaluated, sizeof evaluated, code);
}

/* ---- the test ---- */

static void run(const char *scenario, const char *directory, int count, int devices, int *codes,
                struct evaluated *all) {
  run_workers(scenario, directory, count, devices, codes, all, sizeof *all);
}

/* A model in directory/model, trained for so many steps, and what one process says of it. */
static struct outcome train_alone(const char *directory, const char *name, int steps, int64_t rows, int64_t batches) {
  char json[300];
  snprintf(json, sizeof json, "{\"seed\": 5, \"model_dir\": \"%s/%s\"}", directory, name);
  tutti_estimator *estimator = toy_estimator(json);
  tutti_dataset *all = toy_dataset(ROWS, BATCH, 0), *evaluation = toy_dataset(rows, BATCH, 1);
  snprintf(json, sizeof json, "{\"max_steps\": %d}", steps);
  train(estimator, all, json);
  const struct outcome outcome = evaluate(estimator, evaluation, batches);
  tutti_dataset_unref(all);
  tutti_dataset_unref(evaluation);
  tutti_estimator_unref(estimator);
  return outcome;
}

static void assert_same(const struct evaluated *got, const struct outcome *expected) {
  assert_string_equal(got->error, "");
  assert_int_equal(got->step, expected->step);
  assert_int_equal(got->examples, expected->examples);
  assert_close(got->loss, expected->loss);
  assert_true(fabs(got->accuracy - expected->accuracy) < 1e-9);
}

static void test_processes_evaluate_as_one(void **state) {
  (void)state;
  const struct {
    const char *name;
    int64_t rows, batches;
  } cases[] = {{"whole", ROWS, 0}, {"few", 5, 0}, {"steps", ROWS, 5}, {"own", ROWS, 0}, {"own_of_last", ROWS, 0}};
  char directory[64];
  make_directory(directory);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    const struct outcome alone = train_alone(directory, "model", 12, cases[c].rows, cases[c].batches);
    for (int count = 2; count <= 3; count++) {
      for (int devices = 1; devices <= 2; devices++) {
        struct evaluated all[MOST_WORKERS];
        int codes[MOST_WORKERS];
        run(cases[c].name, directory, count, devices, codes, all);
        for (int w = 0; w < count; w++) {
          assert_same(&all[w], &alone);
          assert_true(all[w].loss == all[0].loss);
          assert_int_equal(codes[w], 0);
        }
      }
    }
  }
  remove_directory(directory);
}

static void test_evaluations_of_processes_that_train(void **state) {
  (void)state;
  char directory[64];
  tutti_options *options = make_options("context", "{\"logical_devices\": 1, \"backend\": \"reference\"}");
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  struct evaluated alone[2] = {{0}};
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_strategy_create_one_device(context, NULL, &strategy, &err));
  assert_ok(train_and_evaluate_on(strategy, "", alone, &err));
  for (int then = 0; then < 2; then++) {
    const struct outcome expected = {0, alone[then].step, alone[then].examples, alone[then].loss, alone[then].accuracy};
    struct evaluated all[MOST_WORKERS];
    int codes[MOST_WORKERS];
    make_directory(directory);
    run(then ? "train_then_evaluate" : "train_and_evaluate", directory, 2, 2, codes, all);
    for (int w = 0; w < 2; w++)
      assert_same(&all[w], &expected);
    remove_directory(directory);
  }
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

enum { SAVED = 10 };

/* What was saved at each of the ten steps is there, whole; `logits` receives what it predicts. */
static void read_saved(tutti_context *context, const char *directory, float logits[SAVED][2]) {
  for (int step = 1; step <= SAVED; step++) {
    char path[200];
    tutti_predictor *predictor = NULL;
    snprintf(path, sizeof path, "%s/checkpoint-%d", directory, step);
    assert_ok(tutti_predictor_open(context, path, NULL, NULL, &predictor, &err));
    assert_int_equal(tutti_predictor_get_step(predictor), step);
    assert_ok(predict_row(predictor, logits[step - 1], &err));
    tutti_predictor_unref(predictor);
  }
}

static void assert_same_logits(const float got[2], const float expected[2]) {
  for (int i = 0; i < 2; i++)
    assert_close((double)got[i], (double)expected[i]);
}

static void test_evaluations_in_an_open_session(void **state) {
  (void)state;
  char directory[64], model_dir[80];
  tutti_options *options = make_options("context", "{\"logical_devices\": 1, \"backend\": \"reference\"}");
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  struct evaluated alone[2] = {{0}};
  float saved_alone[SAVED][2], saved[SAVED][2];
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_strategy_create_one_device(context, NULL, &strategy, &err));
  make_directory(directory);
  assert_ok(evaluate_in_session_on(strategy, directory, alone, &err));
  read_saved(context, directory, saved_alone);
  remove_directory(directory);
  assert_true(alone[1].loss < alone[0].loss);
  assert_true(fabsf(saved_alone[9][0] - saved_alone[8][0]) > 1e-4f); /* each step can be told from the next */
  for (int piece = 0; piece < 2; piece++) {
    const struct outcome expected = {0, 5 * (piece + 1), alone[piece].examples, alone[piece].loss,
                                     alone[piece].accuracy};
    struct evaluated all[MOST_WORKERS];
    int codes[MOST_WORKERS];
    make_directory(directory);
    run(piece == 0 ? "session" : "session_later", directory, 2, 2, codes, all);
    join_path(model_dir, sizeof model_dir, directory, "model");
    read_saved(context, model_dir, saved);
    assert_same_logits(alone[piece].logits, saved_alone[5 * piece + 4]);
    for (int w = 0; w < 2; w++) {
      assert_same(&all[w], &expected);
      assert_same_logits(all[w].logits, alone[piece].logits);
    }
    for (int step = 0; step < SAVED; step++)
      assert_same_logits(saved[step], saved_alone[step]);
    remove_directory(directory);
  }
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

/* Each worker with devices of two backends. */
static void test_devices_of_several_backends(void **state) {
  (void)state;
  if (!tutti_has_feature("backend:cpu")) test_skip();
  use_backends("cpu,reference");
  test_processes_evaluate_as_one(state);
  use_backends(NULL);
}

/* One worker is in trouble at its row 20: the others say who, and why where that can be known. */
static void test_a_worker_in_trouble_is_named(void **state) {
  (void)state;
  const struct {
    const char *scenario, *expected[2];
  } cases[] = {{"kill", {"worker 1 (127.0.0.1:", "disconnected"}},
               {"hang", {"worker 0 waited 3000 ms for worker 1 (127.0.0.1:", "DEADLINE_EXCEEDED"}},
               {"cancel", {"worker 1 (127.0.0.1:", "cancelled"}},
               {"data_error", {"worker 1 (127.0.0.1:", "row 20 cannot be read"}}};
  char directory[64];
  make_directory(directory);
  train_alone(directory, "model", 4, ROWS, 0);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    struct evaluated all[MOST_WORKERS];
    int codes[MOST_WORKERS];
    run(cases[c].scenario, directory, 2, 2, codes, all);
    assert_int_equal(codes[0], 1);
    assert_contains(all[0].error, cases[c].expected[0]);
    assert_contains(all[0].error, cases[c].expected[1]);
    assert_true(all[0].seconds < 7);
    if (is(cases[c].scenario, "kill")) assert_int_equal(codes[1], 128 + SIGKILL);
    if (is(cases[c].scenario, "cancel")) assert_int_equal(all[1].code, TUTTI_CANCELLED);
    if (is(cases[c].scenario, "data_error")) assert_int_equal(all[1].code, TUTTI_DATA_LOSS);
  }
  remove_directory(directory);
}

static void test_what_differs_is_refused_by_all(void **state) {
  (void)state;
  const struct {
    const char *scenario, *expected;
  } cases[] = {
      {"other_weights", "worker 1 evaluates with step 9, but worker 0 is at step 4"},
      {"other_data", "worker 1 has read 2 batches with 12 rows after batch 6, but worker 0 has read 2 with 13"},
      {"no_rows", "there are no rows to evaluate"}};
  char directory[64];
  make_directory(directory);
  train_alone(directory, "model", 4, ROWS, 0);
  train_alone(directory, "model-other", 9, ROWS, 0);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    struct evaluated all[MOST_WORKERS];
    int codes[MOST_WORKERS];
    run(cases[c].scenario, directory, 2, 1, codes, all);
    for (int w = 0; w < 2; w++)
      assert_contains(all[w].error, cases[c].expected);
  }
  remove_directory(directory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_processes_evaluate_as_one),      cmocka_unit_test(test_evaluations_of_processes_that_train),
    cmocka_unit_test(test_evaluations_in_an_open_session), cmocka_unit_test(test_devices_of_several_backends),
    cmocka_unit_test(test_a_worker_in_trouble_is_named),   cmocka_unit_test(test_what_differs_is_refused_by_all),
};

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return worker_main(arguments[1], arguments[2]);
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
