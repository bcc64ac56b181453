/* SPDX-License-Identifier: Apache-2.0 */
#include "dense_fixtures.h"

#include <math.h>
#include <stdlib.h>

struct dense_model build_dense(tutti_graph *g, int32_t mode) {
  int64_t kernel_dims[] = {DENSE_FEATURES, DENSE_CLASSES}, bias_dims[] = {DENSE_CLASSES};
  struct dense_model model = {.loss = tutti_no_value()};
  model.variables[0] = tutti_graph_variable(g, "kernel", TUTTI_DTYPE_F32, kernel_dims, 2, "glorot_uniform", 0, 1);
  model.variables[1] = tutti_graph_variable(g, "bias", TUTTI_DTYPE_F32, bias_dims, 1, "zeros", 0, 1);
  tutti_value product = tutti_matmul(g, tutti_graph_get_feature(g, "x"), model.variables[0], NULL);
  model.logits = tutti_add(g, product, model.variables[1]);
  tutti_graph_set_output(g, "logits", model.logits);
  if (mode == TUTTI_MODE_PREDICT) return model;
  model.loss = tutti_loss_sparse_softmax_cross_entropy(g, model.logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_graph_set_loss(g, model.loss);
  return model;
}

const char *dense_plugin;

tutti_estimator *dense_estimator(tutti_model_fn model, void *user, int replicas, const char *run,
                                 tutti_context **context) {
  char json[512];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  if (dense_plugin != NULL)
    snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": %d}", dense_plugin, replicas);
  tutti_options *context_options = make_options("context", json), *options = make_options("run", run);
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_context_create(context_options, context, &err));
  assert_ok(tutti_strategy_create_mirrored(*context, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), replicas);
  assert_ok(tutti_estimator_create(*context, model, user, NULL, strategy, options, &estimator, &err));
  tutti_options_unref(context_options), tutti_options_unref(options);
  tutti_strategy_unref(strategy);
  return estimator;
}

tutti_dataset *dense_dataset(tutti_context *context, int64_t rows, int64_t batch, int endless) {
  float(*values)[DENSE_FEATURES] = malloc((size_t)rows * sizeof *values);
  int32_t *labels = malloc((size_t)rows * sizeof *labels);
  for (int64_t i = 0; i < rows; i++)
    toy_row(i, values[i], &labels[i]);
  int64_t dims[] = {rows, DENSE_FEATURES};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, values), *y = make_vector(TUTTI_DTYPE_I32, rows, labels);
  free(values), free(labels);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  if (endless) tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(x), tutti_tensor_unref(y);
  return dataset;
}

void read_dense(tutti_estimator *estimator, float out[DENSE_PARAMETERS]) {
  static const char *const names[] = {"kernel", "bias"};
  for (int i = 0; i < 2; i++) {
    tutti_tensor *tensor = NULL;
    assert_ok(tutti_estimator_read_variable(estimator, names[i], &tensor, &err));
    int64_t count = tutti_tensor_get_element_count(tensor);
    memcpy(out, tutti_tensor_get_data(tensor), (size_t)count * sizeof *out);
    out += count;
    tutti_tensor_unref(tensor);
  }
}

double dense_gradient(const float parameters[DENSE_PARAMETERS], int64_t first, int64_t rows,
                      double gradient[DENSE_PARAMETERS]) {
  double loss = 0;
  memset(gradient, 0, DENSE_PARAMETERS * sizeof *gradient);
  for (int64_t row = first; row < first + rows; row++) {
    float x[DENSE_FEATURES];
    int32_t label;
    toy_row(row, x, &label);
    double logits[DENSE_CLASSES], sum = 0;
    for (int c = 0; c < DENSE_CLASSES; c++) {
      logits[c] = (double)parameters[DENSE_KERNEL + c];
      for (int f = 0; f < DENSE_FEATURES; f++)
        logits[c] += (double)x[f] * (double)parameters[f * DENSE_CLASSES + c];
      sum += exp(logits[c]);
    }
    loss += (log(sum) - logits[label]) / (double)rows;
    for (int c = 0; c < DENSE_CLASSES; c++) {
      double d = (exp(logits[c]) / sum - (c == label ? 1 : 0)) / (double)rows;
      for (int f = 0; f < DENSE_FEATURES; f++)
        gradient[f * DENSE_CLASSES + c] += d * (double)x[f];
      gradient[DENSE_KERNEL + c] += d;
    }
  }
  return loss;
}

void check_near(const float *got, const float *expected, int64_t count, float tolerance, const char *what) {
  for (int64_t i = 0; i < count; i++) {
    if (!(fabsf(got[i] - expected[i]) <= tolerance)) {
      print_error("%s: number %d is %.9g, expected %.9g\n", what, (int)i, (double)got[i], (double)expected[i]);
      assert_true(0);
    }
  }
}
