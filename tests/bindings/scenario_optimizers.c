/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_optimizers.h"

#include <string.h>

static tutti_value rate(tutti_graph *g, double value) { return tutti_schedule_constant(g, value); }

static void sgd(tutti_graph *g) {
  const tutti_optimizer_sgd_attrs attrs = {.momentum = 0.9, .nesterov = 1, .weight_decay = 0.1};
  tutti_optimizer_sgd(g, rate(g, 0.25), &attrs);
}

static void adam(tutti_graph *g) {
  const tutti_optimizer_adam_attrs attrs = {
      .has_beta1 = 1, .beta1 = 0.8, .has_beta2 = 1, .beta2 = 0.5, .has_epsilon = 1, .epsilon = 0.01, .amsgrad = 1};
  tutti_optimizer_adam(g, rate(g, 0.25), &attrs);
}

static void adamw(tutti_graph *g) {
  const tutti_optimizer_adamw_attrs attrs = {.has_weight_decay = 1,
                                             .weight_decay = 0.1,
                                             .has_beta1 = 1,
                                             .beta1 = 0.8,
                                             .has_beta2 = 1,
                                             .beta2 = 0.5,
                                             .has_epsilon = 1,
                                             .epsilon = 0.01,
                                             .amsgrad = 1};
  tutti_optimizer_adamw(g, rate(g, 0.25), &attrs);
}

static void adagrad(tutti_graph *g) {
  const tutti_optimizer_adagrad_attrs attrs = {
      .rate_decay = 0.5, .initial_sum = 0.1, .has_epsilon = 1, .epsilon = 0.01, .weight_decay = 0.1};
  tutti_optimizer_adagrad(g, rate(g, 0.5), &attrs);
}

static void adadelta(tutti_graph *g) {
  const tutti_optimizer_adadelta_attrs attrs = {
      .has_rho = 1, .rho = 0.8, .has_epsilon = 1, .epsilon = 0.01, .weight_decay = 0.1};
  tutti_optimizer_adadelta(g, rate(g, 2), &attrs);
}

static void rmsprop(tutti_graph *g) {
  const tutti_optimizer_rmsprop_attrs attrs = {
      .has_rho = 1, .rho = 0.8, .momentum = 0.5, .centered = 1, .has_epsilon = 1, .epsilon = 0.01, .weight_decay = 0.1};
  tutti_optimizer_rmsprop(g, rate(g, 0.125), &attrs);
}

static void adamax(tutti_graph *g) {
  const tutti_optimizer_adamax_attrs attrs = {.has_beta1 = 1,
                                              .beta1 = 0.8,
                                              .has_beta2 = 1,
                                              .beta2 = 0.5,
                                              .has_epsilon = 1,
                                              .epsilon = 0.01,
                                              .weight_decay = 0.1};
  tutti_optimizer_adamax(g, rate(g, 0.25), &attrs);
}

static void nadam(tutti_graph *g) {
  const tutti_optimizer_nadam_attrs attrs = {.has_beta1 = 1,
                                             .beta1 = 0.8,
                                             .has_beta2 = 1,
                                             .beta2 = 0.5,
                                             .has_epsilon = 1,
                                             .epsilon = 0.01,
                                             .has_momentum_decay = 1,
                                             .momentum_decay = 2,
                                             .weight_decay = 0.1};
  tutti_optimizer_nadam(g, rate(g, 0.25), &attrs);
}

static void lion(tutti_graph *g) {
  const tutti_optimizer_lion_attrs attrs = {
      .has_beta1 = 1, .beta1 = 0.8, .has_beta2 = 1, .beta2 = 0.5, .weight_decay = 0.1};
  tutti_optimizer_lion(g, rate(g, 0.125), &attrs);
}

static void ftrl(tutti_graph *g) {
  const tutti_optimizer_ftrl_attrs attrs = {.has_rate_power = 1,
                                            .rate_power = -0.25,
                                            .has_initial_sum = 1,
                                            .initial_sum = 0.2,
                                            .l1 = 0.05,
                                            .l2 = 0.1,
                                            .l2_shrinkage = 0.02,
                                            .beta = 0.5};
  tutti_optimizer_ftrl(g, rate(g, 0.5), &attrs);
}

static void lamb(tutti_graph *g) {
  const tutti_optimizer_lamb_attrs attrs = {.has_beta1 = 1,
                                            .beta1 = 0.8,
                                            .has_beta2 = 1,
                                            .beta2 = 0.5,
                                            .has_epsilon = 1,
                                            .epsilon = 0.01,
                                            .weight_decay = 0.1};
  tutti_optimizer_lamb(g, rate(g, 0.25), &attrs);
}

static void lars(tutti_graph *g) {
  const tutti_optimizer_lars_attrs attrs = {
      .has_momentum = 1, .momentum = 0.5, .nesterov = 1, .trust = 0.1, .epsilon = 0.01, .weight_decay = 0.1};
  tutti_optimizer_lars(g, rate(g, 1), &attrs);
}

static void muon(tutti_graph *g) {
  const tutti_optimizer_muon_attrs attrs = {.has_momentum = 1,
                                            .momentum = 0.8,
                                            .without_nesterov = 1,
                                            .rounds = 3,
                                            .scale = TUTTI_OPTIMIZER_MUON_SCALE_LIKE_ADAM,
                                            .has_vector_rate = 1,
                                            .vector_rate = 0.5,
                                            .has_beta1 = 1,
                                            .beta1 = 0.8,
                                            .has_beta2 = 1,
                                            .beta2 = 0.5,
                                            .has_epsilon = 1,
                                            .epsilon = 0.01,
                                            .weight_decay = 0.1};
  tutti_optimizer_muon(g, rate(g, 0.25), &attrs);
}

static void adafactor(tutti_graph *g) { tutti_optimizer_adafactor(g, rate(g, 0.75), NULL); }

static void adafactor_fixed(tutti_graph *g) {
  const tutti_optimizer_adafactor_attrs attrs = {.has_beta2_decay = 1,
                                                 .beta2_decay = -0.5,
                                                 .epsilon = 0.01,
                                                 .adds_epsilon = 1,
                                                 .has_least_scale = 1,
                                                 .least_scale = 0.5,
                                                 .clip_threshold = 0.5,
                                                 .keeps_rate = 1,
                                                 .weight_decay = 0.1};
  tutti_optimizer_adafactor(g, rate(g, 0.75), &attrs);
}

/* Of vectors w - rate g; of matrices w - rate g r c, where r = r / 2 + the sum of the squares of a row of g, and c that
 * of a column. */
static void rows_and_columns(tutti_graph *g) {
  const double initial[] = {0.25, 0.5};
  const tutti_update_rule_attrs attrs = {
      .slots = "rows, columns", .slots_per = "row, column", .initial = initial, .initial_count = 2, .stacks = 1};
  const int64_t row_axis = 1, column_axis = 2;
  const tutti_reduce_sum_attrs along_row = {.axes = &column_axis, .axes_count = 1};
  const tutti_reduce_sum_attrs along_column = {.axes = &row_axis, .axes_count = 1};
  tutti_value p[7], half = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5);
  tutti_begin_update_rule(g, rate(g, 2), NULL, p, 5);
  const tutti_value weight = tutti_sub(g, p[0], tutti_mul(g, p[2], p[1]));
  tutti_end_update_rule(g, &weight, 1);
  tutti_begin_update_rule(g, rate(g, 2), &attrs, p, 7);
  const tutti_value squares = tutti_square(g, p[1]);
  const tutti_value rows = tutti_add(g, tutti_mul(g, half, p[5]), tutti_reduce_sum(g, squares, &along_row));
  const tutti_value columns = tutti_add(g, tutti_mul(g, half, p[6]), tutti_reduce_sum(g, squares, &along_column));
  const tutti_value factors[] = {p[1], rows, columns};
  const tutti_value step = tutti_mul(g, p[2], tutti_einsum(g, factors, 3, "mrc,mr,mc->mrc"));
  const tutti_value results[] = {tutti_sub(g, p[0], step), rows, columns};
  tutti_end_update_rule(g, results, 3);
}

/* Biases have their own rate and do not decay. */
static void groups(tutti_graph *g) {
  const tutti_parameter_group_attrs biases = {.learning_rate = rate(g, 0.125), .without_decay = 1};
  tutti_parameter_group(g, "*bias", &biases);
  const tutti_parameter_group_attrs rest = {.has_rate_factor = 1, .rate_factor = 0.5, .weight_decay = 0.2};
  tutti_parameter_group(g, "dens?/*", &rest);
  const tutti_optimizer_sgd_attrs attrs = {.weight_decay = 0.1};
  tutti_optimizer_sgd(g, rate(g, 1), &attrs);
}

static void frozen(tutti_graph *g) {
  const tutti_parameter_group_attrs attrs = {.frozen = 1};
  tutti_parameter_group(g, "*bias", &attrs);
  tutti_optimizer_adagrad(g, rate(g, 0.5), NULL);
}

static void vectors(tutti_graph *g) {
  const tutti_parameter_group_attrs attrs = {.as_vectors = 1};
  tutti_parameter_group(g, "*", &attrs);
  tutti_optimizer_muon(g, rate(g, 0.125), NULL);
}

static const struct {
  const char *name;
  void (*set)(tutti_graph *g);
} optimizers[] = {{"sgd", sgd},
                  {"adam", adam},
                  {"adamw", adamw},
                  {"adagrad", adagrad},
                  {"adadelta", adadelta},
                  {"rmsprop", rmsprop},
                  {"adamax", adamax},
                  {"nadam", nadam},
                  {"lion", lion},
                  {"ftrl", ftrl},
                  {"lamb", lamb},
                  {"lars", lars},
                  {"groups", groups},
                  {"frozen", frozen},
                  {"muon", muon},
                  {"vectors", vectors},
                  {"adafactor", adafactor},
                  {"adafactor_fixed", adafactor_fixed},
                  {"rows_and_columns", rows_and_columns}};

static int32_t set_optimizer(tutti_graph *g, const char *name, tutti_error **err) {
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
    if (strcmp(optimizers[i].name, name) == 0) {
      optimizers[i].set(g);
      return tutti_graph_check(g, err);
    }
  }
  return tutti_error_set(err, TUTTI_INVALID_ARGUMENT, name);
}

int32_t scenario_optimizers(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const tutti_value z = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 3, NULL);
  tutti_graph_set_output(g, "z", z);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, z, tutti_graph_get_label(g, "y"), NULL));
  return set_optimizer(g, tutti_graph_get_params(g), err);
}
