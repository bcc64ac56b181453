/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_ops.h"

/* The sum of what was reported, of one graph. */
struct sum {
  tutti_graph *g;
  tutti_value value;
};

/* The mean over all elements under the op's name. */
static void report(struct sum *sum, const char *name, tutti_value value) {
  tutti_value mean = tutti_reduce_mean(sum->g, tutti_cast(sum->g, value, TUTTI_DTYPE_F32), NULL);
  tutti_graph_add_metric(sum->g, name, mean);
  sum->value = tutti_add(sum->g, sum->value, mean);
}

static tutti_value number(tutti_graph *g, double value) { return tutti_graph_constant(g, TUTTI_DTYPE_F32, value); }

/* x and z, one after the other, [rows, 6]. */
static tutti_value both(tutti_graph *g, tutti_value x, tutti_value z) {
  tutti_concat_attrs columns = {.axis = 1};
  return tutti_concat(g, (tutti_value[]){x, z}, 2, &columns);
}

static void report_curves(struct sum *sum, tutti_value z) {
  tutti_graph *g = sum->g;
  tutti_value power = tutti_exp(g, z);
  report(sum, "identity", tutti_identity(g, z));
  report(sum, "stop_gradient", tutti_mul(g, z, tutti_stop_gradient(g, z)));
  report(sum, "abs", tutti_abs(g, z));
  report(sum, "sign", tutti_sign(g, z));
  report(sum, "log1p", tutti_log1p(g, power));
  report(sum, "expm1", tutti_expm1(g, z));
  report(sum, "sqrt", tutti_sqrt(g, power));
  report(sum, "sin", tutti_sin(g, z));
  report(sum, "cos", tutti_cos(g, z));
  report(sum, "gelu", tutti_gelu(g, z, NULL));
  report(sum, "silu", tutti_silu(g, z));
  report(sum, "softplus", tutti_softplus(g, z));
  tutti_elu_attrs half = {.has_alpha = 1, .alpha = 0.5};
  report(sum, "elu", tutti_elu(g, z, &half));
  tutti_leaky_relu_attrs quarter = {.has_alpha = 1, .alpha = 0.25};
  report(sum, "leaky_relu", tutti_leaky_relu(g, z, &quarter));
  report(sum, "floor", tutti_floor(g, z));
  report(sum, "ceil", tutti_ceil(g, z));
  report(sum, "round", tutti_round(g, z));
  report(sum, "erf", tutti_erf(g, z));
}

static void report_pairs(struct sum *sum, tutti_value x, tutti_value z) {
  tutti_graph *g = sum->g;
  tutti_value above = tutti_add(g, x, number(g, 1));
  report(sum, "pow", tutti_pow(g, above, z));
  report(sum, "maximum", tutti_maximum(g, z, x));
  report(sum, "select", tutti_select(g, tutti_greater(g, z, number(g, 0)), z, x));
  report(sum, "mod", tutti_mod(g, z, above));
  report(sum, "floor_divide", tutti_floor_divide(g, z, above));
}

static void report_answers(struct sum *sum, tutti_value z) {
  tutti_graph *g = sum->g;
  tutti_value floor = tutti_floor(g, z), nearest = tutti_round(g, z), ceiling = tutti_ceil(g, z);
  tutti_value is_positive = tutti_greater(g, z, number(g, 0)), is_down = tutti_equal(g, nearest, floor);
  report(sum, "is_finite", tutti_is_finite(g, tutti_log(g, z)));
  report(sum, "logical_not", tutti_logical_not(g, is_positive));
  report(sum, "logical_and", tutti_logical_and(g, is_positive, is_down));
  report(sum, "logical_or", tutti_logical_or(g, is_positive, is_down));
  report(sum, "logical_xor", tutti_logical_xor(g, is_positive, is_down));
  report(sum, "equal", is_down);
  report(sum, "not_equal", tutti_not_equal(g, nearest, ceiling));
  report(sum, "less_equal", tutti_less_equal(g, ceiling, nearest));
  report(sum, "greater_equal", tutti_greater_equal(g, floor, nearest));
}

static void report_extremes(struct sum *sum, tutti_value z, tutti_value shift) {
  tutti_graph *g = sum->g;
  static const int64_t last[] = {1};
  tutti_reduce_min_attrs lowest = {.axes = last, .axes_count = 1};
  report(sum, "reduce_min", tutti_reduce_min(g, z, &lowest));
  tutti_reduce_prod_attrs product = {.axes = last, .axes_count = 1};
  report(sum, "reduce_prod", tutti_reduce_prod(g, z, &product));
  report(sum, "argmin", tutti_argmin(g, z, NULL));
  tutti_value good = tutti_all_finite(g, shift), bad = tutti_all_finite(g, tutti_log(g, tutti_neg(g, shift)));
  report(sum, "all_finite", tutti_sub(g, tutti_cast(g, good, TUTTI_DTYPE_F32), tutti_cast(g, bad, TUTTI_DTYPE_F32)));
}

static void report_shapes(struct sum *sum, tutti_value x, tutti_value z) {
  tutti_graph *g = sum->g;
  tutti_value pair = tutti_reshape(g, both(g, x, z), (int64_t[]){TUTTI_DIM_BATCH, 2, 3}, 3);
  tutti_iota_attrs rising = {.dtype = TUTTI_DTYPE_F32};
  tutti_transpose_attrs turn = {.permutation = (int64_t[]){0, 2, 1}, .permutation_count = 3};
  tutti_value turned = tutti_transpose(g, pair, &turn);
  report(sum, "transpose", tutti_mul(g, turned, tutti_iota(g, (int64_t[]){2}, 1, &rising)));
  tutti_value column = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 3, 1}, 3);
  tutti_value spread = tutti_broadcast_to(g, column, (int64_t[]){TUTTI_DIM_BATCH, 3, 2}, 3);
  report(sum, "broadcast_to", tutti_mul(g, spread, tutti_iota(g, (int64_t[]){3, 2}, 2, &rising)));
  tutti_gather_attrs columns = {.axis = 1};
  report(sum, "gather", tutti_gather(g, z, tutti_iota(g, (int64_t[]){2}, 1, NULL), &columns));
  tutti_pad_attrs halves = {.value = 0.5};
  tutti_value padded = tutti_pad(g, z, (int64_t[]){0, 1}, 2, (int64_t[]){0, 2}, 2, &halves);
  report(sum, "pad", tutti_mul(g, padded, tutti_iota(g, (int64_t[]){6}, 1, &rising)));
}

static void report_pixels(struct sum *sum, tutti_value x, tutti_value z, tutti_value shift) {
  tutti_graph *g = sum->g;
  tutti_value image = tutti_reshape(g, both(g, x, z), (int64_t[]){TUTTI_DIM_BATCH, 2, 3, 1}, 4);
  tutti_value kernel = tutti_reshape(g, shift, (int64_t[]){1, 3, 1, 1}, 4);
  tutti_conv2d_attrs apart = {.dilation = {1, 2}};
  report(sum, "conv2d", tutti_conv2d(g, image, kernel, &apart));
  tutti_max_pool2d_attrs by_one = {.stride = (int64_t[]){1, 1}, .stride_count = 2};
  report(sum, "max_pool2d", tutti_max_pool2d(g, image, (int64_t[]){2, 2}, &by_one));
  tutti_avg_pool2d_attrs same = {.padding = TUTTI_AVG_POOL2D_PADDING_SAME};
  report(sum, "avg_pool2d", tutti_avg_pool2d(g, image, (int64_t[]){2, 2}, &same));
}

/* Over the rows of the batch, and so only in training. */
static void report_batch_norm(struct sum *sum, tutti_value x, tutti_value z, tutti_value shift) {
  tutti_graph *g = sum->g;
  tutti_value half = tutti_mul(g, shift, number(g, 0.5)), statistics[2];
  tutti_batch_norm_training_attrs tenth = {.has_epsilon = 1, .epsilon = 0.1};
  tutti_value normal = tutti_batch_norm_training(g, z, shift, half, &tenth, statistics);
  report(sum, "batch_norm_training", tutti_mul(g, normal, x));
}

static void report_norms(struct sum *sum, tutti_value x, tutti_value z, tutti_value shift) {
  tutti_graph *g = sum->g;
  tutti_value half = tutti_mul(g, shift, number(g, 0.5)), statistics[2];
  report(sum, "batch_norm_inference", tutti_batch_norm_inference(g, z, shift, half, shift, tutti_exp(g, half), NULL));
  report(sum, "layer_norm", tutti_mul(g, tutti_layer_norm(g, z, shift, half, NULL, statistics), x));
  tutti_rms_norm_attrs squares = {.has_epsilon = 1, .epsilon = 0.1};
  report(sum, "rms_norm", tutti_rms_norm(g, z, shift, &squares, statistics));
  tutti_value sequence = tutti_reshape(g, both(g, x, z), (int64_t[]){TUTTI_DIM_BATCH, 2, 3}, 3);
  tutti_value groups = tutti_group_norm(g, sequence, shift, half, 3, NULL, statistics);
  report(sum, "group_norm", tutti_mul(g, groups, sequence));
}

static void report_attention(struct sum *sum, tutti_value x, tutti_value z) {
  tutti_graph *g = sum->g;
  int64_t dims[] = {TUTTI_DIM_BATCH, 3, 1, 1};
  tutti_value queries = tutti_reshape(g, z, dims, 4), keys = tutti_reshape(g, x, dims, 4);
  tutti_value statistics[1];
  tutti_attention_attrs past = {.causal = 1, .scale = 0.5};
  report(sum, "attention", tutti_attention(g, queries, keys, queries, &past, statistics));
}

static void report_entropies(struct sum *sum, tutti_value x, tutti_value y, tutti_value z) {
  tutti_graph *g = sum->g;
  tutti_value hot = tutti_one_hot(g, y, 3, NULL);
  tutti_sparse_softmax_cross_entropy_attrs smooth = {.label_smoothing = 0.1};
  report(sum, "log_softmax", tutti_mul(g, tutti_log_softmax(g, z, NULL), x));
  report(sum, "sparse_softmax_cross_entropy", tutti_sparse_softmax_cross_entropy(g, z, y, &smooth));
  report(sum, "softmax_cross_entropy", tutti_softmax_cross_entropy(g, z, hot, NULL));
  report(sum, "sigmoid_cross_entropy", tutti_sigmoid_cross_entropy(g, z, hot));
  tutti_in_top_k_attrs two = {.k = 2};
  report(sum, "in_top_k", tutti_in_top_k(g, z, y, &two));
}

/* What is certain of so many values that are kept or dropped: the difference between the largest and the smallest. */
static void report_range(struct sum *sum, const char *name, tutti_value value) {
  static const int64_t along[] = {1};
  tutti_reduce_max_attrs highest = {.axes = along, .axes_count = 1};
  tutti_reduce_min_attrs lowest = {.axes = along, .axes_count = 1};
  report(sum, name,
         tutti_sub(sum->g, tutti_reduce_max(sum->g, value, &highest), tutti_reduce_min(sum->g, value, &lowest)));
}

/* Of random numbers the whole number that all of them are next to. */
static void report_draws(struct sum *sum) {
  tutti_graph *g = sum->g;
  tutti_value one = number(g, 1), statistics[1];
  int64_t draws[] = {TUTTI_DIM_BATCH, 64};
  report_range(sum, "dropout", tutti_dropout(g, tutti_broadcast_to(g, one, draws, 2), 0.25, NULL));
  tutti_value queries = tutti_broadcast_to(g, one, (int64_t[]){TUTTI_DIM_BATCH, 64, 1, 1}, 4);
  tutti_value key = tutti_broadcast_to(g, one, (int64_t[]){TUTTI_DIM_BATCH, 1, 1, 1}, 4);
  report_range(sum, "dropout_attention", tutti_dropout_attention(g, queries, key, key, 0.25, NULL, statistics));
  tutti_random_uniform_attrs bounds = {.low = 3, .has_high = 1, .high = 4};
  report(sum, "random_uniform", tutti_floor(g, tutti_random_uniform(g, draws, 2, &bounds)));
  tutti_random_normal_attrs narrow = {.mean = 5, .has_stddev = 1, .stddev = 0.05};
  report(sum, "random_normal", tutti_round(g, tutti_random_normal(g, draws, 2, &narrow)));
  tutti_random_truncated_normal_attrs within = {.mean = 4, .has_stddev = 1, .stddev = 0.2};
  report(sum, "random_truncated_normal", tutti_round(g, tutti_random_truncated_normal(g, draws, 2, &within)));
}

int32_t scenario_ops(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value shift = tutti_graph_variable(g, "shift", TUTTI_DTYPE_F32, (int64_t[]){3}, 1, "ones", 0, 1);
  tutti_value z = tutti_add(g, tutti_sub(g, tutti_mul(g, x, number(g, 4)), number(g, 3)), shift);
  tutti_graph_set_output(g, "z", z);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    struct sum sum = {g, number(g, 0)};
    report_curves(&sum, z);
    report_pairs(&sum, x, z);
    report_answers(&sum, z);
    report_extremes(&sum, z, shift);
    report_shapes(&sum, x, z);
    report_pixels(&sum, x, z, shift);
    if (mode == TUTTI_MODE_TRAIN) report_batch_norm(&sum, x, z, shift);
    report_norms(&sum, x, z, shift);
    report_attention(&sum, x, z);
    report_entropies(&sum, x, y, z);
    report_draws(&sum);
    tutti_graph_set_loss(g, tutti_mul(g, sum.value, number(g, 0.1)));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  }
  return tutti_graph_check(g, err);
}
