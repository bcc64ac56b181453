/* SPDX-License-Identifier: Apache-2.0
 * The smallest useful program: a network with one hidden layer learns from 1000 rows of 10 numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, x, 16, &relu), 2, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_optimizer_adam(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1e-3), NULL);
  }
  return tutti_graph_check(g, err);
}

int main(void) {
  static float rows[1000][10];
  static int32_t labels[1000];
  for (int i = 0; i < 1000; i++) {
    for (int j = 0; j < 10; j++)
      rows[i][j] = (float)rand() / (float)RAND_MAX;
    labels[i] = rand() % 2;
  }
  tutti_error *err = NULL;
  tutti_tensor *x = NULL, *y = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_options *steps = NULL;
  int failed = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){1000, 10}, 2, rows, sizeof rows, &x, &err) ||
               tutti_tensor_from_data(TUTTI_DTYPE_I32, (int64_t[]){1000}, 1, labels, sizeof labels, &y, &err) ||
               tutti_pipeline_create(NULL, &pipeline, &err) || tutti_options_create("train", &steps, &err);
  if (!failed) {
    tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
    tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
    tutti_pipeline_shuffle(pipeline, 1000, NULL);
    tutti_pipeline_repeat(pipeline, NULL);
    tutti_pipeline_batch(pipeline, 64, NULL);
    tutti_options_set_i64(steps, "steps", 100);
    failed = tutti_pipeline_build(pipeline, &dataset, &err) ||
             tutti_estimator_create(NULL, model, NULL, NULL, NULL, NULL, &estimator, &err) ||
             tutti_estimator_train(estimator, dataset, steps, NULL, NULL, &result, &err);
  }
  if (failed) fprintf(stderr, "%s\n", tutti_error_get_text(err));
  if (!failed)
    printf("step %lld, loss %.4f\n", (long long)tutti_result_get_step(result), tutti_result_get_loss(result));
  tutti_result_unref(result), tutti_options_unref(steps), tutti_estimator_unref(estimator),
      tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x), tutti_tensor_unref(y), tutti_error_unref(err);
  return failed != 0;
}
