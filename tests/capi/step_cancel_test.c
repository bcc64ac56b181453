/* SPDX-License-Identifier: Apache-2.0
 * A step, or the wait before it, that is held up by its input: the estimator tells how many are complete; after CANCEL
 * training returns, the weights are those of the last complete step, and the estimator trains on. */
#include <math.h>
#include <pthread.h>

#include "dense_fixtures.h"

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  build_dense(g, mode);
  if (mode == TUTTI_MODE_TRAIN) tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5), NULL);
  return tutti_graph_check(g, err);
}

/* A feed of rows, in batches of 5. */
static tutti_dataset *fed_dataset(tutti_context *context, tutti_feed **feed) {
  int64_t features = DENSE_FEATURES;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_feed_create(context, 64, feed, &err));
  assert_ok(tutti_feed_declare(*feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &features, 1, &err));
  assert_ok(tutti_feed_declare(*feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, *feed);
  tutti_pipeline_batch(pipeline, 5, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static void push_rows(tutti_feed *feed, int64_t count) {
  for (int64_t row = 0; row < count; row++) {
    float x[DENSE_FEATURES];
    int32_t label;
    toy_row(row, x, &label);
    tutti_tensor *components[] = {make_vector(TUTTI_DTYPE_F32, DENSE_FEATURES, x),
                                  make_tensor(TUTTI_DTYPE_I32, 0, NULL, &label)};
    assert_ok(tutti_feed_push(feed, components, 2, NULL, &err));
    tutti_tensor_unref(components[0]), tutti_tensor_unref(components[1]);
  }
}

/* Much more than the steps take. */
#ifdef __SANITIZE_THREAD__
enum { STEPS_END_US = 6000000 };
#else
enum { STEPS_END_US = 400000 };
#endif

static void *cancel_soon(void *user) {
  sleep_microseconds(STEPS_END_US);
  tutti_cancel_request(user, TUTTI_CANCEL_CANCEL, NULL);
  return NULL;
}

/* The feed holds `rows` rows, enough for `steps` steps, and does not end. */
static void check_cancel(int replicas, int accumulation, int64_t rows, int64_t steps) {
  char run[64];
  snprintf(run, sizeof run, "{\"accumulation_steps\": %d}", accumulation);
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(model, NULL, replicas, run, &context);
  tutti_feed *feed = NULL;
  tutti_dataset *dataset = fed_dataset(context, &feed), *whole = dense_dataset(context, 30, 5, 1);
  push_rows(feed, rows);
  tutti_cancel *cancel = NULL;
  assert_ok(tutti_cancel_create(&cancel, &err));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
  int32_t code = tutti_estimator_train(estimator, dataset, NULL, NULL, cancel, NULL, NULL);
  pthread_join(thread, NULL);
  assert_int_equal(code, TUTTI_CANCELLED);
  assert_int_equal(tutti_estimator_get_global_step(estimator), steps);
  /* The weights: those of `steps` whole steps, worked out from the ones now by going on. */
  float before[DENSE_PARAMETERS], after[DENSE_PARAMETERS], expected[DENSE_PARAMETERS];
  double gradient[DENSE_PARAMETERS];
  read_dense(estimator, before);
  tutti_options *options = make_options("train", "{\"steps\": 1}");
  assert_ok(tutti_estimator_train(estimator, whole, options, NULL, NULL, NULL, &err));
  assert_int_equal(tutti_estimator_get_global_step(estimator), steps + 1);
  read_dense(estimator, after);
  dense_gradient(before, 0, 5 * accumulation, gradient);
  for (int p = 0; p < DENSE_PARAMETERS; p++)
    expected[p] = before[p] - (float)(0.5 * gradient[p]);
  check_near(after, expected, DENSE_PARAMETERS, 1e-5f, "the step after");
  tutti_options_unref(options);
  tutti_cancel_unref(cancel);
  tutti_dataset_unref(dataset), tutti_dataset_unref(whole);
  tutti_feed_unref(feed);
  tutti_estimator_unref(estimator);
  tutti_context_unref(context);
}

static void test_input_that_does_not_come(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    check_cancel(replicas, 1, 10, 2); /* between two steps */
    check_cancel(replicas, 1, 12, 2); /* half a batch is there */
    check_cancel(replicas, 3, 20, 1); /* one micro-batch of the second step is there */
    check_cancel(replicas, 3, 25, 1); /* two of three */
  }
}

struct run {
  tutti_estimator *estimator;
  tutti_dataset *dataset;
  tutti_cancel *cancel;
  int32_t code;
};

static void *train(void *user) {
  struct run *run = user;
  run->code = tutti_estimator_train(run->estimator, run->dataset, NULL, NULL, run->cancel, NULL, NULL);
  return NULL;
}

static void test_completed_steps_are_told(void **state) {
  (void)state;
  tutti_context *context = NULL;
  tutti_feed *feed = NULL;
  struct run run = {.estimator = dense_estimator(model, NULL, 2, "{}", &context)};
  run.dataset = fed_dataset(context, &feed);
  assert_ok(tutti_cancel_create(&run.cancel, &err));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, train, &run), 0);
  for (int64_t steps = 1; steps <= 5; steps++) {
    push_rows(feed, 5);
    for (int wait = 0; wait < 20000 && tutti_estimator_get_global_step(run.estimator) != steps; wait++)
      sleep_microseconds(1000);
    assert_int_equal(tutti_estimator_get_global_step(run.estimator), steps);
  }
  assert_ok(tutti_cancel_request(run.cancel, TUTTI_CANCEL_CANCEL, &err));
  pthread_join(thread, NULL);
  assert_int_equal(run.code, TUTTI_CANCELLED);
  assert_int_equal(tutti_estimator_get_global_step(run.estimator), 5);
  tutti_cancel_unref(run.cancel);
  tutti_dataset_unref(run.dataset);
  tutti_feed_unref(feed);
  tutti_estimator_unref(run.estimator);
  tutti_context_unref(context);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_input_that_does_not_come),
                                          cmocka_unit_test(test_completed_steps_are_told)};
CAPI_TEST_MAIN(tests)
