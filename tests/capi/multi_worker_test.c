/* SPDX-License-Identifier: Apache-2.0
 * Estimators on several processes: the program starts itself as workers, with the environment that a launcher gives. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker_fixtures.h"

enum { ROWS = 61, BATCH = 8, EPOCHS = 3 };

/* ---- a worker: multi_worker_test SCENARIO DIRECTORY ---- */

/* What a worker leaves in DIRECTORY/<number>, and what one process leaves in memory. */
struct trained {
  int32_t code, reason;
  int64_t step, examples, replicas, workers, worker;
  float kernel[4 * 8];
  char error[400];
};

struct watch {
  const char *scenario;
  int64_t worker;
};

static int32_t at_step(void *user, const tutti_hook_event *event, tutti_error **err) {
  const struct watch *watch = user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP || watch->worker != 1) return TUTTI_OK;
  if (tutti_hook_event_get_step(event) != 10) return TUTTI_OK;
  if (strcmp(watch->scenario, "kill") == 0) raise(SIGKILL);
  if (strcmp(watch->scenario, "hang") == 0) sleep(9);
  if (strcmp(watch->scenario, "stop") == 0) return TUTTI_HOOK_STOP;
  if (strcmp(watch->scenario, "hook_error") == 0)
    return tutti_error_set(err, TUTTI_DATA_LOSS, "the hook is broken"), TUTTI_DATA_LOSS;
  return TUTTI_OK;
}

/* Gives row 6 a label that is none: of the first batch worker 1 computes the rows 4 to 7, its second device 6 and 7. */
static int32_t spoil_row_6(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                           tutti_error **err) {
  int *row = user;
  for (int64_t i = 0; i < count; i++) {
    outputs[i] = inputs[i];
    if (i == 1 && *row == 6) {
      const int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_I32, NULL, 0, &(int32_t){99}, 4, &outputs[i], err);
      if (code != TUTTI_OK) return code;
    } else {
      tutti_tensor_ref(outputs[i]);
    }
  }
  ++*row;
  return TUTTI_OK;
}

static void keep_error(struct trained *trained, tutti_error *err) {
  if (err == NULL) return;
  snprintf(trained->error, sizeof trained->error, "%s", tutti_error_get_text(err));
  tutti_error_unref(err);
}

static int32_t train_on(tutti_strategy *strategy, const char *scenario, const char *model_dir,
                        struct trained *trained) {
  struct watch watch = {scenario, tutti_strategy_get_worker_index(strategy)};
  char json[200];
  snprintf(json, sizeof json,
           "{\"seed\": 5, \"model_dir\": \"%s\", \"save_checkpoints_steps\": %d, \"collective_timeout_ms\": %d}",
           model_dir, model_dir[0] != '\0' ? 4 : 0, strcmp(scenario, "hang") == 0 ? 4000 : 60000);
  tutti_options *run = make_options("run", json);
  /* The time of worker 1 is over long before a million passes are. */
  const int is_limited = strcmp(scenario, "time") == 0;
  snprintf(json, sizeof json, "{\"epochs\": %d, \"max_seconds\": %g}", is_limited ? 1000000 : EPOCHS,
           is_limited && watch.worker == 1 ? 0.5 : 0);
  tutti_options *options = make_options("train", json);
  tutti_hooks *hooks = NULL;
  tutti_error *err = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_pipeline *pipeline = toy_rows(context, ROWS);
  tutti_dataset *dataset = NULL;
  trained->replicas = tutti_strategy_get_replica_count(strategy);
  trained->workers = tutti_strategy_get_worker_count(strategy);
  trained->worker = watch.worker;
  int row = 0;
  if (strcmp(scenario, "bad_label") == 0) tutti_pipeline_map(pipeline, spoil_row_6, &row, NULL, 1);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, &err);
  if (code == TUTTI_OK) code = tutti_hooks_create(&hooks, &err);
  if (code == TUTTI_OK) code = tutti_hooks_add(hooks, at_step, &watch, NULL, 1, &err);
  if (code == TUTTI_OK) code = tutti_estimator_create(context, toy_model, NULL, NULL, strategy, run, &estimator, &err);
  if (code == TUTTI_OK) code = tutti_estimator_train(estimator, dataset, options, hooks, NULL, &result, &err);
  if (code == TUTTI_OK) {
    trained->reason = tutti_result_get_reason(result);
    trained->step = tutti_result_get_step(result);
    trained->examples = tutti_result_get_examples(result);
    code = read_numbers(estimator, "dense/kernel", trained->kernel, 32, &err);
  }
  trained->code = code;
  keep_error(trained, err);
  tutti_result_unref(result);
  tutti_estimator_unref(estimator);
  tutti_hooks_unref(hooks);
  tutti_options_unref(run);
  tutti_options_unref(options);
  tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline);
  return code;
}

static int worker_main(const char *scenario, const char *directory) {
  struct trained trained = {.worker = worker_tested()};
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_error *err = NULL;
  char path[200];
  snprintf(path, sizeof path, "%s/model", directory);
  const char *model_dir = strcmp(scenario, "plain") == 0 ? "" : path;
  /* The option goes before the environment. */
  const int is_same = strcmp(scenario, "same_secret") == 0, is_other = strcmp(scenario, "other_secret") == 0;
  const int has_option = is_same && trained.worker == 1;
  if (is_same || is_other) setenv("TUTTI_JOB_SECRET", (trained.worker == 1) ? "swordfish" : "hunter2", 1);
  int32_t code = join_workers(has_option ? "{\"connect_timeout_ms\": 60000, \"job_secret\": \"hunter2\"}"
                              : is_other ? "{\"connect_timeout_ms\": 4000}"
                                         : "{\"connect_timeout_ms\": 60000}",
                              &context, &strategy, &err);
  trained.code = code;
  keep_error(&trained, err);
  if (code == TUTTI_OK) code = train_on(strategy, scenario, model_dir, &trained);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  return leave_answer(directory, &trained, sizeof trained, code);
}

/* ---- the test ---- */

static void run(const char *scenario, const char *directory, int count, int *codes, struct trained *all) {
  run_workers(scenario, directory, count, 2, codes, all, sizeof *all);
}

static struct trained train_alone(int replicas) {
  char json[80];
  snprintf(json, sizeof json, "{\"logical_devices\": %d, \"backend\": \"reference\"}", replicas);
  tutti_options *devices = make_options("context", json);
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  struct trained trained = {0};
  assert_ok(tutti_context_create(devices, &context, &err));
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_int_equal(train_on(strategy, "plain", "", &trained), TUTTI_OK);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  tutti_options_unref(devices);
  return trained;
}

static void assert_same_training(const struct trained *got, const struct trained *expected) {
  assert_string_equal(got->error, "");
  assert_int_equal(got->reason, expected->reason);
  assert_int_equal(got->step, expected->step);
  assert_int_equal(got->replicas, expected->replicas);
  for (int i = 0; i < 32; i++)
    assert_true(fabsf(got->kernel[i] - expected->kernel[i]) <= 1e-4f * (1 + fabsf(expected->kernel[i])));
}

/* ---- tests ---- */

static void test_c14_c15_c33_processes_train_as_one(void **state) {
  (void)state;
  for (int count = 2; count <= 3; count++) {
    char directory[64];
    make_directory(directory);
    struct trained all[MOST_WORKERS], alone = train_alone(2 * count);
    int codes[MOST_WORKERS];
    run("plain", directory, count, codes, all);
    for (int w = 0; w < count; w++) {
      assert_same_training(&all[w], &alone);
      assert_int_equal(codes[w], 0);
      assert_int_equal(all[w].examples, alone.examples);
      assert_int_equal(all[w].workers, count);
      assert_int_equal(all[w].worker, w);
      assert_memory_equal(all[w].kernel, all[0].kernel, sizeof all[0].kernel);
    }
    remove_directory(directory);
  }
}

/* Worker 1 is killed at step 10; the others name it, and all go on from the checkpoint when they are started again. */
static void test_a_killed_worker_and_a_restart(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS], alone = train_alone(4);
  int codes[MOST_WORKERS];
  run("kill", directory, 2, codes, all);
  assert_int_equal(codes[1], 128 + SIGKILL);
  assert_int_equal(codes[0], 1);
  assert_contains(all[0].error, "worker 1 (127.0.0.1:");
  run("go_on", directory, 2, codes, all);
  for (int w = 0; w < 2; w++) {
    assert_same_training(&all[w], &alone);
    assert_memory_equal(all[w].kernel, all[0].kernel, sizeof all[0].kernel);
    /* Not from the beginning. */
    assert_true(all[w].examples < alone.examples);
  }
  remove_directory(directory);
}

static void test_a_worker_that_hangs_is_named(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run("hang", directory, 2, codes, all);
  assert_int_equal(all[0].code, TUTTI_DEADLINE_EXCEEDED);
  assert_contains(all[0].error, "worker 0 waited 4000 ms for worker 1 (127.0.0.1:");
  remove_directory(directory);
}

static void test_a_stop_of_one_stops_all(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run("stop", directory, 3, codes, all);
  for (int w = 0; w < 3; w++) {
    assert_string_equal(all[w].error, "");
    assert_int_equal(all[w].reason, TUTTI_REASON_STOPPED);
    assert_int_equal(all[w].step, 10);
  }
  remove_directory(directory);
}

static void test_the_time_of_one_ends_all(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run("time", directory, 2, codes, all);
  for (int w = 0; w < 2; w++) {
    assert_string_equal(all[w].error, "");
    assert_int_equal(all[w].reason, w == 1 ? TUTTI_REASON_MAX_SECONDS : TUTTI_REASON_STOPPED);
    assert_int_equal(all[w].step, all[0].step);
    assert_memory_equal(all[w].kernel, all[0].kernel, sizeof all[0].kernel);
  }
  remove_directory(directory);
}

static void test_an_error_of_one_reaches_all(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run("hook_error", directory, 2, codes, all);
  assert_contains(all[1].error, "the hook is broken");
  assert_contains(all[0].error, "worker 1 (127.0.0.1:");
  assert_contains(all[0].error, "the hook is broken");
  remove_directory(directory);
}

/* By its row of the batch of all workers. */
static void test_bad_labels_are_named(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run("bad_label", directory, 2, codes, all);
  for (int w = 0; w < 2; w++) {
    assert_int_equal(all[w].step, 0);
    assert_contains(all[w].error, "label 99 in row 6 is outside");
  }
  remove_directory(directory);
}

/* Workers on devices of several backends predict and evaluate; each is told so before it waits for the others. */
static void test_devices_of_several_backends_do_not_train(void **state) {
  (void)state;
  if (!tutti_has_feature("backend:cpu")) test_skip();
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  use_backends("reference,cpu");
  run("plain", directory, 2, codes, all);
  use_backends(NULL);
  for (int w = 0; w < 2; w++) {
    assert_int_equal(all[w].code, TUTTI_FAILED_PRECONDITION);
    assert_contains(all[w].error, "devices reference:0 and cpu:0 cannot train together");
  }
  remove_directory(directory);
}

/* Worker 1 has it as an option, which goes before its environment; the others have it in theirs. */
static void test_a_secret_that_all_have(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run("same_secret", directory, 3, codes, all);
  for (int w = 0; w < 3; w++) {
    assert_string_equal(all[w].error, "");
    assert_int_equal(all[w].code, TUTTI_OK);
  }
  remove_directory(directory);
}

/* Worker 1 is told at once, and worker 0 when its time is over; nobody learns a secret. */
static void test_a_secret_that_one_has_not(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct trained all[MOST_WORKERS];
  int codes[MOST_WORKERS];
  run("other_secret", directory, 2, codes, all);
  assert_int_equal(all[1].code, TUTTI_FAILED_PRECONDITION);
  assert_contains(all[1].error, "worker 0 at 127.0.0.1:");
  assert_contains(all[1].error, "has a different job secret than worker 1");
  assert_int_equal(all[0].code, TUTTI_DEADLINE_EXCEEDED);
  assert_contains(all[0].error, "a process at 127.0.0.1 was rejected because it has a different job secret");
  for (int w = 0; w < 2; w++)
    assert_true(strstr(all[w].error, "hunter2") == NULL && strstr(all[w].error, "swordfish") == NULL);
  remove_directory(directory);
}

static void expect_refusal(const char *json, int32_t code, const char *needle) {
  tutti_options *options = make_options("cluster", json);
  tutti_strategy *strategy = NULL;
  assert_error(code, needle, tutti_strategy_create_multi_worker(NULL, options, &strategy, &err));
  assert_null(strategy);
  tutti_options_unref(options);
}

static void test_mistakes(void **state) {
  (void)state;
  expect_refusal("{}", TUTTI_INVALID_ARGUMENT, "option workers is empty");
  expect_refusal("{\"workers\": \"a:1,a:1\"}", TUTTI_INVALID_ARGUMENT, "listed twice");
  expect_refusal("{\"workers\": \"a\"}", TUTTI_INVALID_ARGUMENT, "host:port");
  expect_refusal("{\"workers\": \"a:1\", \"worker\": 1}", TUTTI_INVALID_ARGUMENT, "is 1, expected 0 to 0");
  expect_refusal("{\"workers\": \"a:1\", \"devices\": \"tpu:0\"}", TUTTI_NOT_FOUND, "no device 'tpu:0'");
  tutti_strategy *strategy = NULL;
  unsetenv("TF_CONFIG");
  assert_error(TUTTI_NOT_FOUND, "describes no cluster",
               tutti_strategy_create_multi_worker_from_environment(NULL, NULL, &strategy, &err));
  setenv("TF_CONFIG", "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\"}}", 1);
  assert_error(TUTTI_INVALID_ARGUMENT, "TF_CONFIG.task.index is missing",
               tutti_strategy_create_multi_worker_from_environment(NULL, NULL, &strategy, &err));
  tutti_options *options = make_options("cluster", "{\"worker\": 0}");
  assert_error(TUTTI_INVALID_ARGUMENT, "the option worker must not be set",
               tutti_strategy_create_multi_worker_from_environment(NULL, options, &strategy, &err));
  tutti_options_unref(options);
  unsetenv("TF_CONFIG");
}

/* The others never come: who they are, and within the time that was given. */
static void test_unreachable_workers_are_named(void **state) {
  (void)state;
  char json[160];
  snprintf(json, sizeof json, "{\"workers\": \"127.0.0.1:%d,host2.invalid:2222\", \"connect_timeout_ms\": 200}",
           free_port());
  tutti_options *options = make_options("cluster", json);
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_multi_worker(NULL, options, &strategy, &err));
  assert_int_equal(tutti_strategy_get_worker_count(strategy), 2);
  assert_int_equal(tutti_strategy_get_worker_index(strategy), 0);
  struct trained trained = {0};
  assert_int_equal(train_on(strategy, "plain", "", &trained), TUTTI_DEADLINE_EXCEEDED);
  assert_contains(trained.error, "timed out waiting for worker 1 (host2.invalid:2222)");
  tutti_strategy_unref(strategy);
  tutti_options_unref(options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_c14_c15_c33_processes_train_as_one),
    cmocka_unit_test(test_a_killed_worker_and_a_restart),
    cmocka_unit_test(test_a_worker_that_hangs_is_named),
    cmocka_unit_test(test_a_stop_of_one_stops_all),
    cmocka_unit_test(test_the_time_of_one_ends_all),
    cmocka_unit_test(test_an_error_of_one_reaches_all),
    cmocka_unit_test(test_bad_labels_are_named),
    cmocka_unit_test(test_a_secret_that_all_have),
    cmocka_unit_test(test_a_secret_that_one_has_not),
    cmocka_unit_test(test_mistakes),
    cmocka_unit_test(test_devices_of_several_backends_do_not_train),
    cmocka_unit_test(test_unreachable_workers_are_named),
};

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return worker_main(arguments[1], arguments[2]);
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
