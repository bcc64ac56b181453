/* SPDX-License-Identifier: Apache-2.0
 * Handles in any order of release, in loops, and from many threads: nothing is left over. With the address sanitizer
 * this is the leak test too. */
#include <pthread.h>

#include "capi_testing.h"

/* One of each, depending on each other. */
enum kind {
  CONTEXT,
  STRATEGY,
  TENSOR,
  PIPELINE,
  DATASET,
  ITERATOR,
  ESTIMATOR,
  PREDICTOR,
  STREAM,
  BATCH,
  OUTPUT,
  RESULT,
  KINDS
};

struct everything {
  void *handles[KINDS];
};

static tutti_context *small_context(void) {
  tutti_options *options = make_options("context", "{\"logical_devices\": 2}");
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

static tutti_dataset *small_dataset(tutti_context *context, tutti_tensor **tensor, tutti_pipeline **pipeline) {
  float x[12][4];
  int32_t y[12];
  for (int i = 0; i < 12; i++)
    toy_row(i, x[i], &y[i]);
  int64_t dims[] = {12, 4};
  *tensor = make_tensor(TUTTI_DTYPE_F32, 2, dims, x);
  tutti_tensor *labels = make_vector(TUTTI_DTYPE_I32, 12, y);
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, pipeline, &err));
  tutti_pipeline_add_slices(*pipeline, "x", TUTTI_ROLE_FEATURE, *tensor);
  tutti_pipeline_add_slices(*pipeline, "y", TUTTI_ROLE_LABEL, labels);
  tutti_pipeline_shuffle(*pipeline, 4, NULL);
  tutti_pipeline_batch(*pipeline, 4, NULL);
  tutti_pipeline_prefetch(*pipeline, NULL);
  assert_ok(tutti_pipeline_build(*pipeline, &dataset, &err));
  tutti_tensor_unref(labels);
  return dataset;
}

static struct everything make_everything(void) {
  tutti_context *context = small_context();
  tutti_strategy *strategy = NULL;
  tutti_tensor *tensor = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_iterator *iterator = NULL;
  tutti_estimator *estimator = NULL;
  tutti_predictor *predictor = NULL;
  tutti_prediction_stream *stream = NULL;
  tutti_batch *batch = NULL;
  tutti_result *result = NULL;
  uint8_t more = 0;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  tutti_dataset *dataset = small_dataset(context, &tensor, &pipeline);
  assert_ok(tutti_iterator_create(dataset, 1, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
  assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
  tutti_tensor *output = tutti_batch_get_output(batch, "logits");
  tutti_tensor_ref(output);
  struct everything all = {
      {context, strategy, tensor, pipeline, dataset, iterator, estimator, predictor, stream, batch, output, result}};
  return all;
}

static void drop(struct everything *all, enum kind kind) {
  void *handle = all->handles[kind];
  switch (kind) {
    case CONTEXT:
      tutti_context_unref(handle);
      break;
    case STRATEGY:
      tutti_strategy_unref(handle);
      break;
    case TENSOR:
    case OUTPUT:
      tutti_tensor_unref(handle);
      break;
    case PIPELINE:
      tutti_pipeline_unref(handle);
      break;
    case DATASET:
      tutti_dataset_unref(handle);
      break;
    case ITERATOR:
      tutti_iterator_unref(handle);
      break;
    case ESTIMATOR:
      tutti_estimator_unref(handle);
      break;
    case PREDICTOR:
      tutti_predictor_unref(handle);
      break;
    case STREAM:
      tutti_prediction_stream_unref(handle);
      break;
    case BATCH:
      tutti_batch_unref(handle);
      break;
    case RESULT:
      tutti_result_unref(handle);
      break;
    case KINDS:
      break;
  }
}

static void test_any_order_of_release(void **state) {
  (void)state;
  int64_t before = tutti_debug_live_objects(NULL);
  /* 5, 7 and 11 have no factor in common with 12: each stride visits all of them in another order. */
  static const int strides[] = {1, 5, 7, 11};
  for (int order = 0; order < 8; order++) {
    struct everything all = make_everything();
    for (int i = 0; i < KINDS; i++)
      drop(&all, (enum kind)((i * strides[order % 4] + order) % KINDS));
    assert_int_equal(tutti_debug_live_objects(NULL), before);
  }
}

static void test_downstream_works_without_upstream(void **state) {
  (void)state;
  struct everything all = make_everything();
  static const enum kind upstream[] = {CONTEXT, STRATEGY, TENSOR, PIPELINE, DATASET, ESTIMATOR, PREDICTOR, BATCH};
  for (int i = 0; i < 8; i++)
    drop(&all, upstream[i]);
  uint8_t more = 0;
  tutti_batch *batch = NULL;
  assert_ok(tutti_iterator_next(all.handles[ITERATOR], NULL, &more, &err));
  assert_true(more);
  assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(all.handles[ITERATOR], 0), 1), 4);
  assert_ok(tutti_prediction_stream_next(all.handles[STREAM], NULL, &batch, &err));
  assert_int_equal(tutti_batch_get_row_count(batch), 4);
  tutti_batch_unref(batch);
  assert_int_equal(tutti_tensor_get_dim(all.handles[OUTPUT], 0), 4);
  drop(&all, ITERATOR), drop(&all, STREAM), drop(&all, OUTPUT), drop(&all, RESULT);
}

static void test_loops(void **state) {
  (void)state;
  int64_t before = tutti_debug_live_objects(NULL);
  for (int i = 0; i < 200; i++) {
    tutti_options *options = make_options("run", "{\"seed\": 1}");
    tutti_cancel *cancel = NULL;
    tutti_hooks *hooks = NULL;
    tutti_feed *feed = NULL;
    tutti_tensor *tensor = NULL;
    tutti_pipeline *pipeline = NULL;
    tutti_estimator *estimator = NULL;
    assert_ok(tutti_cancel_create(&cancel, &err));
    assert_ok(tutti_hooks_create(&hooks, &err));
    assert_ok(tutti_feed_create(NULL, 3, &feed, &err));
    assert_ok(tutti_estimator_create(NULL, toy_model, NULL, NULL, NULL, options, &estimator, &err));
    tutti_dataset *dataset = small_dataset(NULL, &tensor, &pipeline);
    tutti_options_unref(options), tutti_cancel_unref(cancel), tutti_hooks_unref(hooks), tutti_feed_unref(feed);
    tutti_tensor_unref(tensor), tutti_pipeline_unref(pipeline), tutti_dataset_unref(dataset);
    tutti_estimator_unref(estimator);
  }
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

enum { THREADS = 4, ROUNDS = 3000 };

static void *count_references(void *user) {
  for (int i = 0; i < ROUNDS; i++) {
    tutti_tensor_ref(user);
    if (tutti_tensor_get_rank(user) != 2) return user; /* a failure */
    tutti_tensor_unref(user);
    tutti_cancel *own = NULL;
    if (tutti_cancel_create(&own, NULL) != TUTTI_OK) return user;
    tutti_cancel_unref(own);
    if (tutti_cancel_get_state(own) != TUTTI_CANCEL_NONE) return user; /* stale: harmless */
  }
  return NULL;
}

static void test_references_from_many_threads(void **state) {
  (void)state;
  int64_t dims[] = {2, 2};
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_create(TUTTI_DTYPE_F32, dims, 2, &tensor, &err));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, count_references, tensor), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failure = NULL;
    assert_int_equal(pthread_join(threads[i], &failure), 0);
    assert_null(failure);
  }
  assert_int_equal(tutti_tensor_get_rank(tensor), 2);
  tutti_tensor_unref(tensor);
  assert_int_equal(tutti_tensor_get_rank(tensor), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_any_order_of_release),
    cmocka_unit_test(test_downstream_works_without_upstream),
    cmocka_unit_test(test_loops),
    cmocka_unit_test(test_references_from_many_threads),
};
CAPI_TEST_MAIN(tests)
