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
    cmocka_unit_test(test_the_name_is_taken),
};
CAPI_TEST_MAIN(tests)
