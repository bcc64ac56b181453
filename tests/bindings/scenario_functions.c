/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_functions.h"

/* The sum of what was reported, of one graph. */
struct sum {
  tutti_graph *g;
  tutti_value value;
};

/* The mean over all elements under the function's name. */
static void report(struct sum *sum, const char *name, tutti_value value) {
  tutti_value mean = tutti_reduce_mean(sum->g, tutti_cast(sum->g, value, TUTTI_DTYPE_F32), NULL);
  tutti_graph_add_metric(sum->g, name, mean);
  sum->value = tutti_add(sum->g, sum->value, mean);
}

static void report_activations(struct sum *sum, tutti_value z, tutti_value shift) {
  tutti_graph *g = sum->g;
  report(sum, "clip", tutti_clip(g, z, -1, 1));
  report(sum, "relu6", tutti_relu6(g, z));
  report(sum, "selu", tutti_selu(g, z));
  report(sum, "mish", tutti_mish(g, z));
  report(sum, "hard_sigmoid", tutti_hard_sigmoid(g, z));
  report(sum, "hard_swish", tutti_hard_swish(g, z));
  report(sum, "softsign", tutti_softsign(g, z));
  report(sum, "log_sigmoid", tutti_log_sigmoid(g, z));
  report(sum, "prelu", tutti_prelu(g, z, shift));
  report(sum, "is_nan", tutti_is_nan(g, tutti_log(g, z)));
  report(sum, "is_inf", tutti_is_inf(g, tutti_reciprocal(g, tutti_relu(g, z))));
}

static void report_angles(struct sum *sum, tutti_value x, tutti_value z) {
  tutti_graph *g = sum->g;
  tutti_value above = tutti_add(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1)), inner = tutti_tanh(g, z);
  report(sum, "log2", tutti_log2(g, above));
  report(sum, "log10", tutti_log10(g, above));
  report(sum, "tan", tutti_tan(g, inner));
  report(sum, "sinh", tutti_sinh(g, z));
  report(sum, "cosh", tutti_cosh(g, z));
  report(sum, "atan", tutti_atan(g, z));
  report(sum, "atan2", tutti_atan2(g, z, x));
  report(sum, "asin", tutti_asin(g, inner));
  report(sum, "acos", tutti_acos(g, inner));
}

static void report_reductions(struct sum *sum, tutti_value y, tutti_value z) {
  tutti_graph *g = sum->g;
  static const int64_t last[] = {1};
  tutti_value is_positive = tutti_greater(g, z, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0));
  tutti_logsumexp_attrs sums = {.axes = last, .axes_count = 1};
  report(sum, "logsumexp", tutti_logsumexp(g, z, &sums));
  tutti_norm_attrs norm = {.axes = last, .axes_count = 1, .order = TUTTI_NORM_ORDER_INFINITY};
  report(sum, "norm", tutti_norm(g, z, &norm));
  report(sum, "l2_normalize", tutti_l2_normalize(g, z, NULL));
  tutti_reduce_any_attrs any = {.axes = last, .axes_count = 1};
  report(sum, "reduce_any", tutti_reduce_any(g, is_positive, &any));
  tutti_reduce_all_attrs all = {.axes = last, .axes_count = 1, .keep_dims = 1};
  report(sum, "reduce_all", tutti_reduce_all(g, is_positive, &all));
  tutti_bincount_attrs by_row = {.by_row = 1};
  tutti_value labels = tutti_reshape(g, y, (int64_t[]){TUTTI_DIM_BATCH, 1}, 2);
  report(sum, "bincount", tutti_bincount(g, labels, 2, &by_row));
}

static void report_places(struct sum *sum, tutti_value x, tutti_value z) {
  tutti_graph *g = sum->g;
  static const int64_t last[] = {1};
  tutti_value pieces[3];
  tutti_split_attrs split = {.axis = -1, .sizes = (int64_t[]){1, 2}, .sizes_count = 2};
  tutti_split(g, z, 2, &split, pieces);
  report(sum, "split", tutti_mul(g, pieces[0], pieces[1]));
  tutti_unstack_attrs unstack = {.axis = 1};
  tutti_unstack(g, z, 3, &unstack, pieces);
  report(sum, "unstack", tutti_mul(g, pieces[0], pieces[2]));
  tutti_stack_attrs stack = {.axis = 1};
  tutti_value both = tutti_stack(g, (tutti_value[]){z, x}, 2, &stack);
  tutti_lower_triangle_attrs below = {.diagonal = -1};
  report(sum, "stack", tutti_lower_triangle(g, both, &below));
  tutti_cumsum_attrs along = {.axis = 1};
  report(sum, "tile", tutti_cumsum(g, tutti_tile(g, z, (int64_t[]){1, 2}, 2), &along));
  report(sum, "roll", tutti_mul(g, tutti_roll(g, z, last, 1, last, 1), x));
  report(sum, "reverse", tutti_mul(g, tutti_reverse(g, z, last, 1), x));
  tutti_cumsum_attrs backward = {.axis = 1, .exclusive = 1, .backward = 1};
  report(sum, "cumsum", tutti_cumsum(g, z, &backward));
  tutti_cumprod_attrs products = {.axis = 1};
  report(sum, "cumprod", tutti_cumprod(g, z, &products));
  report(sum, "sort", tutti_mul(g, tutti_sort(g, z, NULL), x));
  tutti_argsort_attrs falling = {.descending = 1};
  report(sum, "argsort", tutti_mul(g, tutti_cast(g, tutti_argsort(g, z, &falling), TUTTI_DTYPE_F32), x));
}

static void report_matrices(struct sum *sum, tutti_value x, tutti_value z) {
  tutti_graph *g = sum->g;
  tutti_value outer = tutti_einsum(g, (tutti_value[]){z, x}, 2, "bi,bj->bij");
  report(sum, "einsum", tutti_einsum(g, (tutti_value[]){outer, z}, 2, "bij,bj->bi"));
  tutti_band_part_attrs band = {.has_lower = 1, .lower = 0, .has_upper = 1, .upper = 1};
  report(sum, "band_part", tutti_band_part(g, outer, &band));
  tutti_lower_triangle_attrs lower = {.diagonal = 1};
  report(sum, "lower_triangle", tutti_lower_triangle(g, outer, &lower));
  report(sum, "upper_triangle", tutti_upper_triangle(g, outer, NULL));
  tutti_band_mask_attrs causal = {.has_upper = 1, .upper = 0};
  report(sum, "band_mask", tutti_band_mask(g, 2, 3, &causal));
}

static void report_rows(struct sum *sum, tutti_value y, tutti_value shift) {
  tutti_graph *g = sum->g;
  tutti_value labels = tutti_reshape(g, y, (int64_t[]){TUTTI_DIM_BATCH, 1}, 2);
  report(sum, "gather_nd", tutti_gather_nd(g, shift, labels));
  tutti_iota_attrs whole = {.dtype = TUTTI_DTYPE_I32};
  tutti_value parts[2], rows = tutti_iota(g, (int64_t[]){2}, 1, &whole);
  tutti_split_attrs sizes = {.sizes = (int64_t[]){1, 2}, .sizes_count = 2};
  tutti_split(g, shift, 2, &sizes, parts);
  report(sum, "scatter_add", tutti_scatter_add(g, shift, rows, parts[1]));
  tutti_value longer = tutti_mul(g, shift, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1.5));
  report(sum, "scatter_max", tutti_scatter_max(g, longer, rows, tutti_cumsum(g, parts[1], NULL)));
  report(sum, "scatter_replace", tutti_scatter_replace(g, shift, rows, tutti_exp(g, parts[1])));
}

static void report_windows(struct sum *sum, tutti_value z, tutti_value shift) {
  tutti_graph *g = sum->g;
  tutti_value sequence = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 3, 1}, 3);
  tutti_value kernel = tutti_reshape(g, shift, (int64_t[]){3, 1, 1}, 3);
  report(sum, "conv1d", tutti_conv1d(g, sequence, kernel, NULL));
  tutti_max_pool1d_attrs by_one = {.stride = 1};
  report(sum, "max_pool1d", tutti_max_pool1d(g, sequence, 2, &by_one));
  tutti_avg_pool1d_attrs same = {.padding = TUTTI_AVG_POOL1D_PADDING_SAME};
  report(sum, "avg_pool1d", tutti_avg_pool1d(g, sequence, 2, &same));
}

static void report_images(struct sum *sum, tutti_value z, tutti_value shift) {
  tutti_graph *g = sum->g;
  tutti_value sequence = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 3, 1}, 3);
  tutti_value image = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 1, 3, 1}, 4);
  tutti_value volume = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 3, 1, 1, 1}, 5);
  tutti_conv1d_transpose_attrs by_two = {.stride = 2};
  tutti_value kernel = tutti_reshape(g, shift, (int64_t[]){3, 1, 1}, 3);
  report(sum, "conv1d_transpose", tutti_conv1d_transpose(g, sequence, kernel, &by_two));
  tutti_conv2d_transpose_attrs wide = {.stride = {1, 2}, .padding = TUTTI_CONV2D_TRANSPOSE_PADDING_VALID};
  kernel = tutti_reshape(g, shift, (int64_t[]){1, 3, 1, 1}, 4);
  report(sum, "conv2d_transpose", tutti_conv2d_transpose(g, image, kernel, &wide));
  tutti_conv3d_attrs inside = {.padding = TUTTI_CONV3D_PADDING_VALID};
  kernel = tutti_reshape(g, shift, (int64_t[]){3, 1, 1, 1, 1}, 5);
  report(sum, "conv3d", tutti_conv3d(g, volume, kernel, &inside));
  report(sum, "conv3d_transpose", tutti_conv3d_transpose(g, volume, kernel, NULL));
  tutti_max_pool3d_attrs by_one = {.stride = {1, 1, 1}};
  report(sum, "max_pool3d", tutti_max_pool3d(g, volume, (int64_t[]){2, 1, 1}, &by_one));
  report(sum, "avg_pool3d", tutti_avg_pool3d(g, volume, (int64_t[]){3, 1, 1}, NULL));
  report(sum, "resize2d", tutti_resize2d(g, image, (int64_t[]){1, 2}, NULL));
}

int32_t scenario_functions(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value shift = tutti_graph_variable(g, "shift", TUTTI_DTYPE_F32, (int64_t[]){3}, 1, "ones", 0, 1);
  tutti_value four = tutti_graph_constant(g, TUTTI_DTYPE_F32, 4), three = tutti_graph_constant(g, TUTTI_DTYPE_F32, 3);
  tutti_value z = tutti_add(g, tutti_sub(g, tutti_mul(g, x, four), three), shift);
  tutti_graph_set_output(g, "z", z);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    struct sum sum = {g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0)};
    report_activations(&sum, z, shift);
    report_angles(&sum, x, z);
    report_reductions(&sum, y, z);
    report_places(&sum, x, z);
    report_matrices(&sum, x, z);
    report_rows(&sum, y, shift);
    report_windows(&sum, z, shift);
    report_images(&sum, z, shift);
    tutti_graph_set_loss(g, sum.value);
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.01), NULL);
  }
  return tutti_graph_check(g, err);
}
