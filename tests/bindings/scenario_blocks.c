/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_blocks.h"

#include <string.h>

enum { CLASSES = 3, LENGTH = 3, SIDE = 2, HIDDEN = 5, MOST_NUMBERS = 64 };

/* x [batch, columns] as [batch, LENGTH, columns / LENGTH]. */
static tutti_value sequence(tutti_graph *g, tutti_value x) {
  const int64_t dims[] = {TUTTI_DIM_BATCH, LENGTH, tutti_graph_get_dim(g, x, 1) / LENGTH};
  return tutti_reshape(g, x, dims, 3);
}

static tutti_value dense(tutti_graph *g, tutti_value x, const tutti_layer_dense_attrs *attrs) {
  return tutti_layer_dense(g, x, CLASSES, attrs);
}

static tutti_value constrained(tutti_graph *g, tutti_value x) {
  const tutti_layer_dense_attrs attrs = {.kernel_constraint = "max_norm(0.5)"};
  const tutti_value z = dense(g, x, &attrs);
  tutti_parameter_constraint(g, "*bias", "non_negative");
  return z;
}

static tutti_value given(tutti_graph *g, tutti_value x) {
  const tutti_value z = dense(g, x, NULL);
  const int64_t dims[] = {tutti_graph_get_dim(g, x, 1), CLASSES};
  float values[MOST_NUMBERS];
  for (int64_t i = 0; i < dims[0] * CLASSES; i++)
    values[i] = (float)(i * 5 % 7 - 3) / 8;
  tutti_tensor *kernel = NULL;
  tutti_error *err = NULL;
  if (tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, values, dims[0] * CLASSES * 4, &kernel, &err) == TUTTI_OK)
    tutti_graph_set_initial_value(g, "dense/kernel", kernel);
  tutti_tensor_unref(kernel), tutti_error_unref(err);
  return z;
}

static tutti_value weight_norm(tutti_graph *g, tutti_value x) {
  const tutti_layer_dense_attrs attrs = {.kernel_normalization = TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_WEIGHT_NORM};
  return dense(g, x, &attrs);
}

static tutti_value spectral_norm(tutti_graph *g, tutti_value x) {
  const tutti_layer_dense_attrs attrs = {.kernel_normalization = TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_SPECTRAL_NORM};
  return dense(g, x, &attrs);
}

static tutti_value encoder(tutti_graph *g, tutti_value x) {
  const tutti_layer_transformer_encoder_attrs attrs = {.activation = TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_GELU};
  const tutti_value placed = tutti_layer_sinusoidal_positions(g, sequence(g, x), NULL);
  return dense(g, tutti_layer_flatten(g, tutti_layer_transformer_encoder(g, placed, 2, HIDDEN, &attrs)), NULL);
}

static tutti_value decoder(tutti_graph *g, tutti_value x) {
  const tutti_layer_learned_positions_attrs first = {.initializer = "glorot_uniform"};
  const tutti_layer_transformer_decoder_attrs attrs = {
      .activation = TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_GELU, .pre_norm = 1, .rotary_base = 100};
  const tutti_value placed = tutti_layer_learned_positions(g, sequence(g, x), LENGTH, &first);
  tutti_value cache[2];
  const tutti_value y = tutti_layer_transformer_decoder(g, placed, 1, HIDDEN, &attrs, cache);
  return dense(g, tutti_layer_flatten(g, tutti_layer_rotary_positions(g, y, NULL)), NULL);
}

static tutti_value norms(tutti_graph *g, tutti_value x) {
  tutti_value y = tutti_layer_group_norm(g, sequence(g, x), 2, NULL);
  y = tutti_layer_layer_norm(g, tutti_layer_instance_norm(g, tutti_tanh(g, y), NULL), NULL);
  y = tutti_layer_multi_head_attention(g, tutti_layer_rms_norm(g, tutti_tanh(g, y), NULL), 2, NULL);
  return dense(g, tutti_layer_flatten(g, y), NULL);
}

static tutti_value residual(tutti_graph *g, tutti_value x) {
  const int64_t dims[] = {TUTTI_DIM_BATCH, SIDE, SIDE, tutti_graph_get_dim(g, x, 1) / (SIDE * SIDE)};
  const tutti_layer_residual_block2d_attrs attrs = {.kernel_initializer = "glorot_uniform"};
  const tutti_value y = tutti_layer_residual_block2d(g, tutti_reshape(g, x, dims, 4), dims[3], &attrs);
  return dense(g, tutti_layer_flatten(g, y), NULL);
}

static const struct {
  const char *name;
  tutti_value (*make)(tutti_graph *g, tutti_value x);
} variants[] = {{"constrained", constrained},
                {"given", given},
                {"weight_norm", weight_norm},
                {"spectral_norm", spectral_norm},
                {"encoder", encoder},
                {"decoder", decoder},
                {"norms", norms},
                {"residual", residual}};

int32_t scenario_blocks(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const char *const name = tutti_graph_get_params(g);
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    if (strcmp(variants[i].name, name) != 0) continue;
    const tutti_value z = variants[i].make(g, tutti_graph_get_feature(g, "x"));
    tutti_graph_set_output(g, "z", z);
    if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, z, tutti_graph_get_label(g, "y"), NULL));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.25), NULL);
    return tutti_graph_check(g, err);
  }
  return tutti_error_set(err, TUTTI_INVALID_ARGUMENT, name);
}
