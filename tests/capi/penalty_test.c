/* SPDX-License-Identifier: Apache-2.0
 * Penalties on kernels (kernel_l1, kernel_l2): once in the loss whatever the number of replicas and micro-batches, and
 * in the gradient, against numbers worked out here in double; and of every layer that has them. */
#include <math.h>
#include <string.h>

#include "dense_fixtures.h"

enum { ROWS = 7, STEPS = 4 };
static const double l1 = 0.01, l2 = 0.03, rate = 0.2;

/* --- one dense layer ---------------------------------------------------------------------------------------------- */

static int32_t penalized(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const tutti_layer_dense_attrs attrs = {.kernel_l1 = l1, .kernel_l2 = l2};
  (void)user;
  const tutti_value logits = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), DENSE_CLASSES, &attrs);
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, rate), NULL);
  return tutti_graph_check(g, err);
}

static void read_parameters(tutti_estimator *estimator, float out[DENSE_PARAMETERS]) {
  tutti_tensor *kernel, *bias;
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &kernel, &err));
  assert_ok(tutti_estimator_read_variable(estimator, "dense/bias", &bias, &err));
  memcpy(out, tutti_tensor_get_data(kernel), sizeof(float) * DENSE_KERNEL);
  memcpy(out + DENSE_KERNEL, tutti_tensor_get_data(bias), sizeof(float) * DENSE_CLASSES);
  tutti_tensor_unref(kernel), tutti_tensor_unref(bias);
}

/* The loss of a step, which then is made. */
static double expect_step(float w[DENSE_PARAMETERS], int64_t first) {
  double gradient[DENSE_PARAMETERS];
  double loss = dense_gradient(w, first, ROWS, gradient);
  for (int i = 0; i < DENSE_KERNEL; i++) {
    loss += l1 * fabs(w[i]) + l2 * w[i] * w[i];
    gradient[i] += l1 * (w[i] > 0 ? 1 : -1) + 2 * l2 * w[i];
  }
  for (int i = 0; i < DENSE_PARAMETERS; i++)
    w[i] = (float)(w[i] - rate * gradient[i]);
  return loss;
}

static void train(int replicas, int micro_batches) {
  char run[64];
  float expected[DENSE_PARAMETERS], got[DENSE_PARAMETERS];
  tutti_context *context;
  snprintf(run, sizeof run, "{\"accumulation_steps\": %d}", micro_batches);
  tutti_estimator *estimator = dense_estimator(penalized, NULL, replicas, run, &context);
  tutti_dataset *rows = dense_dataset(context, ROWS * STEPS, ROWS / micro_batches, 0);
  tutti_result *result;
  double loss = 0;
  assert_ok(tutti_estimator_initialize(estimator, rows, NULL, NULL, &err));
  read_parameters(estimator, expected);
  for (int step = 0; step < STEPS; step++)
    loss = expect_step(expected, step * ROWS);
  assert_ok(tutti_estimator_train(estimator, rows, NULL, NULL, NULL, &result, &err));
  assert_true(fabs(tutti_result_get_loss(result) - loss) < 2e-6);
  read_parameters(estimator, got);
  check_near(got, expected, DENSE_PARAMETERS, 2e-6f, "parameters");
  tutti_result_unref(result), tutti_estimator_unref(estimator);
  tutti_dataset_unref(rows), tutti_context_unref(context);
}

static void test_training(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    train(replicas, 1);
    train(replicas, ROWS);
  }
}

/* --- every layer with a kernel ------------------------------------------------------------------------------------ */

struct layer {
  const char *op, *parameter;
  int64_t rank;
};
static const struct layer layers[] = {
    {"layer_dense", "units", 2},
    {"layer_conv2d", "filters", 4},
    {"layer_depthwise_conv2d", "", 4},
    {"layer_separable_conv2d", "filters", 4},
    {"layer_multi_head_attention", "heads", 3},
    {"layer_rnn", "units", 3},
    {"layer_lstm", "units", 3},
    {"layer_gru", "units", 3},
};
enum { LAYERS = sizeof layers / sizeof *layers, SIDE = 4, CHANNELS = 6 };

struct penalty_case {
  const struct layer *layer;
  double l1, l2;
};

static int32_t layer_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct penalty_case *const one = user;
  tutti_graph_begin(g, one->layer->op, 1);
  tutti_graph_add_input(g, tutti_graph_get_feature(g, "x"));
  if (one->layer->parameter[0] != '\0') tutti_graph_set_i64(g, one->layer->parameter, 2);
  if (one->layer->rank == 4) tutti_graph_set_i64(g, "size", 3);
  tutti_graph_set_f64(g, "kernel_l1", one->l1);
  tutti_graph_set_f64(g, "kernel_l2", one->l2);
  const tutti_value y = tutti_graph_end(g, NULL, 0);
  tutti_graph_set_output(g, "y", y);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_square(g, y), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0), NULL);
  return tutti_graph_check(g, err);
}

static tutti_dataset *make_dataset(int64_t rank) {
  const int64_t dims[] = {2, rank == 2 ? CHANNELS : SIDE, rank == 3 ? CHANNELS : SIDE, CHANNELS};
  float values[2 * SIDE * SIDE * CHANNELS];
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    values[i] = (float)(i * 7 % 13) / 6 - 1;
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, rank, dims, values);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_batch(pipeline, 1, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x);
  return dataset;
}

/* The loss of an evaluation; `sums` receives those of all kernels of inputs, absolute and squared. */
static double evaluate(struct penalty_case one, double sums[2]) {
  tutti_dataset *dataset = make_dataset(one.layer->rank);
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_create(NULL, layer_model, &one, NULL, NULL, NULL, &estimator, &err));
  assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
  assert_ok(tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err));
  const double loss = tutti_result_get_loss(result);
  sums[0] = sums[1] = 0;
  for (int64_t i = 0; i < tutti_estimator_get_variable_count(estimator); i++) {
    const char *const name = tutti_estimator_get_variable_name(estimator, i);
    if (strstr(name, "kernel") == NULL || strstr(name, "recurrent") != NULL) continue;
    tutti_tensor *value;
    assert_ok(tutti_estimator_read_variable(estimator, name, &value, &err));
    const float *const x = tutti_tensor_get_data(value);
    for (int64_t k = 0; k < tutti_tensor_get_element_count(value); k++)
      sums[0] += fabs(x[k]), sums[1] += (double)x[k] * x[k];
    tutti_tensor_unref(value);
  }
  tutti_result_unref(result), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  return loss;
}

static void test_layers(void **state) {
  (void)state;
  for (int i = 0; i < LAYERS; i++) {
    double sums[2];
    const double plain = evaluate((struct penalty_case){&layers[i], 0, 0}, sums);
    const double loss = evaluate((struct penalty_case){&layers[i], l1, l2}, sums);
    assert_true(sums[0] > 0);
    if (!(fabs(loss - plain - l1 * sums[0] - l2 * sums[1]) < 1e-5))
      fail_msg("%s: the penalty is %g, expected %g", layers[i].op, loss - plain, l1 * sums[0] + l2 * sums[1]);
  }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_training), cmocka_unit_test(test_layers)};
CAPI_TEST_MAIN(tests)
