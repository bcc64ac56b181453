/* SPDX-License-Identifier: Apache-2.0
 * Functions of the host that ask whether their call still waits (tutti_cancel_get_current): one that leaves at the end
 * of the call has lost nothing, whatever transform or source it belongs to.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "dataset_fixtures.h"
#include "estimator_fixtures.h"

/* A function that waits for the end of its call does so for this long at most. */
enum { ROWS = 6, WAIT_MS = 50, GIVE_UP_MS = 20000 };

static atomic_int calls_made, interrupted, without_token;
/* The call, counted from 0, that does not return before its token has ended; -1 for none. */
static atomic_int waiting_call;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the token of the running function has the state. */
static int comes_to(int32_t wanted) {
  const tutti_cancel *cancel = tutti_cancel_get_current();
  if (cancel == NULL) atomic_fetch_add(&without_token, 1);
  for (int64_t begin = now_ms(); cancel != NULL && now_ms() - begin < GIVE_UP_MS; sleep_microseconds(500))
    if (tutti_cancel_get_state(cancel) == wanted) return 1;
  return 0;
}

/* What each function does first. */
static int32_t begin_call(void) {
  if (atomic_fetch_add(&calls_made, 1) != atomic_load(&waiting_call)) return TUTTI_OK;
  if (!comes_to(TUTTI_CANCEL_CANCEL)) return TUTTI_INTERNAL;
  atomic_fetch_add(&interrupted, 1);
  return TUTTI_CANCELLED;
}

static void pass_on(tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    tutti_tensor_ref(inputs[i]);
    outputs[i] = inputs[i];
  }
}

static int32_t map_row(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                       tutti_error **err) {
  (void)user, (void)err;
  int32_t code = begin_call();
  if (code == TUTTI_OK) pass_on(inputs, outputs, count);
  return code;
}

static int32_t keep_row(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer, tutti_error **err) {
  (void)user, (void)inputs, (void)count, (void)err;
  *answer = 1;
  return begin_call();
}

/* The state counts the rows. */
static int32_t scan_row(void *user, tutti_tensor *const *state, tutti_tensor **new_state, int64_t state_count,
                        tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs, int64_t output_count,
                        tutti_error **err) {
  (void)user, (void)state_count, (void)output_count;
  int32_t code = begin_call();
  if (code != TUTTI_OK) return code;
  int64_t next = *(const int64_t *)tutti_tensor_get_data(state[0]) + 1;
  pass_on(inputs, outputs, count);
  return tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, &next, sizeof next, &new_state[0], err);
}

static int32_t generate_row(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                            uint8_t *has_element, tutti_error **err) {
  (void)user, (void)pass, (void)count;
  int32_t code = begin_call();
  *has_element = index < ROWS;
  if (code != TUTTI_OK || index >= ROWS) return code;
  float x[4];
  int32_t y;
  int64_t four = 4;
  toy_row(index, x, &y);
  code = tutti_tensor_from_data(TUTTI_DTYPE_F32, &four, 1, x, sizeof x, &outputs[0], err);
  return code != TUTTI_OK ? code : tutti_tensor_from_data(TUTTI_DTYPE_I32, NULL, 0, &y, sizeof y, &outputs[1], err);
}

/* Of each row a dataset with that row alone: `user` is the dataset of all of them. */
static int32_t expand_row(void *user, tutti_tensor *const *inputs, int64_t count, tutti_dataset **dataset,
                          tutti_error **err) {
  (void)count;
  int32_t code = begin_call();
  if (code != TUTTI_OK) return code;
  int64_t row = 0;
  for (float x[4]; row < ROWS; row++) {
    int32_t y;
    toy_row(row, x, &y);
    if (memcmp(x, tutti_tensor_get_data(inputs[0]), sizeof x) == 0) break;
  }
  tutti_pipeline *pipeline = NULL;
  code = tutti_pipeline_create(NULL, &pipeline, err);
  if (code != TUTTI_OK) return code;
  tutti_pipeline_add_dataset(pipeline, user);
  tutti_pipeline_skip(pipeline, row);
  tutti_pipeline_take(pipeline, 1);
  code = tutti_pipeline_build(pipeline, dataset, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

static void drop_dataset(void *user) { tutti_dataset_unref(user); }

enum kind { MAP, FILTER, TAKE_WHILE, SCAN, GENERATOR, FLAT_MAP, MAP_OF_FILTER, KINDS };

static void add_predicate(tutti_pipeline *pipeline, const char *transform) {
  tutti_pipeline_begin(pipeline, transform, 1);
  tutti_pipeline_set_predicate(pipeline, keep_row, NULL, NULL);
  tutti_pipeline_end(pipeline);
}

static void add_scan(tutti_pipeline *pipeline) {
  int64_t zero = 0;
  tutti_tensor *initial = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, &zero, sizeof zero, &initial, &err));
  tutti_pipeline_begin(pipeline, "scan_callback", 1);
  tutti_pipeline_set_scan(pipeline, scan_row, NULL, NULL);
  tutti_pipeline_set_state(pipeline, "rows", initial);
  tutti_pipeline_end(pipeline);
  tutti_tensor_unref(initial);
}

static tutti_pipeline *generated_rows(void) {
  tutti_pipeline *pipeline = NULL;
  int64_t four = 4;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &four, 1);
  tutti_pipeline_declare(pipeline, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0);
  tutti_pipeline_add_generator(pipeline, generate_row, NULL, NULL);
  return pipeline;
}

static tutti_dataset *rows_through(enum kind kind, int32_t parallelism) {
  tutti_pipeline *pipeline = kind == GENERATOR ? generated_rows() : toy_rows(NULL, ROWS);
  switch (kind) {
    case MAP:
      tutti_pipeline_map(pipeline, map_row, NULL, NULL, parallelism);
      break;
    case FILTER:
      add_predicate(pipeline, "filter_callback");
      break;
    case TAKE_WHILE:
      add_predicate(pipeline, "take_while_callback");
      break;
    case SCAN:
      add_scan(pipeline);
      break;
    case FLAT_MAP:
      tutti_pipeline_begin(pipeline, "flat_map", 1);
      tutti_pipeline_set_expand(pipeline, expand_row, build(toy_rows(NULL, ROWS)), drop_dataset);
      tutti_pipeline_end(pipeline);
      break;
    case MAP_OF_FILTER:
      add_predicate(pipeline, "filter_callback");
      tutti_pipeline_map(pipeline, map_row, NULL, NULL, parallelism);
      break;
    default:
      break;
  }
  return build(pipeline);
}

static void check_rows_from(tutti_iterator *iterator, int64_t first) {
  uint8_t more = 0;
  for (int64_t row = first; row < ROWS; row++) {
    float expected[4];
    int32_t label;
    toy_row(row, expected, &label);
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(more, 1);
    assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), expected, sizeof expected);
  }
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(more, 0);
}

/* The deadline passes in the third row (its second function, where a row has two). The iterator goes on with that row,
 * and so does one that is restored from what was saved in between. */
static void check_that_nothing_is_lost(enum kind kind) {
  const int64_t first = 2;
  tutti_dataset *dataset = rows_through(kind, 1);
  tutti_iterator *iterator = NULL, *restored = NULL;
  tutti_cancel *cancel = NULL;
  uint8_t more = 0;
  atomic_store(&calls_made, 0);
  atomic_store(&interrupted, 0);
  atomic_store(&waiting_call, kind == MAP_OF_FILTER ? 5 : 2);
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_cancel_create(&cancel, &err));
  for (int64_t row = 0; row < first; row++)
    assert_ok(tutti_iterator_next(iterator, cancel, &more, &err));
  assert_ok(tutti_cancel_set_deadline(cancel, WAIT_MS, &err));
  assert_int_equal(tutti_iterator_next(iterator, cancel, &more, NULL), TUTTI_DEADLINE_EXCEEDED);
  assert_int_equal(atomic_load(&interrupted), 1);
  const char *state = NULL;
  assert_ok(tutti_iterator_save(iterator, &state, &err));
  assert_ok(tutti_iterator_create(dataset, 0, &restored, &err));
  assert_ok(tutti_iterator_restore(restored, state, &err));
  check_rows_from(iterator, first);
  check_rows_from(restored, first);
  tutti_cancel_unref(cancel);
  tutti_iterator_unref(iterator);
  tutti_iterator_unref(restored);
  tutti_dataset_unref(dataset);
}

static void test_an_interrupted_function_loses_nothing(void **state) {
  (void)state;
  atomic_store(&without_token, 0);
  for (int kind = 0; kind < KINDS; kind++)
    check_that_nothing_is_lost((enum kind)kind);
  assert_int_equal(atomic_load(&without_token), 0);
}

/* A thread of the walk that is in a function when the walk is dropped. */
static void test_a_dropped_iterator_ends_its_functions(void **state) {
  (void)state;
  tutti_dataset *dataset = rows_through(MAP, 2);
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  atomic_store(&calls_made, 0);
  atomic_store(&interrupted, 0);
  atomic_store(&waiting_call, 3);
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  while (atomic_load(&calls_made) < 4)
    sleep_microseconds(500);
  int64_t begin = now_ms();
  tutti_iterator_unref(iterator);
  assert_true(now_ms() - begin < GIVE_UP_MS / 2);
  assert_int_equal(atomic_load(&interrupted), 1);
  tutti_dataset_unref(dataset);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

struct request {
  tutti_cancel *cancel;
  int32_t strength;
  int32_t seen;          /* state that the function waited for */
  atomic_int is_awaited; /* the function waits for it */
};

static void *request_once_awaited(void *user) {
  struct request *request = user;
  for (int64_t end = now_ms() + GIVE_UP_MS; !atomic_load(&request->is_awaited) && now_ms() < end;)
    sleep_microseconds(500);
  (void)tutti_cancel_request(request->cancel, request->strength, NULL);
  return NULL;
}

static int32_t wait_for_request(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct request *request = user;
  (void)err;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP || request->seen != TUTTI_CANCEL_NONE) return TUTTI_OK;
  atomic_store(&request->is_awaited, 1);
  if (comes_to(request->strength)) request->seen = request->strength;
  return TUTTI_OK;
}

static void check_hook(int32_t strength, int32_t expected) {
  struct request request = {.strength = strength};
  tutti_dataset *dataset = toy_dataset(64, 4, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_hooks *hooks = NULL;
  pthread_t thread;
  assert_ok(tutti_cancel_create(&request.cancel, &err));
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, wait_for_request, &request, NULL, 1, &err));
  assert_int_equal(pthread_create(&thread, NULL, request_once_awaited, &request), 0);
  int32_t code = tutti_estimator_train(estimator, dataset, NULL, hooks, request.cancel, NULL, NULL);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(code, expected);
  assert_int_equal(request.seen, strength);
  tutti_hooks_unref(hooks);
  tutti_cancel_unref(request.cancel);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_a_hook_sees_what_was_asked_for(void **state) {
  (void)state;
  check_hook(TUTTI_CANCEL_STOP, TUTTI_OK);
  check_hook(TUTTI_CANCEL_CANCEL, TUTTI_CANCELLED);
}

/* A model function, whose token is its own to use: what it asks that for ends nothing else. */
static atomic_int model_saw_token;

static int32_t careless_model(tutti_graph *graph, int32_t mode, void *user, tutti_error **err) {
  tutti_cancel *cancel = tutti_cancel_get_current();
  if (cancel != NULL && cancel == tutti_cancel_get_current()) atomic_fetch_add(&model_saw_token, 1);
  if (cancel != NULL) (void)tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, NULL);
  return toy_model(graph, mode, user, err);
}

static void test_a_model_function_has_a_token_of_its_own(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(8, 4, 1);
  tutti_estimator *estimator = NULL;
  tutti_cancel *cancel = NULL;
  atomic_store(&model_saw_token, 0);
  assert_null(tutti_cancel_get_current());
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_estimator_create(NULL, careless_model, NULL, NULL, NULL, NULL, &estimator, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, cancel, NULL, &err));
  assert_true(atomic_load(&model_saw_token) > 0);
  assert_int_equal(tutti_cancel_get_state(cancel), TUTTI_CANCEL_NONE);
  assert_null(tutti_cancel_get_current());
  atomic_store(&model_saw_token, 0);
  assert_ok(tutti_estimator_evaluate(estimator, dataset, 0, NULL, NULL, &err));
  assert_int_equal(atomic_load(&model_saw_token), 0);
  tutti_cancel_unref(cancel);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

/* --- prediction streams ------------------------------------------------------------------------------------------- */

/* Leaves at once when its call has ended. */
static int32_t leave_early(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                           tutti_error **err) {
  (void)user, (void)err;
  atomic_fetch_add(&calls_made, 1);
  if (tutti_cancel_get_state(tutti_cancel_get_current()) == TUTTI_CANCEL_CANCEL) {
    atomic_fetch_add(&interrupted, 1);
    return TUTTI_CANCELLED;
  }
  pass_on(inputs, outputs, count);
  return TUTTI_OK;
}

/* A stream wants its next row until a prediction is done. A function that leaves then gets the same row again. */
static void test_a_stream_loses_nothing(void **state) {
  (void)state;
  tutti_dataset *toy = toy_dataset(8, 4, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_predictor *predictor = NULL;
  tutti_prediction_stream *stream = NULL;
  tutti_pipeline *pipeline = toy_rows(NULL, 64);
  train(estimator, toy, NULL);
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  tutti_pipeline_map(pipeline, leave_early, NULL, NULL, 1);
  tutti_pipeline_batch(pipeline, 1, NULL);
  tutti_dataset *dataset = build(pipeline);
  atomic_store(&calls_made, 0);
  atomic_store(&interrupted, 0);
  assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
  for (int row = 0; row < 64; row++) {
    tutti_batch *batch = NULL;
    assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
    assert_non_null(batch);
    tutti_batch_unref(batch);
  }
  assert_int_equal(atomic_load(&calls_made), 64 + atomic_load(&interrupted));
  tutti_prediction_stream_unref(stream);
  tutti_predictor_unref(predictor);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  tutti_dataset_unref(toy);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_an_interrupted_function_loses_nothing),
    cmocka_unit_test(test_a_stream_loses_nothing),
    cmocka_unit_test(test_a_dropped_iterator_ends_its_functions),
    cmocka_unit_test(test_a_hook_sees_what_was_asked_for),
    cmocka_unit_test(test_a_model_function_has_a_token_of_its_own),
};
CAPI_TEST_MAIN(tests)
