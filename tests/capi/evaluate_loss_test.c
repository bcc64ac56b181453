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

/* Compares the rows of a batch with each other. */
static int32_t mixing_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const tutti_matmul_attrs turned = {.transpose_b = 1};
  tutti_value rows = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 3, NULL);
  tutti_value pairs = tutti_matmul(g, rows, rows, &turned);
  (void)user;
  tutti_graph_set_output(g, "rows", rows);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_square(g, pairs), NULL));
  if (mode == TUTTI_MODE_TRAIN) tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1e-3), NULL);
  return tutti_graph_check(g, err);
}

static void check_mixing(tutti_error *error, const char *advice, const char *unasked) {
  const char *text = tutti_error_get_text(error);
  if (error == NULL || strstr(text, advice) == NULL || strstr(text, unasked) != NULL) {
    print_error("expected \"%s\" without \"%s\": %s\n", advice, unasked, text != NULL ? text : "no error");
    fail();
  }
  assert_int_equal(tutti_error_get_code(error), TUTTI_INVALID_ARGUMENT);
  tutti_error_unref(error);
}

/* What is said is what was asked for, and what to do. */
static void test_a_loss_that_mixes_rows(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 2; replicas++) {
    for (int steps = 1; steps <= 2; steps++) {
      char run[64];
      snprintf(run, sizeof run, "{\"accumulation_steps\": %d}", steps);
      tutti_context *context = NULL;
      tutti_estimator *estimator = dense_estimator(mixing_model, NULL, replicas, run, &context);
      tutti_dataset *dataset = dense_dataset(context, 8, 4, 0);
      tutti_error *error = NULL;
      if (replicas * steps == 1)
        assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
      else
        assert_int_not_equal(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error), TUTTI_OK);
      if (replicas == 2) check_mixing(error, "in 2 parts of its batch", steps == 1 ? "micro-batch" : "evaluation");
      if (replicas == 1 && steps == 2) check_mixing(error, "in 2 micro-batches", "parts of its batch");
      error = NULL;
      if (replicas * steps == 1) {
        assert_int_not_equal(tutti_estimator_evaluate(estimator, dataset, 0, NULL, NULL, &error), TUTTI_OK);
        check_mixing(error, "or leave them out in mode EVAL", "micro-batch");
      }
      tutti_dataset_unref(dataset), tutti_estimator_unref(estimator), tutti_context_unref(context);
    }
  }
}

static void keep_line(void *user, int32_t severity, const char *text) {
  (void)severity;
  if (strstr(text, "mixes the rows") != NULL) snprintf(user, 200, "%s", text);
}

/* Where the library has chosen the devices it chooses one for such a model, and trains it as that one does. */
static void test_without_a_strategy_one_device_trains_it(void **state) {
  (void)state;
  char said[200] = "";
  float weights[2][DENSE_FEATURES * 3];
  for (int chosen = 0; chosen < 2; chosen++) {
    tutti_context *context = NULL;
    tutti_options *options = make_options("context", "{\"backend\": \"reference\", \"logical_devices\": 3}");
    tutti_options *run = make_options("run", "{\"seed\": 3}");
    tutti_strategy *one = NULL;
    tutti_estimator *estimator = NULL;
    tutti_tensor *kernel = NULL;
    tutti_result *result = NULL;
    assert_ok(tutti_context_create(options, &context, &err));
    assert_ok(tutti_context_set_log(context, keep_line, said, NULL, TUTTI_LOG_INFO, &err));
    assert_ok(tutti_strategy_create_one_device(context, NULL, &one, &err));
    assert_ok(tutti_estimator_create(context, mixing_model, NULL, NULL, chosen ? NULL : one, run, &estimator, &err));
    tutti_dataset *dataset = dense_dataset(context, 8, 4, 0);
    for (int pass = 0; pass < 2; pass++)
      assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, pass == 0 ? &result : NULL, &err));
    assert_true(strstr(tutti_result_get_step_report(result), "\"replicas\":1") != NULL);
    assert_int_equal(said[0] != '\0', chosen);
    assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &kernel, &err));
    memcpy(weights[chosen], tutti_tensor_get_data(kernel), sizeof weights[0]);
    tutti_tensor_unref(kernel), tutti_result_unref(result), tutti_dataset_unref(dataset);
    tutti_estimator_unref(estimator), tutti_strategy_unref(one), tutti_options_unref(run);
    tutti_options_unref(options), tutti_context_unref(context);
  }
  assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_mean_over_examples),
    cmocka_unit_test(test_errors_name_the_batch),
    cmocka_unit_test(test_the_name_is_taken),
    cmocka_unit_test(test_a_loss_that_mixes_rows),
    cmocka_unit_test(test_without_a_strategy_one_device_trains_it),
};
CAPI_TEST_MAIN(tests)
