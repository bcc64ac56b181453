/* SPDX-License-Identifier: Apache-2.0
 * Learning rates that are reduced when a value stops improving, compared with ReduceLROnPlateau of PyTorch: in one
 * process and on several workers, "<program> CASE:STEP DIRECTORY" (worker_fixtures.h). */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "estimator_fixtures.h"
#include "plateau_golden.h"
#include "worker_fixtures.h"

enum { CASES = sizeof plateau_cases / sizeof *plateau_cases, INTERRUPTED_STEPS = 9, SAVE_STEPS = 3 };

static const char *const names[] = {"w", "b", "c"};

/* y = w x + b + c x^2; b learns at half the rate of w, c at a rate of its own. */
static int32_t curve_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const int64_t one = 1;
  tutti_value x = tutti_graph_get_feature(g, "x"), parameters[3];
  for (int i = 0; i < 3; i++)
    parameters[i] = tutti_graph_variable(g, names[i], TUTTI_DTYPE_F32, &one, 1, "constant", plateau_start[i], 1);
  tutti_value y = tutti_add(g, tutti_mul(g, x, parameters[0]), parameters[1]);
  y = tutti_add(g, y, tutti_mul(g, tutti_square(g, x), parameters[2]));
  tutti_graph_set_output(g, "y", y);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value loss = tutti_loss_mean_squared_error(g, y, tutti_graph_get_label(g, "y"), NULL);
  tutti_graph_set_loss(g, loss);
  tutti_value unit = tutti_graph_constant(g, TUTTI_DTYPE_F32, 1);
  tutti_graph_add_metric(g, "closeness", tutti_div(g, unit, tutti_add(g, unit, loss)));
  if (mode != TUTTI_MODE_TRAIN) return tutti_graph_check(g, err);
  tutti_parameter_group_attrs half = {.has_rate_factor = 1, .rate_factor = plateau_rates[1] / plateau_rates[0]};
  tutti_parameter_group_attrs own = {.learning_rate = tutti_graph_constant(g, TUTTI_DTYPE_F32, plateau_rates[2])};
  tutti_parameter_group(g, "b", &half);
  tutti_parameter_group(g, "c", &own);
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, plateau_rates[0]), NULL);
  return tutti_graph_check(g, err);
}

static tutti_dataset *curve_dataset(tutti_context *context, int endless) {
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  const int64_t dims[] = {PLATEAU_ROWS, 1};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, plateau_x),
               *y = make_tensor(TUTTI_DTYPE_F32, 2, dims, plateau_y);
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  if (endless) tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, PLATEAU_ROWS, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(x), tutti_tensor_unref(y);
  return dataset;
}

/* An estimator with its data, and the learning rate that each step reported; what was logged. */
struct training {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_dataset *endless, *once;
  tutti_hooks *hooks;
  double rates[PLATEAU_STEPS];
  pthread_mutex_t mutex;
  int reductions;
  int64_t saved; /* the step of the newest checkpoint */
};

static int32_t keep_rate(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct training *training = user;
  (void)err;
  const int64_t step = tutti_hook_event_get_step(event);
  if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP && step <= PLATEAU_STEPS)
    training->rates[step - 1] = tutti_hook_event_get_metric(event, "learning_rate");
  if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_CHECKPOINT_SAVED) training->saved = step;
  return TUTTI_OK;
}

static void count_reductions(void *user, int32_t severity, const char *text) {
  struct training *training = user;
  (void)severity;
  pthread_mutex_lock(&training->mutex);
  training->reductions += strstr(text, "the learning rate is reduced to") != NULL;
  pthread_mutex_unlock(&training->mutex);
}

/* On a strategy of t->context, which is dropped. */
static void begin_on(struct training *t, tutti_strategy *strategy, const char *model_dir) {
  char json[240];
  pthread_mutex_init(&t->mutex, NULL);
  tutti_context_set_log(t->context, count_reductions, t, NULL, TUTTI_LOG_INFO, NULL);
  snprintf(json, sizeof json, "{\"model_dir\": \"%s\", \"save_checkpoints_steps\": %d}", model_dir, SAVE_STEPS);
  tutti_options *run = make_options("run", *model_dir != '\0' ? json : "{}");
  assert_ok(tutti_estimator_create(t->context, curve_model, NULL, NULL, strategy, run, &t->estimator, &err));
  tutti_options_unref(run);
  tutti_strategy_unref(strategy);
  t->endless = curve_dataset(t->context, 1), t->once = curve_dataset(t->context, 0);
  assert_ok(tutti_hooks_create(&t->hooks, &err));
  assert_ok(tutti_hooks_add(t->hooks, keep_rate, t, NULL, 1, &err));
}

/* `rates` are kept: a training may go on in another process, or estimator. */
static void begin(struct training *t, int replicas, const char *model_dir) {
  char json[64];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *context_options = make_options("context", json);
  assert_ok(tutti_context_create(context_options, &t->context, &err));
  tutti_options_unref(context_options);
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_mirrored(t->context, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), replicas);
  begin_on(t, strategy, model_dir);
}

static void end(struct training *t) {
  tutti_context_set_log(t->context, NULL, NULL, NULL, TUTTI_LOG_INFO, NULL);
  tutti_hooks_unref(t->hooks);
  tutti_estimator_unref(t->estimator);
  tutti_dataset_unref(t->endless), tutti_dataset_unref(t->once);
  tutti_context_unref(t->context);
  pthread_mutex_destroy(&t->mutex);
}

/* Up to a step in all. */
static tutti_options *options_up_to(const struct plateau_case *wanted, int max_steps) {
  char json[512];
  snprintf(json, sizeof json, "{\"max_steps\": %d, %s}", max_steps, wanted->options);
  return make_options("train", json);
}

static void train_up_to(struct training *t, const struct plateau_case *wanted, int max_steps) {
  tutti_options *options = options_up_to(wanted, max_steps);
  if (wanted->at_evaluations) {
    assert_ok(tutti_estimator_train_and_evaluate(t->estimator, t->endless, t->once, PLATEAU_EVERY, options, t->hooks,
                                                 NULL, NULL, &err));
  } else {
    assert_ok(tutti_estimator_train(t->estimator, t->endless, options, t->hooks, NULL, NULL, &err));
  }
  tutti_options_unref(options);
}

static void assert_rates(const double *rates, int first, int last, const struct plateau_case *wanted) {
  for (int i = first; i < last; i++) {
    if (fabs(rates[i] - wanted->rates[i]) > 1e-6 * wanted->rates[i])
      fail_msg("step %d of %s: rate %.9g, expected %.9g", i + 1, wanted->options, rates[i], wanted->rates[i]);
  }
}

static void assert_as_expected(struct training *t, const struct plateau_case *wanted) {
  assert_rates(t->rates, 0, PLATEAU_STEPS, wanted);
  for (int i = 0; i < 3; i++)
    assert_close(read_scalar(t->estimator, names[i]), wanted->parameters[i]);
}

/* Changes of the rate; one behind the last step shows in the log only. */
static int expected_reductions(const struct plateau_case *wanted) {
  int count = 0;
  for (int i = 1; i < PLATEAU_STEPS; i++)
    count += wanted->rates[i] < wanted->rates[i - 1];
  return count;
}

static void test_rates(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    for (int i = 0; i < CASES; i++) {
      struct training t = {.reductions = 0};
      begin(&t, replicas, "");
      train_up_to(&t, &plateau_cases[i], PLATEAU_STEPS);
      assert_as_expected(&t, &plateau_cases[i]);
      const int behind = t.reductions - expected_reductions(&plateau_cases[i]);
      assert_true(behind == 0 || behind == 1);
      end(&t);
    }
  }
}

/* Another estimator goes on from the checkpoint, on another number of replicas. */
static void test_resumed(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    for (int interrupted = 2; interrupted < PLATEAU_STEPS; interrupted += 6) {
      char directory[64];
      make_directory(directory);
      struct training t = {.reductions = 0};
      begin(&t, 1, directory);
      train_up_to(&t, &plateau_cases[i], interrupted);
      end(&t);
      begin(&t, 2, directory);
      train_up_to(&t, &plateau_cases[i], PLATEAU_STEPS);
      assert_as_expected(&t, &plateau_cases[i]);
      end(&t);
      remove_directory(directory);
    }
  }
}

/* A session that nobody closes leaves the checkpoints that its steps wrote. */
static void test_checkpoints_of_steps(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    if (plateau_cases[i].at_evaluations) continue;
    char directory[64];
    make_directory(directory);
    struct training t = {.reductions = 0};
    begin(&t, 1, directory);
    tutti_options *options = options_up_to(&plateau_cases[i], PLATEAU_STEPS);
    tutti_session *session = NULL;
    assert_ok(tutti_session_open(t.estimator, t.endless, options, t.hooks, NULL, &session, &err));
    assert_ok(tutti_session_run(session, INTERRUPTED_STEPS, NULL, &err));
    const struct timespec pause = {.tv_nsec = 20000000};
    while (t.saved < INTERRUPTED_STEPS) {
      nanosleep(&pause, NULL);
      assert_ok(tutti_session_run(session, 1, NULL, &err));
    }
    tutti_session_unref(session);
    tutti_options_unref(options);
    end(&t);
    begin(&t, 1, directory);
    train_up_to(&t, &plateau_cases[i], PLATEAU_STEPS);
    assert_as_expected(&t, &plateau_cases[i]);
    end(&t);
    remove_directory(directory);
  }
}

/* The same estimator: it goes on with the option, and has its own rate without. */
static void test_other_calls(void **state) {
  (void)state;
  const struct plateau_case *wanted = &plateau_cases[0];
  struct training t = {.reductions = 0};
  begin(&t, 2, "");
  train_up_to(&t, wanted, INTERRUPTED_STEPS);
  train_up_to(&t, wanted, PLATEAU_STEPS);
  assert_as_expected(&t, wanted);
  tutti_result *result = NULL;
  const double w = read_scalar(t.estimator, "w");
  tutti_options *options = make_options("train", "{\"steps\": 1}");
  assert_ok(tutti_estimator_train(t.estimator, t.endless, options, NULL, NULL, &result, &err));
  assert_close(tutti_result_get_metric(result, "learning_rate"), plateau_rates[0]);
  assert_int_equal(tutti_result_get_step(result), PLATEAU_STEPS + 1);
  assert_true(read_scalar(t.estimator, "w") != w);
  tutti_result_unref(result);
  tutti_options_unref(options);
  end(&t);
}

static int32_t model_with_the_scalar(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  tutti_graph_host_scalar(g, "learning_rate_factor", 1);
  return tutti_graph_check(g, err);
}

static void test_errors(void **state) {
  (void)state;
  static const struct {
    const char *json, *text;
  } wrong[] = {
      {"{\"plateau_metric\": \"loss\"}", "plateau_every_steps"},
      {"{\"plateau_patience\": 3}", "plateau_patience needs the option plateau_metric"},
      {"{\"plateau_minimum_factor\": 0.5}", "plateau_minimum_factor needs the option plateau_metric"},
      {"{\"plateau_metric\": \"loss\", \"plateau_every_steps\": 1, \"plateau_factor\": 1}", "plateau_factor is 1"},
      {"{\"plateau_metric\": \"loss\", \"plateau_every_steps\": 1, \"plateau_threshold\": 1}",
       "plateau_threshold is 1"},
      {"{\"plateau_metric\": \"los\", \"plateau_every_steps\": 1}", "did you mean 'loss'"},
  };
  struct training t = {.reductions = 0};
  begin(&t, 1, "");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tutti_options *options = make_options("train", wrong[i].json);
    assert_error(TUTTI_INVALID_ARGUMENT, wrong[i].text,
                 tutti_estimator_train(t.estimator, t.endless, options, NULL, NULL, NULL, &err));
    tutti_options_unref(options);
  }
  tutti_estimator *other = NULL;
  assert_ok(tutti_estimator_create(t.context, model_with_the_scalar, NULL, NULL, NULL, NULL, &other, &err));
  assert_error(TUTTI_ALREADY_EXISTS, "'learning_rate_factor' is the library's",
               tutti_estimator_train(other, t.endless, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(other);
  end(&t);
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

enum { WORKERS = 2 };

struct answer {
  int32_t code;
  int reductions;
  double rates[PLATEAU_STEPS], parameters[3];
  char error[400];
};

static int32_t train_on_workers(struct training *t, const struct plateau_case *wanted, int max_steps,
                                tutti_error **error) {
  tutti_options *options = options_up_to(wanted, max_steps);
  const int32_t code = wanted->at_evaluations
                           ? tutti_estimator_train_and_evaluate(t->estimator, t->endless, t->once, PLATEAU_EVERY,
                                                                options, t->hooks, NULL, NULL, error)
                           : tutti_estimator_train(t->estimator, t->endless, options, t->hooks, NULL, NULL, error);
  tutti_options_unref(options);
  return code;
}

/* "CASE:LAST": up to that step, from the checkpoint in the directory where there is one. */
static int be_worker(const char *scenario, const char *directory) {
  static struct answer answer;
  static struct training t;
  tutti_strategy *strategy = NULL;
  tutti_error *error = NULL;
  char model_dir[200];
  int number = 0, last = 0;
  snprintf(model_dir, sizeof model_dir, "%s/model", directory);
  if (sscanf(scenario, "%d:%d", &number, &last) != 2) return 2;
  answer.code = join_workers("{}", &t.context, &strategy, &error);
  if (answer.code == TUTTI_OK) {
    begin_on(&t, strategy, model_dir);
    answer.code = train_on_workers(&t, &plateau_cases[number], last, &error);
    for (int i = 0; answer.code == TUTTI_OK && i < 3; i++)
      answer.parameters[i] = read_scalar(t.estimator, names[i]);
    memcpy(answer.rates, t.rates, sizeof t.rates);
    answer.reductions = t.reductions;
    end(&t);
  }
  if (error != NULL) snprintf(answer.error, sizeof answer.error, "%s", tutti_error_get_text(error));
  tutti_error_unref(error);
  return leave_answer(directory, &answer, sizeof answer, answer.code);
}

/* Workers from one step to another. Each has the rates of one process. */
static void run_case(int number, int first, int last, const char *directory, struct answer answers[WORKERS]) {
  char scenario[32];
  int codes[WORKERS];
  snprintf(scenario, sizeof scenario, "%d:%d", number, last);
  memset(answers, 0, WORKERS * sizeof *answers);
  run_workers(scenario, directory, WORKERS, 1, codes, answers, sizeof *answers);
  for (int w = 0; w < WORKERS; w++) {
    if (codes[w] != 0 || answers[w].code != TUTTI_OK) fail_msg("worker %d: %d, %s", w, codes[w], answers[w].error);
    assert_rates(answers[w].rates, first, last, &plateau_cases[number]);
    /* Steps before are not its own. */
    for (int i = 0; i < first; i++)
      assert_true(answers[w].rates[i] == 0);
  }
}

static void test_workers_reduce_as_one_process(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    char directory[64];
    struct answer answers[WORKERS];
    make_directory(directory);
    run_case(i, 0, PLATEAU_STEPS, directory, answers);
    for (int w = 0; w < WORKERS; w++) {
      const int behind = answers[w].reductions - expected_reductions(&plateau_cases[i]);
      assert_true(behind == 0 || behind == 1);
      for (int p = 0; p < 3; p++)
        assert_close(answers[w].parameters[p], plateau_cases[i].parameters[p]);
    }
    remove_directory(directory);
  }
}

/* Counts and factor are in the checkpoint: of workers, and of one process that goes on from theirs. */
static void test_workers_go_on_from_a_checkpoint(void **state) {
  (void)state;
  for (int i = 0; i < CASES; i++) {
    char directory[64], model_dir[80];
    struct answer answers[WORKERS];
    make_directory(directory);
    snprintf(model_dir, sizeof model_dir, "%s/model", directory);
    run_case(i, 0, 8, directory, answers);
    run_case(i, 8, 14, directory, answers);
    struct training t = {.reductions = 0};
    memcpy(t.rates, plateau_cases[i].rates, 14 * sizeof *t.rates);
    begin(&t, 1, model_dir);
    train_up_to(&t, &plateau_cases[i], PLATEAU_STEPS);
    assert_as_expected(&t, &plateau_cases[i]);
    end(&t);
    remove_directory(directory);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rates),
    cmocka_unit_test(test_resumed),
    cmocka_unit_test(test_checkpoints_of_steps),
    cmocka_unit_test(test_other_calls),
    cmocka_unit_test(test_errors),
    cmocka_unit_test(test_workers_reduce_as_one_process),
    cmocka_unit_test(test_workers_go_on_from_a_checkpoint),
};

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return be_worker(arguments[1], arguments[2]);
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
