/* SPDX-License-Identifier: Apache-2.0
 * A child that is forked while objects of every kind are alive: it releases them all and exits, whatever their threads
 * were doing, is told what it may not do, and the parent goes on. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dataset_fixtures.h"
#include "estimator_fixtures.h"

/* --- objects of every kind, in the midst of what they do ---------------------------------------------------------- */

static atomic_int destroyed;

static void note_destroy(void *user) {
  (void)user;
  atomic_fetch_add(&destroyed, 1);
}

static int32_t pass_on(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                       tutti_error **err) {
  (void)user, (void)err;
  sleep_microseconds(200);
  for (int64_t i = 0; i < count; i++) {
    tutti_tensor_ref(inputs[i]);
    outputs[i] = inputs[i];
  }
  return TUTTI_OK;
}

struct scene {
  tutti_context *context;
  tutti_options *options;
  tutti_strategy *strategy;
  tutti_hooks *hooks;
  tutti_cancel *cancel;
  tutti_error *error;
  tutti_tensor *tensor;
  tutti_pipeline *pipeline;
  tutti_dataset *toy, *mapped, *fed;
  tutti_iterator *iterator, *starved;
  tutti_feed *feed;
  tutti_estimator *estimator, *other;
  tutti_session *session;
  tutti_predictor *predictor;
  tutti_prediction_stream *stream;
  tutti_batch *batch;
  tutti_result *result;
  struct ArrowArrayStream arrow;
  struct ArrowArray array;
  pthread_t pusher;
  int32_t pushed; /* what the push that waits for room has returned */
};

static void *push_one_more(void *user) {
  struct scene *s = user;
  tutti_tensor *tensor = s->tensor;
  s->pushed = tutti_feed_push(s->feed, &tensor, 1, s->cancel, NULL);
  return NULL;
}

static void open_data(struct scene *s) {
  uint8_t more = 0;
  float one = 1;
  s->toy = toy_dataset(64, 8, 0);
  tutti_pipeline *pipeline = toy_rows(NULL, 64);
  tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_map(pipeline, pass_on, NULL, note_destroy, 2);
  tutti_pipeline_batch(pipeline, 8, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  s->mapped = build(pipeline);
  assert_ok(tutti_iterator_create(s->mapped, 0, &s->iterator, &err));
  assert_ok(tutti_iterator_next(s->iterator, NULL, &more, &err));
  assert_ok(tutti_dataset_to_arrow(s->mapped, 0, 0, NULL, &s->arrow, &err));
  assert_int_equal(s->arrow.get_next(&s->arrow, &s->array), 0);
  /* One thread waits for room in a feed, another one for its elements. */
  s->tensor = make_tensor(TUTTI_DTYPE_F32, 0, NULL, &one);
  assert_ok(tutti_feed_create(NULL, 1, &s->feed, &err));
  assert_ok(tutti_feed_declare(s->feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, NULL, 0, &err));
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, s->feed);
  s->fed = build(pipeline);
  assert_ok(tutti_iterator_create(s->fed, 0, &s->starved, &err));
  assert_ok(tutti_feed_push(s->feed, &s->tensor, 1, NULL, &err));
  assert_ok(tutti_cancel_create(&s->cancel, &err));
  assert_int_equal(pthread_create(&s->pusher, NULL, push_one_more, s), 0);
  assert_ok(tutti_pipeline_create(NULL, &s->pipeline, &err));
}

static void open_training(struct scene *s) {
  tutti_options *steps = make_options("train", "{\"steps\": 2}");
  assert_ok(tutti_context_create(NULL, &s->context, &err));
  s->options = make_options("context", "{\"threads\": 2}");
  assert_ok(tutti_strategy_create_one_device(NULL, NULL, &s->strategy, &err));
  assert_ok(tutti_hooks_create(&s->hooks, &err));
  s->estimator = toy_estimator(NULL);
  assert_ok(tutti_estimator_train(s->estimator, s->toy, steps, NULL, NULL, &s->result, &err));
  assert_ok(tutti_predictor_from_estimator(s->estimator, NULL, &s->predictor, &err));
  assert_ok(tutti_prediction_stream_open(s->predictor, s->mapped, &s->stream, &err));
  assert_ok(tutti_prediction_stream_next(s->stream, NULL, &s->batch, &err));
  s->other = toy_estimator(NULL);
  assert_ok(tutti_session_open(s->other, s->mapped, NULL, s->hooks, NULL, &s->session, &err));
  assert_ok(tutti_session_run(s->session, 2, NULL, &err));
  assert_int_equal(tutti_predictor_reload(NULL, NULL, NULL, &s->error), TUTTI_INVALID_ARGUMENT);
  tutti_options_unref(steps);
}

static void release_all(struct scene *s) {
  if (s->array.release != NULL) s->array.release(&s->array);
  if (s->arrow.release != NULL) s->arrow.release(&s->arrow);
  tutti_iterator_unref(s->iterator), tutti_iterator_unref(s->starved);
  tutti_prediction_stream_unref(s->stream);
  tutti_session_unref(s->session);
  tutti_predictor_unref(s->predictor);
  tutti_estimator_unref(s->estimator), tutti_estimator_unref(s->other);
  tutti_feed_unref(s->feed);
  tutti_dataset_unref(s->toy), tutti_dataset_unref(s->mapped), tutti_dataset_unref(s->fed);
  tutti_batch_unref(s->batch), tutti_result_unref(s->result), tutti_error_unref(s->error);
  tutti_pipeline_unref(s->pipeline), tutti_tensor_unref(s->tensor), tutti_cancel_unref(s->cancel);
  tutti_hooks_unref(s->hooks), tutti_strategy_unref(s->strategy), tutti_options_unref(s->options);
  tutti_context_unref(s->context);
}

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* Did the call answer as it should, with a text that says why? Releases the error. */
static int is_told(int32_t code, tutti_error **err) {
  const char *text = *err != NULL ? tutti_error_get_text(*err) : "";
  const int good = code == TUTTI_FAILED_PRECONDITION && strstr(text, "made before the fork") != NULL;
  tutti_error_unref(*err);
  *err = NULL;
  return good;
}

/* Its exit status: 0 = as it should be. */
static int be_the_child(struct scene *s) {
  alarm(20); /* a hang is a failure */
  const int before = atomic_load(&destroyed);
  tutti_error *err = NULL;
  tutti_batch *batch = NULL;
  struct ArrowArray array;
  uint8_t more = 0;
  if (!is_told(tutti_iterator_next(s->iterator, NULL, &more, &err), &err)) return 1;
  if (!is_told(tutti_feed_push(s->feed, &s->tensor, 1, NULL, &err), &err)) return 2;
  if (!is_told(tutti_session_run(s->session, 1, NULL, &err), &err)) return 3;
  if (!is_told(tutti_session_close(s->session, NULL, &err), &err)) return 4;
  if (!is_told(tutti_prediction_stream_next(s->stream, NULL, &batch, &err), &err)) return 5;
  if (!is_told(tutti_predictor_reload(s->predictor, NULL, NULL, &err), &err)) return 6;
  if (!is_told(tutti_estimator_train(s->estimator, s->toy, NULL, NULL, NULL, NULL, &err), &err)) return 7;
  if (!is_told(tutti_cancel_request(s->cancel, TUTTI_CANCEL_CANCEL, &err), &err)) return 8;
  if (s->arrow.get_next(&s->arrow, &array) == 0 || s->arrow.get_last_error(&s->arrow) == NULL) return 9;
  (void)tutti_feed_get_position(s->feed), (void)tutti_estimator_get_global_step(s->estimator);
  (void)tutti_predictor_get_step(s->predictor), (void)tutti_cancel_get_state(s->cancel);
  release_all(s);
  return atomic_load(&destroyed) == before ? 0 : 10; /* the host's own things are the parent's, too */
}

/* The exit status of a child; -1 when a signal ended it. */
static int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_a_child_releases_everything(void **state) {
  (void)state;
  struct scene s = {.pushed = -1};
  open_data(&s);
  open_training(&s);
  for (int i = 0; i < 10; i++) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(be_the_child(&s));
    assert_int_equal(wait_for(child), 0);
    /* The parent goes on. */
    uint8_t more = 0;
    assert_ok(tutti_iterator_next(s.iterator, NULL, &more, &err));
    assert_ok(tutti_session_run(s.session, 1, NULL, &err));
    tutti_batch_unref(s.batch);
    assert_ok(tutti_prediction_stream_next(s.stream, NULL, &s.batch, &err));
  }
  assert_int_equal(s.pushed, -1);
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(s.starved, NULL, &more, &err));
  assert_int_equal(pthread_join(s.pusher, NULL), 0);
  assert_int_equal(s.pushed, TUTTI_OK);
  assert_ok(tutti_session_close(s.session, NULL, &err));
  release_all(&s);
  assert_int_equal(atomic_load(&destroyed), 1);
}

/* --- threads that make and release handles meanwhile -------------------------------------------------------------- */

static atomic_int ended;

static void *make_handles(void *user) {
  (void)user;
  while (!atomic_load(&ended)) {
    tutti_cancel *token = NULL;
    if (tutti_cancel_create(&token, NULL) != TUTTI_OK) break;
    tutti_cancel_unref(token);
  }
  return NULL;
}

static int hear_of_it(void) {
  alarm(20);
  for (int i = 0; i < 100; i++) {
    tutti_cancel *token = NULL;
    tutti_error *err = NULL;
    if (!is_told(tutti_cancel_create(&token, &err), &err)) return 1;
  }
  return 0;
}

static void test_errors_come_whatever_threads_did(void **state) {
  (void)state;
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, make_handles, NULL), 0);
  for (int i = 0; i < 100; i++) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(hear_of_it());
    assert_int_equal(wait_for(child), 0);
  }
  atomic_store(&ended, 1);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_child_releases_everything),
    cmocka_unit_test(test_errors_come_whatever_threads_did),
};
CAPI_TEST_MAIN(tests)
