/* SPDX-License-Identifier: Apache-2.0
 * Waits for functions of the host that are slow: a deadline or a cancel ends the call with the element that is under
 * way, not with the batch; what was read of the batch is part of what the next call gives.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "dataset_fixtures.h"
#include "estimator_fixtures.h"

/* One batch takes 1.5 s. */
enum { ROWS = 100, BATCH_ROWS = 50, ELEMENT_MS = 30, WAIT_MS = 100, MOST_MS = 900 };

static atomic_int calls_made;

static int32_t pass_slowly(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                           tutti_error **err) {
  (void)user, (void)err;
  atomic_fetch_add(&calls_made, 1);
  sleep_microseconds(ELEMENT_MS * 1000);
  for (int64_t i = 0; i < count; i++) {
    tutti_tensor_ref(inputs[i]);
    outputs[i] = inputs[i];
  }
  return TUTTI_OK;
}

static int32_t keep_slowly(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer, tutti_error **err) {
  (void)user, (void)inputs, (void)count, (void)err;
  atomic_fetch_add(&calls_made, 1);
  sleep_microseconds(ELEMENT_MS * 1000);
  *answer = 1;
  return TUTTI_OK;
}

enum slow { SLOW_MAP, SLOW_MAPS, SLOW_FILTER, SLOW_MAP_SHUFFLED, SLOW_MAP_AHEAD, SLOW_KINDS };

static tutti_dataset *slow_dataset(enum slow kind) {
  tutti_pipeline *pipeline = toy_rows(NULL, ROWS);
  if (kind == SLOW_FILTER) {
    tutti_pipeline_begin(pipeline, "filter_callback", 1);
    tutti_pipeline_set_predicate(pipeline, keep_slowly, NULL, NULL);
    tutti_pipeline_end(pipeline);
  } else {
    tutti_pipeline_map(pipeline, pass_slowly, NULL, NULL, kind == SLOW_MAPS ? 2 : 1);
  }
  if (kind == SLOW_MAP_SHUFFLED) tutti_pipeline_shuffle(pipeline, 40, NULL);
  tutti_pipeline_batch(pipeline, BATCH_ROWS, NULL);
  if (kind == SLOW_MAP_AHEAD) tutti_pipeline_prefetch(pipeline, NULL);
  return build(pipeline);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- calls that read the dataset ---------------------------------------------------------------------------------- */

struct reader {
  tutti_estimator *estimator;
  tutti_predictor *predictor;
  const tutti_dataset *dataset, *toy;
};

static int32_t call_next(const struct reader *reader, tutti_cancel *cancel) {
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(reader->dataset, 0, &iterator, &err));
  int32_t code = tutti_iterator_next(iterator, cancel, &more, NULL);
  tutti_iterator_unref(iterator);
  return code;
}

static int32_t call_train(const struct reader *reader, tutti_cancel *cancel) {
  return tutti_estimator_train(reader->estimator, reader->dataset, NULL, NULL, cancel, NULL, NULL);
}

static int32_t call_evaluate(const struct reader *reader, tutti_cancel *cancel) {
  return tutti_estimator_evaluate(reader->estimator, reader->dataset, 0, cancel, NULL, NULL);
}

static int32_t call_run_all(const struct reader *reader, tutti_cancel *cancel) {
  tutti_batch *batch = NULL;
  int32_t code = tutti_predictor_run_all(reader->predictor, reader->dataset, cancel, &batch, NULL);
  tutti_batch_unref(batch);
  return code;
}

static int32_t call_stream(const struct reader *reader, tutti_cancel *cancel) {
  tutti_prediction_stream *stream = NULL;
  tutti_batch *batch = NULL;
  assert_ok(tutti_prediction_stream_open(reader->predictor, reader->dataset, &stream, &err));
  int32_t code = tutti_prediction_stream_next(stream, cancel, &batch, NULL);
  tutti_batch_unref(batch);
  tutti_prediction_stream_unref(stream);
  return code;
}

static int32_t call_count_classes(const struct reader *reader, tutti_cancel *cancel) {
  int64_t counts[2];
  return tutti_dataset_count_classes(reader->dataset, "y", 2, cancel, counts, NULL, NULL);
}

static int32_t call_train_and_evaluate(const struct reader *reader, tutti_cancel *cancel) {
  return tutti_estimator_train_and_evaluate(reader->estimator, reader->toy, reader->dataset, 1, NULL, NULL, cancel,
                                            NULL, NULL);
}

static int32_t call_session(const struct reader *reader, tutti_cancel *cancel) {
  tutti_session *session = NULL;
  assert_ok(tutti_session_open(reader->estimator, reader->dataset, NULL, NULL, cancel, &session, &err));
  int32_t code = tutti_session_run(session, 1, NULL, NULL);
  tutti_session_unref(session);
  return code;
}

static int32_t call_arrow(const struct reader *reader, tutti_cancel *cancel) {
  struct ArrowArrayStream stream;
  struct ArrowArray array = {0};
  assert_ok(tutti_dataset_to_arrow(reader->dataset, 0, 0, cancel, &stream, &err));
  const int failure = stream.get_next(&stream, &array);
  if (failure == 0 && array.release != NULL) array.release(&array);
  stream.release(&stream);
  return failure == 0           ? TUTTI_OK
         : failure == ECANCELED ? TUTTI_CANCELLED
         : failure == ETIMEDOUT ? TUTTI_DEADLINE_EXCEEDED
                                : TUTTI_UNKNOWN;
}

static const struct {
  const char *name;
  int32_t (*call)(const struct reader *reader, tutti_cancel *cancel);
} calls[] = {
    {"next", call_next},
    {"train", call_train},
    {"evaluate", call_evaluate},
    {"run_all", call_run_all},
    {"stream", call_stream},
    {"count_classes", call_count_classes},
    {"train_and_evaluate", call_train_and_evaluate},
    {"session_run", call_session},
    {"to_arrow", call_arrow},
};

static void *cancel_soon(void *user) {
  sleep_microseconds(WAIT_MS * 1000);
  (void)tutti_cancel_request(user, TUTTI_CANCEL_CANCEL, NULL);
  return NULL;
}

static void check_call(size_t index, const struct reader *reader, int by_cancel) {
  tutti_cancel *cancel = NULL;
  pthread_t thread;
  assert_ok(tutti_cancel_create(&cancel, &err));
  if (by_cancel)
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
  else
    assert_ok(tutti_cancel_set_deadline(cancel, WAIT_MS, &err));
  int64_t begin = now_ms();
  int32_t code = calls[index].call(reader, cancel);
  int64_t took = now_ms() - begin;
  if (by_cancel) assert_int_equal(pthread_join(thread, NULL), 0);
  tutti_cancel_unref(cancel);
  if (code != (by_cancel ? TUTTI_CANCELLED : TUTTI_DEADLINE_EXCEEDED) || took > MOST_MS) {
    print_error("%s, cancel %d: %s after %lld ms\n", calls[index].name, by_cancel, tutti_code_get_name(code),
                (long long)took);
    fail();
  }
}

static void test_every_call_ends_with_the_element(void **state) {
  (void)state;
  tutti_dataset *toy = toy_dataset(8, 4, 1);
  struct reader reader = {.estimator = toy_estimator(NULL), .toy = toy};
  train(reader.estimator, toy, NULL);
  assert_ok(tutti_predictor_from_estimator(reader.estimator, NULL, &reader.predictor, &err));
  for (int kind = 0; kind < SLOW_KINDS; kind++) {
    tutti_dataset *dataset = slow_dataset((enum slow)kind);
    reader.dataset = dataset;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
      check_call(i, &reader, kind % 2);
    tutti_dataset_unref(dataset);
  }
  train(reader.estimator, toy, NULL);
  tutti_predictor_unref(reader.predictor);
  tutti_estimator_unref(reader.estimator);
  tutti_dataset_unref(toy);
}

/* The rows that were there when a deadline passed are the first of the batch, and are not computed again. */
static void test_nothing_is_lost(void **state) {
  (void)state;
  tutti_dataset *dataset = slow_dataset(SLOW_MAP);
  tutti_iterator *iterator = NULL;
  tutti_cancel *cancel = NULL;
  uint8_t more = 0;
  int32_t code = TUTTI_DEADLINE_EXCEEDED;
  int waits = 0;
  atomic_store(&calls_made, 0);
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_cancel_create(&cancel, &err));
  for (; code == TUTTI_DEADLINE_EXCEEDED; waits++) {
    assert_ok(tutti_cancel_set_deadline(cancel, 400, &err));
    code = tutti_iterator_next(iterator, cancel, &more, NULL);
  }
  assert_int_equal(code, TUTTI_OK);
  assert_int_equal(more, 1);
  assert_true(waits > 2);
  assert_int_equal(atomic_load(&calls_made), BATCH_ROWS);
  const float *x = tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0));
  for (int64_t row = 0; row < BATCH_ROWS; row++) {
    float expected[4];
    int32_t label;
    toy_row(row, expected, &label);
    assert_memory_equal(x + 4 * row, expected, sizeof expected);
  }
  tutti_cancel_unref(cancel);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_call_ends_with_the_element),
    cmocka_unit_test(test_nothing_is_lost),
};
CAPI_TEST_MAIN(tests)
