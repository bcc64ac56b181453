/* SPDX-License-Identifier: Apache-2.0
 * Training that the program drives: it runs 25 steps at a time, halves the learning rate when the loss stops falling,
 * and ends when the rate is small. */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value line = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 1, NULL);
  tutti_graph_set_output(g, "y", line);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, line, tutti_graph_get_label(g, "y"), NULL));
    tutti_optimizer_sgd(g, tutti_graph_host_scalar(g, "rate", 0), NULL);
  }
  return tutti_graph_check(g, err);
}

static int32_t make_dataset(tutti_dataset **out, tutti_error **err) {
  static float x[1000][2], y[1000][1];
  for (int i = 0; i < 1000; i++) {
    for (int j = 0; j < 2; j++)
      x[i][j] = (float)rand() / (float)RAND_MAX;
    y[i][0] = x[i][0] - 2 * x[i][1] + 0.1f * (float)rand() / (float)RAND_MAX;
  }
  tutti_tensor *features = NULL, *labels = NULL;
  tutti_pipeline *pipeline = NULL;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){1000, 2}, 2, x, sizeof x, &features, err);
  if (code == TUTTI_OK)
    code = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){1000, 1}, 2, y, sizeof y, &labels, err);
  if (code == TUTTI_OK) code = tutti_pipeline_create(NULL, &pipeline, err);
  if (code == TUTTI_OK) {
    tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, features);
    tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, labels);
    tutti_pipeline_repeat(pipeline, NULL), tutti_pipeline_batch(pipeline, 100, NULL);
    code = tutti_pipeline_build(pipeline, out, err);
  }
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(features), tutti_tensor_unref(labels);
  return code;
}

static int32_t drive(tutti_session *session, tutti_error **err) {
  double best = 1e9, rate = 0.4, loss;
  while (rate > 1e-3) {
    tutti_result *result = NULL;
    int32_t code = tutti_session_set_scalar(session, "rate", rate, err);
    if (code == TUTTI_OK) code = tutti_session_run(session, 25, &result, err);
    if (code != TUTTI_OK) return code;
    loss = tutti_result_get_loss(result);
    printf("step %lld, rate %.4f, loss %.6f\n", (long long)tutti_result_get_step(result), rate, loss);
    rate = loss < 0.9 * best ? rate : rate / 2;
    best = loss < best ? loss : best;
    tutti_result_unref(result);
  }
  return tutti_session_close(session, NULL, err);
}

int main(void) {
  tutti_error *err = NULL;
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  tutti_session *session = NULL;
  int32_t code = make_dataset(&dataset, &err);
  if (code == TUTTI_OK) code = tutti_estimator_create(NULL, model, NULL, NULL, NULL, NULL, &estimator, &err);
  if (code == TUTTI_OK) code = tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err);
  if (code == TUTTI_OK) code = drive(session, &err);
  if (code != TUTTI_OK) fprintf(stderr, "%s\n", tutti_error_get_text(err));
  tutti_session_unref(session), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_error_unref(err);
  return code != TUTTI_OK;
}
