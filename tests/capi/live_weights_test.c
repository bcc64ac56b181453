/* SPDX-License-Identifier: Apache-2.0
 * Evaluations, predictors and checkpoints while a session is open, in a hook, from another thread and behind a session
 * that was dropped: of the weights of the last complete step, worked out here from what read_variable gives.
 *
 * usage: live_weights_test [PLUG-IN] */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "dense_fixtures.h"
#include "estimator_fixtures.h"

enum { ROWS = 50 };
static const char *plugin;

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  struct dense_model dense = build_dense(g, mode);
  (void)dense, (void)user;
  if (mode == TUTTI_MODE_TRAIN) tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.25), NULL);
  return tutti_graph_check(g, err);
}

struct training {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_dataset *dataset, *evaluation;
};

static struct training make_training(int replicas) {
  struct training made = {0};
  char json[4200];
  if (plugin != NULL)
    snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": %d}", plugin, replicas);
  else
    snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *options = make_options("context", json);
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_context_create(options, &made.context, &err));
  assert_ok(tutti_strategy_create_mirrored(made.context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(made.context, model, NULL, NULL, strategy, NULL, &made.estimator, &err));
  tutti_options_unref(options), tutti_strategy_unref(strategy);
  made.dataset = dense_dataset(made.context, 200, 9, 1);
  made.evaluation = dense_dataset(made.context, ROWS, 8, 0);
  return made;
}

static void drop(struct training made) {
  tutti_dataset_unref(made.dataset), tutti_dataset_unref(made.evaluation);
  tutti_estimator_unref(made.estimator), tutti_context_unref(made.context);
}

/* What an evaluation has to say of these weights. */
static double loss_of(const float *parameters) {
  double gradient[DENSE_PARAMETERS];
  return dense_gradient(parameters, 0, ROWS, gradient);
}

/* The first logit of row 0. */
static double logit_of(const float *parameters) {
  float x[DENSE_FEATURES];
  int32_t label;
  toy_row(0, x, &label);
  double sum = (double)parameters[DENSE_KERNEL];
  for (int f = 0; f < DENSE_FEATURES; f++)
    sum += (double)x[f] * (double)parameters[f * DENSE_CLASSES];
  return sum;
}

static double predicted_logit(tutti_predictor *predictor) {
  float x[DENSE_FEATURES];
  int32_t label;
  toy_row(0, x, &label);
  const int64_t dims[] = {1, DENSE_FEATURES};
  tutti_tensor *input = make_tensor(TUTTI_DTYPE_F32, 2, dims, x);
  tutti_batch *batch = NULL;
  const char *name = "x";
  assert_ok(tutti_predictor_run(predictor, &name, &input, 1, NULL, &batch, &err));
  const double logit = (double)*(const float *)tutti_tensor_get_data(tutti_batch_get_output(batch, "logits"));
  tutti_tensor_unref(input), tutti_batch_unref(batch);
  return logit;
}

/* Evaluation, a new predictor, a reloaded one and a checkpoint are of the weights that can be read, at that step. */
static void check_all(struct training made, tutti_predictor *older, int64_t step) {
  float parameters[DENSE_PARAMETERS];
  read_dense(made.estimator, parameters);
  const struct outcome outcome = evaluate(made.estimator, made.evaluation, 0);
  assert_int_equal(outcome.step, step);
  assert_close(outcome.loss, loss_of(parameters));
  tutti_predictor *newer = NULL, *saved = NULL;
  assert_ok(tutti_predictor_from_estimator(made.estimator, NULL, &newer, &err));
  assert_int_equal(tutti_predictor_get_step(newer), step);
  assert_close(predicted_logit(newer), logit_of(parameters));
  assert_ok(tutti_predictor_reload(older, NULL, NULL, &err));
  assert_int_equal(tutti_predictor_get_step(older), step);
  assert_close(predicted_logit(older), logit_of(parameters));
  char directory[64];
  make_directory(directory);
  assert_ok(tutti_estimator_save(made.estimator, directory, NULL, &err));
  assert_ok(tutti_predictor_open(made.context, directory, NULL, NULL, &saved, &err));
  assert_int_equal(tutti_predictor_get_step(saved), step);
  assert_close(predicted_logit(saved), logit_of(parameters));
  tutti_predictor_unref(newer), tutti_predictor_unref(saved);
  remove_directory(directory);
}

static void test_while_a_session_is_open(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    struct training made = make_training(replicas);
    tutti_session *session = NULL;
    tutti_predictor *predictor = NULL;
    assert_ok(tutti_session_open(made.estimator, made.dataset, NULL, NULL, NULL, &session, &err));
    assert_ok(tutti_predictor_from_estimator(made.estimator, NULL, &predictor, &err));
    const double untrained = evaluate(made.estimator, made.evaluation, 0).loss;
    for (int piece = 1; piece <= 3; piece++) {
      assert_ok(tutti_session_run(session, 20, NULL, &err));
      check_all(made, predictor, 20 * piece);
    }
    assert_true(evaluate(made.estimator, made.evaluation, 0).loss < 0.9 * untrained);
    /* What the host writes counts at once, and so does what comes behind it. */
    const float zeros[DENSE_KERNEL] = {0};
    const int64_t dims[] = {DENSE_FEATURES, DENSE_CLASSES};
    tutti_tensor *kernel = make_tensor(TUTTI_DTYPE_F32, 2, dims, zeros);
    assert_ok(tutti_estimator_write_variable(made.estimator, "kernel", kernel, &err));
    tutti_tensor_unref(kernel);
    check_all(made, predictor, 60);
    assert_ok(tutti_session_run(session, 1, NULL, &err));
    check_all(made, predictor, 61);
    assert_ok(tutti_session_close(session, NULL, &err));
    check_all(made, predictor, 61);
    tutti_session_unref(session), tutti_predictor_unref(predictor);
    drop(made);
  }
}

/* Dropped without close, a session writes nothing more; its steps are there all the same. */
static void test_behind_a_session_that_was_dropped(void **state) {
  (void)state;
  struct training made = make_training(2);
  tutti_session *session = NULL;
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_session_open(made.estimator, made.dataset, NULL, NULL, NULL, &session, &err));
  assert_ok(tutti_predictor_from_estimator(made.estimator, NULL, &predictor, &err));
  assert_ok(tutti_session_run(session, 7, NULL, &err));
  tutti_session_unref(session);
  assert_int_equal(tutti_estimator_get_global_step(made.estimator), 7);
  check_all(made, predictor, 7);
  assert_ok(tutti_session_open(made.estimator, made.dataset, NULL, NULL, NULL, &session, &err));
  check_all(made, predictor, 7);
  assert_ok(tutti_session_run(session, 3, NULL, &err));
  tutti_session_unref(session);
  check_all(made, predictor, 10);
  tutti_predictor_unref(predictor);
  drop(made);
}

/* A hook evaluates what was trained up to the step that it is told of. */
struct hooked {
  struct training made;
  double losses[4], expected[4];
  int64_t steps[4];
  int count;
};

static int32_t evaluate_in_hook(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct hooked *hooked = user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP || hooked->count == 4) return TUTTI_OK;
  float parameters[DENSE_PARAMETERS];
  read_dense(hooked->made.estimator, parameters);
  tutti_result *result = NULL;
  const int32_t code = tutti_estimator_evaluate(hooked->made.estimator, hooked->made.evaluation, 0, NULL, &result, err);
  if (code != TUTTI_OK) return code;
  const struct outcome outcome = take(result);
  hooked->losses[hooked->count] = outcome.loss;
  hooked->steps[hooked->count] = outcome.step;
  hooked->expected[hooked->count++] = loss_of(parameters);
  return TUTTI_OK;
}

static void test_in_a_hook(void **state) {
  (void)state;
  struct hooked hooked = {.made = make_training(2)};
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, evaluate_in_hook, &hooked, NULL, 5, &err));
  tutti_options *options = make_options("train", "{\"steps\": 20}");
  assert_ok(tutti_estimator_train(hooked.made.estimator, hooked.made.dataset, options, hooks, NULL, NULL, &err));
  assert_int_equal(hooked.count, 4);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(hooked.steps[i], 5 * (i + 1));
    assert_close(hooked.losses[i], hooked.expected[i]);
  }
  assert_true(hooked.losses[3] < hooked.losses[0]);
  tutti_options_unref(options), tutti_hooks_unref(hooks);
  drop(hooked.made);
}

/* Another thread evaluates, predicts and saves while steps run: what it gets is of the weights of one step, which it
 * names and which never goes back. */
enum { STEPS = 1000, MOST_SEEN = 3000 };

struct seen {
  int64_t step;
  int is_loss;
  double value; /* the loss, or the first logit */
};

struct watching {
  struct training made;
  char directory[64];
  atomic_int stop;
  int count, failures, backwards;
  int64_t last;
  struct seen seen[MOST_SEEN];
};

static void see(struct watching *watching, struct seen seen) {
  watching->backwards += seen.step < watching->last;
  watching->last = seen.step;
  watching->seen[watching->count++] = seen;
}

/* Each asserts nothing, since cmocka's assertions are for the thread of the test. */
static int32_t see_evaluation(struct watching *watching) {
  tutti_result *result = NULL;
  const int32_t code =
      tutti_estimator_evaluate(watching->made.estimator, watching->made.evaluation, 0, NULL, &result, NULL);
  if (code != TUTTI_OK) return code;
  const struct outcome outcome = take(result);
  see(watching, (struct seen){outcome.step, 1, outcome.loss});
  return code;
}

static int32_t see_prediction(struct watching *watching, tutti_predictor *predictor, tutti_tensor *input) {
  const char *name = "x";
  tutti_batch *batch = NULL;
  const int32_t code = tutti_predictor_run(predictor, &name, &input, 1, NULL, &batch, NULL);
  if (code == TUTTI_OK) {
    const float *logits = tutti_tensor_get_data(tutti_batch_get_output(batch, "logits"));
    see(watching, (struct seen){tutti_predictor_get_step(predictor), 0, (double)*logits});
  }
  tutti_batch_unref(batch), tutti_predictor_unref(predictor);
  return code;
}

static int32_t see_predictor(struct watching *watching, tutti_tensor *input) {
  tutti_predictor *predictor = NULL;
  const int32_t code = tutti_predictor_from_estimator(watching->made.estimator, NULL, &predictor, NULL);
  return code != TUTTI_OK ? code : see_prediction(watching, predictor, input);
}

static int32_t see_checkpoint(struct watching *watching, tutti_tensor *input) {
  tutti_predictor *predictor = NULL;
  int32_t code = tutti_estimator_save(watching->made.estimator, watching->directory, NULL, NULL);
  if (code == TUTTI_OK) code = tutti_predictor_open(NULL, watching->directory, NULL, NULL, &predictor, NULL);
  return code != TUTTI_OK ? code : see_prediction(watching, predictor, input);
}

static void *watch(void *user) {
  struct watching *watching = user;
  float x[DENSE_FEATURES];
  int32_t label;
  toy_row(0, x, &label);
  const int64_t dims[] = {1, DENSE_FEATURES};
  tutti_tensor *input = NULL;
  watching->failures += tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, x, sizeof x, &input, NULL) != TUTTI_OK;
  while (!atomic_load(&watching->stop) && watching->count + 3 <= MOST_SEEN) {
    watching->failures += see_evaluation(watching) != TUTTI_OK;
    watching->failures += see_predictor(watching, input) != TUTTI_OK;
    watching->failures += see_checkpoint(watching, input) != TUTTI_OK;
  }
  tutti_tensor_unref(input);
  return NULL;
}

/* The weights after each of the steps, of the same training without a second thread. */
static void remember_weights(float history[STEPS + 1][DENSE_PARAMETERS]) {
  const struct training made = make_training(2);
  tutti_session *session = NULL;
  assert_ok(tutti_session_open(made.estimator, made.dataset, NULL, NULL, NULL, &session, &err));
  read_dense(made.estimator, history[0]);
  for (int step = 1; step <= STEPS; step++) {
    assert_ok(tutti_session_run(session, 1, NULL, &err));
    read_dense(made.estimator, history[step]);
  }
  tutti_session_unref(session);
  drop(made);
}

static void test_from_another_thread(void **state) {
  (void)state;
  static float history[STEPS + 1][DENSE_PARAMETERS];
  static struct watching watching;
  remember_weights(history);
  watching = (struct watching){.made = make_training(2)};
  make_directory(watching.directory);
  tutti_session *session = NULL;
  assert_ok(tutti_session_open(watching.made.estimator, watching.made.dataset, NULL, NULL, NULL, &session, &err));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, watch, &watching), 0);
  int32_t code = TUTTI_OK;
  for (int i = 0; i < STEPS / 25 && code == TUTTI_OK; i++)
    code = tutti_session_run(session, 25, NULL, NULL);
  atomic_store(&watching.stop, 1);
  pthread_join(thread, NULL);
  assert_int_equal(code, TUTTI_OK);
  assert_int_equal(watching.failures, 0);
  assert_int_equal(watching.backwards, 0);
  assert_true(watching.count > 0 && watching.last > 0);
  for (int i = 0; i < watching.count; i++) {
    const struct seen seen = watching.seen[i];
    assert_in_range(seen.step, 0, STEPS);
    assert_close(seen.value, seen.is_loss ? loss_of(history[seen.step]) : logit_of(history[seen.step]));
  }
  tutti_session_unref(session);
  remove_directory(watching.directory);
  drop(watching.made);
}

int main(int argc, char **argv) {
  plugin = argc > 1 ? argv[1] : NULL;
  if (plugin != NULL && is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_while_a_session_is_open),
      cmocka_unit_test(test_behind_a_session_that_was_dropped),
      cmocka_unit_test(test_in_a_hook),
      cmocka_unit_test(test_from_another_thread),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
