/* SPDX-License-Identifier: Apache-2.0
 * A loop of one's own, over batches of any size: rows that the network is far off at are trained again, together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>
enum { ROWS = 1024, BATCH = 64, PASSES = 40, LEAST = 16 };
static float x[ROWS][2], y[ROWS], hard_x[BATCH][2], hard_y[BATCH], off[BATCH];
static tutti_feed *feed;
static tutti_estimator *estimator;
static tutti_session *session;
static tutti_error *err;
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value line = tutti_layer_dense(g, tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 16, &relu), 1, NULL);
  tutti_value target = tutti_graph_get_label(g, "y"), distance = tutti_abs(g, tutti_sub(g, line, target));
  tutti_graph_set_output(g, "off", distance), tutti_metric_mean(g, "mean", distance, NULL);
  tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, line, target, NULL));
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 3e-3), NULL);
  return (void)mode, (void)user, tutti_graph_check(g, error);
}
/* A step on these rows: how far off the replicas were on average (reduced), and in `off` at each (gathered). */
static double step(float (*rows)[2], float *targets, int64_t count) {
  tutti_tensor *batch[2] = {NULL, NULL}, *output = NULL;
  tutti_result *result = NULL;
  if (tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){count, 2}, 2, rows, count * 8, &batch[0], &err) ||
      tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){count, 1}, 2, targets, count * 4, &batch[1], &err) ||
      tutti_feed_push(feed, batch, 2, NULL, &err) || tutti_session_run(session, 1, &result, &err) ||
      tutti_estimator_read_output(estimator, "off", &output, &err))
    fprintf(stderr, "%s\n", tutti_error_get_text(err)), exit(1);
  memcpy(off, tutti_tensor_get_data(output), (size_t)count * sizeof *off), tutti_tensor_unref(output);
  double mean = tutti_result_get_metric(result, "mean");
  return tutti_tensor_unref(batch[0]), tutti_tensor_unref(batch[1]), tutti_result_unref(result), mean;
}
int main(void) {
  tutti_options *run = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  if (tutti_feed_create(NULL, 1, &feed, &err) || tutti_pipeline_create(NULL, &pipeline, &err) ||
      tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, (int64_t[]){2}, 1, &err) ||
      tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_F32, (int64_t[]){1}, 1, &err) ||
      tutti_feed_set_batch_size(feed, BATCH, &err) || tutti_options_create("run", &run, &err) ||
      (tutti_options_set_bool(run, "keep_outputs", 1), tutti_pipeline_add_feed(pipeline, feed), 0) ||
      tutti_pipeline_build(pipeline, &dataset, &err) ||
      tutti_estimator_create(NULL, model, NULL, NULL, NULL, run, &estimator, &err) ||
      tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err))
    return fprintf(stderr, "%s\n", tutti_error_get_text(err)), 1;
  for (int i = 0; i < ROWS; i++)
    x[i][0] = (float)rand() / (float)RAND_MAX, x[i][1] = (float)rand() / (float)RAND_MAX, y[i] = x[i][0] * x[i][1];
  for (int first = 0, hard = 0; first < PASSES * ROWS; first += BATCH) {
    double mean = step(&x[first % ROWS], &y[first % ROWS], BATCH);
    for (int i = 0; i < BATCH && hard < BATCH; i++)
      if ((double)off[i] > 3 * mean) memcpy(hard_x[hard], x[first % ROWS + i], 8), hard_y[hard++] = y[first % ROWS + i];
    if (hard < LEAST) continue;
    printf("off by %.4f, by %.4f at the %d hardest\n", mean, step(hard_x, hard_y, hard), hard), hard = 0;
  }
  tutti_session_unref(session), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  return tutti_pipeline_unref(pipeline), tutti_feed_unref(feed), tutti_options_unref(run), 0;
}
