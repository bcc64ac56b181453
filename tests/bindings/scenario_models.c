/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_models.h"

#include <string.h>

#include "scenario_blocks.h"
#include "scenario_functions.h"
#include "scenario_layers.h"
#include "scenario_ops.h"
#include "scenario_optimizers.h"

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

/* Every loss under its name as a metric, and their sum as the loss. */
static tutti_value reported(tutti_graph *g, const char *name, tutti_value loss, tutti_value sum) {
  tutti_graph_add_metric(g, name, loss);
  return tutti_add(g, sum, loss);
}

static tutti_value number_losses(tutti_graph *g, tutti_value z, tutti_value hot, tutti_value sum) {
  sum = reported(g, "mean_absolute_error", tutti_loss_mean_absolute_error(g, z, hot, NULL), sum);
  sum = reported(g, "mean_squared_error", tutti_loss_mean_squared_error(g, z, hot, NULL), sum);
  tutti_loss_huber_attrs each = {.delta = 0.5, .reduction = TUTTI_LOSS_HUBER_REDUCTION_NONE};
  sum = reported(g, "huber", tutti_reduce_mean(g, tutti_loss_huber(g, z, hot, &each), NULL), sum);
  sum = reported(g, "log_cosh", tutti_loss_log_cosh(g, z, hot, NULL), sum);
  sum = reported(g, "quantile", tutti_loss_quantile(g, z, hot, 0.25, NULL), sum);
  tutti_loss_poisson_attrs logarithms = {.log_predictions = 1};
  return reported(g, "poisson", tutti_loss_poisson(g, z, hot, &logarithms), sum);
}

static tutti_value binary_losses(tutti_graph *g, tutti_value z, tutti_value hot, tutti_value sum) {
  tutti_value q = tutti_sigmoid(g, z);
  tutti_loss_binary_cross_entropy_attrs smooth = {.label_smoothing = 0.1};
  sum = reported(g, "binary_cross_entropy", tutti_loss_binary_cross_entropy(g, q, hot, &smooth), sum);
  tutti_loss_sigmoid_cross_entropy_attrs positive = {.positive_weights = (double[]){2, 1, 0.5},
                                                     .positive_weights_count = 3};
  sum = reported(g, "sigmoid_cross_entropy", tutti_loss_sigmoid_cross_entropy(g, z, hot, &positive), sum);
  tutti_loss_sigmoid_focal_attrs focal = {.alpha = 0.25};
  sum = reported(g, "sigmoid_focal", tutti_loss_sigmoid_focal(g, z, hot, &focal), sum);
  tutti_loss_hinge_attrs half = {.has_margin = 1, .margin = 0.5};
  sum = reported(g, "hinge", tutti_loss_hinge(g, z, hot, &half), sum);
  tutti_loss_squared_hinge_attrs classes = {.class_weights = (double[]){0.5, 2}, .class_weights_count = 2};
  sum = reported(g, "squared_hinge", tutti_loss_squared_hinge(g, z, hot, &classes), sum);
  tutti_loss_dice_attrs empty = {.smooth = 1};
  return reported(g, "dice", tutti_loss_dice(g, q, hot, &empty), sum);
}

static tutti_value class_losses(tutti_graph *g, tutti_value z, tutti_value y, tutti_value hot, tutti_value sum) {
  static const double by_class[] = {1, 2, 3};
  tutti_value p = tutti_softmax(g, z, NULL);
  tutti_loss_categorical_cross_entropy_attrs weighted = {.class_weights = by_class, .class_weights_count = 3};
  sum = reported(g, "categorical_cross_entropy", tutti_loss_categorical_cross_entropy(g, p, hot, &weighted), sum);
  sum =
      reported(g, "sparse_categorical_cross_entropy", tutti_loss_sparse_categorical_cross_entropy(g, p, y, NULL), sum);
  tutti_loss_softmax_cross_entropy_attrs dense = {
      .class_weights = by_class,
      .class_weights_count = 3,
      .reduction = TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN};
  sum = reported(g, "softmax_cross_entropy", tutti_loss_softmax_cross_entropy(g, z, hot, &dense), sum);
  tutti_loss_sparse_softmax_cross_entropy_attrs smooth = {.label_smoothing = 0.1};
  sum = reported(g, "sparse_softmax_cross_entropy", tutti_loss_sparse_softmax_cross_entropy(g, z, y, &smooth), sum);
  tutti_loss_softmax_focal_attrs focal = {.has_gamma = 1, .gamma = 0.5};
  sum = reported(g, "softmax_focal", tutti_loss_softmax_focal(g, z, hot, &focal), sum);
  sum = reported(g, "sparse_softmax_focal", tutti_loss_sparse_softmax_focal(g, z, y, NULL), sum);
  sum = reported(g, "categorical_hinge", tutti_loss_categorical_hinge(g, z, hot, NULL), sum);
  tutti_loss_multi_margin_attrs squared = {.squared = 1};
  return reported(g, "multi_margin", tutti_loss_multi_margin(g, z, y, &squared), sum);
}

static tutti_value vector_losses(tutti_graph *g, tutti_value x, tutti_value z, tutti_value y, tutti_value hot,
                                 tutti_value sum) {
  tutti_value r = tutti_softmax(g, x, NULL);
  tutti_loss_kullback_leibler_attrs logits = {.form = TUTTI_LOSS_KULLBACK_LEIBLER_FORM_LOGITS};
  sum = reported(g, "kullback_leibler", tutti_loss_kullback_leibler(g, z, r, &logits), sum);
  sum = reported(g, "cosine_similarity", tutti_loss_cosine_similarity(g, z, hot, NULL), sum);
  tutti_value similar =
      tutti_minimum(g, tutti_cast(g, y, TUTTI_DTYPE_F32), tutti_graph_constant(g, TUTTI_DTYPE_F32, 1));
  tutti_loss_contrastive_attrs far = {.has_margin = 1, .margin = 3};
  sum = reported(g, "contrastive", tutti_loss_contrastive(g, z, x, similar, &far), sum);
  tutti_loss_triplet_attrs swapped = {.has_margin = 1, .margin = 0.2, .swap = 1};
  sum = reported(g, "triplet", tutti_loss_triplet(g, z, x, r, &swapped), sum);
  /* Two frames, the label 1 where y is not 0, which has no frame and no label. */
  tutti_value frames = tutti_concat(g, (tutti_value[]){z, x}, 2, &(tutti_concat_attrs){.axis = 1});
  tutti_value count = tutti_cast(g, similar, TUTTI_DTYPE_I32);
  tutti_loss_ctc_attrs last = {.input_lengths = tutti_cast(g, tutti_add(g, similar, similar), TUTTI_DTYPE_I32),
                               .label_lengths = count,
                               .blank = 2};
  frames = tutti_reshape(g, frames, (int64_t[]){TUTTI_DIM_BATCH, 2, 3}, 3);
  tutti_value labels = tutti_reshape(g, count, (int64_t[]){TUTTI_DIM_BATCH, 1}, 2);
  return reported(g, "ctc", tutti_loss_ctc(g, frames, labels, &last), sum);
}

static int32_t losses(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value shift = tutti_graph_variable(g, "shift", TUTTI_DTYPE_F32, (int64_t[]){3}, 1, "ones", 0, 1);
  tutti_value four = tutti_graph_constant(g, TUTTI_DTYPE_F32, 4), three = tutti_graph_constant(g, TUTTI_DTYPE_F32, 3);
  tutti_value z = tutti_add(g, tutti_sub(g, tutti_mul(g, x, four), three), shift);
  tutti_graph_set_output(g, "z", z);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y"), hot = tutti_one_hot(g, y, 3, NULL);
    tutti_value sum = tutti_loss_l2_penalty(g, shift, 0.1);
    tutti_graph_add_metric(g, "l2_penalty", sum);
    sum = number_losses(g, z, hot, sum);
    sum = binary_losses(g, z, hot, sum);
    sum = class_losses(g, z, y, hot, sum);
    tutti_graph_set_loss(g, vector_losses(g, x, z, y, hot, sum));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.01), NULL);
  }
  return tutti_graph_check(g, err);
}

static void class_metrics(tutti_graph *g, tutti_value z, tutti_value y, tutti_value hot) {
  tutti_metric_accuracy(g, "accuracy", z, y, NULL);
  tutti_metric_top_k_accuracy(g, "top_k_accuracy", z, y, 2, NULL);
  tutti_metric_binary_accuracy_attrs logits = {.has_threshold = 1, .threshold = 0.75, .from_logits = 1};
  tutti_metric_binary_accuracy(g, "binary_accuracy", z, hot, &logits);
  tutti_metric_precision_attrs macro = {.average = TUTTI_METRIC_PRECISION_AVERAGE_MACRO};
  tutti_metric_precision(g, "precision", z, y, &macro);
  tutti_metric_recall_attrs binary = {.from_logits = 1};
  tutti_metric_recall(g, "recall", z, hot, &binary);
  tutti_metric_f_beta_attrs weighted = {.has_beta = 1, .beta = 2, .average = TUTTI_METRIC_F_BETA_AVERAGE_WEIGHTED};
  tutti_metric_f_beta(g, "f_beta", z, y, &weighted);
  tutti_metric_specificity_attrs each = {.average = TUTTI_METRIC_SPECIFICITY_AVERAGE_NONE};
  tutti_metric_specificity(g, "specificity", z, y, &each);
  tutti_graph_name_classes(g, "specificity", (const char *[]){"low", "middle", "high"}, 3);
  tutti_metric_balanced_accuracy_attrs adjusted = {.adjusted = 1};
  tutti_metric_balanced_accuracy(g, "balanced_accuracy", z, y, &adjusted);
  tutti_metric_matthews_correlation(g, "matthews_correlation", z, y, NULL);
  tutti_metric_mean_iou(g, "mean_iou", z, y, NULL);
  tutti_metric_confusion_matrix(g, "confusion_matrix", z, y, NULL);
  tutti_metric_auc_attrs thresholds = {
      .thresholds = (double[]){0.25, 0.5, 0.75}, .thresholds_count = 3, .from_logits = 1};
  tutti_metric_auc(g, "auc", z, hot, &thresholds);
}

static void number_metrics(tutti_graph *g, tutti_value z, tutti_value y, tutti_value hot) {
  tutti_metric_mean(g, "mean", z, NULL);
  tutti_metric_mean_squared_error(g, "mean_squared_error", z, hot, NULL);
  tutti_metric_root_mean_squared_error(g, "root_mean_squared_error", z, hot, NULL);
  tutti_metric_mean_absolute_error(g, "mean_absolute_error", z, hot, NULL);
  tutti_metric_mean_absolute_percentage_error_attrs half = {.epsilon = 0.5};
  tutti_metric_mean_absolute_percentage_error(g, "mean_absolute_percentage_error", z, hot, &half);
  tutti_metric_r_squared(g, "r_squared", z, hot, NULL);
  tutti_metric_log_loss_attrs logits = {.from_logits = 1};
  tutti_metric_log_loss(g, "log_loss", z, y, &logits);
  tutti_metric_binary_log_loss_attrs sigmoid = {.from_logits = 1};
  tutti_metric_binary_log_loss(g, "binary_log_loss", z, hot, &sigmoid);
  tutti_metric_perplexity_attrs softmax = {.from_logits = 1};
  tutti_metric_perplexity(g, "perplexity", z, y, &softmax);
  tutti_metric_cosine_similarity(g, "cosine_similarity", z, hot, NULL);
}

static int32_t metrics(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value shift = tutti_graph_variable(g, "shift", TUTTI_DTYPE_F32, (int64_t[]){3}, 1, "ones", 0, 1);
  tutti_value four = tutti_graph_constant(g, TUTTI_DTYPE_F32, 4), three = tutti_graph_constant(g, TUTTI_DTYPE_F32, 3);
  tutti_value z = tutti_add(g, tutti_sub(g, tutti_mul(g, x, four), three), shift);
  tutti_graph_set_output(g, "z", z);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y"), hot = tutti_one_hot(g, y, 3, NULL);
    class_metrics(g, z, y, hot);
    number_metrics(g, z, y, hot);
    tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, z, hot, NULL));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.5), NULL);
  }
  return tutti_graph_check(g, err);
}

static tutti_value reported_rate(tutti_graph *g, const char *name, tutti_value rate) {
  tutti_graph_add_metric(g, name, rate);
  return rate;
}

/* Every schedule under its name as a metric; the last, a switch between two others. */
static tutti_value all_schedules(tutti_graph *g) {
  reported_rate(g, "constant", tutti_schedule_constant(g, 0.3));
  tutti_value decay = reported_rate(g, "exponential", tutti_schedule_exponential(g, 0.1, 0.5, 10, NULL));
  reported_rate(g, "natural_exponential", tutti_schedule_natural_exponential(g, 0.1, 0.5, 10, NULL));
  tutti_schedule_inverse_time_attrs staircase = {.staircase = 1};
  reported_rate(g, "inverse_time", tutti_schedule_inverse_time(g, 0.1, 0.5, 3, &staircase));
  tutti_value steps = reported_rate(g, "step", tutti_schedule_step(g, 0.1, 5, 0.5));
  tutti_schedule_polynomial_attrs square = {.final_value = 0.02, .power = 2};
  reported_rate(g, "polynomial", tutti_schedule_polynomial(g, 0.1, 20, &square));
  tutti_schedule_cosine_attrs slow = {.warmup_steps = 6};
  reported_rate(g, "cosine", tutti_schedule_cosine(g, 0.1, 20, &slow));
  tutti_schedule_cosine_restarts_attrs growing = {.period_factor = 2, .has_value_factor = 1, .value_factor = 0.5};
  tutti_value waves = reported_rate(g, "cosine_restarts", tutti_schedule_cosine_restarts(g, 0.1, 4, &growing));
  tutti_schedule_one_cycle_attrs straight = {.anneal = TUTTI_SCHEDULE_ONE_CYCLE_ANNEAL_LINEAR};
  reported_rate(g, "one_cycle", tutti_schedule_one_cycle(g, 0.1, 20, &straight));
  reported_rate(g, "piecewise", tutti_schedule_piecewise(g, (int64_t[]){3, 9}, 2, (double[]){0.1, 0.05, 0.01}, 3));
  tutti_schedule_warmup_attrs behind = {.start_fraction = 0.25, .shifted = 1};
  reported_rate(g, "warmup", tutti_schedule_warmup(g, decay, 8, &behind));
  tutti_value count = tutti_add(g, tutti_graph_get_completed_steps(g), tutti_graph_constant(g, TUTTI_DTYPE_F32, 1));
  reported_rate(g, "own", tutti_rsqrt(g, count));
  tutti_schedule_switch_attrs anew = {.shifted = 1};
  return reported_rate(g, "switch", tutti_schedule_switch(g, steps, waves, 7, &anew));
}

static int32_t schedules(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
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
    tutti_optimizer_sgd(g, all_schedules(g), NULL);
  }
  return tutti_graph_check(g, err);
}

static int32_t wrong(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_loss(g, tutti_matmul(g, x, x, NULL));
  return tutti_graph_check(g, err);
}

/* w - 0.125 m with m = m / 2 + g, of the rows that a step looks up. */
static void lazy_rule(tutti_graph *g) {
  const tutti_update_rule_attrs attrs = {.slots = "m", .lazy = 1};
  tutti_value p[6];
  tutti_begin_update_rule(g, tutti_schedule_constant(g, 0.125), &attrs, p, 6);
  const tutti_value m = tutti_add(g, tutti_mul(g, p[5], tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5)), p[1]);
  const tutti_value results[] = {tutti_sub(g, p[0], tutti_mul(g, p[2], m)), m};
  tutti_end_update_rule(g, results, 2);
}

static void set_table_optimizer(tutti_graph *g, const char *name) {
  const int is_lazy = strncmp(name, "lazy_", 5) == 0;
  const tutti_optimizer_adam_attrs adam = {.lazy = (uint8_t)is_lazy};
  const tutti_optimizer_sgd_attrs sgd = {.momentum = 0.9, .lazy = (uint8_t)is_lazy};
  const char *const kind = is_lazy ? name + 5 : name;
  if (strcmp(kind, "adam") == 0) tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.25), &adam);
  if (strcmp(kind, "sgd") == 0) tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.25), &sgd);
  if (strcmp(kind, "rule") == 0) lazy_rule(g);
}

static int32_t tables(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const tutti_value x = tutti_graph_get_feature(g, "x");
  const tutti_layer_embedding_attrs ones = {.table_initializer = "ones"};
  const tutti_value z = tutti_layer_embedding(g, tutti_argmax(g, x, NULL), tutti_graph_get_dim(g, x, 1), 3, &ones);
  tutti_graph_set_output(g, "z", z);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, z, tutti_graph_get_label(g, "y"), NULL));
  set_table_optimizer(g, tutti_graph_get_params(g));
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
  } models[] = {{"classifier", classifier},
                {"regression", regression},
                {"averages", averages},
                {"images", images},
                {"losses", losses},
                {"metrics", metrics},
                {"optimizers", scenario_optimizers},
                {"functions", scenario_functions},
                {"ops", scenario_ops},
                {"layers", scenario_layers},
                {"blocks", scenario_blocks},
                {"schedules", schedules},
                {"tables", tables},
                {"wrong", wrong},
                {"failing", failing}};
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
