/* SPDX-License-Identifier: Apache-2.0
 * The loss of an evaluation: the mean over all examples, whatever the batch size, the last batch and the number of
 * replicas. */
#include <math.h>

#include "dense_fixtures.h"

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  struct dense_model dense = build_dense(g, mode);
  if (mode != TUTTI_MODE_PREDICT)
    tutti_metric_accuracy(g, user != NULL ? user : "accuracy", dense.logits, tutti_graph_get_label(g, "y"), NULL);
  if (mode == TUTTI_MODE_TRAIN) tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5), NULL);
  return tutti_graph_check(g, err);
}

static void test_mean_over_examples(void **state) {
  (void)state;
  static const int64_t batches[] = {1, 7, 32, 50, 64};
  for (int replicas = 1; replicas <= 3; replicas++) {
    tutti_context *context = NULL;
    tutti_estimator *estimator = dense_estimator(model, NULL, replicas, "{}", &context);
    tutti_dataset *dataset = dense_dataset(context, 50, 10, 1);
    tutti_options *options = make_options("train", "{\"steps\": 5}");
    assert_ok(tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, &err));
    float parameters[DENSE_PARAMETERS];
    double gradient[DENSE_PARAMETERS];
    read_dense(estimator, parameters);
    const double expected = dense_gradient(parameters, 0, 50, gradient);
    double accuracy = NAN;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
      tutti_dataset *test = dense_dataset(context, 50, batches[i], 0);
      tutti_result *result = NULL;
      assert_ok(tutti_estimator_evaluate(estimator, test, 0, NULL, &result, &err));
      assert_int_equal(tutti_result_get_examples(result), 50);
      assert_true(fabs(tutti_result_get_loss(result) - expected) < 1e-5);
      assert_true(tutti_result_get_metric(result, "loss") == tutti_result_get_loss(result));
      if (i == 0) accuracy = tutti_result_get_metric(result, "accuracy");
      assert_true(tutti_result_get_metric(result, "accuracy") == accuracy);
      assert_true(isnan(tutti_result_get_metric(result, "los")));
      tutti_result_unref(result);
      tutti_dataset_unref(test);
    }
    tutti_options_unref(options);
    tutti_dataset_unref(dataset);
    tutti_estimator_unref(estimator);
    tutti_context_unref(context);
  }
}

enum { MOST_ROWS = 4 };

/* A batch of toy_row(), all of whose labels are `label` where that is not negative. */
static void push(tutti_feed *feed, int64_t rows, int32_t label) {
  float values[MOST_ROWS][DENSE_FEATURES];
  int32_t labels[MOST_ROWS];
  for (int64_t i = 0; i < rows; i++) {
    toy_row(i, values[i], &labels[i]);
    if (label >= 0) labels[i] = label;
  }
  const int64_t dims[] = {rows, DENSE_FEATURES};
  tutti_tensor *batch[] = {make_tensor(TUTTI_DTYPE_F32, 2, dims, values), make_vector(TUTTI_DTYPE_I32, rows, labels)};
  assert_ok(tutti_feed_push(feed, batch, 2, NULL, &err));
  tutti_tensor_unref(batch[0]), tutti_tensor_unref(batch[1]);
}

static tutti_dataset *fed_dataset(tutti_context *context, tutti_feed **feed) {
  const int64_t features = DENSE_FEATURES;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_feed_create(context, 8, feed, &err));
  assert_ok(tutti_feed_declare(*feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &features, 1, &err));
  assert_ok(tutti_feed_declare(*feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, &err));
  assert_ok(tutti_feed_set_batch_size(*feed, MOST_ROWS, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, *feed);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static void test_errors_name_the_batch(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 2; replicas++) {
    tutti_context *context = NULL;
    tutti_estimator *estimator = dense_estimator(model, NULL, replicas, "{}", &context);
    tutti_dataset *dataset = dense_dataset(context, 8, 8, 0);
    assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
    for (int is_read = 0; is_read <= 1; is_read++) {
      tutti_feed *feed = NULL;
      tutti_dataset *fed = fed_dataset(context, &feed);
      push(feed, MOST_ROWS, -1);
      push(feed, 1, -1);
      if (is_read) {
        assert_ok(tutti_feed_fail(feed, TUTTI_DATA_LOSS, "the disk is broken", &err));
        assert_error(TUTTI_DATA_LOSS, "reading batch 3 of the input failed",
                     tutti_estimator_evaluate(estimator, fed, 0, NULL, NULL, &err));
      } else {
        push(feed, 3, 7);
        push(feed, 2, -1);
        assert_ok(tutti_feed_finish(feed, &err));
        assert_error(TUTTI_INVALID_ARGUMENT, "batch=3]", tutti_estimator_evaluate(estimator, fed, 0, NULL, NULL, &err));
      }
      tutti_feed_unref(feed), tutti_dataset_unref(fed);
    }
    tutti_dataset_unref(dataset), tutti_estimator_unref(estimator), tutti_context_unref(context);
  }
}

static void test_the_name_is_taken(void **state) {
  (void)state;
  static char name[] = "loss";
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(model, name, 1, "{}", &context);
  tutti_dataset *dataset = dense_dataset(context, 50, 10, 0);
  assert_error(TUTTI_ALREADY_EXISTS, "metric 'loss'",
               tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator);
  tutti_context_unref(context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_mean_over_examples),
    cmocka_unit_test(test_errors_name_the_batch),
    cmocka_unit_test(test_the_name_is_taken),
};
CAPI_TEST_MAIN(tests)
