/* SPDX-License-Identifier: Apache-2.0
 * A class that one example in twenty has: how much of it a network finds without class weights, and with them. */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>
enum { ROWS = 4000, EACH = 20 };
static float x[ROWS][2];
static int32_t y[ROWS];
static tutti_error *err;
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  static const int64_t rare = 1;
  tutti_value logits = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 2, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, error);
  tutti_value label = tutti_graph_get_label(g, "y");
  tutti_metric_recall_attrs of_rare = {
      .average = TUTTI_METRIC_RECALL_AVERAGE_MACRO, .classes = &rare, .classes_count = 1};
  tutti_metric_accuracy(g, "accuracy", logits, label, NULL);
  tutti_metric_recall(g, "recall", logits, label, &of_rare);
  /* The loss of an example is multiplied by the weight of its class; the mean is over the number of examples. */
  tutti_loss_sparse_softmax_cross_entropy_attrs weights = {.class_weights = user, .class_weights_count = 2};
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, label, user != NULL ? &weights : NULL));
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.02), NULL);
  return tutti_graph_check(g, error);
}
/* Trains with these weights, or none, and tells what the model finds. */
static int try_weights(const tutti_dataset *dataset, double *weights) {
  tutti_estimator *estimator = NULL;
  tutti_options *options = NULL;
  tutti_result *trained = NULL, *result = NULL;
  int failed = tutti_options_create("train", &options, &err) || (tutti_options_set_i64(options, "epochs", 10), 0) ||
               tutti_estimator_create(NULL, model, weights, NULL, NULL, NULL, &estimator, &err) ||
               tutti_estimator_train(estimator, dataset, options, NULL, NULL, &trained, &err) ||
               tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err);
  if (!failed)
    printf("class weights %.1f and %.1f: accuracy %.3f, recall of the rare class %.3f\n", weights ? weights[0] : 1,
           weights ? weights[1] : 1, tutti_result_get_metric(result, "accuracy"),
           tutti_result_get_metric(result, "recall"));
  tutti_result_unref(trained), tutti_result_unref(result), tutti_options_unref(options);
  return tutti_estimator_unref(estimator), failed;
}
int main(void) {
  for (int i = 0; i < 2 * ROWS; i++) { /* two clouds that overlap */
    y[i / 2] = i / 2 % EACH == 0;
    x[i / 2][i % 2] = (float)y[i / 2] + 2 * ((float)rand() + (float)rand()) / (float)RAND_MAX - 2;
  }
  tutti_tensor *points = NULL, *classes = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  int failed = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, 2}, 2, x, sizeof x, &points, &err) ||
               tutti_tensor_from_data(TUTTI_DTYPE_I32, (int64_t[]){ROWS}, 1, y, sizeof y, &classes, &err) ||
               tutti_pipeline_create(NULL, &pipeline, &err);
  if (!failed) {
    tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, points);
    tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, classes);
    tutti_pipeline_shuffle(pipeline, ROWS, NULL), tutti_pipeline_batch(pipeline, 100, NULL);
    failed = tutti_pipeline_build(pipeline, &dataset, &err) || try_weights(dataset, NULL) ||
             try_weights(dataset, (double[]){0.1, 0.9});
  }
  if (failed) fprintf(stderr, "%s\n", tutti_error_get_text(err)), tutti_error_unref(err);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_tensor_unref(points), tutti_tensor_unref(classes);
  return failed != 0;
}
