/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_models.h"

#include <string.h>

static int32_t classifier(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value hidden = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 8, &relu);
  tutti_value logits = tutti_layer_dense(g, tutti_layer_dropout(g, hidden, 0.25), 3, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  tutti_graph_set_output(g, "probability", tutti_softmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_metric_top_k_accuracy(g, "top_2", logits, y, 2, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.01), NULL);
  }
  return tutti_graph_check(g, err);
}

static int32_t regression(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  int64_t dims[] = {tutti_graph_get_dim(g, x, 1), 1};
  tutti_graph_push_scope(g, "line");
  tutti_value line =
      tutti_matmul(g, x, tutti_graph_variable(g, "slope", TUTTI_DTYPE_F32, dims, 2, "zeros", 0, 1), NULL);
  tutti_graph_pop_scope(g);
  tutti_graph_set_output(g, "y", line);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_cast(g, tutti_graph_get_label(g, "y"), TUTTI_DTYPE_F32);
    tutti_value target = tutti_reshape(g, y, (int64_t[]){TUTTI_DIM_BATCH, 1}, 2);
    tutti_metric_mean(g, "target", target, NULL);
    tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, line, target, NULL));
    tutti_schedule_exponential_attrs steps = {.staircase = 1};
    tutti_optimizer_sgd_attrs nesterov = {.momentum = 0.9, .nesterov = 1};
    tutti_optimizer_sgd(g, tutti_schedule_exponential(g, 0.05, 0.5, 4, &steps), &nesterov);
  }
  return tutti_graph_check(g, err);
}

static int32_t averages(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  int64_t dims[] = {tutti_graph_get_dim(g, x, 1), 1};
  tutti_value slope = tutti_graph_variable(g, "line/slope", TUTTI_DTYPE_F32, dims, 2, "zeros", 0, 1);
  tutti_value line = tutti_matmul(g, x, slope, NULL);
  tutti_graph_set_output(g, "y", line);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_cast(g, tutti_graph_get_label(g, "y"), TUTTI_DTYPE_F32);
    tutti_value target = tutti_reshape(g, y, (int64_t[]){TUTTI_DIM_BATCH, 1}, 2);
    tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, line, target, NULL));
    tutti_optimizer_sgd_attrs limited = {
        .clip_value = 0.2, .clip_norm = 0.3, .average_decay = 0.8, .average_ramp = 1, .average_start = 1};
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.5), &limited);
  }
  return tutti_graph_check(g, err);
}

static int32_t images(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_reshape(g, tutti_graph_get_feature(g, "x"), (int64_t[]){TUTTI_DIM_BATCH, 6, 6, 1}, 4);
  tutti_layer_conv2d_attrs plain = {.without_bias = 1};
  tutti_layer_batch_norm_attrs quick = {.has_momentum = 1, .momentum = 0.5};
  x = tutti_relu(g, tutti_layer_batch_norm(g, tutti_layer_conv2d(g, x, 4, 3, &plain), &quick));
  tutti_value logits = tutti_layer_dense(g, tutti_layer_flatten(g, tutti_layer_max_pool2d(g, x, 2, NULL)), 3, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_graph_set_gradient_clip_norm(g, 1.0);
    tutti_optimizer_adamw_attrs decay = {.has_weight_decay = 1, .weight_decay = 0.1};
    tutti_optimizer_adamw(g, tutti_schedule_constant(g, 0.02), &decay);
  }
  return tutti_graph_check(g, err);
}

static int32_t wrong(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_loss(g, tutti_matmul(g, x, x, NULL));
  return tutti_graph_check(g, err);
}

static int32_t failing(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)g, (void)mode, (void)user;
  return tutti_error_set(err, TUTTI_UNAVAILABLE, "the model is at lunch");
}

tutti_model_fn scenario_model(const char *name) {
  static const struct {
    const char *name;
    tutti_model_fn function;
  } models[] = {{"classifier", classifier}, {"regression", regression}, {"averages", averages},
                {"images", images},         {"wrong", wrong},           {"failing", failing}};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    if (strcmp(models[i].name, name) == 0) return models[i].function;
  }
  return NULL;
}

int32_t scenario_data(int64_t rows, int64_t columns, int64_t classes, uint32_t seed, tutti_tensor **x, tutti_tensor **y,
                      tutti_error **err) {
  int32_t code = tutti_tensor_create(TUTTI_DTYPE_F32, (int64_t[]){rows, columns}, 2, x, err);
  if (code == TUTTI_OK) code = tutti_tensor_create(TUTTI_DTYPE_I32, (int64_t[]){rows}, 1, y, err);
  void *numbers = NULL, *labels = NULL;
  if (code == TUTTI_OK) code = tutti_tensor_get_mutable_data(*x, &numbers, err);
  if (code == TUTTI_OK) code = tutti_tensor_get_mutable_data(*y, &labels, err);
  for (int64_t i = 0; code == TUTTI_OK && i < rows; i++) {
    int32_t label = (int32_t)(i % classes);
    ((int32_t *)labels)[i] = label;
    for (int64_t j = 0; j < columns; j++) {
      seed = seed * 1664525u + 1013904223u;
      float noise = (float)(seed >> 8) / (float)(1 << 24);
      ((float *)numbers)[i * columns + j] = noise + (j % classes == label ? 0.5f : 0.0f);
    }
  }
  return code;
}
