/* SPDX-License-Identifier: Apache-2.0
 * Cancel tokens and deadlines through the C interface: on every call that can last, from another thread. What ends is
 * the call; what it was called on goes on afterwards, and nothing is lost. Callers that meet on one handle are refused.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "estimator_fixtures.h"

/* --- feeds of rows as toy_model takes them ------------------------------------------------------------------------ */

static tutti_feed *toy_feed(int64_t capacity) {
  tutti_feed *feed = NULL;
  int64_t four = 4;
  assert_ok(tutti_feed_create(NULL, capacity, &feed, &err));
  assert_ok(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &four, 1, &err));
  assert_ok(tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, &err));
  return feed;
}

static int32_t push_row(tutti_feed *feed, int64_t row, tutti_cancel *cancel, tutti_error **err) {
  float x[4];
  int32_t y;
  int64_t four = 4;
  toy_row(row, x, &y);
  tutti_tensor *tensors[2] = {NULL, NULL};
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, &four, 1, x, sizeof x, &tensors[0], err);
  if (code == TUTTI_OK) code = tutti_tensor_from_data(TUTTI_DTYPE_I32, NULL, 0, &y, sizeof y, &tensors[1], err);
  if (code == TUTTI_OK) code = tutti_feed_push(feed, tensors, 2, cancel, err);
  tutti_tensor_unref(tensors[0]);
  tutti_tensor_unref(tensors[1]);
  return code;
}

static void push_rows(tutti_feed *feed, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    assert_ok(push_row(feed, first + i, NULL, &err));
}

/* Batches of four rows of the feed, read ahead by a thread or not. */
static tutti_dataset *fed_batches(tutti_feed *feed, int prefetch) {
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, feed);
  tutti_pipeline_batch(pipeline, 4, NULL);
  if (prefetch) tutti_pipeline_prefetch(pipeline, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static int is_row(const tutti_tensor *x, int64_t position, int64_t row) {
  float expected[4];
  int32_t label;
  toy_row(row, expected, &label);
  const float *values = tutti_tensor_get_data(x);
  return memcmp(values + 4 * position, expected, sizeof expected) == 0;
}

/* --- what can last ------------------------------------------------------------------------------------------------ */

/* All that the calls below wait with: no call has what it needs to end by itself. */
struct scene {
  tutti_feed *full, *starved;
  tutti_dataset *reader, *batches;
  tutti_iterator *iterator;
  tutti_estimator *estimator;
  tutti_predictor *predictor;
  tutti_prediction_stream *stream;
};

static struct scene open_scene(tutti_estimator *estimator) {
  struct scene s = {.full = toy_feed(1), .starved = toy_feed(64), .estimator = estimator};
  s.reader = fed_batches(s.full, 0);
  push_rows(s.full, 0, 1);
  s.batches = fed_batches(s.starved, 0);
  push_rows(s.starved, 0, 2);
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &s.predictor, &err));
  return s;
}

static void close_scene(struct scene *s) {
  tutti_iterator_unref(s->iterator);
  tutti_prediction_stream_unref(s->stream);
  tutti_predictor_unref(s->predictor);
  tutti_dataset_unref(s->reader);
  tutti_dataset_unref(s->batches);
  tutti_feed_unref(s->full);
  tutti_feed_unref(s->starved);
}

static int32_t call_push(struct scene *s, tutti_cancel *cancel, tutti_error **err) {
  return push_row(s->full, 1, cancel, err);
}

static int32_t call_next(struct scene *s, tutti_cancel *cancel, tutti_error **err) {
  uint8_t more = 0;
  int32_t code = TUTTI_OK;
  if (s->iterator == NULL) code = tutti_iterator_create(s->batches, 0, &s->iterator, err);
  return code != TUTTI_OK ? code : tutti_iterator_next(s->iterator, cancel, &more, err);
}

static int32_t call_stream(struct scene *s, tutti_cancel *cancel, tutti_error **err) {
  tutti_batch *batch = NULL;
  int32_t code = TUTTI_OK;
  if (s->stream == NULL) code = tutti_prediction_stream_open(s->predictor, s->batches, &s->stream, err);
  if (code == TUTTI_OK) code = tutti_prediction_stream_next(s->stream, cancel, &batch, err);
  tutti_batch_unref(batch);
  return code;
}

static int32_t call_run_all(struct scene *s, tutti_cancel *cancel, tutti_error **err) {
  tutti_batch *batch = NULL;
  int32_t code = tutti_predictor_run_all(s->predictor, s->batches, cancel, &batch, err);
  tutti_batch_unref(batch);
  return code;
}

static int32_t call_evaluate(struct scene *s, tutti_cancel *cancel, tutti_error **err) {
  return tutti_estimator_evaluate(s->estimator, s->batches, 0, cancel, NULL, err);
}

static int32_t call_train(struct scene *s, tutti_cancel *cancel, tutti_error **err) {
  return tutti_estimator_train(s->estimator, s->batches, NULL, NULL, cancel, NULL, err);
}

static const struct {
  const char *name;
  int32_t (*call)(struct scene *, tutti_cancel *, tutti_error **);
  int32_t after_stop;
} calls[] = {
    {"push", call_push, TUTTI_CANCELLED},         {"next", call_next, TUTTI_CANCELLED},
    {"stream", call_stream, TUTTI_CANCELLED},     {"run_all", call_run_all, TUTTI_CANCELLED},
    {"evaluate", call_evaluate, TUTTI_CANCELLED}, {"train", call_train, TUTTI_OK},
};

/* Ways to end a call: before it begins, or from another thread while it waits. */
enum way { BY_STOP, BY_CANCEL, BY_DEADLINE, WAYS };

struct ender {
  tutti_cancel *cancel;
  enum way way;
};

static void end_by(const struct ender *ender) {
  if (ender->way == BY_DEADLINE)
    (void)tutti_cancel_set_deadline(ender->cancel, 0, NULL);
  else
    (void)tutti_cancel_request(ender->cancel, ender->way == BY_STOP ? TUTTI_CANCEL_STOP : TUTTI_CANCEL_CANCEL, NULL);
}

static void *end_later(void *user) {
  sleep_microseconds(20000);
  end_by(user);
  return NULL;
}

static void check_call(size_t index, enum way way, int later) {
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_dataset *toy = toy_dataset(8, 4, 1);
  train(estimator, toy, NULL);
  struct scene s = open_scene(estimator);
  struct ender ender = {.way = way};
  assert_ok(tutti_cancel_create(&ender.cancel, &err));
  pthread_t thread;
  if (later)
    assert_int_equal(pthread_create(&thread, NULL, end_later, &ender), 0);
  else
    end_by(&ender);
  tutti_error *err = NULL;
  int32_t code = calls[index].call(&s, ender.cancel, &err);
  tutti_error_unref(err);
  if (later) assert_int_equal(pthread_join(thread, NULL), 0);
  int32_t expected = way == BY_STOP     ? calls[index].after_stop
                     : way == BY_CANCEL ? TUTTI_CANCELLED
                                        : TUTTI_DEADLINE_EXCEEDED;
  if (code != expected) {
    print_error("%s, way %d, %s: %s\n", calls[index].name, way, later ? "later" : "before", tutti_code_get_name(code));
    fail();
  }
  /* All of it can be used again. */
  train(estimator, toy, NULL);
  tutti_cancel_unref(ender.cancel);
  close_scene(&s);
  tutti_dataset_unref(toy);
  tutti_estimator_unref(estimator);
}

static void test_every_call_ends(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    for (int way = 0; way < WAYS; way++)
      for (int later = 0; later < 2; later++)
        check_call(i, (enum way)way, later);
}

static void test_deadlines(void **state) {
  (void)state;
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_dataset *toy = toy_dataset(8, 4, 1);
  train(estimator, toy, NULL);
  tutti_cancel *cancel = NULL;
  assert_ok(tutti_cancel_create(&cancel, &err));
  /* One token for many calls, with a deadline for each. */
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    struct scene s = open_scene(estimator);
    assert_ok(tutti_cancel_set_deadline(cancel, 20, &err));
    assert_int_equal(tutti_cancel_get_state(cancel), TUTTI_CANCEL_NONE);
    assert_error(TUTTI_DEADLINE_EXCEEDED, "deadline", calls[i].call(&s, cancel, &err));
    assert_int_equal(tutti_cancel_get_state(cancel), TUTTI_CANCEL_CANCEL);
    assert_ok(tutti_cancel_set_deadline(cancel, -1, &err));
    assert_int_equal(tutti_cancel_get_state(cancel), TUTTI_CANCEL_NONE);
    assert_ok(tutti_estimator_train(estimator, toy, NULL, NULL, cancel, NULL, &err));
    close_scene(&s);
  }
  tutti_cancel_unref(cancel);
  tutti_dataset_unref(toy);
  tutti_estimator_unref(estimator);
}

/* --- nothing is lost ---------------------------------------------------------------------------------------------- */

/* Calls next until it gives an element, which is to be at each deadline or cancel from another thread. */
static int32_t next_by_deadline(tutti_iterator *iterator, tutti_cancel *cancel, uint8_t *more) {
  assert_ok(tutti_cancel_set_deadline(cancel, 5, &err));
  return tutti_iterator_next(iterator, cancel, more, NULL);
}

static void test_an_iterator_loses_nothing(void **state) {
  (void)state;
  for (int prefetch = 0; prefetch < 2; prefetch++) {
    tutti_feed *feed = toy_feed(64);
    tutti_dataset *dataset = fed_batches(feed, prefetch);
    tutti_iterator *iterator = NULL;
    tutti_cancel *cancel = NULL;
    uint8_t more = 0;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    assert_ok(tutti_cancel_create(&cancel, &err));
    int64_t pushed = 2, got = 0;
    push_rows(feed, 0, 2);
    while (got < 12) {
      int32_t code = next_by_deadline(iterator, cancel, &more);
      if (code == TUTTI_OK) {
        assert_int_equal(more, 1);
        for (int64_t i = 0; i < 4; i++)
          assert_true(is_row(tutti_iterator_get_component(iterator, 0), i, got + i));
        got += 4;
        continue;
      }
      assert_int_equal(code, TUTTI_DEADLINE_EXCEEDED);
      if (pushed < 12) push_rows(feed, pushed++, 1);
    }
    /* A cancelled call too. */
    struct ender ender = {.way = BY_CANCEL};
    pthread_t thread;
    assert_ok(tutti_cancel_create(&ender.cancel, &err));
    push_rows(feed, 12, 2);
    assert_int_equal(pthread_create(&thread, NULL, end_later, &ender), 0);
    assert_error(TUTTI_CANCELLED, "", tutti_iterator_next(iterator, ender.cancel, &more, &err));
    assert_int_equal(pthread_join(thread, NULL), 0);
    push_rows(feed, 14, 1);
    assert_ok(tutti_feed_finish(feed, &err));
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(iterator, 0), 0), 3);
    for (int64_t i = 0; i < 3; i++)
      assert_true(is_row(tutti_iterator_get_component(iterator, 0), i, 12 + i));
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(more, 0);
    tutti_cancel_unref(ender.cancel);
    tutti_cancel_unref(cancel);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
    tutti_feed_unref(feed);
  }
}

/* Output "logits" is x itself. */
static int32_t mirror_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  int64_t one = 1;
  tutti_value zero = tutti_graph_variable(g, "zero", TUTTI_DTYPE_F32, &one, 1, "constant", 0.0, 1);
  tutti_graph_set_output(g, "x", tutti_add(g, x, zero));
  if (mode != TUTTI_MODE_PREDICT) {
    (void)tutti_graph_get_label(g, "y");
    tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_mul(g, tutti_sub(g, x, x), zero), NULL));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 1.0), NULL);
  }
  return tutti_graph_check(g, err);
}

static tutti_estimator *mirror_estimator(void) {
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, mirror_model, NULL, NULL, NULL, NULL, &estimator, &err));
  tutti_dataset *toy = toy_dataset(4, 4, 1);
  train(estimator, toy, NULL);
  tutti_dataset_unref(toy);
  return estimator;
}

static void test_a_stream_loses_nothing(void **state) {
  (void)state;
  tutti_estimator *estimator = mirror_estimator();
  for (int prefetch = 0; prefetch < 2; prefetch++) {
    tutti_feed *feed = toy_feed(64);
    tutti_dataset *dataset = fed_batches(feed, prefetch);
    tutti_predictor *predictor = NULL;
    tutti_prediction_stream *stream = NULL;
    tutti_cancel *cancel = NULL;
    tutti_batch *batch = NULL;
    assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
    assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
    assert_ok(tutti_cancel_create(&cancel, &err));
    int64_t pushed = 2, got = 0;
    push_rows(feed, 0, 2);
    while (got < 12) {
      assert_ok(tutti_cancel_set_deadline(cancel, 5, &err));
      int32_t code = tutti_prediction_stream_next(stream, cancel, &batch, NULL);
      if (code == TUTTI_OK) {
        assert_non_null(batch);
        assert_int_equal(tutti_batch_get_first_row(batch), got);
        for (int64_t i = 0; i < 4; i++)
          assert_true(is_row(tutti_batch_get_output(batch, "x"), i, got + i));
        tutti_batch_unref(batch);
        got += 4;
        continue;
      }
      assert_int_equal(code, TUTTI_DEADLINE_EXCEEDED);
      if (pushed < 12) push_rows(feed, pushed++, 1);
    }
    /* What is done comes out although nothing follows it. */
    push_rows(feed, 12, 4);
    assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
    assert_true(is_row(tutti_batch_get_output(batch, "x"), 0, 12));
    tutti_batch_unref(batch);
    push_rows(feed, 16, 1);
    assert_ok(tutti_feed_finish(feed, &err));
    assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
    assert_int_equal(tutti_batch_get_row_count(batch), 1);
    assert_true(is_row(tutti_batch_get_output(batch, "x"), 0, 16));
    tutti_batch_unref(batch);
    assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
    assert_null(batch);
    tutti_cancel_unref(cancel);
    tutti_prediction_stream_unref(stream);
    tutti_predictor_unref(predictor);
    tutti_dataset_unref(dataset);
    tutti_feed_unref(feed);
  }
  tutti_estimator_unref(estimator);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

/* Ends a training that has come to a step, or lets others wait for it. */
struct stopper {
  struct ender ender;
  tutti_hooks *hooks;
  _Atomic int64_t step;
  pthread_t thread;
};

static int32_t note_step(void *user, const tutti_hook_event *event, tutti_error **err) {
  (void)err;
  ((struct stopper *)user)->step = tutti_hook_event_get_step(event);
  return TUTTI_OK;
}

static void wait_for_step(struct stopper *stopper) {
  while (stopper->step < 1)
    sleep_microseconds(1000);
}

static void *end_at_step(void *user) {
  wait_for_step(user);
  end_by(&((struct stopper *)user)->ender);
  return NULL;
}

static void open_stopper(struct stopper *stopper, enum way way) {
  stopper->ender.way = way;
  stopper->step = 0;
  assert_ok(tutti_cancel_create(&stopper->ender.cancel, &err));
  assert_ok(tutti_hooks_create(&stopper->hooks, &err));
  assert_ok(tutti_hooks_add(stopper->hooks, note_step, stopper, NULL, 1, &err));
}

static void close_stopper(struct stopper *stopper) {
  tutti_cancel_unref(stopper->ender.cancel);
  tutti_hooks_unref(stopper->hooks);
}

static void test_a_stopped_training_has_its_checkpoint(void **state) {
  (void)state;
  char directory[64], run[128];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"}", directory);
  tutti_estimator *estimator = toy_estimator(run);
  tutti_dataset *endless = toy_dataset(32, 4, 0);
  struct stopper stopper;
  tutti_result *result = NULL;
  open_stopper(&stopper, BY_STOP);
  assert_int_equal(pthread_create(&stopper.thread, NULL, end_at_step, &stopper), 0);
  assert_ok(tutti_estimator_train(estimator, endless, NULL, stopper.hooks, stopper.ender.cancel, &result, &err));
  assert_int_equal(pthread_join(stopper.thread, NULL), 0);
  struct outcome stopped = take(result);
  assert_int_equal(stopped.reason, TUTTI_REASON_STOPPED);
  assert_int_equal(stopped.step, tutti_estimator_get_global_step(estimator));
  tutti_estimator_unref(estimator);
  /* Another one goes on from there. */
  estimator = toy_estimator(run);
  assert_int_equal(train(estimator, endless, "{\"steps\": 3}").step, stopped.step + 3);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(endless);
  close_stopper(&stopper);
  remove_directory(directory);
}

static void test_a_cancelled_training_can_go_on(void **state) {
  (void)state;
  for (int way = BY_CANCEL; way < WAYS; way++) {
    tutti_estimator *estimator = toy_estimator(NULL);
    tutti_dataset *endless = toy_dataset(32, 4, 0);
    struct stopper stopper;
    open_stopper(&stopper, (enum way)way);
    assert_int_equal(pthread_create(&stopper.thread, NULL, end_at_step, &stopper), 0);
    assert_error(way == BY_CANCEL ? TUTTI_CANCELLED : TUTTI_DEADLINE_EXCEEDED, "",
                 tutti_estimator_train(estimator, endless, NULL, stopper.hooks, stopper.ender.cancel, NULL, &err));
    assert_int_equal(pthread_join(stopper.thread, NULL), 0);
    int64_t step = tutti_estimator_get_global_step(estimator);
    assert_true(step >= 1);
    assert_int_equal(train(estimator, endless, "{\"steps\": 2}").step, step + 2);
    close_stopper(&stopper);
    tutti_dataset_unref(endless);
    tutti_estimator_unref(estimator);
  }
}

/* --- several threads ---------------------------------------------------------------------------------------------- */

struct trainer {
  tutti_estimator *estimator;
  tutti_dataset *dataset;
  tutti_options *options;
  tutti_hooks *hooks;
  int32_t code;
  int64_t step;
};

static void *train_all(void *user) {
  struct trainer *trainer = user;
  tutti_result *result = NULL;
  trainer->code = tutti_estimator_train(trainer->estimator, trainer->dataset, trainer->options, trainer->hooks, NULL,
                                        &result, NULL);
  trainer->step = tutti_result_get_step(result);
  tutti_result_unref(result);
  return NULL;
}

static void test_two_estimators_train_at_once(void **state) {
  (void)state;
  struct trainer trainers[2];
  pthread_t threads[2];
  tutti_dataset *endless = toy_dataset(32, 4, 0);
  tutti_options *options = make_options("train", "{\"steps\": 40}");
  for (int i = 0; i < 2; i++) {
    trainers[i] = (struct trainer){.estimator = toy_estimator(NULL), .dataset = endless, .options = options};
    assert_int_equal(pthread_create(&threads[i], NULL, train_all, &trainers[i]), 0);
  }
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
  tutti_dataset *toy = toy_dataset(32, 4, 1);
  double losses[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(trainers[i].code, TUTTI_OK);
    assert_int_equal(trainers[i].step, 40);
    losses[i] = evaluate(trainers[i].estimator, toy, 0).loss;
    tutti_estimator_unref(trainers[i].estimator);
  }
  assert_true(losses[0] == losses[1]); /* neither has disturbed the other */
  tutti_options_unref(options);
  tutti_dataset_unref(toy);
  tutti_dataset_unref(endless);
}

static void test_one_estimator_trains_once_at_a_time(void **state) {
  (void)state;
  struct stopper stopper;
  open_stopper(&stopper, BY_STOP);
  struct trainer trainer = {.estimator = toy_estimator(NULL), .dataset = toy_dataset(32, 4, 0), .hooks = stopper.hooks};
  pthread_t thread;
  tutti_feed *feed = toy_feed(8);
  tutti_dataset *endless = trainer.dataset;
  trainer.dataset = fed_batches(feed, 0);
  assert_int_equal(pthread_create(&thread, NULL, train_all, &trainer), 0);
  push_rows(feed, 0, 4);
  wait_for_step(&stopper);
  assert_error(TUTTI_FAILED_PRECONDITION, "already training",
               tutti_estimator_train(trainer.estimator, endless, NULL, NULL, NULL, NULL, &err));
  assert_ok(tutti_feed_finish(feed, &err));
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(trainer.code, TUTTI_OK);
  assert_int_equal(trainer.step, 1);
  close_stopper(&stopper);
  tutti_dataset_unref(endless);
  tutti_dataset_unref(trainer.dataset);
  tutti_feed_unref(feed);
  tutti_estimator_unref(trainer.estimator);
}

struct reader {
  struct scene *scene;
  int32_t (*call)(struct scene *, tutti_cancel *, tutti_error **);
  int32_t code;
};

/* Until it gets through. */
static void *read_once(void *user) {
  struct reader *reader = user;
  while ((reader->code = reader->call(reader->scene, NULL, NULL)) == TUTTI_FAILED_PRECONDITION)
    sleep_microseconds(100);
  return NULL;
}

static void test_a_second_reader_is_refused(void **state) {
  (void)state;
  tutti_estimator *estimator = mirror_estimator();
  int32_t (*const reading[])(struct scene *, tutti_cancel *, tutti_error **) = {call_next, call_stream};
  for (int i = 0; i < 2; i++) {
    struct scene s = open_scene(estimator);
    struct reader reader = {.scene = &s, .call = reading[i]};
    tutti_cancel *cancel = NULL;
    assert_ok(tutti_cancel_create(&cancel, &err));
    assert_ok(tutti_cancel_set_deadline(cancel, 0, &err));
    assert_error(TUTTI_DEADLINE_EXCEEDED, "", reading[i](&s, cancel, &err)); /* makes it */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_once, &reader), 0);
    int32_t code;
    do {
      sleep_microseconds(5000); /* the other one's turn */
      assert_ok(tutti_cancel_set_deadline(cancel, 2, &err));
      code = reading[i](&s, cancel, NULL);
    } while (code == TUTTI_DEADLINE_EXCEEDED);
    assert_int_equal(code, TUTTI_FAILED_PRECONDITION);
    push_rows(s.starved, 2, 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(reader.code, TUTTI_OK);
    tutti_cancel_unref(cancel);
    close_scene(&s);
  }
  tutti_estimator_unref(estimator);
}

/* Closing a stream ends a call that waits on it. */
static void *close_later(void *user) {
  sleep_microseconds(20000);
  (void)tutti_prediction_stream_close(user, NULL, NULL);
  return NULL;
}

static void test_close_ends_a_waiting_call(void **state) {
  (void)state;
  tutti_estimator *estimator = mirror_estimator();
  struct scene s = open_scene(estimator);
  tutti_batch *batch = NULL;
  pthread_t thread;
  assert_ok(tutti_prediction_stream_open(s.predictor, s.batches, &s.stream, &err));
  assert_int_equal(pthread_create(&thread, NULL, close_later, s.stream), 0);
  assert_error(TUTTI_CANCELLED, "", tutti_prediction_stream_next(s.stream, NULL, &batch, &err));
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_error(TUTTI_FAILED_PRECONDITION, "closed", tutti_prediction_stream_next(s.stream, NULL, &batch, &err));
  close_scene(&s);
  tutti_estimator_unref(estimator);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_call_ends),
    cmocka_unit_test(test_deadlines),
    cmocka_unit_test(test_an_iterator_loses_nothing),
    cmocka_unit_test(test_a_stream_loses_nothing),
    cmocka_unit_test(test_a_stopped_training_has_its_checkpoint),
    cmocka_unit_test(test_a_cancelled_training_can_go_on),
    cmocka_unit_test(test_two_estimators_train_at_once),
    cmocka_unit_test(test_one_estimator_trains_once_at_a_time),
    cmocka_unit_test(test_a_second_reader_is_refused),
    cmocka_unit_test(test_close_ends_a_waiting_call),
};
CAPI_TEST_MAIN(tests)
