/* SPDX-License-Identifier: Apache-2.0
 * What eight layers learn that begin with weights far too large, and what they learn with layer_norm (Ba et al., 2016)
 * between them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>
enum { ROWS = 1024, LAYERS = 8 };
static float x[ROWS][2], y[ROWS][1];
static tutti_error *err;
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  const int is_normalized = *(const int *)user;
  tutti_value z = tutti_graph_get_feature(g, "x");
  tutti_layer_dense_attrs large = {.kernel_initializer = "variance_scaling(scale=300)"};
  for (int layer = 0; layer < LAYERS; layer++) {
    z = tutti_layer_dense(g, z, 32, &large);
    z = tutti_tanh(g, is_normalized ? tutti_layer_layer_norm(g, z, NULL) : z);
  }
  z = tutti_layer_dense(g, z, 1, NULL);
  tutti_graph_set_output(g, "y", z);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, error);
  tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, z, tutti_graph_get_label(g, "y"), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, error);
}
/* The loss over all rows after some passes. */
static int try_model(const tutti_dataset *dataset, int is_normalized) {
  tutti_estimator *estimator = NULL;
  tutti_options *options = NULL, *run = NULL;
  tutti_result *trained = NULL, *result = NULL;
  int failed = tutti_options_create("train", &options, &err) || (tutti_options_set_i64(options, "epochs", 20), 0) ||
               tutti_options_create("run", &run, &err) || (tutti_options_set_i64(run, "seed", 1), 0) ||
               tutti_estimator_create(NULL, model, &is_normalized, NULL, NULL, run, &estimator, &err) ||
               tutti_estimator_train(estimator, dataset, options, NULL, NULL, &trained, &err) ||
               tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err);
  if (!failed) printf("%s layer_norm: loss %.4f\n", is_normalized ? "with" : "without", tutti_result_get_loss(result));
  tutti_result_unref(trained), tutti_result_unref(result), tutti_options_unref(options), tutti_options_unref(run);
  return tutti_estimator_unref(estimator), failed;
}
int main(void) {
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < 2; j++)
      x[i][j] = 2 * (float)rand() / (float)RAND_MAX - 1;
    y[i][0] = sinf(3 * x[i][0]) * x[i][1];
  }
  tutti_tensor *inputs = NULL, *targets = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  int failed = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, 2}, 2, x, sizeof x, &inputs, &err) ||
               tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, 1}, 2, y, sizeof y, &targets, &err) ||
               tutti_pipeline_create(NULL, &pipeline, &err);
  if (!failed) tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, inputs);
  if (!failed) tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, targets);
  if (!failed) tutti_pipeline_shuffle(pipeline, ROWS, NULL), tutti_pipeline_batch(pipeline, 64, NULL);
  failed = failed || tutti_pipeline_build(pipeline, &dataset, &err) || try_model(dataset, 0) || try_model(dataset, 1);
  if (failed) fprintf(stderr, "%s\n", tutti_error_get_text(err)), tutti_error_unref(err);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_tensor_unref(inputs), tutti_tensor_unref(targets);
  return failed != 0;
}
