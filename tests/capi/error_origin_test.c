/* SPDX-License-Identifier: Apache-2.0
 * An error that a callback makes, on whatever thread it runs, arrives with its causes in what the caller is given. */
#include <pthread.h>

#include "estimator_fixtures.h"

/* "the shelf is empty" because of "the ship sank" (domain "harbour", code DATA_LOSS). */
static int32_t fail_with_cause(tutti_error **err) {
  tutti_error *cause = NULL;
  if (err == NULL) return TUTTI_UNAVAILABLE;
  (void)tutti_error_create(TUTTI_DATA_LOSS, "harbour", "the ship sank", NULL, &cause, NULL);
  (void)tutti_error_create(TUTTI_UNAVAILABLE, NULL, "the shelf is empty", cause, err, NULL);
  tutti_error_unref(cause);
  return TUTTI_UNAVAILABLE;
}

static int32_t failing_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)g, (void)mode, (void)user;
  return fail_with_cause(err);
}

static int32_t failing_graph(tutti_graph *g, void *user, tutti_error **err) {
  (void)g, (void)user;
  return fail_with_cause(err);
}

static int32_t failing_hook(void *user, const tutti_hook_event *event, tutti_error **err) {
  (void)user;
  return tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP ? fail_with_cause(err) : TUTTI_OK;
}

static int32_t failing_map(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                           tutti_error **err) {
  pthread_t *caller = user;
  (void)inputs, (void)outputs, (void)count;
  if (pthread_equal(*caller, pthread_self())) return tutti_error_set(err, TUTTI_INTERNAL, "on the caller's thread");
  return fail_with_cause(err);
}

static void check_arrived(const char *from, int32_t code, tutti_error *error) {
  int shelf = 0, ship = 0;
  for (tutti_error *e = error; e != NULL; e = tutti_error_get_cause(e)) {
    int after_shelf = shelf;
    if (strcmp(tutti_error_get_message(e), "the shelf is empty") == 0)
      shelf = tutti_error_get_code(e) == TUTTI_UNAVAILABLE && strcmp(tutti_error_get_domain(e), "user") == 0;
    if (strcmp(tutti_error_get_message(e), "the ship sank") == 0)
      ship = after_shelf && tutti_error_get_code(e) == TUTTI_DATA_LOSS &&
             strcmp(tutti_error_get_domain(e), "harbour") == 0 && tutti_error_get_cause(e) == NULL;
  }
  if (code != TUTTI_UNAVAILABLE || !shelf || !ship) {
    print_error("%s: code %d: %s\n", from, (int)code, error != NULL ? tutti_error_get_text(error) : "no error");
    assert_true(0);
  }
  tutti_error_unref(error);
}

static void test_model_function(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(16, 8, 1);
  tutti_estimator *estimator = NULL;
  tutti_error *error = NULL;
  assert_ok(tutti_estimator_create(NULL, failing_model, NULL, NULL, NULL, NULL, &estimator, &err));
  int32_t code = tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error);
  check_arrived("the model function", code, error);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_hook(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(16, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_hooks *hooks = NULL;
  tutti_error *error = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, failing_hook, NULL, NULL, 1, &err));
  int32_t code = tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, NULL, &error);
  check_arrived("a hook", code, error);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_map_and_filter_graphs(void **state) {
  (void)state;
  for (int filter = 0; filter < 2; filter++) {
    tutti_dataset *source = counting_dataset(4), *dataset = NULL;
    tutti_pipeline *pipeline = NULL;
    tutti_error *error = NULL;
    assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
    tutti_pipeline_add_dataset(pipeline, source);
    if (filter) tutti_pipeline_filter_graph(pipeline, failing_graph, NULL);
    if (!filter) tutti_pipeline_map_graph(pipeline, failing_graph, NULL, 1);
    int32_t code = tutti_pipeline_build(pipeline, &dataset, &error);
    check_arrived(filter ? "a filter" : "a map as graph", code, error);
    tutti_pipeline_unref(pipeline);
    tutti_dataset_unref(source);
  }
}

/* The map runs on threads of the library: behind a prefetch, read by an iterator, by training and by a stream. */
static void test_map_on_a_library_thread(void **state) {
  (void)state;
  pthread_t caller = pthread_self();
  tutti_dataset *source = toy_dataset(16, 8, 1), *dataset = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, source);
  tutti_pipeline_map(pipeline, failing_map, &caller, NULL, 2);
  tutti_pipeline_prefetch(pipeline, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));

  tutti_iterator *iterator = NULL;
  tutti_error *error = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  int32_t code = tutti_iterator_next(iterator, NULL, &more, &error);
  check_arrived("a map, through an iterator", code, error);
  tutti_iterator_unref(iterator);

  tutti_estimator *estimator = toy_estimator(NULL);
  error = NULL;
  code = tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error);
  check_arrived("a map, through train", code, error);

  train(estimator, source, "{\"steps\": 1}");
  tutti_predictor *predictor = NULL;
  tutti_prediction_stream *stream = NULL;
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
  error = NULL;
  code = tutti_prediction_stream_next(stream, NULL, &batch, &error);
  check_arrived("a map, through a stream", code, error);
  error = NULL;
  code = tutti_predictor_run_all(predictor, dataset, NULL, &batch, &error);
  check_arrived("a map, through run_all", code, error);
  tutti_prediction_stream_unref(stream), tutti_predictor_unref(predictor), tutti_estimator_unref(estimator);
  tutti_pipeline_unref(pipeline), tutti_dataset_unref(dataset), tutti_dataset_unref(source);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_model_function),
    cmocka_unit_test(test_hook),
    cmocka_unit_test(test_map_and_filter_graphs),
    cmocka_unit_test(test_map_on_a_library_thread),
};
CAPI_TEST_MAIN(tests)
