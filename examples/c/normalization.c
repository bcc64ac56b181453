/* SPDX-License-Identifier: Apache-2.0
 * What eight layers learn whose weights begin far too large: as they are, with weight_norm (Salimans and Kingma, 2016),
 * which trains norm and direction of each unit's weights apart, and with layer_norm (Ba et al., 2016) between them. */
#include <math.h>
#include <stdio.h>
#include <tutti/tutti.h>
enum { ROWS = 1024, LAYERS = 8 };
static const char *const kinds[] = {"nothing", "weight_norm", "layer_norm"};
static float x[ROWS][2], y[ROWS][1];
static tutti_error *err;
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  const char *kind = user;
  tutti_value z = tutti_graph_get_feature(g, "x");
  const int norm = kind == kinds[1] ? TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_WEIGHT_NORM : 0;
  tutti_layer_dense_attrs large = {.kernel_initializer = "variance_scaling(scale=300)", .kernel_normalization = norm};
  for (int layer = 0; layer < LAYERS; layer++) {
    z = tutti_layer_dense(g, z, 32, &large);
    z = tutti_tanh(g, kind == kinds[2] ? tutti_layer_layer_norm(g, z, NULL) : z);
  }
  z = tutti_layer_dense(g, z, 1, NULL);
  tutti_graph_set_output(g, "y", z);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, error);
  tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, z, tutti_graph_get_label(g, "y"), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, error);
}
/* The loss over all rows after some passes. */
static int try_model(const tutti_dataset *dataset, const char *kind) {
  tutti_estimator *estimator = NULL;
  tutti_options *options = NULL, *run = NULL;
  tutti_result *trained = NULL, *result = NULL;
  int failed = tutti_options_create("train", &options, &err) || (tutti_options_set_i64(options, "epochs", 20), 0) ||
               tutti_options_create("run", &run, &err) || (tutti_options_set_i64(run, "seed", 1), 0) ||
               tutti_estimator_create(NULL, model, (void *)kind, NULL, NULL, run, &estimator, &err) ||
               tutti_estimator_train(estimator, dataset, options, NULL, NULL, &trained, &err) ||
               tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err);
  if (!failed) printf("with %s: loss %.4f\n", kind, tutti_result_get_loss(result));
  tutti_result_unref(trained), tutti_result_unref(result), tutti_options_unref(options), tutti_options_unref(run);
  return tutti_estimator_unref(estimator), failed;
}
int main(void) {
  for (int i = 0; i < ROWS; i++) {
    x[i][0] = sinf((float)i), x[i][1] = cosf(1.7F * (float)i);
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
  failed = failed || tutti_pipeline_build(pipeline, &dataset, &err);
  for (int i = 0; !failed && i < 3; i++)
    failed = try_model(dataset, kinds[i]);
  if (failed) fprintf(stderr, "%s\n", tutti_error_get_text(err)), tutti_error_unref(err);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_tensor_unref(inputs), tutti_tensor_unref(targets);
  return failed != 0;
}
