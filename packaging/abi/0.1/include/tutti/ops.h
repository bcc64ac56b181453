/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops and functions of ops, layers, losses, metrics, optimizers, schedules, dataset sources and transforms, one typed
 * helper each. Generated from the registries; do not edit.
 *
 * Attribute structs may be NULL or all zeros: every attribute then has its default. Set a field to change one; a field
 * with a has_ flag counts when the flag is 1. Truth values are 0 or 1, and 0 is the default: what is usual and can be
 * left out has a name that says so (without_bias). Shapes may use TUTTI_DIM_BATCH.
 */
#ifndef TUTTI_OPS_H_
#define TUTTI_OPS_H_

#include <tutti/dataset.h>
#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- ops ---------------------------------------------------------------------------------------------------------- */

/* The input itself. */
static inline tutti_value tutti_identity(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "identity", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The input itself; no gradient flows through it. */
static inline tutti_value tutti_stop_gradient(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "stop_gradient", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* -x. */
static inline tutti_value tutti_neg(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "neg", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* |x|; the gradient at 0 is 0. */
static inline tutti_value tutti_abs(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "abs", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* -1, 0 or 1. */
static inline tutti_value tutti_sign(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "sign", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* e to the x. */
static inline tutti_value tutti_exp(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "exp", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Natural logarithm. */
static inline tutti_value tutti_log(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "log", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* log(1 + x) without loss near 0. */
static inline tutti_value tutti_log1p(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "log1p", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* exp(x) - 1 without loss near 0. */
static inline tutti_value tutti_expm1(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "expm1", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Square root. */
static inline tutti_value tutti_sqrt(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "sqrt", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* 1 / sqrt(x). */
static inline tutti_value tutti_rsqrt(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "rsqrt", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* x * x. */
static inline tutti_value tutti_square(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "square", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* 1 / x. */
static inline tutti_value tutti_reciprocal(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "reciprocal", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Sine of radians. */
static inline tutti_value tutti_sin(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "sin", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Cosine of radians. */
static inline tutti_value tutti_cos(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "cos", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Hyperbolic tangent. */
static inline tutti_value tutti_tanh(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "tanh", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* 1 / (1 + exp(-x)). */
static inline tutti_value tutti_sigmoid(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "sigmoid", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* max(x, 0); NaN stays NaN; the gradient at 0 is 0. */
static inline tutti_value tutti_relu(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "relu", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_gelu_attrs {
  /* Use the tanh approximation. */
  uint8_t approximate;
} tutti_gelu_attrs;
/* x * Phi(x), the Gaussian error linear unit. */
static inline tutti_value tutti_gelu(tutti_graph *graph, tutti_value x, const tutti_gelu_attrs *attrs) {
  tutti_graph_begin(graph, "gelu", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->approximate != 0) tutti_graph_set_bool(graph, "approximate", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* x * sigmoid(x). */
static inline tutti_value tutti_silu(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "silu", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* log(1 + exp(x)), stable for large |x|. */
static inline tutti_value tutti_softplus(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "softplus", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_elu_attrs {
  /* Scale of the negative part. Default: 1.0. */
  uint8_t has_alpha;
  double alpha;
} tutti_elu_attrs;
/* x for x > 0, else alpha * (exp(x) - 1). */
static inline tutti_value tutti_elu(tutti_graph *graph, tutti_value x, const tutti_elu_attrs *attrs) {
  tutti_graph_begin(graph, "elu", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_alpha) tutti_graph_set_f64(graph, "alpha", attrs->alpha);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_leaky_relu_attrs {
  /* Slope of the negative part. Default: 0.01. */
  uint8_t has_alpha;
  double alpha;
} tutti_leaky_relu_attrs;
/* x for x > 0, else alpha * x. */
static inline tutti_value tutti_leaky_relu(tutti_graph *graph, tutti_value x, const tutti_leaky_relu_attrs *attrs) {
  tutti_graph_begin(graph, "leaky_relu", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_alpha) tutti_graph_set_f64(graph, "alpha", attrs->alpha);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* Largest integer not above x. */
static inline tutti_value tutti_floor(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "floor", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Smallest integer not below x. */
static inline tutti_value tutti_ceil(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "ceil", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Nearest integer; halves go to the even one. */
static inline tutti_value tutti_round(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "round", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Error function. */
static inline tutti_value tutti_erf(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "erf", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Negation. */
static inline tutti_value tutti_logical_not(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "logical_not", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether x is neither infinite nor NaN; a boolean. */
static inline tutti_value tutti_is_finite(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "is_finite", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Conversion to another dtype. Float to integer truncates towards zero and saturates, NaN gives 0; to boolean: x !=
 * 0. dtype: Target dtype. */
static inline tutti_value tutti_cast(tutti_graph *graph, tutti_value x, int32_t dtype) {
  tutti_graph_begin(graph, "cast", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "dtype", dtype);
  return tutti_graph_end(graph, NULL, 0);
}

/* a + b. */
static inline tutti_value tutti_add(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "add", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* a - b. */
static inline tutti_value tutti_sub(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "sub", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* a * b. */
static inline tutti_value tutti_mul(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "mul", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* a / b. */
static inline tutti_value tutti_div(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "div", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* a to the b. */
static inline tutti_value tutti_pow(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "pow", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* The larger; NaN wins. Equal elements give their gradient to a. */
static inline tutti_value tutti_maximum(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "maximum", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* The smaller; NaN wins. Equal elements give their gradient to a. */
static inline tutti_value tutti_minimum(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "minimum", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* a - b * floor(a / b), so the sign is that of b. Integers: b = 0 gives 0. */
static inline tutti_value tutti_mod(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "mod", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* floor(a / b). Integers: b = 0 gives 0. */
static inline tutti_value tutti_floor_divide(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "floor_divide", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether a = b; a boolean. */
static inline tutti_value tutti_equal(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "equal", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether a != b; a boolean. */
static inline tutti_value tutti_not_equal(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "not_equal", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether a < b; a boolean. */
static inline tutti_value tutti_less(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "less", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether a <= b; a boolean. */
static inline tutti_value tutti_less_equal(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "less_equal", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether a > b; a boolean. */
static inline tutti_value tutti_greater(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "greater", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether a >= b; a boolean. */
static inline tutti_value tutti_greater_equal(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "greater_equal", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Both. */
static inline tutti_value tutti_logical_and(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "logical_and", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* Either. */
static inline tutti_value tutti_logical_or(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "logical_or", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* One but not both. */
static inline tutti_value tutti_logical_xor(tutti_graph *graph, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "logical_xor", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

/* a where condition holds, else b; all three broadcast. */
static inline tutti_value tutti_select(tutti_graph *graph, tutti_value condition, tutti_value a, tutti_value b) {
  tutti_graph_begin(graph, "select", 1);
  tutti_graph_add_input(graph, condition);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_reduce_sum_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_reduce_sum_attrs;
/* Sum; 0 over nothing. */
static inline tutti_value tutti_reduce_sum(tutti_graph *graph, tutti_value x, const tutti_reduce_sum_attrs *attrs) {
  tutti_graph_begin(graph, "reduce_sum", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_reduce_mean_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_reduce_mean_attrs;
/* Mean. Over the batch axis it is the mean over the rows of the whole step: the builder expands it. */
static inline tutti_value tutti_reduce_mean(tutti_graph *graph, tutti_value x, const tutti_reduce_mean_attrs *attrs) {
  tutti_graph_begin(graph, "reduce_mean", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_reduce_max_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_reduce_max_attrs;
/* Maximum; NaN wins; the lowest value of the dtype over nothing. Elements that tie share the gradient equally. */
static inline tutti_value tutti_reduce_max(tutti_graph *graph, tutti_value x, const tutti_reduce_max_attrs *attrs) {
  tutti_graph_begin(graph, "reduce_max", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_reduce_min_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_reduce_min_attrs;
/* Minimum; NaN wins; the highest value of the dtype over nothing. Elements that tie share the gradient equally. */
static inline tutti_value tutti_reduce_min(tutti_graph *graph, tutti_value x, const tutti_reduce_min_attrs *attrs) {
  tutti_graph_begin(graph, "reduce_min", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_reduce_prod_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_reduce_prod_attrs;
/* Product; 1 over nothing. */
static inline tutti_value tutti_reduce_prod(tutti_graph *graph, tutti_value x, const tutti_reduce_prod_attrs *attrs) {
  tutti_graph_begin(graph, "reduce_prod", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_argmax_attrs {
  /* Axis; negative counts from the end. Default: -1. */
  uint8_t has_axis;
  int64_t axis;
} tutti_argmax_attrs;
/* Index of the first maximum along an axis; i64. The first NaN counts as the maximum. */
static inline tutti_value tutti_argmax(tutti_graph *graph, tutti_value x, const tutti_argmax_attrs *attrs) {
  tutti_graph_begin(graph, "argmax", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_axis) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_argmin_attrs {
  /* Axis; negative counts from the end. Default: -1. */
  uint8_t has_axis;
  int64_t axis;
} tutti_argmin_attrs;
/* Index of the first minimum along an axis; i64. The first NaN counts as the minimum. */
static inline tutti_value tutti_argmin(tutti_graph *graph, tutti_value x, const tutti_argmin_attrs *attrs) {
  tutti_graph_begin(graph, "argmin", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_axis) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* The k largest elements along the last axis and their indices, largest first. Equal elements are in the order of
 * their indices; 0 equals -0. NaN counts as larger than all numbers, as in argmax. k above the length of the axis
 * is an error. k: Number of elements, at most n. */
static inline tutti_value tutti_top_k(tutti_graph *graph, tutti_value x, int64_t k, tutti_value more[1]) {
  tutti_graph_begin(graph, "top_k", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "k", k);
  return tutti_graph_end(graph, more, 1);
}

/* Whether every element is neither infinite nor NaN; a boolean scalar, true over nothing. */
static inline tutti_value tutti_all_finite(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "all_finite", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The same elements in row-major order under another shape. dims: New shape. One dimension may be -1, which is
 * inferred. */
static inline tutti_value tutti_reshape(tutti_graph *graph, tutti_value x, const int64_t *dims, int64_t dims_count) {
  tutti_graph_begin(graph, "reshape", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "dims", dims, dims_count);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_transpose_attrs {
  /* Permutation of the axes. Empty = reversed order. */
  const int64_t *permutation;
  int64_t permutation_count;
} tutti_transpose_attrs;
/* Axes permuted; axis i of the result is axis permutation[i] of x. */
static inline tutti_value tutti_transpose(tutti_graph *graph, tutti_value x, const tutti_transpose_attrs *attrs) {
  tutti_graph_begin(graph, "transpose", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->permutation != NULL || attrs->permutation_count != 0) tutti_graph_set_i64s(graph, "permutation", attrs->permutation, attrs->permutation_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* Repeated to a larger shape by the broadcasting rules. dims: Shape of the result. */
static inline tutti_value tutti_broadcast_to(tutti_graph *graph, tutti_value x, const int64_t *dims, int64_t dims_count) {
  tutti_graph_begin(graph, "broadcast_to", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "dims", dims, dims_count);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_concat_attrs {
  /* Axis; negative counts from the end. Default: 0. */
  int64_t axis;
} tutti_concat_attrs;
/* Joined along an axis; all other axes equal. */
static inline tutti_value tutti_concat(tutti_graph *graph, const tutti_value *inputs, int64_t inputs_count, const tutti_concat_attrs *attrs) {
  tutti_graph_begin(graph, "concat", 1);
  if (inputs == NULL && inputs_count != 0) tutti_graph_set_i64s(graph, "inputs", NULL, inputs_count);
  for (int64_t i = 0; inputs != NULL && i < inputs_count; i++) tutti_graph_add_input(graph, inputs[i]);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_slice_attrs {
  /* Step for each axis. Empty = all 1. */
  const int64_t *strides;
  int64_t strides_count;
} tutti_slice_attrs;
/* A strided block: element j of an axis is element begin + j * stride of x. begin: First index for each axis; a
 * negative constant counts from the end. size: Elements of the result for each axis; -1 = as many as fit. */
static inline tutti_value tutti_slice(tutti_graph *graph, tutti_value x, const int64_t *begin, int64_t begin_count, const int64_t *size, int64_t size_count, const tutti_slice_attrs *attrs) {
  tutti_graph_begin(graph, "slice", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "begin", begin, begin_count);
  tutti_graph_set_i64s(graph, "size", size, size_count);
  if (attrs != NULL) {
    if (attrs->strides != NULL || attrs->strides_count != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, attrs->strides_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_pad_attrs {
  /* The constant; converted to the dtype of x. Default: 0.0. */
  double value;
} tutti_pad_attrs;
/* x with a constant padded around it. low: Padding before each axis. high: Padding after each axis. */
static inline tutti_value tutti_pad(tutti_graph *graph, tutti_value x, const int64_t *low, int64_t low_count, const int64_t *high, int64_t high_count, const tutti_pad_attrs *attrs) {
  tutti_graph_begin(graph, "pad", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "low", low, low_count);
  tutti_graph_set_i64s(graph, "high", high, high_count);
  if (attrs != NULL) {
    if (attrs->value != 0) tutti_graph_set_f64(graph, "value", attrs->value);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_gather_attrs {
  /* Axis of params. Default: 0. */
  int64_t axis;
} tutti_gather_attrs;
/* Slices of params picked along an axis: result shape is params[:axis] + indices + params[axis+1:]. An index out of
 * range is an error of the run. */
static inline tutti_value tutti_gather(tutti_graph *graph, tutti_value params, tutti_value indices, const tutti_gather_attrs *attrs) {
  tutti_graph_begin(graph, "gather", 1);
  tutti_graph_add_input(graph, params);
  tutti_graph_add_input(graph, indices);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_one_hot_attrs {
  /* Value at the index. Default: 1.0. */
  uint8_t has_on;
  double on;
  /* Value elsewhere. Default: 0.0. */
  double off;
  /* Dtype of the result. Default: f32. */
  int32_t dtype;
} tutti_one_hot_attrs;
/* A new last axis that is `on` at the index and `off` elsewhere; an index out of range gives all `off`. depth:
 * Length of the new axis. */
static inline tutti_value tutti_one_hot(tutti_graph *graph, tutti_value indices, int64_t depth, const tutti_one_hot_attrs *attrs) {
  tutti_graph_begin(graph, "one_hot", 1);
  tutti_graph_add_input(graph, indices);
  tutti_graph_set_i64(graph, "depth", depth);
  if (attrs != NULL) {
    if (attrs->has_on) tutti_graph_set_f64(graph, "on", attrs->on);
    if (attrs->off != 0) tutti_graph_set_f64(graph, "off", attrs->off);
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_iota_attrs {
  /* The axis that counts. Default: 0. */
  int64_t axis;
  /* Dtype of the result: an integer or a float. Default: i64. */
  int32_t dtype;
} tutti_iota_attrs;
/* Each element is its index along an axis. dims: Shape. */
static inline tutti_value tutti_iota(tutti_graph *graph, const int64_t *dims, int64_t dims_count, const tutti_iota_attrs *attrs) {
  tutti_graph_begin(graph, "iota", 1);
  tutti_graph_set_i64s(graph, "dims", dims, dims_count);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_matmul_attrs {
  /* a is [..., k, m]. */
  uint8_t transpose_a;
  /* b is [..., n, k]. */
  uint8_t transpose_b;
} tutti_matmul_attrs;
/* Product of the last two axes, [..., m, k] x [..., k, n] -> [..., m, n]; leading axes broadcast. */
static inline tutti_value tutti_matmul(tutti_graph *graph, tutti_value a, tutti_value b, const tutti_matmul_attrs *attrs) {
  tutti_graph_begin(graph, "matmul", 1);
  tutti_graph_add_input(graph, a);
  tutti_graph_add_input(graph, b);
  if (attrs != NULL) {
    if (attrs->transpose_a != 0) tutti_graph_set_bool(graph, "transpose_a", 1);
    if (attrs->transpose_b != 0) tutti_graph_set_bool(graph, "transpose_b", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_CONV2D_PADDING_SAME 1
#define TUTTI_CONV2D_PADDING_VALID 2
#define TUTTI_CONV2D_PADDING_EXPLICIT 3
static inline const char *tutti_conv2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_CONV2D_PADDING_SAME: return "same";
    case TUTTI_CONV2D_PADDING_VALID: return "valid";
    case TUTTI_CONV2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_conv2d_attrs {
  /* [filters]. */
  tutti_value bias;
  /* Vertical and horizontal step. Default: [1, 1]. */
  int64_t stride[2];
  /* Distance between kernel elements. Default: [1, 1]. */
  int64_t dilation[2];
  /* How the border is padded. Default: same. */
  int32_t padding;
  /* top, bottom, left, right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
  /* Number of channel groups that are convolved separately; equal to the channels: depthwise. Default: 1. */
  int64_t groups;
} tutti_conv2d_attrs;
/* Two-dimensional convolution (cross-correlation), plus a bias when given. */
static inline tutti_value tutti_conv2d(tutti_graph *graph, tutti_value x, tutti_value kernel, const tutti_conv2d_attrs *attrs) {
  tutti_graph_begin(graph, "conv2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, kernel);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->bias : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->stride[0] != 0 || attrs->stride[1] != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, 2);
    if (attrs->dilation[0] != 0 || attrs->dilation[1] != 0) tutti_graph_set_i64s(graph, "dilation", attrs->dilation, 2);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_conv2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_MAX_POOL2D_PADDING_SAME 1
#define TUTTI_MAX_POOL2D_PADDING_VALID 2
#define TUTTI_MAX_POOL2D_PADDING_EXPLICIT 3
static inline const char *tutti_max_pool2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_MAX_POOL2D_PADDING_SAME: return "same";
    case TUTTI_MAX_POOL2D_PADDING_VALID: return "valid";
    case TUTTI_MAX_POOL2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_max_pool2d_attrs {
  /* Vertical and horizontal step. Empty = the window. */
  const int64_t *stride;
  int64_t stride_count;
  /* How the border is padded. Default: valid. */
  int32_t padding;
  /* top, bottom, left, right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
} tutti_max_pool2d_attrs;
/* Largest element of each window; padding never wins. NaN wins. window: Height and width of the window. */
static inline tutti_value tutti_max_pool2d(tutti_graph *graph, tutti_value x, const int64_t *window, const tutti_max_pool2d_attrs *attrs) {
  tutti_graph_begin(graph, "max_pool2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "window", window, 2);
  if (attrs != NULL) {
    if (attrs->stride != NULL || attrs->stride_count != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, attrs->stride_count);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_max_pool2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_AVG_POOL2D_PADDING_SAME 1
#define TUTTI_AVG_POOL2D_PADDING_VALID 2
#define TUTTI_AVG_POOL2D_PADDING_EXPLICIT 3
static inline const char *tutti_avg_pool2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_AVG_POOL2D_PADDING_SAME: return "same";
    case TUTTI_AVG_POOL2D_PADDING_VALID: return "valid";
    case TUTTI_AVG_POOL2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_avg_pool2d_attrs {
  /* Vertical and horizontal step. Empty = the window. */
  const int64_t *stride;
  int64_t stride_count;
  /* How the border is padded. Default: valid. */
  int32_t padding;
  /* top, bottom, left, right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
  /* Divide by the size of the whole window at the border, too. */
  uint8_t count_include_padding;
} tutti_avg_pool2d_attrs;
/* Mean of each window. window: Height and width of the window. */
static inline tutti_value tutti_avg_pool2d(tutti_graph *graph, tutti_value x, const int64_t *window, const tutti_avg_pool2d_attrs *attrs) {
  tutti_graph_begin(graph, "avg_pool2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "window", window, 2);
  if (attrs != NULL) {
    if (attrs->stride != NULL || attrs->stride_count != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, attrs->stride_count);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_avg_pool2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
    if (attrs->count_include_padding != 0) tutti_graph_set_bool(graph, "count_include_padding", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_BATCH_NORM_TRAINING_STATISTICS_GLOBAL 1
#define TUTTI_BATCH_NORM_TRAINING_STATISTICS_PER_REPLICA 2
static inline const char *tutti_batch_norm_training_statistics_name(int32_t value) {
  switch (value) {
    case TUTTI_BATCH_NORM_TRAINING_STATISTICS_GLOBAL: return "global";
    case TUTTI_BATCH_NORM_TRAINING_STATISTICS_PER_REPLICA: return "per_replica";
    default: return "(no such value)";
  }
}
typedef struct tutti_batch_norm_training_attrs {
  /* Added to the variance. Default: 0.001. */
  uint8_t has_epsilon;
  double epsilon;
  /* Over the rows of all replicas, or of each replica alone. Default: global. */
  int32_t statistics;
} tutti_batch_norm_training_attrs;
/* (x - mean) / sqrt(variance + epsilon) * scale + offset with the statistics of the batch (biased variance).
 * Statistics are f32 for 16-bit floats. */
static inline tutti_value tutti_batch_norm_training(tutti_graph *graph, tutti_value x, tutti_value scale, tutti_value offset, const tutti_batch_norm_training_attrs *attrs, tutti_value more[2]) {
  tutti_graph_begin(graph, "batch_norm_training", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, scale);
  tutti_graph_add_input(graph, offset);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->statistics != 0) { if (attrs->statistics >= 1 && attrs->statistics <= 2) tutti_graph_set_string(graph, "statistics", tutti_batch_norm_training_statistics_name(attrs->statistics)); else tutti_graph_set_i64(graph, "statistics", attrs->statistics); }
  }
  return tutti_graph_end(graph, more, 2);
}

typedef struct tutti_batch_norm_inference_attrs {
  /* Added to the variance. Default: 0.001. */
  uint8_t has_epsilon;
  double epsilon;
} tutti_batch_norm_inference_attrs;
/* (x - mean) / sqrt(variance + epsilon) * scale + offset with given statistics. */
static inline tutti_value tutti_batch_norm_inference(tutti_graph *graph, tutti_value x, tutti_value scale, tutti_value offset, tutti_value mean, tutti_value variance, const tutti_batch_norm_inference_attrs *attrs) {
  tutti_graph_begin(graph, "batch_norm_inference", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, scale);
  tutti_graph_add_input(graph, offset);
  tutti_graph_add_input(graph, mean);
  tutti_graph_add_input(graph, variance);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_norm_attrs {
  /* Added to the variance. Default: 1e-05. */
  uint8_t has_epsilon;
  double epsilon;
} tutti_layer_norm_attrs;
/* (x - mean) * rstd * scale + offset over the last axis, rstd = 1 / sqrt(variance + epsilon). Statistics are f32
 * for 16-bit floats. */
static inline tutti_value tutti_layer_norm(tutti_graph *graph, tutti_value x, tutti_value scale, tutti_value offset, const tutti_layer_norm_attrs *attrs, tutti_value more[2]) {
  tutti_graph_begin(graph, "layer_norm", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, scale);
  tutti_graph_add_input(graph, offset);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, more, 2);
}

typedef struct tutti_rms_norm_attrs {
  /* Added to the average of the squares. Default: 1e-06. */
  uint8_t has_epsilon;
  double epsilon;
} tutti_rms_norm_attrs;
/* x * rstd * scale over the last axis, rstd = 1 / sqrt(average of x^2 + epsilon). Statistics are f32 for 16-bit
 * floats. */
static inline tutti_value tutti_rms_norm(tutti_graph *graph, tutti_value x, tutti_value scale, const tutti_rms_norm_attrs *attrs, tutti_value more[1]) {
  tutti_graph_begin(graph, "rms_norm", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, scale);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, more, 1);
}

typedef struct tutti_group_norm_attrs {
  /* Added to the variance. Default: 1e-05. */
  uint8_t has_epsilon;
  double epsilon;
} tutti_group_norm_attrs;
/* (x - mean) * rstd * scale + offset, rstd = 1 / sqrt(variance + epsilon): statistics of each row and group of
 * neighbouring channels, over the group and all axes between the first and the last. They are f32 for 16-bit
 * floats. groups: Number of groups, which must divide the channels. */
static inline tutti_value tutti_group_norm(tutti_graph *graph, tutti_value x, tutti_value scale, tutti_value offset, int64_t groups, const tutti_group_norm_attrs *attrs, tutti_value more[2]) {
  tutti_graph_begin(graph, "group_norm", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, scale);
  tutti_graph_add_input(graph, offset);
  tutti_graph_set_i64(graph, "groups", groups);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, more, 2);
}

typedef struct tutti_attention_attrs {
  /* Number of valid keys of each row [rows]; later keys are masked. Values are clamped to [0, key_length]. */
  tutti_value lengths;
  /* Query i sees only the keys 0 to i + key_length - length: the queries are the last positions of the keys, with
   * or without lengths. */
  uint8_t causal;
  /* Factor of the scores; 0 = 1 / sqrt(channels). Default: 0. */
  double scale;
} tutti_attention_attrs;
/* Scaled dot-product attention: y = softmax(scale * q * transpose(k)) * v for each row and head. A query without a
 * visible key gives zeros, and statistics of +infinity. */
static inline tutti_value tutti_attention(tutti_graph *graph, tutti_value q, tutti_value k, tutti_value v, const tutti_attention_attrs *attrs, tutti_value more[1]) {
  tutti_graph_begin(graph, "attention", 1);
  tutti_graph_add_input(graph, q);
  tutti_graph_add_input(graph, k);
  tutti_graph_add_input(graph, v);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->causal != 0) tutti_graph_set_bool(graph, "causal", 1);
    if (attrs->scale != 0) tutti_graph_set_f64(graph, "scale", attrs->scale);
  }
  return tutti_graph_end(graph, more, 1);
}

typedef struct tutti_dropout_attention_attrs {
  /* As for attention. */
  tutti_value lengths;
  /* As for attention. */
  uint8_t causal;
  /* As for attention. Default: 0. */
  double scale;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_dropout_attention_attrs;
/* attention with dropout: each probability is set to 0 with probability rate, otherwise scaled by 1 / (1 - rate),
 * before the values are summed. In a row of the batch, the probability of head h, query i and key j has number (h *
 * length + i) * m + j of the random sequence, where m is key_length rounded up to a multiple of 4. Statistics are
 * those without dropout. In models only, not in maps and filters of datasets. rate: Probability of 0. */
static inline tutti_value tutti_dropout_attention(tutti_graph *graph, tutti_value q, tutti_value k, tutti_value v, double rate, const tutti_dropout_attention_attrs *attrs, tutti_value more[1]) {
  tutti_graph_begin(graph, "dropout_attention", 1);
  tutti_graph_add_input(graph, q);
  tutti_graph_add_input(graph, k);
  tutti_graph_add_input(graph, v);
  tutti_graph_set_f64(graph, "rate", rate);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->causal != 0) tutti_graph_set_bool(graph, "causal", 1);
    if (attrs->scale != 0) tutti_graph_set_f64(graph, "scale", attrs->scale);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, more, 1);
}

typedef struct tutti_softmax_attrs {
  /* Axis; negative counts from the end. Default: -1. */
  uint8_t has_axis;
  int64_t axis;
} tutti_softmax_attrs;
/* exp(x) divided by its sum along an axis. */
static inline tutti_value tutti_softmax(tutti_graph *graph, tutti_value x, const tutti_softmax_attrs *attrs) {
  tutti_graph_begin(graph, "softmax", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_axis) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_log_softmax_attrs {
  /* Axis; negative counts from the end. Default: -1. */
  uint8_t has_axis;
  int64_t axis;
} tutti_log_softmax_attrs;
/* x - log(sum(exp(x))) along an axis. */
static inline tutti_value tutti_log_softmax(tutti_graph *graph, tutti_value x, const tutti_log_softmax_attrs *attrs) {
  tutti_graph_begin(graph, "log_softmax", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_axis) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_sparse_softmax_cross_entropy_attrs {
  /* Share of the target spread over all classes. Default: 0.0. */
  double label_smoothing;
} tutti_sparse_softmax_cross_entropy_attrs;
/* -log softmax(logits)[label] per row. With label smoothing s the target is 1 - s + s / classes at the label and s
 * / classes elsewhere. A label outside [0, classes) is an error of the run that names node, row and value. */
static inline tutti_value tutti_sparse_softmax_cross_entropy(tutti_graph *graph, tutti_value logits, tutti_value labels, const tutti_sparse_softmax_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "sparse_softmax_cross_entropy", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, labels);
  if (attrs != NULL) {
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_softmax_cross_entropy_attrs {
  /* Share of the target spread over all classes. Default: 0.0. */
  double label_smoothing;
} tutti_softmax_cross_entropy_attrs;
/* -sum(targets * log softmax(logits)) per row; label smoothing replaces targets by targets * (1 - s) + s / classes. */
static inline tutti_value tutti_softmax_cross_entropy(tutti_graph *graph, tutti_value logits, tutti_value targets, const tutti_softmax_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "softmax_cross_entropy", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, targets);
  if (attrs != NULL) {
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* max(x, 0) - x * targets + log(1 + exp(-|x|)) per element, x = logits. */
static inline tutti_value tutti_sigmoid_cross_entropy(tutti_graph *graph, tutti_value logits, tutti_value targets) {
  tutti_graph_begin(graph, "sigmoid_cross_entropy", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, targets);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_in_top_k_attrs {
  /* Number of the largest logits. Default: 1. */
  int64_t k;
} tutti_in_top_k_attrs;
/* Whether the label is among the k largest logits of its row: fewer than k logits are larger than that of the
 * label. A label out of range or a logit that is not finite gives false. */
static inline tutti_value tutti_in_top_k(tutti_graph *graph, tutti_value logits, tutti_value labels, const tutti_in_top_k_attrs *attrs) {
  tutti_graph_begin(graph, "in_top_k", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, labels);
  if (attrs != NULL) {
    if (attrs->k != 0) tutti_graph_set_i64(graph, "k", attrs->k);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_dropout_attrs {
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_dropout_attrs;
/* Each element is set to 0 with probability rate, else scaled by 1 / (1 - rate). rate: Probability of 0. */
static inline tutti_value tutti_dropout(tutti_graph *graph, tutti_value x, double rate, const tutti_dropout_attrs *attrs) {
  tutti_graph_begin(graph, "dropout", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "rate", rate);
  if (attrs != NULL) {
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_random_uniform_attrs {
  /* Lower bound. Default: 0.0. */
  double low;
  /* Upper bound. Default: 1.0. */
  uint8_t has_high;
  double high;
  /* A float dtype. Default: f32. */
  int32_t dtype;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_uniform_attrs;
/* Uniform in [low, high). dims: Shape. */
static inline tutti_value tutti_random_uniform(tutti_graph *graph, const int64_t *dims, int64_t dims_count, const tutti_random_uniform_attrs *attrs) {
  tutti_graph_begin(graph, "random_uniform", 1);
  tutti_graph_set_i64s(graph, "dims", dims, dims_count);
  if (attrs != NULL) {
    if (attrs->low != 0) tutti_graph_set_f64(graph, "low", attrs->low);
    if (attrs->has_high) tutti_graph_set_f64(graph, "high", attrs->high);
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_random_normal_attrs {
  /* Mean. Default: 0.0. */
  double mean;
  /* Standard deviation before truncation. Default: 1.0. */
  uint8_t has_stddev;
  double stddev;
  /* A float dtype. Default: f32. */
  int32_t dtype;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_normal_attrs;
/* Normal distribution. dims: Shape. */
static inline tutti_value tutti_random_normal(tutti_graph *graph, const int64_t *dims, int64_t dims_count, const tutti_random_normal_attrs *attrs) {
  tutti_graph_begin(graph, "random_normal", 1);
  tutti_graph_set_i64s(graph, "dims", dims, dims_count);
  if (attrs != NULL) {
    if (attrs->mean != 0) tutti_graph_set_f64(graph, "mean", attrs->mean);
    if (attrs->has_stddev) tutti_graph_set_f64(graph, "stddev", attrs->stddev);
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_random_truncated_normal_attrs {
  /* Mean. Default: 0.0. */
  double mean;
  /* Standard deviation before truncation. Default: 1.0. */
  uint8_t has_stddev;
  double stddev;
  /* A float dtype. Default: f32. */
  int32_t dtype;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_truncated_normal_attrs;
/* Normal distribution cut at two standard deviations. dims: Shape. */
static inline tutti_value tutti_random_truncated_normal(tutti_graph *graph, const int64_t *dims, int64_t dims_count, const tutti_random_truncated_normal_attrs *attrs) {
  tutti_graph_begin(graph, "random_truncated_normal", 1);
  tutti_graph_set_i64s(graph, "dims", dims, dims_count);
  if (attrs != NULL) {
    if (attrs->mean != 0) tutti_graph_set_f64(graph, "mean", attrs->mean);
    if (attrs->has_stddev) tutti_graph_set_f64(graph, "stddev", attrs->stddev);
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_DECODE_JPEG_DCT_ACCURATE 1
#define TUTTI_DECODE_JPEG_DCT_FAST 2
static inline const char *tutti_decode_jpeg_dct_name(int32_t value) {
  switch (value) {
    case TUTTI_DECODE_JPEG_DCT_ACCURATE: return "accurate";
    case TUTTI_DECODE_JPEG_DCT_FAST: return "fast";
    default: return "(no such value)";
  }
}
typedef struct tutti_decode_jpeg_attrs {
  /* [..., 4]. */
  tutti_value window;
  /* 1 = gray, 3 = RGB; converted from the format of the file. Default: 3. */
  int64_t channels;
  /* 1, 2, 4 or 8: height and width are divided by it, rounded up, during decoding. Default: 1. */
  int64_t ratio;
  /* With minimum_width, instead of ratio: use the largest ratio of 1, 2, 4, 8 that leaves at least this many
   * pixels, or 1 if none does. 0 = off. Default: 0. */
  int64_t minimum_height;
  /* As minimum_height. Default: 0. */
  int64_t minimum_width;
  /* Repeat the samples of colours instead of interpolating between them, which is faster. */
  uint8_t plain_upsampling;
  /* Inverse transform: libjpeg-turbo's JDCT_ISLOW or JDCT_IFAST. Default: accurate. */
  int32_t dct;
  /* A file with more pixels, before any scaling, is an error. Default: 134217728. */
  int64_t maximum_pixels;
} tutti_decode_jpeg_attrs;
/* A JPEG file as pixels, u8[..., height, width, channels], as libjpeg-turbo decodes it with the same settings.
 * Four-component files (CMYK, YCCK, also the inverted ones of Adobe) are converted to RGB. A corrupt or truncated
 * file is DATA_LOSS; a file that lacks only its end marker is complete. The window, when given, is top, left,
 * height and width in pixels of the (scaled) image: only that part is decoded, and its pixels are those of the
 * whole image. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_decode_jpeg(tutti_graph *graph, tutti_value contents, const tutti_decode_jpeg_attrs *attrs) {
  tutti_graph_begin(graph, "decode_jpeg", 1);
  tutti_graph_add_input(graph, contents);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->window : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->channels != 0) tutti_graph_set_i64(graph, "channels", attrs->channels);
    if (attrs->ratio != 0) tutti_graph_set_i64(graph, "ratio", attrs->ratio);
    if (attrs->minimum_height != 0) tutti_graph_set_i64(graph, "minimum_height", attrs->minimum_height);
    if (attrs->minimum_width != 0) tutti_graph_set_i64(graph, "minimum_width", attrs->minimum_width);
    if (attrs->plain_upsampling != 0) tutti_graph_set_bool(graph, "fancy_upsampling", 0);
    if (attrs->dct != 0) { if (attrs->dct >= 1 && attrs->dct <= 2) tutti_graph_set_string(graph, "dct", tutti_decode_jpeg_dct_name(attrs->dct)); else tutti_graph_set_i64(graph, "dct", attrs->dct); }
    if (attrs->maximum_pixels != 0) tutti_graph_set_i64(graph, "maximum_pixels", attrs->maximum_pixels);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_RESIZE_METHOD_BILINEAR 1
#define TUTTI_RESIZE_METHOD_NEAREST 2
#define TUTTI_RESIZE_METHOD_AREA 3
static inline const char *tutti_resize_method_name(int32_t value) {
  switch (value) {
    case TUTTI_RESIZE_METHOD_BILINEAR: return "bilinear";
    case TUTTI_RESIZE_METHOD_NEAREST: return "nearest";
    case TUTTI_RESIZE_METHOD_AREA: return "area";
    default: return "(no such value)";
  }
}
#define TUTTI_RESIZE_OUTPUT_SAME 1
#define TUTTI_RESIZE_OUTPUT_F32 2
static inline const char *tutti_resize_output_name(int32_t value) {
  switch (value) {
    case TUTTI_RESIZE_OUTPUT_SAME: return "same";
    case TUTTI_RESIZE_OUTPUT_F32: return "f32";
    default: return "(no such value)";
  }
}
typedef struct tutti_resize_attrs {
  /* Interpolation method. Default: bilinear. */
  int32_t method;
  /* With bilinear, average over all pixels that a pixel of the result covers. */
  uint8_t antialias;
  /* Dtype of the result: that of x, or f32 in the units of x. Default: same. */
  int32_t output;
} tutti_resize_attrs;
/* Images resized to another height and width. Pixel centres are at half indices: output i covers the input at (i +
 * 0.5) * input / output - 0.5. bilinear, nearest and area are those of TensorFlow 2 (tf.image.resize); bilinear
 * with antialias is TensorFlow's and Pillow's triangle filter, as wide as the scale where the image shrinks. u8
 * results are rounded, halves up. In maps and filters of datasets only, not in models. size: Height and width of
 * the result. */
static inline tutti_value tutti_resize(tutti_graph *graph, tutti_value x, const int64_t *size, const tutti_resize_attrs *attrs) {
  tutti_graph_begin(graph, "resize", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "size", size, 2);
  if (attrs != NULL) {
    if (attrs->method != 0) { if (attrs->method >= 1 && attrs->method <= 3) tutti_graph_set_string(graph, "method", tutti_resize_method_name(attrs->method)); else tutti_graph_set_i64(graph, "method", attrs->method); }
    if (attrs->antialias != 0) tutti_graph_set_bool(graph, "antialias", 1);
    if (attrs->output != 0) { if (attrs->output >= 1 && attrs->output <= 2) tutti_graph_set_string(graph, "output", tutti_resize_output_name(attrs->output)); else tutti_graph_set_i64(graph, "output", attrs->output); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_decode_png_attrs {
  /* 1 = gray, 3 = RGB, 4 = RGBA. Default: 3. */
  int64_t channels;
  /* A file with more pixels, before any scaling, is an error. Default: 134217728. */
  int64_t maximum_pixels;
} tutti_decode_png_attrs;
/* A PNG file as pixels, u8[..., height, width, channels], of any PNG format: palettes are resolved, fewer than 8
 * bits are expanded to 8, 16 bits are reduced to the upper 8. Gray is computed from colours as 0.299 R + 0.587 G +
 * 0.114 B. Without channel 4, transparency is dropped. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_decode_png(tutti_graph *graph, tutti_value contents, const tutti_decode_png_attrs *attrs) {
  tutti_graph_begin(graph, "decode_png", 1);
  tutti_graph_add_input(graph, contents);
  if (attrs != NULL) {
    if (attrs->channels != 0) tutti_graph_set_i64(graph, "channels", attrs->channels);
    if (attrs->maximum_pixels != 0) tutti_graph_set_i64(graph, "maximum_pixels", attrs->maximum_pixels);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_decode_image_attrs {
  /* 1 = gray, 3 = RGB. Default: 3. */
  int64_t channels;
  /* A file with more pixels, before any scaling, is an error. Default: 134217728. */
  int64_t maximum_pixels;
} tutti_decode_image_attrs;
/* decode_jpeg or decode_png with their defaults, depending on the first bytes of the file. In maps and filters of
 * datasets only, not in models. */
static inline tutti_value tutti_decode_image(tutti_graph *graph, tutti_value contents, const tutti_decode_image_attrs *attrs) {
  tutti_graph_begin(graph, "decode_image", 1);
  tutti_graph_add_input(graph, contents);
  if (attrs != NULL) {
    if (attrs->channels != 0) tutti_graph_set_i64(graph, "channels", attrs->channels);
    if (attrs->maximum_pixels != 0) tutti_graph_set_i64(graph, "maximum_pixels", attrs->maximum_pixels);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* Height and width from the header of a JPEG or PNG file, i64[..., 2]; nothing is decoded. In maps and filters of
 * datasets only, not in models. */
static inline tutti_value tutti_image_size(tutti_graph *graph, tutti_value contents) {
  tutti_graph_begin(graph, "image_size", 1);
  tutti_graph_add_input(graph, contents);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_crop_attrs {
  /* [..., 4]: top, left, height, width. */
  tutti_value window;
  /* Height and width; 0, 0 = those of the window. Default: [0, 0]. */
  int64_t size[2];
  /* Top and left, without a window. Default: [0, 0]. */
  int64_t offset[2];
  /* Crop the center, instead of offset; an odd remainder is at the bottom and right. */
  uint8_t centered;
} tutti_crop_attrs;
/* A part of each image: of a given size at a given position or in the center, or a window for each image. With a
 * window and a size, the window must have that size. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_crop(tutti_graph *graph, tutti_value x, const tutti_crop_attrs *attrs) {
  tutti_graph_begin(graph, "crop", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->window : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->size[0] != 0 || attrs->size[1] != 0) tutti_graph_set_i64s(graph, "size", attrs->size, 2);
    if (attrs->offset[0] != 0 || attrs->offset[1] != 0) tutti_graph_set_i64s(graph, "offset", attrs->offset, 2);
    if (attrs->centered != 0) tutti_graph_set_bool(graph, "centered", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_PAD_IMAGE_MODE_CONSTANT 1
#define TUTTI_PAD_IMAGE_MODE_EDGE 2
#define TUTTI_PAD_IMAGE_MODE_REFLECT 3
static inline const char *tutti_pad_image_mode_name(int32_t value) {
  switch (value) {
    case TUTTI_PAD_IMAGE_MODE_CONSTANT: return "constant";
    case TUTTI_PAD_IMAGE_MODE_EDGE: return "edge";
    case TUTTI_PAD_IMAGE_MODE_REFLECT: return "reflect";
    default: return "(no such value)";
  }
}
typedef struct tutti_pad_image_attrs {
  /* Content of the padding: a value, the nearest pixel, or the image mirrored at its border pixels. Default:
   * constant. */
  int32_t mode;
  /* For constant. Default: 0.0. */
  double value;
} tutti_pad_image_attrs;
/* Images with padding around them. In maps and filters of datasets only, not in models. pads: top, bottom, left,
 * right. */
static inline tutti_value tutti_pad_image(tutti_graph *graph, tutti_value x, const int64_t *pads, const tutti_pad_image_attrs *attrs) {
  tutti_graph_begin(graph, "pad_image", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "pads", pads, 4);
  if (attrs != NULL) {
    if (attrs->mode != 0) { if (attrs->mode >= 1 && attrs->mode <= 3) tutti_graph_set_string(graph, "mode", tutti_pad_image_mode_name(attrs->mode)); else tutti_graph_set_i64(graph, "mode", attrs->mode); }
    if (attrs->value != 0) tutti_graph_set_f64(graph, "value", attrs->value);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_FLIP_DIRECTION_HORIZONTAL 1
#define TUTTI_FLIP_DIRECTION_VERTICAL 2
static inline const char *tutti_flip_direction_name(int32_t value) {
  switch (value) {
    case TUTTI_FLIP_DIRECTION_HORIZONTAL: return "horizontal";
    case TUTTI_FLIP_DIRECTION_VERTICAL: return "vertical";
    default: return "(no such value)";
  }
}
typedef struct tutti_flip_attrs {
  /* horizontal: swaps left and right; vertical: swaps top and bottom. Default: horizontal. */
  int32_t direction;
} tutti_flip_attrs;
/* Images mirrored. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_flip(tutti_graph *graph, tutti_value x, const tutti_flip_attrs *attrs) {
  tutti_graph_begin(graph, "flip", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->direction != 0) { if (attrs->direction >= 1 && attrs->direction <= 2) tutti_graph_set_string(graph, "direction", tutti_flip_direction_name(attrs->direction)); else tutti_graph_set_i64(graph, "direction", attrs->direction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_rotate90_attrs {
  /* Number of quarter turns. Default: 1. */
  uint8_t has_turns;
  int64_t turns;
} tutti_rotate90_attrs;
/* Images rotated counter-clockwise by quarter turns. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_rotate90(tutti_graph *graph, tutti_value x, const tutti_rotate90_attrs *attrs) {
  tutti_graph_begin(graph, "rotate90", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_turns) tutti_graph_set_i64(graph, "turns", attrs->turns);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_ROTATE_METHOD_BILINEAR 1
#define TUTTI_ROTATE_METHOD_NEAREST 2
static inline const char *tutti_rotate_method_name(int32_t value) {
  switch (value) {
    case TUTTI_ROTATE_METHOD_BILINEAR: return "bilinear";
    case TUTTI_ROTATE_METHOD_NEAREST: return "nearest";
    default: return "(no such value)";
  }
}
typedef struct tutti_rotate_attrs {
  /* Interpolation method. Default: bilinear. */
  int32_t method;
  /* Value of pixels outside the image. Default: 0.0. */
  double value;
} tutti_rotate_attrs;
/* Images rotated counter-clockwise about their center; height and width stay. A pixel of the result is the value at
 * its center: between the four nearest pixels (bilinear), or the nearest, as in Pillow's Image.rotate. u8 results
 * are rounded, halves up. In maps and filters of datasets only, not in models. degrees: The angle in degrees. */
static inline tutti_value tutti_rotate(tutti_graph *graph, tutti_value x, double degrees, const tutti_rotate_attrs *attrs) {
  tutti_graph_begin(graph, "rotate", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "degrees", degrees);
  if (attrs != NULL) {
    if (attrs->method != 0) { if (attrs->method >= 1 && attrs->method <= 2) tutti_graph_set_string(graph, "method", tutti_rotate_method_name(attrs->method)); else tutti_graph_set_i64(graph, "method", attrs->method); }
    if (attrs->value != 0) tutti_graph_set_f64(graph, "value", attrs->value);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_convert_image_dtype_attrs {
  /* u8 or f32. Default: f32. */
  int32_t dtype;
} tutti_convert_image_dtype_attrs;
/* u8 to f32: x / 255. f32 to u8: x * 255.5, truncated and limited to [0, 255], as tf.image.convert_image_dtype
 * does. The same dtype: unchanged. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_convert_image_dtype(tutti_graph *graph, tutti_value x, const tutti_convert_image_dtype_attrs *attrs) {
  tutti_graph_begin(graph, "convert_image_dtype", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_normalize_image_attrs {
  /* One for each channel, or one for all. Default: [0.0]. */
  const double *mean;
  int64_t mean_count;
  /* One for each channel, or one for all. Default: [1.0]. */
  const double *stddev;
  int64_t stddev_count;
  /* Applied to x first: 1 / 255 if mean and stddev refer to values in [0, 1]. Default: 1.0. */
  uint8_t has_scale;
  double scale;
} tutti_normalize_image_attrs;
/* (x * scale - mean) / stddev per channel, in f32. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_normalize_image(tutti_graph *graph, tutti_value x, const tutti_normalize_image_attrs *attrs) {
  tutti_graph_begin(graph, "normalize_image", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->mean != NULL || attrs->mean_count != 0) tutti_graph_set_f64s(graph, "mean", attrs->mean, attrs->mean_count);
    if (attrs->stddev != NULL || attrs->stddev_count != 0) tutti_graph_set_f64s(graph, "stddev", attrs->stddev, attrs->stddev_count);
    if (attrs->has_scale) tutti_graph_set_f64(graph, "scale", attrs->scale);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* x + delta, in f32 with 1 as the brightest; u8 is converted as convert_image_dtype does, before and after. In maps
 * and filters of datasets only, not in models. delta: Value to add. */
static inline tutti_value tutti_adjust_brightness(tutti_graph *graph, tutti_value x, double delta) {
  tutti_graph_begin(graph, "adjust_brightness", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "delta", delta);
  return tutti_graph_end(graph, NULL, 0);
}

/* (x - mean) * factor + mean with the mean of each channel of each image; dtypes as in adjust_brightness. In maps
 * and filters of datasets only, not in models. factor: Factor. */
static inline tutti_value tutti_adjust_contrast(tutti_graph *graph, tutti_value x, double factor) {
  tutti_graph_begin(graph, "adjust_contrast", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "factor", factor);
  return tutti_graph_end(graph, NULL, 0);
}

/* Saturation of the HSV form times factor, limited to [0, 1]; dtypes as in adjust_brightness. In maps and filters
 * of datasets only, not in models. factor: Factor. */
static inline tutti_value tutti_adjust_saturation(tutti_graph *graph, tutti_value x, double factor) {
  tutti_graph_begin(graph, "adjust_saturation", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "factor", factor);
  return tutti_graph_end(graph, NULL, 0);
}

/* Hue of the HSV form plus delta, modulo a full circle; dtypes as in adjust_brightness. In maps and filters of
 * datasets only, not in models. delta: Fraction of the full circle. */
static inline tutti_value tutti_adjust_hue(tutti_graph *graph, tutti_value x, double delta) {
  tutti_graph_begin(graph, "adjust_hue", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "delta", delta);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_random_crop_attrs {
  /* Pixels padded around each image first. Default: 0. */
  int64_t padding;
  /* Value of the padding. Default: 0.0. */
  double value;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_crop_attrs;
/* A part of each image, or of the padded image, at a uniformly random position. In maps and filters of datasets
 * only, not in models. size: Height and width of the part. */
static inline tutti_value tutti_random_crop(tutti_graph *graph, tutti_value x, const int64_t *size, const tutti_random_crop_attrs *attrs) {
  tutti_graph_begin(graph, "random_crop", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "size", size, 2);
  if (attrs != NULL) {
    if (attrs->padding != 0) tutti_graph_set_i64(graph, "padding", attrs->padding);
    if (attrs->value != 0) tutti_graph_set_f64(graph, "value", attrs->value);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_RANDOM_FLIP_DIRECTION_HORIZONTAL 1
#define TUTTI_RANDOM_FLIP_DIRECTION_VERTICAL 2
static inline const char *tutti_random_flip_direction_name(int32_t value) {
  switch (value) {
    case TUTTI_RANDOM_FLIP_DIRECTION_HORIZONTAL: return "horizontal";
    case TUTTI_RANDOM_FLIP_DIRECTION_VERTICAL: return "vertical";
    default: return "(no such value)";
  }
}
typedef struct tutti_random_flip_attrs {
  /* As in flip. Default: horizontal. */
  int32_t direction;
  /* Probability of mirroring. Default: 0.5. */
  uint8_t has_probability;
  double probability;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_flip_attrs;
/* Each image mirrored with a probability. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_random_flip(tutti_graph *graph, tutti_value x, const tutti_random_flip_attrs *attrs) {
  tutti_graph_begin(graph, "random_flip", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->direction != 0) { if (attrs->direction >= 1 && attrs->direction <= 2) tutti_graph_set_string(graph, "direction", tutti_random_flip_direction_name(attrs->direction)); else tutti_graph_set_i64(graph, "direction", attrs->direction); }
    if (attrs->has_probability) tutti_graph_set_f64(graph, "probability", attrs->probability);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_RANDOM_ROTATE_METHOD_BILINEAR 1
#define TUTTI_RANDOM_ROTATE_METHOD_NEAREST 2
static inline const char *tutti_random_rotate_method_name(int32_t value) {
  switch (value) {
    case TUTTI_RANDOM_ROTATE_METHOD_BILINEAR: return "bilinear";
    case TUTTI_RANDOM_ROTATE_METHOD_NEAREST: return "nearest";
    default: return "(no such value)";
  }
}
typedef struct tutti_random_rotate_attrs {
  /* Interpolation method. Default: bilinear. */
  int32_t method;
  /* Value of pixels outside the image. Default: 0.0. */
  double value;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_rotate_attrs;
/* rotate with an angle for each image, drawn uniformly from [-degrees, degrees]. In maps and filters of datasets
 * only, not in models. degrees: The largest angle. */
static inline tutti_value tutti_random_rotate(tutti_graph *graph, tutti_value x, double degrees, const tutti_random_rotate_attrs *attrs) {
  tutti_graph_begin(graph, "random_rotate", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "degrees", degrees);
  if (attrs != NULL) {
    if (attrs->method != 0) { if (attrs->method >= 1 && attrs->method <= 2) tutti_graph_set_string(graph, "method", tutti_random_rotate_method_name(attrs->method)); else tutti_graph_set_i64(graph, "method", attrs->method); }
    if (attrs->value != 0) tutti_graph_set_f64(graph, "value", attrs->value);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_RANDOM_RESIZED_CROP_OUTPUT_SAME 1
#define TUTTI_RANDOM_RESIZED_CROP_OUTPUT_F32 2
static inline const char *tutti_random_resized_crop_output_name(int32_t value) {
  switch (value) {
    case TUTTI_RANDOM_RESIZED_CROP_OUTPUT_SAME: return "same";
    case TUTTI_RANDOM_RESIZED_CROP_OUTPUT_F32: return "f32";
    default: return "(no such value)";
  }
}
typedef struct tutti_random_resized_crop_attrs {
  /* Minimum and maximum fraction of the image's area, chosen uniformly. Default: [0.08, 1.0]. */
  double area[2];
  /* Minimum and maximum width / height, chosen log-uniformly. Default: [0.75, 1.3333333333333333]. */
  double aspect[2];
  /* As in resize. */
  uint8_t antialias;
  /* Probability of mirroring left to right. Default: 0.0. */
  double flip_probability;
  /* As in resize. Default: same. */
  int32_t output;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_resized_crop_attrs;
/* A random part of each image (random_crop_window), resized (resize) and mirrored with a probability, in one pass
 * over the pixels. Directly after decode_jpeg or decode_image, like crop and random_crop, only that part is
 * decoded, but damage anywhere in the file is still detected. In maps and filters of datasets only, not in models.
 * size: Height and width of the result. */
static inline tutti_value tutti_random_resized_crop(tutti_graph *graph, tutti_value x, const int64_t *size, const tutti_random_resized_crop_attrs *attrs) {
  tutti_graph_begin(graph, "random_resized_crop", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "size", size, 2);
  if (attrs != NULL) {
    if (attrs->area[0] != 0 || attrs->area[1] != 0) tutti_graph_set_f64s(graph, "area", attrs->area, 2);
    if (attrs->aspect[0] != 0 || attrs->aspect[1] != 0) tutti_graph_set_f64s(graph, "aspect", attrs->aspect, 2);
    if (attrs->antialias != 0) tutti_graph_set_bool(graph, "antialias", 1);
    if (attrs->flip_probability != 0) tutti_graph_set_f64(graph, "flip_probability", attrs->flip_probability);
    if (attrs->output != 0) { if (attrs->output >= 1 && attrs->output <= 2) tutti_graph_set_string(graph, "output", tutti_random_resized_crop_output_name(attrs->output)); else tutti_graph_set_i64(graph, "output", attrs->output); }
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_random_crop_window_attrs {
  /* Minimum and maximum fraction of the image's area, chosen uniformly. Default: [0.08, 1.0]. */
  double area[2];
  /* Minimum and maximum width / height, chosen log-uniformly. Default: [0.75, 1.3333333333333333]. */
  double aspect[2];
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_crop_window_attrs;
/* A random window (top, left, height, width) in an image of the given size: area and aspect ratio are drawn until
 * they fit, at most ten times; after that the window is the largest central part whose aspect ratio is within the
 * bounds. Before decode_jpeg it avoids decoding the rest. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_random_crop_window(tutti_graph *graph, tutti_value size, const tutti_random_crop_window_attrs *attrs) {
  tutti_graph_begin(graph, "random_crop_window", 1);
  tutti_graph_add_input(graph, size);
  if (attrs != NULL) {
    if (attrs->area[0] != 0 || attrs->area[1] != 0) tutti_graph_set_f64s(graph, "area", attrs->area, 2);
    if (attrs->aspect[0] != 0 || attrs->aspect[1] != 0) tutti_graph_set_f64s(graph, "aspect", attrs->aspect, 2);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_random_cutout_attrs {
  /* Value of the rectangle. Default: 0.0. */
  double value;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_cutout_attrs;
/* A rectangle of each image is set to a value. Its center is anywhere in the image, so parts of it may be outside.
 * In maps and filters of datasets only, not in models. size: Height and width of the rectangle. */
static inline tutti_value tutti_random_cutout(tutti_graph *graph, tutti_value x, const int64_t *size, const tutti_random_cutout_attrs *attrs) {
  tutti_graph_begin(graph, "random_cutout", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "size", size, 2);
  if (attrs != NULL) {
    if (attrs->value != 0) tutti_graph_set_f64(graph, "value", attrs->value);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_random_color_jitter_attrs {
  /* Largest change. Default: 0.0. */
  double brightness;
  /* Largest change of the factor. Default: 0.0. */
  double contrast;
  /* Largest change of the factor. Default: 0.0. */
  double saturation;
  /* Largest change. Default: 0.0. */
  double hue;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_random_color_jitter_attrs;
/* adjust_brightness, adjust_contrast, adjust_saturation and adjust_hue, in this order, each with a parameter drawn
 * uniformly from [-brightness, brightness], [1 - contrast, 1 + contrast], [1 - saturation, 1 + saturation], [-hue,
 * hue]. A parameter of 0 skips its op. Computed in f32; u8 is converted once before and once after. In maps and
 * filters of datasets only, not in models. */
static inline tutti_value tutti_random_color_jitter(tutti_graph *graph, tutti_value x, const tutti_random_color_jitter_attrs *attrs) {
  tutti_graph_begin(graph, "random_color_jitter", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->brightness != 0) tutti_graph_set_f64(graph, "brightness", attrs->brightness);
    if (attrs->contrast != 0) tutti_graph_set_f64(graph, "contrast", attrs->contrast);
    if (attrs->saturation != 0) tutti_graph_set_f64(graph, "saturation", attrs->saturation);
    if (attrs->hue != 0) tutti_graph_set_f64(graph, "hue", attrs->hue);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_mixup_attrs {
  /* Both parameters of the Beta distribution. Default: 0.2. */
  double alpha;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_mixup_attrs;
/* Each image of a batch is mixed with that of another row, and their targets likewise: λ * x + (1 - λ) * partner. λ
 * is drawn for each row from Beta(alpha, alpha), partners by a random rotation of the rows. In maps and filters of
 * datasets only, not in models. */
static inline tutti_value tutti_mixup(tutti_graph *graph, tutti_value x, tutti_value targets, const tutti_mixup_attrs *attrs, tutti_value more[1]) {
  tutti_graph_begin(graph, "mixup", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, targets);
  if (attrs != NULL) {
    if (attrs->alpha != 0) tutti_graph_set_f64(graph, "alpha", attrs->alpha);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, more, 1);
}

typedef struct tutti_cutmix_attrs {
  /* Both parameters of the Beta distribution. Default: 1.0. */
  double alpha;
  /* Key of the random sequence; 0 = the stable id of the node. Default: 0. */
  int64_t key;
} tutti_cutmix_attrs;
/* A rectangle of each image of a batch is replaced by that of another row; targets are mixed by area. The rectangle
 * has 1 - λ of the area and the aspect ratio of the image, and its center is anywhere; λ and partners are as in
 * mixup. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_cutmix(tutti_graph *graph, tutti_value x, tutti_value targets, const tutti_cutmix_attrs *attrs, tutti_value more[1]) {
  tutti_graph_begin(graph, "cutmix", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, targets);
  if (attrs != NULL) {
    if (attrs->alpha != 0) tutti_graph_set_f64(graph, "alpha", attrs->alpha);
    if (attrs->key != 0) tutti_graph_set_i64(graph, "key", attrs->key);
  }
  return tutti_graph_end(graph, more, 1);
}

#define TUTTI_BYTES_LENGTH_UNIT_BYTES 1
#define TUTTI_BYTES_LENGTH_UNIT_CHARACTERS 2
static inline const char *tutti_bytes_length_unit_name(int32_t value) {
  switch (value) {
    case TUTTI_BYTES_LENGTH_UNIT_BYTES: return "bytes";
    case TUTTI_BYTES_LENGTH_UNIT_CHARACTERS: return "characters";
    default: return "(no such value)";
  }
}
typedef struct tutti_bytes_length_attrs {
  /* characters: UTF-8 sequences; a byte that is not part of one counts as a character. Default: bytes. */
  int32_t unit;
} tutti_bytes_length_attrs;
/* Length of each text, i64. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_bytes_length(tutti_graph *graph, tutti_value x, const tutti_bytes_length_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_length", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->unit != 0) { if (attrs->unit >= 1 && attrs->unit <= 2) tutti_graph_set_string(graph, "unit", tutti_bytes_length_unit_name(attrs->unit)); else tutti_graph_set_i64(graph, "unit", attrs->unit); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_BYTES_SUBSTRING_UNIT_BYTES 1
#define TUTTI_BYTES_SUBSTRING_UNIT_CHARACTERS 2
static inline const char *tutti_bytes_substring_unit_name(int32_t value) {
  switch (value) {
    case TUTTI_BYTES_SUBSTRING_UNIT_BYTES: return "bytes";
    case TUTTI_BYTES_SUBSTRING_UNIT_CHARACTERS: return "characters";
    default: return "(no such value)";
  }
}
typedef struct tutti_bytes_substring_attrs {
  /* First byte or character; negative counts from the end. Default: 0. */
  int64_t start;
  /* Length of the substring; -1 = to the end. Default: -1. */
  uint8_t has_length;
  int64_t length;
  /* characters: UTF-8 sequences; a byte that is not part of one counts as a character. Default: bytes. */
  int32_t unit;
} tutti_bytes_substring_attrs;
/* Substring of each text, limited to the text. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_bytes_substring(tutti_graph *graph, tutti_value x, const tutti_bytes_substring_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_substring", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->start != 0) tutti_graph_set_i64(graph, "start", attrs->start);
    if (attrs->has_length) tutti_graph_set_i64(graph, "length", attrs->length);
    if (attrs->unit != 0) { if (attrs->unit >= 1 && attrs->unit <= 2) tutti_graph_set_string(graph, "unit", tutti_bytes_substring_unit_name(attrs->unit)); else tutti_graph_set_i64(graph, "unit", attrs->unit); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_bytes_split_attrs {
  /* Text between parts; empty = white space. Default: . */
  const char *separator;
  /* Skip empty parts. */
  uint8_t skip_empty;
  /* Number of parts: additional parts are dropped, missing ones are empty. 0 = all parts. Default: 0. */
  int64_t count;
} tutti_bytes_split_attrs;
/* Parts of each text between separators, bytes[..., parts]. Without a separator: non-empty words between white
 * space. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_bytes_split(tutti_graph *graph, tutti_value x, const tutti_bytes_split_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_split", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->separator != NULL) tutti_graph_set_string(graph, "separator", attrs->separator);
    if (attrs->skip_empty != 0) tutti_graph_set_bool(graph, "skip_empty", 1);
    if (attrs->count != 0) tutti_graph_set_i64(graph, "count", attrs->count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_BYTES_TOKENIZE_PUNCTUATION_KEEP 1
#define TUTTI_BYTES_TOKENIZE_PUNCTUATION_SPLIT 2
#define TUTTI_BYTES_TOKENIZE_PUNCTUATION_DROP 3
static inline const char *tutti_bytes_tokenize_punctuation_name(int32_t value) {
  switch (value) {
    case TUTTI_BYTES_TOKENIZE_PUNCTUATION_KEEP: return "keep";
    case TUTTI_BYTES_TOKENIZE_PUNCTUATION_SPLIT: return "split";
    case TUTTI_BYTES_TOKENIZE_PUNCTUATION_DROP: return "drop";
    default: return "(no such value)";
  }
}
typedef struct tutti_bytes_tokenize_attrs {
  /* Keep letters as they are; otherwise ASCII letters are converted to lower case. */
  uint8_t keep_case;
  /* What happens to punctuation. Default: split. */
  int32_t punctuation;
  /* Number of parts: additional parts are dropped, missing ones are empty. 0 = all parts. Default: 0. */
  int64_t count;
} tutti_bytes_tokenize_attrs;
/* Words of each text, bytes[..., words]: split at white space; ASCII punctuation is kept in its word, made a
 * separate word, or treated as white space. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_bytes_tokenize(tutti_graph *graph, tutti_value x, const tutti_bytes_tokenize_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_tokenize", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->keep_case != 0) tutti_graph_set_bool(graph, "lower_case", 0);
    if (attrs->punctuation != 0) { if (attrs->punctuation >= 1 && attrs->punctuation <= 3) tutti_graph_set_string(graph, "punctuation", tutti_bytes_tokenize_punctuation_name(attrs->punctuation)); else tutti_graph_set_i64(graph, "punctuation", attrs->punctuation); }
    if (attrs->count != 0) tutti_graph_set_i64(graph, "count", attrs->count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* ASCII letters converted to lower case; other bytes stay. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_bytes_lower(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "bytes_lower", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_bytes_join_attrs {
  /* Text between them. Default: . */
  const char *separator;
} tutti_bytes_join_attrs;
/* Texts along the last axis joined into one. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_bytes_join(tutti_graph *graph, tutti_value x, const tutti_bytes_join_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_join", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->separator != NULL) tutti_graph_set_string(graph, "separator", attrs->separator);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_bytes_to_number_attrs {
  /* f32, f64, i32 or i64. Default: f32. */
  int32_t dtype;
} tutti_bytes_to_number_attrs;
/* Numbers from decimal text, white space around them allowed; hexadecimal, inf and nan for floats too. Anything
 * else, or a number that does not fit the dtype, is an error that names the text. In maps and filters of datasets
 * only, not in models. */
static inline tutti_value tutti_bytes_to_number(tutti_graph *graph, tutti_value x, const tutti_bytes_to_number_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_to_number", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_BYTES_TO_VALUES_BYTE_ORDER_LITTLE 1
#define TUTTI_BYTES_TO_VALUES_BYTE_ORDER_BIG 2
static inline const char *tutti_bytes_to_values_byte_order_name(int32_t value) {
  switch (value) {
    case TUTTI_BYTES_TO_VALUES_BYTE_ORDER_LITTLE: return "little";
    case TUTTI_BYTES_TO_VALUES_BYTE_ORDER_BIG: return "big";
    default: return "(no such value)";
  }
}
typedef struct tutti_bytes_to_values_attrs {
  /* Any number dtype. Default: u8. */
  int32_t dtype;
  /* Required number of values; 0 = any. Default: 0. */
  int64_t count;
  /* Which byte of a number comes first: the lowest or the highest. Default: little. */
  int32_t byte_order;
} tutti_bytes_to_values_attrs;
/* The bytes themselves as numbers, [..., values]; a length that is not a multiple of the size of the dtype is an
 * error. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_bytes_to_values(tutti_graph *graph, tutti_value x, const tutti_bytes_to_values_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_to_values", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
    if (attrs->count != 0) tutti_graph_set_i64(graph, "count", attrs->count);
    if (attrs->byte_order != 0) { if (attrs->byte_order >= 1 && attrs->byte_order <= 2) tutti_graph_set_string(graph, "byte_order", tutti_bytes_to_values_byte_order_name(attrs->byte_order)); else tutti_graph_set_i64(graph, "byte_order", attrs->byte_order); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_bytes_hash_bucket_attrs {
  /* A different salt gives a different distribution. Default: 0. */
  int64_t salt;
} tutti_bytes_hash_bucket_attrs;
/* A number in [0, buckets) for each text, i64: FNV-1a of 64 bits over the salt as 8 little-endian bytes and the
 * text, mixed by the last step of MurmurHash3 (fmix64), times buckets, divided by 2^64. The same on every machine
 * and in every release. In maps and filters of datasets only, not in models. buckets: Number of buckets. */
static inline tutti_value tutti_bytes_hash_bucket(tutti_graph *graph, tutti_value x, int64_t buckets, const tutti_bytes_hash_bucket_attrs *attrs) {
  tutti_graph_begin(graph, "bytes_hash_bucket", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "buckets", buckets);
  if (attrs != NULL) {
    if (attrs->salt != 0) tutti_graph_set_i64(graph, "salt", attrs->salt);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_lookup_attrs {
  /* A constant, bytes[n]. */
  tutti_value vocabulary;
  /* Path of the file, instead of a constant. Default: . */
  const char *path;
  /* Index of what is not in the vocabulary. Default: -1. */
  uint8_t has_missing;
  int64_t missing;
  /* As in bytes_hash_bucket with salt 0; 0 = none: missing is returned. Default: 0. */
  int64_t hash_buckets;
} tutti_lookup_attrs;
/* Index of each text in a vocabulary, i64: the first of equal ones. Given as a constant bytes[n], or as a file with
 * one text per line. A text that is not in it has the index `missing`, or n + its hash bucket if there are hash
 * buckets. In maps and filters of datasets only, not in models. */
static inline tutti_value tutti_lookup(tutti_graph *graph, tutti_value x, const tutti_lookup_attrs *attrs) {
  tutti_graph_begin(graph, "lookup", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->vocabulary : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->path != NULL) tutti_graph_set_string(graph, "path", attrs->path);
    if (attrs->has_missing) tutti_graph_set_i64(graph, "missing", attrs->missing);
    if (attrs->hash_buckets != 0) tutti_graph_set_i64(graph, "hash_buckets", attrs->hash_buckets);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* --- functions of ops --------------------------------------------------------------------------------------------- */

/* x limited to [low, high]: min(max(x, low), high). NaN stays NaN; a gradient flows where x is between the limits.
 * Of integers, the integers within the limits. low: the lower limit; minus infinity for none. high: the upper
 * limit, at least the lower one; infinity for none. */
static inline tutti_value tutti_clip(tutti_graph *graph, tutti_value x, double low, double high) {
  tutti_graph_begin(graph, "clip", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "low", low);
  tutti_graph_set_f64(graph, "high", high);
  return tutti_graph_end(graph, NULL, 0);
}

/* min(max(x, 0), 6) (Krizhevsky, 2010); the gradient is 0 at 0 and at 6. */
static inline tutti_value tutti_relu6(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "relu6", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* 1.0507009873554805 * elu(x) with an alpha of 1.6732632423543772: the scaled exponential linear unit (Klambauer et
 * al., 2017). */
static inline tutti_value tutti_selu(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "selu", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* x * tanh(softplus(x)) (Misra, 2019). */
static inline tutti_value tutti_mish(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "mish", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* min(max(x + 3, 0), 6) / 6, as in PyTorch and Keras 3 (Courbariaux et al., 2015, have a slope of 1/2). */
static inline tutti_value tutti_hard_sigmoid(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "hard_sigmoid", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* x * hard_sigmoid(x) (Howard et al., 2019). */
static inline tutti_value tutti_hard_swish(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "hard_swish", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* x / (1 + |x|) (Turian et al., 2009). */
static inline tutti_value tutti_softsign(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "softsign", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* log(sigmoid(x)) = -softplus(-x), stable for large |x|. */
static inline tutti_value tutti_log_sigmoid(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "log_sigmoid", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* x for x > 0, else slope * x, with a slope that is trained (He et al., 2015). */
static inline tutti_value tutti_prelu(tutti_graph *graph, tutti_value x, tutti_value slope) {
  tutti_graph_begin(graph, "prelu", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, slope);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether x is NaN; a boolean. */
static inline tutti_value tutti_is_nan(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "is_nan", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Whether x is infinite, of either sign; a boolean. */
static inline tutti_value tutti_is_inf(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "is_inf", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Logarithm to the base 2. */
static inline tutti_value tutti_log2(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "log2", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Logarithm to the base 10. */
static inline tutti_value tutti_log10(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "log10", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Tangent of radians. */
static inline tutti_value tutti_tan(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "tan", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Hyperbolic sine, without loss near 0. */
static inline tutti_value tutti_sinh(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "sinh", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Hyperbolic cosine. */
static inline tutti_value tutti_cosh(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "cosh", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Arc tangent in radians, from -pi/2 to pi/2. */
static inline tutti_value tutti_atan(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "atan", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The angle of the point (x, y) in radians, from -pi to pi: the arc tangent of y / x in the quadrant of the point,
 * with the signs of zeros and infinities as in C. The gradient at (0, 0) is 0. */
static inline tutti_value tutti_atan2(tutti_graph *graph, tutti_value y, tutti_value x) {
  tutti_graph_begin(graph, "atan2", 1);
  tutti_graph_add_input(graph, y);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Arc sine in radians, from -pi/2 to pi/2; NaN outside of [-1, 1]. */
static inline tutti_value tutti_asin(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "asin", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Arc cosine in radians, from 0 to pi; NaN outside of [-1, 1]. */
static inline tutti_value tutti_acos(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "acos", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_logsumexp_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_logsumexp_attrs;
/* log(sum of exp(x)) along axes, computed from the differences to the largest element: it overflows where the
 * result does only. Infinities count as such; over nothing but minus infinities it is minus infinity with gradient
 * 0. */
static inline tutti_value tutti_logsumexp(tutti_graph *graph, tutti_value x, const tutti_logsumexp_attrs *attrs) {
  tutti_graph_begin(graph, "logsumexp", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_NORM_ORDER_L2 1
#define TUTTI_NORM_ORDER_L1 2
#define TUTTI_NORM_ORDER_INFINITY 3
static inline const char *tutti_norm_order_name(int32_t value) {
  switch (value) {
    case TUTTI_NORM_ORDER_L2: return "l2";
    case TUTTI_NORM_ORDER_L1: return "l1";
    case TUTTI_NORM_ORDER_INFINITY: return "infinity";
    default: return "(no such value)";
  }
}
typedef struct tutti_norm_attrs {
  /* Which norm. Default: l2. */
  int32_t order;
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_norm_attrs;
/* The norm of the vectors along axes. l1: sum of |x|; l2: root of the sum of squares, with gradient 0 for a vector
 * of zeros; infinity: the largest |x|, where elements that tie share the gradient. */
static inline tutti_value tutti_norm(tutti_graph *graph, tutti_value x, const tutti_norm_attrs *attrs) {
  tutti_graph_begin(graph, "norm", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->order != 0) { if (attrs->order >= 1 && attrs->order <= 3) tutti_graph_set_string(graph, "order", tutti_norm_order_name(attrs->order)); else tutti_graph_set_i64(graph, "order", attrs->order); }
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_l2_normalize_attrs {
  /* Axes; negative ones count from the end. Default: [-1]. */
  const int64_t *axes;
  int64_t axes_count;
  /* The least sum of squares to divide by the root of. Default: 1e-12. */
  double epsilon;
} tutti_l2_normalize_attrs;
/* x / sqrt(max(sum of squares along axes, epsilon)): vectors of length 1. */
static inline tutti_value tutti_l2_normalize(tutti_graph *graph, tutti_value x, const tutti_l2_normalize_attrs *attrs) {
  tutti_graph_begin(graph, "l2_normalize", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_reduce_any_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_reduce_any_attrs;
/* Whether any element along axes is true; false over nothing. */
static inline tutti_value tutti_reduce_any(tutti_graph *graph, tutti_value x, const tutti_reduce_any_attrs *attrs) {
  tutti_graph_begin(graph, "reduce_any", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_reduce_all_attrs {
  /* Axes; negative ones count from the end. Empty = all. */
  const int64_t *axes;
  int64_t axes_count;
  /* Keep reduced axes with length 1. */
  uint8_t keep_dims;
} tutti_reduce_all_attrs;
/* Whether all elements along axes are true; true over nothing. */
static inline tutti_value tutti_reduce_all(tutti_graph *graph, tutti_value x, const tutti_reduce_all_attrs *attrs) {
  tutti_graph_begin(graph, "reduce_all", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axes != NULL || attrs->axes_count != 0) tutti_graph_set_i64s(graph, "axes", attrs->axes, attrs->axes_count);
    if (attrs->keep_dims != 0) tutti_graph_set_bool(graph, "keep_dims", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_bincount_attrs {
  /* a weight for each element, of the shape of x. */
  tutti_value weights;
  /* counts each row by itself: [rows, bins]. */
  uint8_t by_row;
} tutti_bincount_attrs;
/* How often each of the numbers 0, 1, ..., bins - 1 is among the elements of x, or the sum of the weights of those;
 * other numbers do not count. [bins] of i64, or of the dtype of the weights. bins: the number of counters. */
static inline tutti_value tutti_bincount(tutti_graph *graph, tutti_value x, int64_t bins, const tutti_bincount_attrs *attrs) {
  tutti_graph_begin(graph, "bincount", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "bins", bins);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->by_row != 0) tutti_graph_set_bool(graph, "by_row", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_split_attrs {
  /* Axis; negative counts from the end. Default: 0. */
  int64_t axis;
  /* The length of each part, which together are that of the axis. Empty = equal ones. */
  const int64_t *sizes;
  int64_t sizes_count;
} tutti_split_attrs;
/* x cut into parts along an axis, equal ones unless sizes are given. parts: the number of parts, which is that of
 * the results. */
static inline void tutti_split(tutti_graph *graph, tutti_value x, int64_t parts, const tutti_split_attrs *attrs, tutti_value *pieces) {
  tutti_graph_begin(graph, "split", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "parts", parts);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
    if (attrs->sizes != NULL || attrs->sizes_count != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, attrs->sizes_count);
  }
  const tutti_value first = tutti_graph_end(graph, pieces != NULL ? pieces + 1 : NULL, parts > 0 ? parts - 1 : 0);
  if (pieces != NULL && parts > 0) pieces[0] = first;
}

typedef struct tutti_stack_attrs {
  /* The new axis, of the result; negative counts from the end. Default: 0. */
  int64_t axis;
} tutti_stack_attrs;
/* Values of one shape put together along a new axis. */
static inline tutti_value tutti_stack(tutti_graph *graph, const tutti_value *inputs, int64_t inputs_count, const tutti_stack_attrs *attrs) {
  tutti_graph_begin(graph, "stack", 1);
  if (inputs == NULL && inputs_count != 0) tutti_graph_set_i64s(graph, "inputs", NULL, inputs_count);
  for (int64_t i = 0; inputs != NULL && i < inputs_count; i++) tutti_graph_add_input(graph, inputs[i]);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_unstack_attrs {
  /* Axis; negative counts from the end. Default: 0. */
  int64_t axis;
} tutti_unstack_attrs;
/* x taken apart along an axis, which the results do not have. length: the length of the axis, which is the number
 * of the results. */
static inline void tutti_unstack(tutti_graph *graph, tutti_value x, int64_t length, const tutti_unstack_attrs *attrs, tutti_value *pieces) {
  tutti_graph_begin(graph, "unstack", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "length", length);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
  }
  const tutti_value first = tutti_graph_end(graph, pieces != NULL ? pieces + 1 : NULL, length > 0 ? length - 1 : 0);
  if (pieces != NULL && length > 0) pieces[0] = first;
}

/* x repeated along each axis as a whole: [1, 2] twice is [1, 2, 1, 2]. multiples: how often, for each axis; 1 for
 * an axis that counts the rows of the batch. */
static inline tutti_value tutti_tile(tutti_graph *graph, tutti_value x, const int64_t *multiples, int64_t multiples_count) {
  tutti_graph_begin(graph, "tile", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "multiples", multiples, multiples_count);
  return tutti_graph_end(graph, NULL, 0);
}

/* Elements moved along axes, those that leave at one end come in at the other: the element at index i goes to index
 * (i + shift) mod length. shifts: by how much, for each of the axes; negative ones move towards the beginning.
 * axes: axes of known length; negative ones count from the end. */
static inline tutti_value tutti_roll(tutti_graph *graph, tutti_value x, const int64_t *shifts, int64_t shifts_count, const int64_t *axes, int64_t axes_count) {
  tutti_graph_begin(graph, "roll", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "shifts", shifts, shifts_count);
  tutti_graph_set_i64s(graph, "axes", axes, axes_count);
  return tutti_graph_end(graph, NULL, 0);
}

/* Elements in reverse order along axes. axes: axes; negative ones count from the end. */
static inline tutti_value tutti_reverse(tutti_graph *graph, tutti_value x, const int64_t *axes, int64_t axes_count) {
  tutti_graph_begin(graph, "reverse", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "axes", axes, axes_count);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_band_part_attrs {
  /* Diagonals that are kept below the main one; -1 = all. Default: -1. */
  uint8_t has_lower;
  int64_t lower;
  /* Diagonals that are kept above the main one; -1 = all. Default: -1. */
  uint8_t has_upper;
  int64_t upper;
} tutti_band_part_attrs;
/* The matrices of the last two axes with 0 outside of a band around the diagonal, as TensorFlow's
 * tf.linalg.band_part. */
static inline tutti_value tutti_band_part(tutti_graph *graph, tutti_value x, const tutti_band_part_attrs *attrs) {
  tutti_graph_begin(graph, "band_part", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_lower) tutti_graph_set_i64(graph, "lower", attrs->lower);
    if (attrs->has_upper) tutti_graph_set_i64(graph, "upper", attrs->upper);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_lower_triangle_attrs {
  /* The diagonal, counted from the main one upwards. Default: 0. */
  int64_t diagonal;
} tutti_lower_triangle_attrs;
/* The matrices of the last two axes with 0 above a diagonal: PyTorch's tril. */
static inline tutti_value tutti_lower_triangle(tutti_graph *graph, tutti_value x, const tutti_lower_triangle_attrs *attrs) {
  tutti_graph_begin(graph, "lower_triangle", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->diagonal != 0) tutti_graph_set_i64(graph, "diagonal", attrs->diagonal);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_upper_triangle_attrs {
  /* The diagonal, counted from the main one upwards. Default: 0. */
  int64_t diagonal;
} tutti_upper_triangle_attrs;
/* The matrices of the last two axes with 0 below a diagonal: PyTorch's triu. */
static inline tutti_value tutti_upper_triangle(tutti_graph *graph, tutti_value x, const tutti_upper_triangle_attrs *attrs) {
  tutti_graph_begin(graph, "upper_triangle", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->diagonal != 0) tutti_graph_set_i64(graph, "diagonal", attrs->diagonal);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_band_mask_attrs {
  /* Diagonals that are kept below the main one; -1 = all. Default: -1. */
  uint8_t has_lower;
  int64_t lower;
  /* Diagonals that are kept above the main one; -1 = all. Default: -1. */
  uint8_t has_upper;
  int64_t upper;
} tutti_band_mask_attrs;
/* A boolean matrix [rows, columns] that is true within a band around the diagonal: with upper = 0 the mask of
 * causal attention. rows: the first dimension. columns: the second dimension. */
static inline tutti_value tutti_band_mask(tutti_graph *graph, int64_t rows, int64_t columns, const tutti_band_mask_attrs *attrs) {
  tutti_graph_begin(graph, "band_mask", 1);
  tutti_graph_set_i64(graph, "rows", rows);
  tutti_graph_set_i64(graph, "columns", columns);
  if (attrs != NULL) {
    if (attrs->has_lower) tutti_graph_set_i64(graph, "lower", attrs->lower);
    if (attrs->has_upper) tutti_graph_set_i64(graph, "upper", attrs->upper);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_cumsum_attrs {
  /* Axis; negative counts from the end. Default: 0. */
  int64_t axis;
  /* Leaves out the element at the index itself. */
  uint8_t exclusive;
  /* From the last index to the first. */
  uint8_t backward;
} tutti_cumsum_attrs;
/* Sums of the elements up to each index along an axis of known length. */
static inline tutti_value tutti_cumsum(tutti_graph *graph, tutti_value x, const tutti_cumsum_attrs *attrs) {
  tutti_graph_begin(graph, "cumsum", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
    if (attrs->exclusive != 0) tutti_graph_set_bool(graph, "exclusive", 1);
    if (attrs->backward != 0) tutti_graph_set_bool(graph, "backward", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_cumprod_attrs {
  /* Axis; negative counts from the end. Default: 0. */
  int64_t axis;
  /* Leaves out the element at the index itself. */
  uint8_t exclusive;
  /* From the last index to the first. */
  uint8_t backward;
} tutti_cumprod_attrs;
/* Products of the elements up to each index along an axis of known length. */
static inline tutti_value tutti_cumprod(tutti_graph *graph, tutti_value x, const tutti_cumprod_attrs *attrs) {
  tutti_graph_begin(graph, "cumprod", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
    if (attrs->exclusive != 0) tutti_graph_set_bool(graph, "exclusive", 1);
    if (attrs->backward != 0) tutti_graph_set_bool(graph, "backward", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_sort_attrs {
  /* Axis; negative counts from the end. Default: -1. */
  uint8_t has_axis;
  int64_t axis;
  /* In descending order; equal ones stay in their order and NaNs come last all the same. */
  uint8_t descending;
} tutti_sort_attrs;
/* Elements in ascending order along an axis of known length; equal ones stay in their order, NaNs come last. */
static inline tutti_value tutti_sort(tutti_graph *graph, tutti_value x, const tutti_sort_attrs *attrs) {
  tutti_graph_begin(graph, "sort", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_axis) tutti_graph_set_i64(graph, "axis", attrs->axis);
    if (attrs->descending != 0) tutti_graph_set_bool(graph, "descending", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_argsort_attrs {
  /* Axis; negative counts from the end. Default: -1. */
  uint8_t has_axis;
  int64_t axis;
  /* In descending order; equal ones stay in their order and NaNs come last all the same. */
  uint8_t descending;
} tutti_argsort_attrs;
/* The indices of the elements in the order of sort, i64. */
static inline tutti_value tutti_argsort(tutti_graph *graph, tutti_value x, const tutti_argsort_attrs *attrs) {
  tutti_graph_begin(graph, "argsort", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_axis) tutti_graph_set_i64(graph, "axis", attrs->axis);
    if (attrs->descending != 0) tutti_graph_set_bool(graph, "descending", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* Slices of params by indices of several axes: the last axis of the indices, of length k, has an index for each of
 * the first k axes of params. [..., k] gives [...] + the other dimensions of params. An index out of range is an
 * error of the run. */
static inline tutti_value tutti_gather_nd(tutti_graph *graph, tutti_value params, tutti_value indices) {
  tutti_graph_begin(graph, "gather_nd", 1);
  tutti_graph_add_input(graph, params);
  tutti_graph_add_input(graph, indices);
  return tutti_graph_end(graph, NULL, 0);
}

/* x with updates added to the rows that indices name; a row that is named several times gets all of them. An index
 * out of range is an error of the run. */
static inline tutti_value tutti_scatter_add(tutti_graph *graph, tutti_value x, tutti_value indices, tutti_value updates) {
  tutti_graph_begin(graph, "scatter_add", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, indices);
  tutti_graph_add_input(graph, updates);
  return tutti_graph_end(graph, NULL, 0);
}

/* x with each row that indices name replaced by the maximum of it and the updates for it, element by element. NaN
 * wins. Otherwise as scatter_add. */
static inline tutti_value tutti_scatter_max(tutti_graph *graph, tutti_value x, tutti_value indices, tutti_value updates) {
  tutti_graph_begin(graph, "scatter_max", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, indices);
  tutti_graph_add_input(graph, updates);
  return tutti_graph_end(graph, NULL, 0);
}

/* x with the rows that indices name replaced by updates; of several updates for a row the last one counts.
 * Otherwise as scatter_add. */
static inline tutti_value tutti_scatter_replace(tutti_graph *graph, tutti_value x, tutti_value indices, tutti_value updates) {
  tutti_graph_begin(graph, "scatter_replace", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, indices);
  tutti_graph_add_input(graph, updates);
  return tutti_graph_end(graph, NULL, 0);
}

/* Products and sums in Einstein's notation, as in NumPy: a letter for each axis of each operand, separated by
 * commas, and behind -> those of the result. Axes with the same letter are multiplied element by element, letters
 * that the result lacks are summed over. '...' stands for any further axes, which broadcast; a letter that an
 * operand has twice takes its diagonal. Without -> the result has the letters that stand there once, in
 * alphabetical order, behind '...'. equation: such as bij,bjk->bik. */
static inline tutti_value tutti_einsum(tutti_graph *graph, const tutti_value *operands, int64_t operands_count, const char *equation) {
  tutti_graph_begin(graph, "einsum", 1);
  if (operands == NULL && operands_count != 0) tutti_graph_set_i64s(graph, "operands", NULL, operands_count);
  for (int64_t i = 0; operands != NULL && i < operands_count; i++) tutti_graph_add_input(graph, operands[i]);
  tutti_graph_set_string(graph, "equation", equation);
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_CONV1D_PADDING_SAME 1
#define TUTTI_CONV1D_PADDING_VALID 2
#define TUTTI_CONV1D_PADDING_EXPLICIT 3
static inline const char *tutti_conv1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_CONV1D_PADDING_SAME: return "same";
    case TUTTI_CONV1D_PADDING_VALID: return "valid";
    case TUTTI_CONV1D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_conv1d_attrs {
  /* [filters]. */
  tutti_value bias;
  /* Step along the sequence. Default: 1. */
  int64_t stride;
  /* Distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* How the ends are padded. Default: same. */
  int32_t padding;
  /* Before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
  /* Number of channel groups that are convolved separately; equal to the channels: depthwise. Default: 1. */
  int64_t groups;
} tutti_conv1d_attrs;
/* One-dimensional convolution (cross-correlation) of sequences [rows, length, channels], plus a bias when given.
 * Padding as in conv2d. */
static inline tutti_value tutti_conv1d(tutti_graph *graph, tutti_value x, tutti_value kernel, const tutti_conv1d_attrs *attrs) {
  tutti_graph_begin(graph, "conv1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, kernel);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->bias : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_conv1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_MAX_POOL1D_PADDING_SAME 1
#define TUTTI_MAX_POOL1D_PADDING_VALID 2
#define TUTTI_MAX_POOL1D_PADDING_EXPLICIT 3
static inline const char *tutti_max_pool1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_MAX_POOL1D_PADDING_SAME: return "same";
    case TUTTI_MAX_POOL1D_PADDING_VALID: return "valid";
    case TUTTI_MAX_POOL1D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_max_pool1d_attrs {
  /* Step along the sequence; 0 = the window. Default: 0. */
  int64_t stride;
  /* How the ends are padded. Default: valid. */
  int32_t padding;
  /* Before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
} tutti_max_pool1d_attrs;
/* Largest element of each window along sequences [rows, length, channels]; padding never wins. NaN wins. window:
 * length of the window. */
static inline tutti_value tutti_max_pool1d(tutti_graph *graph, tutti_value x, int64_t window, const tutti_max_pool1d_attrs *attrs) {
  tutti_graph_begin(graph, "max_pool1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "window", window);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_max_pool1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_AVG_POOL1D_PADDING_SAME 1
#define TUTTI_AVG_POOL1D_PADDING_VALID 2
#define TUTTI_AVG_POOL1D_PADDING_EXPLICIT 3
static inline const char *tutti_avg_pool1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_AVG_POOL1D_PADDING_SAME: return "same";
    case TUTTI_AVG_POOL1D_PADDING_VALID: return "valid";
    case TUTTI_AVG_POOL1D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_avg_pool1d_attrs {
  /* Step along the sequence; 0 = the window. Default: 0. */
  int64_t stride;
  /* How the ends are padded. Default: valid. */
  int32_t padding;
  /* Before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
  /* Divide by the length of the whole window at the ends, too. */
  uint8_t count_include_padding;
} tutti_avg_pool1d_attrs;
/* Mean of each window along sequences [rows, length, channels]. window: length of the window. */
static inline tutti_value tutti_avg_pool1d(tutti_graph *graph, tutti_value x, int64_t window, const tutti_avg_pool1d_attrs *attrs) {
  tutti_graph_begin(graph, "avg_pool1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "window", window);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_avg_pool1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->count_include_padding != 0) tutti_graph_set_bool(graph, "count_include_padding", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_CONV1D_TRANSPOSE_PADDING_SAME 1
#define TUTTI_CONV1D_TRANSPOSE_PADDING_VALID 2
#define TUTTI_CONV1D_TRANSPOSE_PADDING_EXPLICIT 3
static inline const char *tutti_conv1d_transpose_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_CONV1D_TRANSPOSE_PADDING_SAME: return "same";
    case TUTTI_CONV1D_TRANSPOSE_PADDING_VALID: return "valid";
    case TUTTI_CONV1D_TRANSPOSE_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_conv1d_transpose_attrs {
  /* [filters]. */
  tutti_value bias;
  /* Step along the result. Default: 1. */
  int64_t stride;
  /* Distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* What is cut off at the ends of the result. Default: same. */
  int32_t padding;
  /* Cut off at the beginning and at the end; for explicit. Default: [0, 0]. */
  int64_t pads[2];
  /* Elements added at the end of the result, less than the stride: PyTorch's output_padding. Not for same. Default:
   * 0. */
  int64_t extra;
  /* As in conv1d. Default: 1. */
  int64_t groups;
} tutti_conv1d_transpose_attrs;
/* The transpose of conv1d: each element of sequences [rows, length, channels] is spread over a window of the
 * result. The length becomes length * stride for same padding, else (length - 1) * stride + (size - 1) * dilation +
 * 1 - pads + extra. */
static inline tutti_value tutti_conv1d_transpose(tutti_graph *graph, tutti_value x, tutti_value kernel, const tutti_conv1d_transpose_attrs *attrs) {
  tutti_graph_begin(graph, "conv1d_transpose", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, kernel);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->bias : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_conv1d_transpose_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->extra != 0) tutti_graph_set_i64(graph, "extra", attrs->extra);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_CONV2D_TRANSPOSE_PADDING_SAME 1
#define TUTTI_CONV2D_TRANSPOSE_PADDING_VALID 2
#define TUTTI_CONV2D_TRANSPOSE_PADDING_EXPLICIT 3
static inline const char *tutti_conv2d_transpose_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_CONV2D_TRANSPOSE_PADDING_SAME: return "same";
    case TUTTI_CONV2D_TRANSPOSE_PADDING_VALID: return "valid";
    case TUTTI_CONV2D_TRANSPOSE_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_conv2d_transpose_attrs {
  /* [filters]. */
  tutti_value bias;
  /* Vertical and horizontal step along the result. Default: [1, 1]. */
  int64_t stride[2];
  /* Distance between kernel elements. Default: [1, 1]. */
  int64_t dilation[2];
  /* What is cut off at the border of the result. Default: same. */
  int32_t padding;
  /* Cut off at the top, bottom, left and right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
  /* Pixels added at the bottom and at the right, less than the stride: PyTorch's output_padding. Not for same.
   * Default: [0, 0]. */
  int64_t extra[2];
  /* As in conv2d. Default: 1. */
  int64_t groups;
} tutti_conv2d_transpose_attrs;
/* The transpose of conv2d, often called deconvolution (Zeiler et al., 2010): each pixel is spread over a window of
 * the result. A height becomes height * stride for same padding, else (height - 1) * stride + (size - 1) * dilation
 * + 1 - pads + extra. */
static inline tutti_value tutti_conv2d_transpose(tutti_graph *graph, tutti_value x, tutti_value kernel, const tutti_conv2d_transpose_attrs *attrs) {
  tutti_graph_begin(graph, "conv2d_transpose", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, kernel);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->bias : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->stride[0] != 0 || attrs->stride[1] != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, 2);
    if (attrs->dilation[0] != 0 || attrs->dilation[1] != 0) tutti_graph_set_i64s(graph, "dilation", attrs->dilation, 2);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_conv2d_transpose_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
    if (attrs->extra[0] != 0 || attrs->extra[1] != 0) tutti_graph_set_i64s(graph, "extra", attrs->extra, 2);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_CONV3D_PADDING_SAME 1
#define TUTTI_CONV3D_PADDING_VALID 2
#define TUTTI_CONV3D_PADDING_EXPLICIT 3
static inline const char *tutti_conv3d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_CONV3D_PADDING_SAME: return "same";
    case TUTTI_CONV3D_PADDING_VALID: return "valid";
    case TUTTI_CONV3D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_conv3d_attrs {
  /* [filters]. */
  tutti_value bias;
  /* Step along depth, height and width. Default: [1, 1, 1]. */
  int64_t stride[3];
  /* Distance between kernel elements. Default: [1, 1, 1]. */
  int64_t dilation[3];
  /* How the border is padded. Default: same. */
  int32_t padding;
  /* Front, back, top, bottom, left, right; for explicit. Default: [0, 0, 0, 0, 0, 0]. */
  int64_t pads[6];
  /* Number of channel groups that are convolved separately. Default: 1. */
  int64_t groups;
} tutti_conv3d_attrs;
/* Three-dimensional convolution (cross-correlation) of volumes [rows, depth, height, width, channels], plus a bias
 * when given. Padding as in conv2d. */
static inline tutti_value tutti_conv3d(tutti_graph *graph, tutti_value x, tutti_value kernel, const tutti_conv3d_attrs *attrs) {
  tutti_graph_begin(graph, "conv3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, kernel);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->bias : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->stride[0] != 0 || attrs->stride[1] != 0 || attrs->stride[2] != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, 3);
    if (attrs->dilation[0] != 0 || attrs->dilation[1] != 0 || attrs->dilation[2] != 0) tutti_graph_set_i64s(graph, "dilation", attrs->dilation, 3);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_conv3d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_CONV3D_TRANSPOSE_PADDING_SAME 1
#define TUTTI_CONV3D_TRANSPOSE_PADDING_VALID 2
#define TUTTI_CONV3D_TRANSPOSE_PADDING_EXPLICIT 3
static inline const char *tutti_conv3d_transpose_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_CONV3D_TRANSPOSE_PADDING_SAME: return "same";
    case TUTTI_CONV3D_TRANSPOSE_PADDING_VALID: return "valid";
    case TUTTI_CONV3D_TRANSPOSE_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_conv3d_transpose_attrs {
  /* [filters]. */
  tutti_value bias;
  /* Step along depth, height and width of the result. Default: [1, 1, 1]. */
  int64_t stride[3];
  /* Distance between kernel elements. Default: [1, 1, 1]. */
  int64_t dilation[3];
  /* What is cut off at the border of the result. Default: same. */
  int32_t padding;
  /* Cut off at the front, back, top, bottom, left and right; for explicit. Default: [0, 0, 0, 0, 0, 0]. */
  int64_t pads[6];
  /* Voxels added at the back, at the bottom and at the right, less than the stride: PyTorch's output_padding. Not
   * for same. Default: [0, 0, 0]. */
  int64_t extra[3];
  /* As in conv2d. Default: 1. */
  int64_t groups;
} tutti_conv3d_transpose_attrs;
/* The transpose of conv3d: each voxel is spread over a window of the result. Sizes as in conv2d_transpose. */
static inline tutti_value tutti_conv3d_transpose(tutti_graph *graph, tutti_value x, tutti_value kernel, const tutti_conv3d_transpose_attrs *attrs) {
  tutti_graph_begin(graph, "conv3d_transpose", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, kernel);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->bias : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->stride[0] != 0 || attrs->stride[1] != 0 || attrs->stride[2] != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, 3);
    if (attrs->dilation[0] != 0 || attrs->dilation[1] != 0 || attrs->dilation[2] != 0) tutti_graph_set_i64s(graph, "dilation", attrs->dilation, 3);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_conv3d_transpose_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
    if (attrs->extra[0] != 0 || attrs->extra[1] != 0 || attrs->extra[2] != 0) tutti_graph_set_i64s(graph, "extra", attrs->extra, 3);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_MAX_POOL3D_PADDING_SAME 1
#define TUTTI_MAX_POOL3D_PADDING_VALID 2
#define TUTTI_MAX_POOL3D_PADDING_EXPLICIT 3
static inline const char *tutti_max_pool3d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_MAX_POOL3D_PADDING_SAME: return "same";
    case TUTTI_MAX_POOL3D_PADDING_VALID: return "valid";
    case TUTTI_MAX_POOL3D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_max_pool3d_attrs {
  /* Step along depth, height and width; 0 = that of the window. Default: [0, 0, 0]. */
  int64_t stride[3];
  /* How the border is padded. Default: valid. */
  int32_t padding;
  /* Front, back, top, bottom, left, right; for explicit. Default: [0, 0, 0, 0, 0, 0]. */
  int64_t pads[6];
} tutti_max_pool3d_attrs;
/* Largest element of each window of volumes [rows, depth, height, width, channels]; padding never wins. NaN wins.
 * window: depth, height and width of the window. */
static inline tutti_value tutti_max_pool3d(tutti_graph *graph, tutti_value x, const int64_t *window, const tutti_max_pool3d_attrs *attrs) {
  tutti_graph_begin(graph, "max_pool3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "window", window, 3);
  if (attrs != NULL) {
    if (attrs->stride[0] != 0 || attrs->stride[1] != 0 || attrs->stride[2] != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, 3);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_max_pool3d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_AVG_POOL3D_PADDING_SAME 1
#define TUTTI_AVG_POOL3D_PADDING_VALID 2
#define TUTTI_AVG_POOL3D_PADDING_EXPLICIT 3
static inline const char *tutti_avg_pool3d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_AVG_POOL3D_PADDING_SAME: return "same";
    case TUTTI_AVG_POOL3D_PADDING_VALID: return "valid";
    case TUTTI_AVG_POOL3D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_avg_pool3d_attrs {
  /* Step along depth, height and width; 0 = that of the window. Default: [0, 0, 0]. */
  int64_t stride[3];
  /* How the border is padded. Default: valid. */
  int32_t padding;
  /* Front, back, top, bottom, left, right; for explicit. Default: [0, 0, 0, 0, 0, 0]. */
  int64_t pads[6];
  /* Divide by the size of the whole window at the border, too. */
  uint8_t count_include_padding;
} tutti_avg_pool3d_attrs;
/* Mean of each window of volumes [rows, depth, height, width, channels]. window: depth, height and width of the
 * window. */
static inline tutti_value tutti_avg_pool3d(tutti_graph *graph, tutti_value x, const int64_t *window, const tutti_avg_pool3d_attrs *attrs) {
  tutti_graph_begin(graph, "avg_pool3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "window", window, 3);
  if (attrs != NULL) {
    if (attrs->stride[0] != 0 || attrs->stride[1] != 0 || attrs->stride[2] != 0) tutti_graph_set_i64s(graph, "stride", attrs->stride, 3);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_avg_pool3d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
    if (attrs->count_include_padding != 0) tutti_graph_set_bool(graph, "count_include_padding", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_RESIZE2D_METHOD_BILINEAR 1
#define TUTTI_RESIZE2D_METHOD_NEAREST 2
static inline const char *tutti_resize2d_method_name(int32_t value) {
  switch (value) {
    case TUTTI_RESIZE2D_METHOD_BILINEAR: return "bilinear";
    case TUTTI_RESIZE2D_METHOD_NEAREST: return "nearest";
    default: return "(no such value)";
  }
}
typedef struct tutti_resize2d_attrs {
  /* Interpolation method. Default: bilinear. */
  int32_t method;
} tutti_resize2d_attrs;
/* Images [rows, height, width, channels] resized to another height and width, with a gradient: the bilinear and
 * nearest methods of the op resize, in models. size: height and width of the result. */
static inline tutti_value tutti_resize2d(tutti_graph *graph, tutti_value x, const int64_t *size, const tutti_resize2d_attrs *attrs) {
  tutti_graph_begin(graph, "resize2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "size", size, 2);
  if (attrs != NULL) {
    if (attrs->method != 0) { if (attrs->method >= 1 && attrs->method <= 2) tutti_graph_set_string(graph, "method", tutti_resize2d_method_name(attrs->method)); else tutti_graph_set_i64(graph, "method", attrs->method); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* --- layers, losses, metrics, optimizers, schedules --------------------------------------------------------------- */

#define TUTTI_LAYER_DENSE_ACTIVATION_NONE 1
#define TUTTI_LAYER_DENSE_ACTIVATION_RELU 2
#define TUTTI_LAYER_DENSE_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_DENSE_ACTIVATION_TANH 4
#define TUTTI_LAYER_DENSE_ACTIVATION_GELU 5
#define TUTTI_LAYER_DENSE_ACTIVATION_SILU 6
#define TUTTI_LAYER_DENSE_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_dense_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DENSE_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_DENSE_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_DENSE_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_DENSE_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_DENSE_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_DENSE_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_DENSE_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_dense_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_dense_attrs {
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_dense_attrs;
/* y = activation(x * kernel + bias) over the last dimension of x. Variables, in the scope dense, dense_1, ...:
 * kernel [inputs, units], the transpose of PyTorch's weight; bias [units]. units: size of the last dimension of the
 * result. */
static inline tutti_value tutti_layer_dense(tutti_graph *graph, tutti_value x, int64_t units, const tutti_layer_dense_attrs *attrs) {
  tutti_graph_begin(graph, "layer_dense", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "units", units);
  if (attrs != NULL) {
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_dense_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_dense_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_CONV1D_PADDING_SAME 1
#define TUTTI_LAYER_CONV1D_PADDING_VALID 2
#define TUTTI_LAYER_CONV1D_PADDING_EXPLICIT 3
#define TUTTI_LAYER_CONV1D_PADDING_CAUSAL 4
static inline const char *tutti_layer_conv1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV1D_PADDING_SAME: return "same";
    case TUTTI_LAYER_CONV1D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_CONV1D_PADDING_EXPLICIT: return "explicit";
    case TUTTI_LAYER_CONV1D_PADDING_CAUSAL: return "causal";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV1D_ACTIVATION_NONE 1
#define TUTTI_LAYER_CONV1D_ACTIVATION_RELU 2
#define TUTTI_LAYER_CONV1D_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_CONV1D_ACTIVATION_TANH 4
#define TUTTI_LAYER_CONV1D_ACTIVATION_GELU 5
#define TUTTI_LAYER_CONV1D_ACTIVATION_SILU 6
#define TUTTI_LAYER_CONV1D_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_conv1d_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV1D_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_CONV1D_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_CONV1D_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_CONV1D_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_CONV1D_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_CONV1D_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_CONV1D_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV1D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_CONV1D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_CONV1D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_conv1d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV1D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_CONV1D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_CONV1D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_conv1d_attrs {
  /* step along the sequence. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* same: ceil(length / stride); valid: no padding; explicit: the attribute pads; causal: all in front, so that no
   * result sees a later position. Default: same. */
  int32_t padding;
  /* zeros before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
  /* independent groups of channels. Default: 1. */
  int64_t groups;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_conv1d_attrs;
/* One-dimensional convolution (cross-correlation, as in Keras and PyTorch) of sequences [batch, length, channels].
 * Variables, in the scope conv1d, conv1d_1, ...: kernel [size, channels / groups, filters], as in Keras; PyTorch's
 * weight is [filters, channels / groups, size]; bias [filters]. Where a total of same padding is odd, the end gets
 * the larger part, as in Keras. filters: channels of the result. size: length of the kernel. */
static inline tutti_value tutti_layer_conv1d(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_conv1d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_conv1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 4) tutti_graph_set_string(graph, "padding", tutti_layer_conv1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_conv1d_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_conv1d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_CONV2D_PADDING_SAME 1
#define TUTTI_LAYER_CONV2D_PADDING_VALID 2
#define TUTTI_LAYER_CONV2D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_conv2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV2D_PADDING_SAME: return "same";
    case TUTTI_LAYER_CONV2D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_CONV2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV2D_ACTIVATION_NONE 1
#define TUTTI_LAYER_CONV2D_ACTIVATION_RELU 2
#define TUTTI_LAYER_CONV2D_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_CONV2D_ACTIVATION_TANH 4
#define TUTTI_LAYER_CONV2D_ACTIVATION_GELU 5
#define TUTTI_LAYER_CONV2D_ACTIVATION_SILU 6
#define TUTTI_LAYER_CONV2D_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_conv2d_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV2D_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_CONV2D_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_CONV2D_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_CONV2D_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_CONV2D_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_CONV2D_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_CONV2D_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV2D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_CONV2D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_CONV2D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_conv2d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV2D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_CONV2D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_CONV2D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_conv2d_attrs {
  /* step in both directions. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: same. */
  int32_t padding;
  /* independent groups of channels. Default: 1. */
  int64_t groups;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
  /* height and width of the kernel where they differ; 0 = size. Default: [0, 0]. */
  int64_t sizes[2];
  /* vertical and horizontal step where they differ; 0 = stride. Default: [0, 0]. */
  int64_t strides[2];
  /* vertical and horizontal distance where they differ; 0 = dilation. Default: [0, 0]. */
  int64_t dilations[2];
  /* zeros at the top, bottom, left and right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
} tutti_layer_conv2d_attrs;
/* Two-dimensional convolution of images [batch, height, width, channels]. Variables, in the scope conv2d, conv2d_1,
 * ...: kernel [height, width, channels / groups, filters], as in Keras; PyTorch's weight is [filters, channels /
 * groups, height, width]; bias [filters]. Where a total of same padding is odd, bottom and right get the larger
 * part, as in Keras; PyTorch's padding is the attribute pads. filters: channels of the result. size: height and
 * width of the kernel. */
static inline tutti_value tutti_layer_conv2d(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_conv2d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_conv2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_conv2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_conv2d_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_conv2d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 2);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 2);
    if (attrs->dilations[0] != 0 || attrs->dilations[1] != 0) tutti_graph_set_i64s(graph, "dilations", attrs->dilations, 2);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_CONV3D_PADDING_SAME 1
#define TUTTI_LAYER_CONV3D_PADDING_VALID 2
#define TUTTI_LAYER_CONV3D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_conv3d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV3D_PADDING_SAME: return "same";
    case TUTTI_LAYER_CONV3D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_CONV3D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV3D_ACTIVATION_NONE 1
#define TUTTI_LAYER_CONV3D_ACTIVATION_RELU 2
#define TUTTI_LAYER_CONV3D_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_CONV3D_ACTIVATION_TANH 4
#define TUTTI_LAYER_CONV3D_ACTIVATION_GELU 5
#define TUTTI_LAYER_CONV3D_ACTIVATION_SILU 6
#define TUTTI_LAYER_CONV3D_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_conv3d_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV3D_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_CONV3D_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_CONV3D_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_CONV3D_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_CONV3D_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_CONV3D_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_CONV3D_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV3D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_CONV3D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_CONV3D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_conv3d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV3D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_CONV3D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_CONV3D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_conv3d_attrs {
  /* step in all directions. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: same. */
  int32_t padding;
  /* independent groups of channels. Default: 1. */
  int64_t groups;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
  /* depth, height and width of the kernel where they differ; 0 = size. Default: [0, 0, 0]. */
  int64_t sizes[3];
  /* steps along depth, height and width where they differ; 0 = stride. Default: [0, 0, 0]. */
  int64_t strides[3];
  /* distances along depth, height and width where they differ; 0 = dilation. Default: [0, 0, 0]. */
  int64_t dilations[3];
  /* zeros at the front, back, top, bottom, left and right; for explicit. Default: [0, 0, 0, 0, 0, 0]. */
  int64_t pads[6];
} tutti_layer_conv3d_attrs;
/* Three-dimensional convolution of volumes [batch, depth, height, width, channels], whose depth must be known.
 * Variables, in the scope conv3d, conv3d_1, ...: kernel [depth, height, width, channels / groups, filters], as in
 * Keras; PyTorch's weight is [filters, channels / groups, depth, height, width]; bias [filters]. Padding as in
 * conv2d. filters: channels of the result. size: depth, height and width of the kernel. */
static inline tutti_value tutti_layer_conv3d(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_conv3d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_conv3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_conv3d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_conv3d_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_conv3d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0 || attrs->sizes[2] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 3);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0 || attrs->strides[2] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 3);
    if (attrs->dilations[0] != 0 || attrs->dilations[1] != 0 || attrs->dilations[2] != 0) tutti_graph_set_i64s(graph, "dilations", attrs->dilations, 3);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_CONV1D_TRANSPOSE_PADDING_SAME 1
#define TUTTI_LAYER_CONV1D_TRANSPOSE_PADDING_VALID 2
#define TUTTI_LAYER_CONV1D_TRANSPOSE_PADDING_EXPLICIT 3
static inline const char *tutti_layer_conv1d_transpose_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV1D_TRANSPOSE_PADDING_SAME: return "same";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_PADDING_VALID: return "valid";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_NONE 1
#define TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_RELU 2
#define TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_TANH 4
#define TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_GELU 5
#define TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_SILU 6
#define TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_conv1d_transpose_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_CONV1D_TRANSPOSE_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_conv1d_transpose_attrs {
  /* step along the result. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* what is cut off at the ends of the result: as same padding adds to its convolution; valid: nothing; explicit:
   * the attribute pads. Default: same. */
  int32_t padding;
  /* elements cut off at the beginning and at the end; for explicit: PyTorch's padding. Default: [0, 0]. */
  int64_t pads[2];
  /* elements added at the end, less than the stride: output_padding of PyTorch; not for same. Default: 0. */
  int64_t extra;
  /* independent groups of channels. Default: 1. */
  int64_t groups;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_conv1d_transpose_attrs;
/* The transpose of conv1d: each element of sequences [batch, length, channels] is spread over a window of the
 * result, whose length is length * stride for same padding, else (length - 1) * stride + (size - 1) * dilation + 1
 * - pads + extra. Variables, in the scope conv1d_transpose, ...: kernel [size, filters / groups, channels], as in
 * Keras; PyTorch's weight is [channels, filters / groups, size]; bias [filters]. Keras makes a result of valid
 * padding at least length * stride long: that is extra = stride - size where the stride is the larger one. filters:
 * channels of the result. size: length of the kernel. */
static inline tutti_value tutti_layer_conv1d_transpose(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_conv1d_transpose_attrs *attrs) {
  tutti_graph_begin(graph, "layer_conv1d_transpose", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_conv1d_transpose_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->extra != 0) tutti_graph_set_i64(graph, "extra", attrs->extra);
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_conv1d_transpose_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_CONV2D_TRANSPOSE_PADDING_SAME 1
#define TUTTI_LAYER_CONV2D_TRANSPOSE_PADDING_VALID 2
#define TUTTI_LAYER_CONV2D_TRANSPOSE_PADDING_EXPLICIT 3
static inline const char *tutti_layer_conv2d_transpose_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV2D_TRANSPOSE_PADDING_SAME: return "same";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_PADDING_VALID: return "valid";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_NONE 1
#define TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_RELU 2
#define TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_TANH 4
#define TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_GELU 5
#define TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_SILU 6
#define TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_conv2d_transpose_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_CONV2D_TRANSPOSE_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_conv2d_transpose_attrs {
  /* step along the result in both directions. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* what is cut off at the border of the result: as same padding adds to its convolution; valid: nothing; explicit:
   * the attribute pads. Default: same. */
  int32_t padding;
  /* independent groups of channels. Default: 1. */
  int64_t groups;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
  /* height and width of the kernel where they differ; 0 = size. Default: [0, 0]. */
  int64_t sizes[2];
  /* vertical and horizontal step where they differ; 0 = stride. Default: [0, 0]. */
  int64_t strides[2];
  /* vertical and horizontal distance where they differ; 0 = dilation. Default: [0, 0]. */
  int64_t dilations[2];
  /* pixels cut off at the top, bottom, left and right; for explicit: PyTorch's padding. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
  /* pixels added at the bottom and at the right, less than the strides: output_padding of PyTorch; not for same.
   * Default: [0, 0]. */
  int64_t extra[2];
} tutti_layer_conv2d_transpose_attrs;
/* The transpose of conv2d, often called deconvolution (Zeiler et al., 2010): each pixel of images [batch, height,
 * width, channels] is spread over a window of the result, whose height is height * stride for same padding, else
 * (height - 1) * stride + (size - 1) * dilation + 1 - pads + extra; the width likewise. Variables, in the scope
 * conv2d_transpose, ...: kernel [height, width, filters / groups, channels], as in Keras; PyTorch's weight is
 * [channels, filters / groups, height, width]; bias [filters]. Keras makes a result of valid padding at least
 * height * stride high: that is extra = stride - size where the stride is the larger one. filters: channels of the
 * result. size: height and width of the kernel. */
static inline tutti_value tutti_layer_conv2d_transpose(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_conv2d_transpose_attrs *attrs) {
  tutti_graph_begin(graph, "layer_conv2d_transpose", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_conv2d_transpose_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_conv2d_transpose_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 2);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 2);
    if (attrs->dilations[0] != 0 || attrs->dilations[1] != 0) tutti_graph_set_i64s(graph, "dilations", attrs->dilations, 2);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
    if (attrs->extra[0] != 0 || attrs->extra[1] != 0) tutti_graph_set_i64s(graph, "extra", attrs->extra, 2);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_CONV3D_TRANSPOSE_PADDING_SAME 1
#define TUTTI_LAYER_CONV3D_TRANSPOSE_PADDING_VALID 2
#define TUTTI_LAYER_CONV3D_TRANSPOSE_PADDING_EXPLICIT 3
static inline const char *tutti_layer_conv3d_transpose_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV3D_TRANSPOSE_PADDING_SAME: return "same";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_PADDING_VALID: return "valid";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_NONE 1
#define TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_RELU 2
#define TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_TANH 4
#define TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_GELU 5
#define TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_SILU 6
#define TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_conv3d_transpose_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_CONV3D_TRANSPOSE_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_conv3d_transpose_attrs {
  /* step along the result in all directions. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* what is cut off at the border of the result: as same padding adds to its convolution; valid: nothing; explicit:
   * the attribute pads. Default: same. */
  int32_t padding;
  /* independent groups of channels. Default: 1. */
  int64_t groups;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
  /* depth, height and width of the kernel where they differ; 0 = size. Default: [0, 0, 0]. */
  int64_t sizes[3];
  /* steps along depth, height and width where they differ; 0 = stride. Default: [0, 0, 0]. */
  int64_t strides[3];
  /* distances along depth, height and width where they differ; 0 = dilation. Default: [0, 0, 0]. */
  int64_t dilations[3];
  /* voxels cut off at the front, back, top, bottom, left and right; for explicit: PyTorch's padding. Default: [0,
   * 0, 0, 0, 0, 0]. */
  int64_t pads[6];
  /* voxels added at the back, at the bottom and at the right, less than the strides: output_padding of PyTorch; not
   * for same. Default: [0, 0, 0]. */
  int64_t extra[3];
} tutti_layer_conv3d_transpose_attrs;
/* The transpose of conv3d, of volumes [batch, depth, height, width, channels], whose depth must be known; sizes of
 * the result as in conv2d_transpose. Variables, in the scope conv3d_transpose, ...: kernel [depth, height, width,
 * filters / groups, channels], as in Keras; PyTorch's weight is [channels, filters / groups, depth, height, width];
 * bias [filters]. filters: channels of the result. size: depth, height and width of the kernel. */
static inline tutti_value tutti_layer_conv3d_transpose(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_conv3d_transpose_attrs *attrs) {
  tutti_graph_begin(graph, "layer_conv3d_transpose", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_conv3d_transpose_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->groups != 0) tutti_graph_set_i64(graph, "groups", attrs->groups);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_conv3d_transpose_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0 || attrs->sizes[2] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 3);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0 || attrs->strides[2] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 3);
    if (attrs->dilations[0] != 0 || attrs->dilations[1] != 0 || attrs->dilations[2] != 0) tutti_graph_set_i64s(graph, "dilations", attrs->dilations, 3);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
    if (attrs->extra[0] != 0 || attrs->extra[1] != 0 || attrs->extra[2] != 0) tutti_graph_set_i64s(graph, "extra", attrs->extra, 3);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_SAME 1
#define TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_VALID 2
#define TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_EXPLICIT 3
#define TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_CAUSAL 4
static inline const char *tutti_layer_depthwise_conv1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_SAME: return "same";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_EXPLICIT: return "explicit";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_PADDING_CAUSAL: return "causal";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_NONE 1
#define TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_RELU 2
#define TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_TANH 4
#define TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_GELU 5
#define TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_SILU 6
#define TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_depthwise_conv1d_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_DEPTHWISE_CONV1D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_DEPTHWISE_CONV1D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_DEPTHWISE_CONV1D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_depthwise_conv1d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DEPTHWISE_CONV1D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_DEPTHWISE_CONV1D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_depthwise_conv1d_attrs {
  /* results per channel. Default: 1. */
  int64_t multiplier;
  /* step along the sequence. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* same: ceil(length / stride); valid: no padding; explicit: the attribute pads; causal: all in front, so that no
   * result sees a later position. Default: same. */
  int32_t padding;
  /* zeros before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_depthwise_conv1d_attrs;
/* Convolution of each channel of sequences [batch, length, channels] by itself, as depthwise_conv2d of images:
 * output channel c * multiplier + m is the convolution of channel c with filter m. Variables, in the scope
 * depthwise_conv1d, ...: kernel [size, 1, channels * multiplier], where the first multiplier filters belong to the
 * first channel (Keras has [size, channels, multiplier], which are the same numbers in the same order); bias
 * [channels * multiplier]. size: length of the kernel. */
static inline tutti_value tutti_layer_depthwise_conv1d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_depthwise_conv1d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_depthwise_conv1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->multiplier != 0) tutti_graph_set_i64(graph, "multiplier", attrs->multiplier);
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 4) tutti_graph_set_string(graph, "padding", tutti_layer_depthwise_conv1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_depthwise_conv1d_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_depthwise_conv1d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_DEPTHWISE_CONV2D_PADDING_SAME 1
#define TUTTI_LAYER_DEPTHWISE_CONV2D_PADDING_VALID 2
#define TUTTI_LAYER_DEPTHWISE_CONV2D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_depthwise_conv2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DEPTHWISE_CONV2D_PADDING_SAME: return "same";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_NONE 1
#define TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_RELU 2
#define TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_TANH 4
#define TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_GELU 5
#define TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_SILU 6
#define TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_depthwise_conv2d_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_DEPTHWISE_CONV2D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_DEPTHWISE_CONV2D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_DEPTHWISE_CONV2D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_depthwise_conv2d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_DEPTHWISE_CONV2D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_DEPTHWISE_CONV2D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_depthwise_conv2d_attrs {
  /* results per channel. Default: 1. */
  int64_t multiplier;
  /* step in both directions. Default: 1. */
  int64_t stride;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: same. */
  int32_t padding;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of the kernel. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
  /* height and width of the kernel where they differ; 0 = size. Default: [0, 0]. */
  int64_t sizes[2];
  /* vertical and horizontal step where they differ; 0 = stride. Default: [0, 0]. */
  int64_t strides[2];
  /* vertical and horizontal distance where they differ; 0 = dilation. Default: [0, 0]. */
  int64_t dilations[2];
  /* zeros at the top, bottom, left and right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
} tutti_layer_depthwise_conv2d_attrs;
/* Convolution of each channel by itself (Sifre, 2014): output channel c * multiplier + m is the convolution of
 * channel c with filter m. Variables, in the scope depthwise_conv2d, ...: kernel [height, width, 1, channels *
 * multiplier], where the first multiplier filters belong to the first channel (Keras has [height, width, channels,
 * multiplier], which are the same numbers in the same order); bias [channels * multiplier]. size: height and width
 * of the kernel. */
static inline tutti_value tutti_layer_depthwise_conv2d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_depthwise_conv2d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_depthwise_conv2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->multiplier != 0) tutti_graph_set_i64(graph, "multiplier", attrs->multiplier);
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_depthwise_conv2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_depthwise_conv2d_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_depthwise_conv2d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 2);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 2);
    if (attrs->dilations[0] != 0 || attrs->dilations[1] != 0) tutti_graph_set_i64s(graph, "dilations", attrs->dilations, 2);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_SAME 1
#define TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_VALID 2
#define TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_EXPLICIT 3
#define TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_CAUSAL 4
static inline const char *tutti_layer_separable_conv1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_SAME: return "same";
    case TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_EXPLICIT: return "explicit";
    case TUTTI_LAYER_SEPARABLE_CONV1D_PADDING_CAUSAL: return "causal";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_NONE 1
#define TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_RELU 2
#define TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_TANH 4
#define TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_GELU 5
#define TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_SILU 6
#define TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_separable_conv1d_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_SEPARABLE_CONV1D_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_SEPARABLE_CONV1D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_SEPARABLE_CONV1D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_SEPARABLE_CONV1D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_separable_conv1d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_SEPARABLE_CONV1D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_SEPARABLE_CONV1D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_SEPARABLE_CONV1D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_separable_conv1d_attrs {
  /* depthwise results per channel. Default: 1. */
  int64_t multiplier;
  /* step along the sequence. Default: 1. */
  int64_t stride;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* same: ceil(length / stride); valid: no padding; explicit: the attribute pads; causal: all in front, so that no
   * result sees a later position. Default: same. */
  int32_t padding;
  /* zeros before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of both kernels. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_separable_conv1d_attrs;
/* A depthwise convolution of sequences followed by a convolution of size 1 (Kaiser et al., 2018); one bias and one
 * activation at the end. Variables, in the scope separable_conv1d, ...: depthwise_kernel [size, 1, channels *
 * multiplier], pointwise_kernel [1, channels * multiplier, filters], bias [filters]. filters: channels of the
 * result. size: length of the kernel. */
static inline tutti_value tutti_layer_separable_conv1d(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_separable_conv1d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_separable_conv1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->multiplier != 0) tutti_graph_set_i64(graph, "multiplier", attrs->multiplier);
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 4) tutti_graph_set_string(graph, "padding", tutti_layer_separable_conv1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_separable_conv1d_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_separable_conv1d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_SEPARABLE_CONV2D_PADDING_SAME 1
#define TUTTI_LAYER_SEPARABLE_CONV2D_PADDING_VALID 2
#define TUTTI_LAYER_SEPARABLE_CONV2D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_separable_conv2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_SEPARABLE_CONV2D_PADDING_SAME: return "same";
    case TUTTI_LAYER_SEPARABLE_CONV2D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_SEPARABLE_CONV2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_NONE 1
#define TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_RELU 2
#define TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_SIGMOID 3
#define TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_TANH 4
#define TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_GELU 5
#define TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_SILU 6
#define TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_GELU_TANH 7
static inline const char *tutti_layer_separable_conv2d_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_NONE: return "none";
    case TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_SIGMOID: return "sigmoid";
    case TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_SEPARABLE_CONV2D_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_SEPARABLE_CONV2D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_SEPARABLE_CONV2D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_SEPARABLE_CONV2D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_separable_conv2d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_SEPARABLE_CONV2D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_SEPARABLE_CONV2D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_SEPARABLE_CONV2D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_separable_conv2d_attrs {
  /* depthwise results per channel. Default: 1. */
  int64_t multiplier;
  /* step in both directions. Default: 1. */
  int64_t stride;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: same. */
  int32_t padding;
  /* applied to the result; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: none. */
  int32_t activation;
  /* adds no bias. */
  uint8_t without_bias;
  /* initial values of both kernels. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
  /* distance between kernel elements. Default: 1. */
  int64_t dilation;
  /* initial values of the bias. Default: zeros. */
  const char *bias_initializer;
  /* height and width of the kernel where they differ; 0 = size. Default: [0, 0]. */
  int64_t sizes[2];
  /* vertical and horizontal step where they differ; 0 = stride. Default: [0, 0]. */
  int64_t strides[2];
  /* vertical and horizontal distance where they differ; 0 = dilation. Default: [0, 0]. */
  int64_t dilations[2];
  /* zeros at the top, bottom, left and right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
} tutti_layer_separable_conv2d_attrs;
/* A depthwise convolution followed by a 1x1 convolution (Chollet, 2017), without an activation between them; one
 * bias and one activation at the end. Variables, in the scope separable_conv2d, ...: depthwise_kernel [height,
 * width, 1, channels * multiplier], pointwise_kernel [1, 1, channels * multiplier, filters], bias [filters].
 * filters: channels of the result. size: height and width of the depthwise kernel. */
static inline tutti_value tutti_layer_separable_conv2d(tutti_graph *graph, tutti_value x, int64_t filters, int64_t size, const tutti_layer_separable_conv2d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_separable_conv2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->multiplier != 0) tutti_graph_set_i64(graph, "multiplier", attrs->multiplier);
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_separable_conv2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 7) tutti_graph_set_string(graph, "activation", tutti_layer_separable_conv2d_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_separable_conv2d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
    if (attrs->dilation != 0) tutti_graph_set_i64(graph, "dilation", attrs->dilation);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 2);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 2);
    if (attrs->dilations[0] != 0 || attrs->dilations[1] != 0) tutti_graph_set_i64s(graph, "dilations", attrs->dilations, 2);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_BATCH_NORM_STATISTICS_GLOBAL 1
#define TUTTI_LAYER_BATCH_NORM_STATISTICS_PER_REPLICA 2
static inline const char *tutti_layer_batch_norm_statistics_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_BATCH_NORM_STATISTICS_GLOBAL: return "global";
    case TUTTI_LAYER_BATCH_NORM_STATISTICS_PER_REPLICA: return "per_replica";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_batch_norm_attrs {
  /* share of the old running statistics that is kept. Default: 0.99. */
  uint8_t has_momentum;
  double momentum;
  /* added to the variance. Default: 0.001. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds no offset. */
  uint8_t without_offset;
  /* multiplies by no scale. */
  uint8_t without_scale;
  /* over the global batch, or over each replica's rows. Default: global. */
  int32_t statistics;
} tutti_layer_batch_norm_attrs;
/* Batch normalization (Ioffe and Szegedy, 2015) over all but the last dimension: batch statistics while training,
 * running ones otherwise. Variables, in the scope batch_norm, ..., each [channels]: scale, offset, and the
 * non-trainable running_mean and running_variance. The running variance divides by the number of elements, n, as in
 * Keras; PyTorch divides by n - 1. */
static inline tutti_value tutti_layer_batch_norm(tutti_graph *graph, tutti_value x, const tutti_layer_batch_norm_attrs *attrs) {
  tutti_graph_begin(graph, "layer_batch_norm", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_momentum) tutti_graph_set_f64(graph, "momentum", attrs->momentum);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->without_offset != 0) tutti_graph_set_bool(graph, "center", 0);
    if (attrs->without_scale != 0) tutti_graph_set_bool(graph, "scale", 0);
    if (attrs->statistics != 0) { if (attrs->statistics >= 1 && attrs->statistics <= 2) tutti_graph_set_string(graph, "statistics", tutti_layer_batch_norm_statistics_name(attrs->statistics)); else tutti_graph_set_i64(graph, "statistics", attrs->statistics); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_layer_norm_attrs {
  /* added to the variance. Default: 1e-05. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds no offset. */
  uint8_t without_offset;
  /* multiplies by no scale. */
  uint8_t without_scale;
} tutti_layer_layer_norm_attrs;
/* Layer normalization (Ba, Kiros and Hinton, 2016) over the last dimension. Variables, in the scope layer_norm,
 * ..., each [channels]: scale, offset. */
static inline tutti_value tutti_layer_layer_norm(tutti_graph *graph, tutti_value x, const tutti_layer_layer_norm_attrs *attrs) {
  tutti_graph_begin(graph, "layer_layer_norm", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->without_offset != 0) tutti_graph_set_bool(graph, "center", 0);
    if (attrs->without_scale != 0) tutti_graph_set_bool(graph, "scale", 0);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_rms_norm_attrs {
  /* added to the mean square. Default: 1e-06. */
  uint8_t has_epsilon;
  double epsilon;
  /* multiplies by no scale. */
  uint8_t without_scale;
} tutti_layer_rms_norm_attrs;
/* Division by the root of the mean square (Zhang and Sennrich, 2019) over the last dimension. Variable, in the
 * scope rms_norm, ...: scale [channels]. */
static inline tutti_value tutti_layer_rms_norm(tutti_graph *graph, tutti_value x, const tutti_layer_rms_norm_attrs *attrs) {
  tutti_graph_begin(graph, "layer_rms_norm", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->without_scale != 0) tutti_graph_set_bool(graph, "scale", 0);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_group_norm_attrs {
  /* added to the variance. Default: 1e-05. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds no offset. */
  uint8_t without_offset;
  /* multiplies by no scale. */
  uint8_t without_scale;
} tutti_layer_group_norm_attrs;
/* Group normalization (Wu and He, 2018): of each row and group of channels, over the group and all dimensions
 * between the first and the last. Variables, in the scope group_norm, ..., each [channels]: scale, offset. groups:
 * number of groups, which must divide the channels; equal to the channels: instance normalization. */
static inline tutti_value tutti_layer_group_norm(tutti_graph *graph, tutti_value x, int64_t groups, const tutti_layer_group_norm_attrs *attrs) {
  tutti_graph_begin(graph, "layer_group_norm", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "groups", groups);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->without_offset != 0) tutti_graph_set_bool(graph, "center", 0);
    if (attrs->without_scale != 0) tutti_graph_set_bool(graph, "scale", 0);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_instance_norm_attrs {
  /* added to the variance. Default: 1e-05. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds no offset. */
  uint8_t without_offset;
  /* multiplies by no scale. */
  uint8_t without_scale;
} tutti_layer_instance_norm_attrs;
/* Instance normalization (Ulyanov, Vedaldi and Lempitsky, 2016): of each row and channel, over all dimensions
 * between the first and the last. Variables, in the scope instance_norm, ..., each [channels]: scale, offset. */
static inline tutti_value tutti_layer_instance_norm(tutti_graph *graph, tutti_value x, const tutti_layer_instance_norm_attrs *attrs) {
  tutti_graph_begin(graph, "layer_instance_norm", 1);
  tutti_graph_add_input(graph, x);
  if (attrs != NULL) {
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->without_offset != 0) tutti_graph_set_bool(graph, "center", 0);
    if (attrs->without_scale != 0) tutti_graph_set_bool(graph, "scale", 0);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_MULTI_HEAD_ATTENTION_ROTARY_PAIRS_HALVES 1
#define TUTTI_LAYER_MULTI_HEAD_ATTENTION_ROTARY_PAIRS_ADJACENT 2
static inline const char *tutti_layer_multi_head_attention_rotary_pairs_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_MULTI_HEAD_ATTENTION_ROTARY_PAIRS_HALVES: return "halves";
    case TUTTI_LAYER_MULTI_HEAD_ATTENTION_ROTARY_PAIRS_ADJACENT: return "adjacent";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_multi_head_attention_attrs {
  /* [batch, memory length, memory channels]: source of keys and values instead of x. */
  tutti_value memory;
  /* integers [batch], the number of valid positions of x, or of the memory, in each row: 0 to all, or the run fails
   * with the number of the row; later positions are masked. */
  tutti_value lengths;
  /* a position attends only to itself and earlier positions; x is aligned with the end of a longer memory. */
  uint8_t causal;
  /* heads of keys and values, each shared by several query heads; must divide heads; 0 = heads. Default: 0. */
  int64_t key_heads;
  /* channels of each head; 0 = channels of x / heads. Default: 0. */
  int64_t head_channels;
  /* channels of the result; 0 = those of x. Default: 0. */
  int64_t channels;
  /* adds no biases. */
  uint8_t without_bias;
  /* initial values of the kernels. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the biases. Default: zeros. */
  const char *bias_initializer;
  /* while training, the probability in [0, 1) that an attention weight is dropped; the others are scaled by 1 / (1
   * - dropout). Default: 0. */
  double dropout;
  /* above 0: queries and keys of a layer without a memory are turned by their positions, as by rotary_positions
   * with this base (10000 in the paper). Default: 0. */
  double rotary_base;
  /* which channels of a head are turned together, as in rotary_positions. Default: halves. */
  int32_t rotary_pairs;
} tutti_layer_multi_head_attention_attrs;
/* Attention (Vaswani et al., 2017) of x [batch, length, channels] to itself or to a memory, in several heads,
 * followed by a dense layer. Variables, in the scope multi_head_attention, ..., with h = heads * head_channels and
 * k = key_heads * head_channels: input_kernel [channels, h + 2 k] and input_bias for queries, keys and values in
 * this order, or with a memory query_kernel [channels, h], query_bias, memory_kernel [memory channels, 2 k] and
 * memory_bias; output_kernel [h, channels of the result], output_bias. heads: heads of the queries. */
static inline tutti_value tutti_layer_multi_head_attention(tutti_graph *graph, tutti_value x, int64_t heads, const tutti_layer_multi_head_attention_attrs *attrs) {
  tutti_graph_begin(graph, "layer_multi_head_attention", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "heads", heads);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->memory : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->causal != 0) tutti_graph_set_bool(graph, "causal", 1);
    if (attrs->key_heads != 0) tutti_graph_set_i64(graph, "key_heads", attrs->key_heads);
    if (attrs->head_channels != 0) tutti_graph_set_i64(graph, "head_channels", attrs->head_channels);
    if (attrs->channels != 0) tutti_graph_set_i64(graph, "channels", attrs->channels);
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
    if (attrs->dropout != 0) tutti_graph_set_f64(graph, "dropout", attrs->dropout);
    if (attrs->rotary_base != 0) tutti_graph_set_f64(graph, "rotary_base", attrs->rotary_base);
    if (attrs->rotary_pairs != 0) { if (attrs->rotary_pairs >= 1 && attrs->rotary_pairs <= 2) tutti_graph_set_string(graph, "rotary_pairs", tutti_layer_multi_head_attention_rotary_pairs_name(attrs->rotary_pairs)); else tutti_graph_set_i64(graph, "rotary_pairs", attrs->rotary_pairs); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_sinusoidal_positions_attrs {
  /* integers [length] or [batch, length], the position of each element; 0, 1, 2, ... when it is left out. */
  tutti_value positions;
  /* the longest wave is 2 pi times this, nearly. Default: 10000. */
  double base;
} tutti_layer_sinusoidal_positions_attrs;
/* x [batch, length, channels] plus encodings of its positions (Vaswani et al., 2017): sin(p / base^(2 i /
 * channels)) in channel 2 i and the cosine in channel 2 i + 1 for position p. */
static inline tutti_value tutti_layer_sinusoidal_positions(tutti_graph *graph, tutti_value x, const tutti_layer_sinusoidal_positions_attrs *attrs) {
  tutti_graph_begin(graph, "layer_sinusoidal_positions", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->positions : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->base != 0) tutti_graph_set_f64(graph, "base", attrs->base);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_learned_positions_attrs {
  /* integers [length] or [batch, length], the position of each element; 0, 1, 2, ... when it is left out. */
  tutti_value positions;
  /* initial values of the vectors. Default: random_normal(0.02). */
  const char *initializer;
} tutti_layer_learned_positions_attrs;
/* x [batch, length, channels] plus a trained vector for each position (Gehring et al., 2017): x[.., i, :] +
 * positions[i, :]. Variable, in the scope learned_positions, ...: positions [count, channels]. count: number of
 * positions that there are; a position beyond is an error. */
static inline tutti_value tutti_layer_learned_positions(tutti_graph *graph, tutti_value x, int64_t count, const tutti_layer_learned_positions_attrs *attrs) {
  tutti_graph_begin(graph, "layer_learned_positions", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "count", count);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->positions : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->initializer != NULL) tutti_graph_set_string(graph, "initializer", attrs->initializer);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_ROTARY_POSITIONS_ROTARY_PAIRS_HALVES 1
#define TUTTI_LAYER_ROTARY_POSITIONS_ROTARY_PAIRS_ADJACENT 2
static inline const char *tutti_layer_rotary_positions_rotary_pairs_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_ROTARY_POSITIONS_ROTARY_PAIRS_HALVES: return "halves";
    case TUTTI_LAYER_ROTARY_POSITIONS_ROTARY_PAIRS_ADJACENT: return "adjacent";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_rotary_positions_attrs {
  /* integers [length] or [batch, length], the position of each element; 0, 1, 2, ... when it is left out. */
  tutti_value positions;
  /* as in the formula. Default: 10000. */
  double base;
  /* halves: channels i and i + channels / 2 are a pair, as in GPT-NeoX and LLaMA; adjacent: channels 2 i and 2 i +
   * 1, as in the paper. Default: halves. */
  int32_t rotary_pairs;
} tutti_layer_rotary_positions_attrs;
/* Queries or keys, turned by their positions (Su et al., 2021): the pair of channels number i of a head by the
 * angle p / base^(2 i / channels) for position p, so that products of queries and keys depend on the difference of
 * their positions. */
static inline tutti_value tutti_layer_rotary_positions(tutti_graph *graph, tutti_value x, const tutti_layer_rotary_positions_attrs *attrs) {
  tutti_graph_begin(graph, "layer_rotary_positions", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->positions : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->base != 0) tutti_graph_set_f64(graph, "base", attrs->base);
    if (attrs->rotary_pairs != 0) { if (attrs->rotary_pairs >= 1 && attrs->rotary_pairs <= 2) tutti_graph_set_string(graph, "rotary_pairs", tutti_layer_rotary_positions_rotary_pairs_name(attrs->rotary_pairs)); else tutti_graph_set_i64(graph, "rotary_pairs", attrs->rotary_pairs); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_RELU 1
#define TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_GELU 2
#define TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_SILU 3
#define TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_GELU_TANH 4
static inline const char *tutti_layer_transformer_encoder_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_TRANSFORMER_ENCODER_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_TRANSFORMER_ENCODER_ROTARY_PAIRS_HALVES 1
#define TUTTI_LAYER_TRANSFORMER_ENCODER_ROTARY_PAIRS_ADJACENT 2
static inline const char *tutti_layer_transformer_encoder_rotary_pairs_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_TRANSFORMER_ENCODER_ROTARY_PAIRS_HALVES: return "halves";
    case TUTTI_LAYER_TRANSFORMER_ENCODER_ROTARY_PAIRS_ADJACENT: return "adjacent";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_transformer_encoder_attrs {
  /* integers [batch], the number of valid positions of x in each row: 0 to all, or the run fails with the number of
   * the row; later positions are masked. */
  tutti_value lengths;
  /* a position attends only to itself and earlier positions. */
  uint8_t causal;
  /* while training, the probability in [0, 1) that an attention weight, a hidden unit or an element of what is
   * added to x is dropped; the others are scaled by 1 / (1 - dropout). Default: 0. */
  double dropout;
  /* of the hidden units; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: relu. */
  int32_t activation;
  /* normalizes what goes into each part, instead of the sum of x and what comes out of it (PyTorch's norm_first). */
  uint8_t pre_norm;
  /* added to variances. Default: 1e-05. */
  uint8_t has_epsilon;
  double epsilon;
  /* heads of keys and values, each shared by several query heads; must divide heads; 0 = heads. Default: 0. */
  int64_t key_heads;
  /* above 0: queries and keys of a layer without a memory are turned by their positions, as by rotary_positions
   * with this base (10000 in the paper). Default: 0. */
  double rotary_base;
  /* which channels of a head are turned together, as in rotary_positions. Default: halves. */
  int32_t rotary_pairs;
  /* adds no biases, and no offsets to what is normalized. */
  uint8_t without_bias;
  /* initial values of the kernels. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the biases. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_transformer_encoder_attrs;
/* A block of a transformer's encoder (Vaswani et al., 2017), as PyTorch's TransformerEncoderLayer: attention of x
 * to itself, then two dense layers; what each makes is added to what it got, and normalized. Variables, in the
 * scope transformer_encoder, ...: those of multi_head_attention in the scope self_attention; hidden/kernel
 * [channels, hidden], hidden/bias, output/kernel [hidden, channels], output/bias; attention_norm/scale,
 * attention_norm/offset, output_norm/scale and output_norm/offset [channels]. heads: heads of the attention, which
 * must divide the channels. hidden: hidden units of the dense layers. */
static inline tutti_value tutti_layer_transformer_encoder(tutti_graph *graph, tutti_value x, int64_t heads, int64_t hidden, const tutti_layer_transformer_encoder_attrs *attrs) {
  tutti_graph_begin(graph, "layer_transformer_encoder", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "heads", heads);
  tutti_graph_set_i64(graph, "hidden", hidden);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->causal != 0) tutti_graph_set_bool(graph, "causal", 1);
    if (attrs->dropout != 0) tutti_graph_set_f64(graph, "dropout", attrs->dropout);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 4) tutti_graph_set_string(graph, "activation", tutti_layer_transformer_encoder_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->pre_norm != 0) tutti_graph_set_bool(graph, "pre_norm", 1);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->key_heads != 0) tutti_graph_set_i64(graph, "key_heads", attrs->key_heads);
    if (attrs->rotary_base != 0) tutti_graph_set_f64(graph, "rotary_base", attrs->rotary_base);
    if (attrs->rotary_pairs != 0) { if (attrs->rotary_pairs >= 1 && attrs->rotary_pairs <= 2) tutti_graph_set_string(graph, "rotary_pairs", tutti_layer_transformer_encoder_rotary_pairs_name(attrs->rotary_pairs)); else tutti_graph_set_i64(graph, "rotary_pairs", attrs->rotary_pairs); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_RELU 1
#define TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_GELU 2
#define TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_SILU 3
#define TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_GELU_TANH 4
static inline const char *tutti_layer_transformer_decoder_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_RELU: return "relu";
    case TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_GELU: return "gelu";
    case TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_SILU: return "silu";
    case TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_GELU_TANH: return "gelu_tanh";
    default: return "(no such value)";
  }
}
#define TUTTI_LAYER_TRANSFORMER_DECODER_ROTARY_PAIRS_HALVES 1
#define TUTTI_LAYER_TRANSFORMER_DECODER_ROTARY_PAIRS_ADJACENT 2
static inline const char *tutti_layer_transformer_decoder_rotary_pairs_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_TRANSFORMER_DECODER_ROTARY_PAIRS_HALVES: return "halves";
    case TUTTI_LAYER_TRANSFORMER_DECODER_ROTARY_PAIRS_ADJACENT: return "adjacent";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_transformer_decoder_attrs {
  /* [batch, memory length, memory channels]: what the block attends to beside x; a block without it is one of
   * GPT's. */
  tutti_value memory;
  /* integers [batch], the number of valid positions in each row, those of past keys included: 0 to all, or the run
   * fails with the number of the row; later positions are masked. */
  tutti_value lengths;
  /* likewise, of the memory. */
  tutti_value memory_lengths;
  /* [batch, past length, key heads, channels of a head]: output keys of the positions before x; the past length may
   * be 0. */
  tutti_value past_keys;
  /* output values of the positions before x. */
  tutti_value past_values;
  /* while training, the probability in [0, 1) that an attention weight, a hidden unit or an element of what is
   * added to x is dropped; the others are scaled by 1 / (1 - dropout). Default: 0. */
  double dropout;
  /* of the hidden units; gelu_tanh is the tanh approximation of gelu, as in GPT-2. Default: relu. */
  int32_t activation;
  /* normalizes what goes into each part, instead of the sum of x and what comes out of it (PyTorch's norm_first). */
  uint8_t pre_norm;
  /* added to variances. Default: 1e-05. */
  uint8_t has_epsilon;
  double epsilon;
  /* heads of keys and values, each shared by several query heads; must divide heads; 0 = heads. Default: 0. */
  int64_t key_heads;
  /* above 0: queries and keys of a layer without a memory are turned by their positions, as by rotary_positions
   * with this base (10000 in the paper). Default: 0. */
  double rotary_base;
  /* which channels of a head are turned together, as in rotary_positions. Default: halves. */
  int32_t rotary_pairs;
  /* adds no biases, and no offsets to what is normalized. */
  uint8_t without_bias;
  /* initial values of the kernels. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the biases. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_transformer_decoder_attrs;
/* A block of a transformer's decoder (Vaswani et al., 2017), as PyTorch's TransformerDecoderLayer: attention of
 * each position of x to itself and to earlier ones, attention to a memory if there is one, then two dense layers.
 * Variables, in the scope transformer_decoder, ...: those of transformer_encoder, and with a memory those of
 * multi_head_attention in the scope cross_attention, cross_norm/scale and cross_norm/offset. To generate position
 * by position, pass the keys and values that the block gave for the earlier positions, and x of the new ones alone.
 * heads: heads of the attention, which must divide the channels. hidden: hidden units of the dense layers. */
static inline tutti_value tutti_layer_transformer_decoder(tutti_graph *graph, tutti_value x, int64_t heads, int64_t hidden, const tutti_layer_transformer_decoder_attrs *attrs, tutti_value more[2]) {
  tutti_graph_begin(graph, "layer_transformer_decoder", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "heads", heads);
  tutti_graph_set_i64(graph, "hidden", hidden);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->memory : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->memory_lengths : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->past_keys : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->past_values : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->dropout != 0) tutti_graph_set_f64(graph, "dropout", attrs->dropout);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 4) tutti_graph_set_string(graph, "activation", tutti_layer_transformer_decoder_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->pre_norm != 0) tutti_graph_set_bool(graph, "pre_norm", 1);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->key_heads != 0) tutti_graph_set_i64(graph, "key_heads", attrs->key_heads);
    if (attrs->rotary_base != 0) tutti_graph_set_f64(graph, "rotary_base", attrs->rotary_base);
    if (attrs->rotary_pairs != 0) { if (attrs->rotary_pairs >= 1 && attrs->rotary_pairs <= 2) tutti_graph_set_string(graph, "rotary_pairs", tutti_layer_transformer_decoder_rotary_pairs_name(attrs->rotary_pairs)); else tutti_graph_set_i64(graph, "rotary_pairs", attrs->rotary_pairs); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, more, 2);
}

#define TUTTI_LAYER_RESIDUAL_BLOCK2D_KERNEL_NORMALIZATION_NONE 1
#define TUTTI_LAYER_RESIDUAL_BLOCK2D_KERNEL_NORMALIZATION_WEIGHT_NORM 2
#define TUTTI_LAYER_RESIDUAL_BLOCK2D_KERNEL_NORMALIZATION_SPECTRAL_NORM 3
static inline const char *tutti_layer_residual_block2d_kernel_normalization_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_RESIDUAL_BLOCK2D_KERNEL_NORMALIZATION_NONE: return "none";
    case TUTTI_LAYER_RESIDUAL_BLOCK2D_KERNEL_NORMALIZATION_WEIGHT_NORM: return "weight_norm";
    case TUTTI_LAYER_RESIDUAL_BLOCK2D_KERNEL_NORMALIZATION_SPECTRAL_NORM: return "spectral_norm";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_residual_block2d_attrs {
  /* of the first convolution, in both directions. Default: 1. */
  int64_t stride;
  /* share of the old running statistics that is kept. Default: 0.99. */
  uint8_t has_momentum;
  double momentum;
  /* added to variances. Default: 0.001. */
  uint8_t has_epsilon;
  double epsilon;
  /* initial values of the kernels. Default: he_normal. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* what the layer uses in place of the variable kernel. weight_norm (Salimans and Kingma, 2016): scale * kernel /
   * its norm along all axes but the last; the trained variable kernel_scale [units] begins with that norm.
   * spectral_norm (Miyato et al., 2018): kernel / its largest singular value as a matrix of units by inputs, found
   * by one round of power iteration in each training step; the variables kernel_left [units] and kernel_right
   * [inputs], which are not trained, keep its singular vectors. As in PyTorch. Default: none. */
  int32_t kernel_normalization;
} tutti_layer_residual_block2d_attrs;
/* The basic block of a residual network (He et al., 2016) for images [batch, height, width, channels]: 3 x 3
 * convolution, batch norm, relu, 3 x 3 convolution and batch norm are added to x, and relu is of the sum. With
 * another number of channels or a stride, x goes through a 1 x 1 convolution and batch norm. One pixel is padded on
 * each side, as in PyTorch. Variables, in the scope residual_block2d, ...: first/kernel [3, 3, channels, filters],
 * second/kernel [3, 3, filters, filters], maybe shortcut/kernel [1, 1, channels, filters], and those of batch_norm
 * in each of these scopes. filters: channels of the result. */
static inline tutti_value tutti_layer_residual_block2d(tutti_graph *graph, tutti_value x, int64_t filters, const tutti_layer_residual_block2d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_residual_block2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "filters", filters);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->has_momentum) tutti_graph_set_f64(graph, "momentum", attrs->momentum);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->kernel_normalization != 0) { if (attrs->kernel_normalization >= 1 && attrs->kernel_normalization <= 3) tutti_graph_set_string(graph, "kernel_normalization", tutti_layer_residual_block2d_kernel_normalization_name(attrs->kernel_normalization)); else tutti_graph_set_i64(graph, "kernel_normalization", attrs->kernel_normalization); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_RNN_ACTIVATION_TANH 1
#define TUTTI_LAYER_RNN_ACTIVATION_RELU 2
static inline const char *tutti_layer_rnn_activation_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_RNN_ACTIVATION_TANH: return "tanh";
    case TUTTI_LAYER_RNN_ACTIVATION_RELU: return "relu";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_rnn_attrs {
  /* integers [batch], the number of valid positions of each row, 0 to all, or the run fails with the number of the
   * row: behind them states stay, and outputs are 0. */
  tutti_value lengths;
  /* [batch, layers * directions, units]: what the first position meets, for each layer and, within it, each
   * direction; zeros when it is left out. */
  tutti_value initial_state;
  /* layers one above the other, each on the outputs of the one below. Default: 1. */
  int64_t layers;
  /* each layer has a second loop, from the last valid position to the first, whose outputs stand behind those of
   * the first loop. */
  uint8_t bidirectional;
  /* from the last position to the first. */
  uint8_t reverse;
  /* while training, the probability in [0, 1) that an output between two layers is dropped; the others are scaled
   * by 1 / (1 - dropout). Default: 0. */
  double dropout;
  /* of the new state. Default: tanh. */
  int32_t activation;
  /* adds no biases. */
  uint8_t without_bias;
  /* initial values of the kernels of the inputs. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the kernels of the states. Default: glorot_uniform. */
  const char *recurrent_initializer;
  /* initial values of the biases. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_rnn_attrs;
/* Recurrent layer (Elman, 1990) over sequences: h' = activation(x * kernel + bias + h * recurrent_kernel).
 * Variables, in the scope rnn, rnn_1, ..., for each layer in layer_0, layer_1, ..., those of the second direction
 * in layer_0/backward, ...: kernel [channels, units], recurrent_kernel [units, units], bias [units]; PyTorch's
 * weights are their transposes, and its two biases the sum of this one. units: size of the states and of the
 * outputs of one direction. */
static inline tutti_value tutti_layer_rnn(tutti_graph *graph, tutti_value x, int64_t units, const tutti_layer_rnn_attrs *attrs, tutti_value more[1]) {
  tutti_graph_begin(graph, "layer_rnn", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "units", units);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->initial_state : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->layers != 0) tutti_graph_set_i64(graph, "layers", attrs->layers);
    if (attrs->bidirectional != 0) tutti_graph_set_bool(graph, "bidirectional", 1);
    if (attrs->reverse != 0) tutti_graph_set_bool(graph, "reverse", 1);
    if (attrs->dropout != 0) tutti_graph_set_f64(graph, "dropout", attrs->dropout);
    if (attrs->activation != 0) { if (attrs->activation >= 1 && attrs->activation <= 2) tutti_graph_set_string(graph, "activation", tutti_layer_rnn_activation_name(attrs->activation)); else tutti_graph_set_i64(graph, "activation", attrs->activation); }
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->recurrent_initializer != NULL) tutti_graph_set_string(graph, "recurrent_initializer", attrs->recurrent_initializer);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, more, 1);
}

typedef struct tutti_layer_lstm_attrs {
  /* integers [batch], the number of valid positions of each row, 0 to all, or the run fails with the number of the
   * row: behind them states stay, and outputs are 0. */
  tutti_value lengths;
  /* [batch, layers * directions, units]: what the first position meets, for each layer and, within it, each
   * direction; zeros when it is left out. */
  tutti_value initial_state;
  /* likewise, of the cells. */
  tutti_value initial_cell;
  /* layers one above the other, each on the outputs of the one below. Default: 1. */
  int64_t layers;
  /* each layer has a second loop, from the last valid position to the first, whose outputs stand behind those of
   * the first loop. */
  uint8_t bidirectional;
  /* from the last position to the first. */
  uint8_t reverse;
  /* while training, the probability in [0, 1) that an output between two layers is dropped; the others are scaled
   * by 1 / (1 - dropout). Default: 0. */
  double dropout;
  /* added to the forget gate before its sigmoid (Jozefowicz et al., 2015). Default: 1. */
  uint8_t has_forget_bias;
  double forget_bias;
  /* adds no biases. */
  uint8_t without_bias;
  /* initial values of the kernels of the inputs. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the kernels of the states. Default: glorot_uniform. */
  const char *recurrent_initializer;
  /* initial values of the biases. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_lstm_attrs;
/* Long short-term memory (Hochreiter and Schmidhuber, 1997; forget gates: Gers et al., 2000) over sequences: i, f,
 * g, o = x * kernel + bias + h * recurrent_kernel; c' = sigmoid(f + forget_bias) * c + sigmoid(i) * tanh(g); h' =
 * sigmoid(o) * tanh(c'). Variables, in the scope lstm, lstm_1, ..., for each layer in layer_0, layer_1, ..., those
 * of the second direction in layer_0/backward, ...: kernel [channels, 4 units], recurrent_kernel [units, 4 units],
 * bias [4 units], the gates in the order i, f, g, o as in Keras and PyTorch; PyTorch's weights are their
 * transposes, and its two biases the sum of this one. Weights of Keras and PyTorch need forget_bias 0. units: size
 * of the states and of the outputs of one direction. */
static inline tutti_value tutti_layer_lstm(tutti_graph *graph, tutti_value x, int64_t units, const tutti_layer_lstm_attrs *attrs, tutti_value more[2]) {
  tutti_graph_begin(graph, "layer_lstm", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "units", units);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->initial_state : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->initial_cell : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->layers != 0) tutti_graph_set_i64(graph, "layers", attrs->layers);
    if (attrs->bidirectional != 0) tutti_graph_set_bool(graph, "bidirectional", 1);
    if (attrs->reverse != 0) tutti_graph_set_bool(graph, "reverse", 1);
    if (attrs->dropout != 0) tutti_graph_set_f64(graph, "dropout", attrs->dropout);
    if (attrs->has_forget_bias) tutti_graph_set_f64(graph, "forget_bias", attrs->forget_bias);
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->recurrent_initializer != NULL) tutti_graph_set_string(graph, "recurrent_initializer", attrs->recurrent_initializer);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, more, 2);
}

typedef struct tutti_layer_gru_attrs {
  /* integers [batch], the number of valid positions of each row, 0 to all, or the run fails with the number of the
   * row: behind them states stay, and outputs are 0. */
  tutti_value lengths;
  /* [batch, layers * directions, units]: what the first position meets, for each layer and, within it, each
   * direction; zeros when it is left out. */
  tutti_value initial_state;
  /* layers one above the other, each on the outputs of the one below. Default: 1. */
  int64_t layers;
  /* each layer has a second loop, from the last valid position to the first, whose outputs stand behind those of
   * the first loop. */
  uint8_t bidirectional;
  /* from the last position to the first. */
  uint8_t reverse;
  /* while training, the probability in [0, 1) that an output between two layers is dropped; the others are scaled
   * by 1 / (1 - dropout). Default: 0. */
  double dropout;
  /* adds no biases. */
  uint8_t without_bias;
  /* initial values of the kernels of the inputs. Default: glorot_uniform. */
  const char *kernel_initializer;
  /* adds this times the sum of the absolute values of the kernel (of each, where there are several of the inputs)
   * to the loss, in training and evaluation. Default: 0. */
  double kernel_l1;
  /* adds this times the sum of the squares of the kernel (of each, where there are several of the inputs) to the
   * loss, in training and evaluation. Default: 0. */
  double kernel_l2;
  /* what each update keeps the kernel to (each, where there are several of the inputs): max_norm(limit, axes),
   * unit_norm(axes) or non_negative, as in Keras; norms are along all axes but the last unless axes are given, as
   * in max_norm(3, axes=0 1); a limit is 2 unless it is given. Default: none. */
  const char *kernel_constraint;
  /* initial values of the kernels of the states. Default: glorot_uniform. */
  const char *recurrent_initializer;
  /* initial values of the biases. Default: zeros. */
  const char *bias_initializer;
} tutti_layer_gru_attrs;
/* Gated recurrent unit (Cho et al., 2014; reset behind the product, as in cuDNN, PyTorch and Keras) over sequences:
 * r, z, n = x * kernel + bias and s, w, m = h * recurrent_kernel + recurrent_bias; h' = (1 - u) * tanh(n +
 * sigmoid(r + s) * m) + u * h with u = sigmoid(z + w). Variables, in the scope gru, gru_1, ..., for each layer in
 * layer_0, layer_1, ..., those of the second direction in layer_0/backward, ...: kernel [channels, 3 units],
 * recurrent_kernel [units, 3 units], bias [3 units], recurrent_bias [3 units], the gates in the order r, z, n as in
 * PyTorch, whose weights are their transposes; Keras has the order z, r, n. units: size of the states and of the
 * outputs of one direction. */
static inline tutti_value tutti_layer_gru(tutti_graph *graph, tutti_value x, int64_t units, const tutti_layer_gru_attrs *attrs, tutti_value more[1]) {
  tutti_graph_begin(graph, "layer_gru", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "units", units);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->initial_state : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->layers != 0) tutti_graph_set_i64(graph, "layers", attrs->layers);
    if (attrs->bidirectional != 0) tutti_graph_set_bool(graph, "bidirectional", 1);
    if (attrs->reverse != 0) tutti_graph_set_bool(graph, "reverse", 1);
    if (attrs->dropout != 0) tutti_graph_set_f64(graph, "dropout", attrs->dropout);
    if (attrs->without_bias != 0) tutti_graph_set_bool(graph, "use_bias", 0);
    if (attrs->kernel_initializer != NULL) tutti_graph_set_string(graph, "kernel_initializer", attrs->kernel_initializer);
    if (attrs->kernel_l1 != 0) tutti_graph_set_f64(graph, "kernel_l1", attrs->kernel_l1);
    if (attrs->kernel_l2 != 0) tutti_graph_set_f64(graph, "kernel_l2", attrs->kernel_l2);
    if (attrs->kernel_constraint != NULL) tutti_graph_set_string(graph, "kernel_constraint", attrs->kernel_constraint);
    if (attrs->recurrent_initializer != NULL) tutti_graph_set_string(graph, "recurrent_initializer", attrs->recurrent_initializer);
    if (attrs->bias_initializer != NULL) tutti_graph_set_string(graph, "bias_initializer", attrs->bias_initializer);
  }
  return tutti_graph_end(graph, more, 1);
}

/* While training, sets elements to zero with probability rate and scales the others by 1 / (1 - rate) (Srivastava
 * et al., 2014). rate: probability in [0, 1). */
static inline tutti_value tutti_layer_dropout(tutti_graph *graph, tutti_value x, double rate) {
  tutti_graph_begin(graph, "layer_dropout", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_f64(graph, "rate", rate);
  return tutti_graph_end(graph, NULL, 0);
}

/* Keeps the first dimension and joins all others. */
static inline tutti_value tutti_layer_flatten(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "layer_flatten", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_MAX_POOL1D_PADDING_SAME 1
#define TUTTI_LAYER_MAX_POOL1D_PADDING_VALID 2
#define TUTTI_LAYER_MAX_POOL1D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_max_pool1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_MAX_POOL1D_PADDING_SAME: return "same";
    case TUTTI_LAYER_MAX_POOL1D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_MAX_POOL1D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_max_pool1d_attrs {
  /* step along the sequence; 0 = the size. Default: 0. */
  int64_t stride;
  /* same: ceil(length / stride); valid: no padding; explicit: the attribute pads. Default: valid. */
  int32_t padding;
  /* what is added before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
} tutti_layer_max_pool1d_attrs;
/* The largest element of each window of sequences [batch, length, channels]; padding never wins. PyTorch's
 * ceil_mode is padding behind the sequence; its dilation has no counterpart. size: length of the window. */
static inline tutti_value tutti_layer_max_pool1d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_max_pool1d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_max_pool1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_max_pool1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_AVERAGE_POOL1D_PADDING_SAME 1
#define TUTTI_LAYER_AVERAGE_POOL1D_PADDING_VALID 2
#define TUTTI_LAYER_AVERAGE_POOL1D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_average_pool1d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_AVERAGE_POOL1D_PADDING_SAME: return "same";
    case TUTTI_LAYER_AVERAGE_POOL1D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_AVERAGE_POOL1D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_average_pool1d_attrs {
  /* step along the sequence; 0 = the size. Default: 0. */
  int64_t stride;
  /* same: ceil(length / stride); valid: no padding; explicit: the attribute pads. Default: valid. */
  int32_t padding;
  /* what is added before and behind the sequence; for explicit. Default: [0, 0]. */
  int64_t pads[2];
  /* divides by the size of the whole window where it lies in the padding, as PyTorch does unless told otherwise. */
  uint8_t count_include_padding;
} tutti_layer_average_pool1d_attrs;
/* The mean of each window of sequences [batch, length, channels], padding not counted unless count_include_padding
 * says so. size: length of the window. */
static inline tutti_value tutti_layer_average_pool1d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_average_pool1d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_average_pool1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_average_pool1d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 2);
    if (attrs->count_include_padding != 0) tutti_graph_set_bool(graph, "count_include_padding", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_MAX_POOL2D_PADDING_SAME 1
#define TUTTI_LAYER_MAX_POOL2D_PADDING_VALID 2
#define TUTTI_LAYER_MAX_POOL2D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_max_pool2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_MAX_POOL2D_PADDING_SAME: return "same";
    case TUTTI_LAYER_MAX_POOL2D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_MAX_POOL2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_max_pool2d_attrs {
  /* step in both directions; 0 = the size. Default: 0. */
  int64_t stride;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: valid. */
  int32_t padding;
  /* height and width of the window where they differ; 0 = size. Default: [0, 0]. */
  int64_t sizes[2];
  /* vertical and horizontal step where they differ; 0 = stride. Default: [0, 0]. */
  int64_t strides[2];
  /* what is added at the top, bottom, left and right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
} tutti_layer_max_pool2d_attrs;
/* The largest element of each window: [batch, height, width, channels]. PyTorch's ceil_mode is padding at the
 * bottom and at the right; its dilation has no counterpart. size: height and width of the window. */
static inline tutti_value tutti_layer_max_pool2d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_max_pool2d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_max_pool2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_max_pool2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 2);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 2);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_AVERAGE_POOL2D_PADDING_SAME 1
#define TUTTI_LAYER_AVERAGE_POOL2D_PADDING_VALID 2
#define TUTTI_LAYER_AVERAGE_POOL2D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_average_pool2d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_AVERAGE_POOL2D_PADDING_SAME: return "same";
    case TUTTI_LAYER_AVERAGE_POOL2D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_AVERAGE_POOL2D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_average_pool2d_attrs {
  /* step in both directions; 0 = the size. Default: 0. */
  int64_t stride;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: valid. */
  int32_t padding;
  /* height and width of the window where they differ; 0 = size. Default: [0, 0]. */
  int64_t sizes[2];
  /* vertical and horizontal step where they differ; 0 = stride. Default: [0, 0]. */
  int64_t strides[2];
  /* what is added at the top, bottom, left and right; for explicit. Default: [0, 0, 0, 0]. */
  int64_t pads[4];
  /* divides by the size of the whole window where it lies in the padding, as PyTorch does unless told otherwise. */
  uint8_t count_include_padding;
} tutti_layer_average_pool2d_attrs;
/* The mean of each window, padding not counted unless count_include_padding says so: [batch, height, width,
 * channels]. size: height and width of the window. */
static inline tutti_value tutti_layer_average_pool2d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_average_pool2d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_average_pool2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_average_pool2d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 2);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 2);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 4);
    if (attrs->count_include_padding != 0) tutti_graph_set_bool(graph, "count_include_padding", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_MAX_POOL3D_PADDING_SAME 1
#define TUTTI_LAYER_MAX_POOL3D_PADDING_VALID 2
#define TUTTI_LAYER_MAX_POOL3D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_max_pool3d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_MAX_POOL3D_PADDING_SAME: return "same";
    case TUTTI_LAYER_MAX_POOL3D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_MAX_POOL3D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_max_pool3d_attrs {
  /* step in all directions; 0 = the size. Default: 0. */
  int64_t stride;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: valid. */
  int32_t padding;
  /* depth, height and width of the window where they differ; 0 = size. Default: [0, 0, 0]. */
  int64_t sizes[3];
  /* steps along depth, height and width where they differ; 0 = stride. Default: [0, 0, 0]. */
  int64_t strides[3];
  /* what is added at the front, back, top, bottom, left and right; for explicit. Default: [0, 0, 0, 0, 0, 0]. */
  int64_t pads[6];
} tutti_layer_max_pool3d_attrs;
/* The largest element of each window of volumes [batch, depth, height, width, channels]; padding never wins.
 * PyTorch's ceil_mode is padding behind; its dilation has no counterpart. size: depth, height and width of the
 * window. */
static inline tutti_value tutti_layer_max_pool3d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_max_pool3d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_max_pool3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_max_pool3d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0 || attrs->sizes[2] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 3);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0 || attrs->strides[2] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 3);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_AVERAGE_POOL3D_PADDING_SAME 1
#define TUTTI_LAYER_AVERAGE_POOL3D_PADDING_VALID 2
#define TUTTI_LAYER_AVERAGE_POOL3D_PADDING_EXPLICIT 3
static inline const char *tutti_layer_average_pool3d_padding_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_AVERAGE_POOL3D_PADDING_SAME: return "same";
    case TUTTI_LAYER_AVERAGE_POOL3D_PADDING_VALID: return "valid";
    case TUTTI_LAYER_AVERAGE_POOL3D_PADDING_EXPLICIT: return "explicit";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_average_pool3d_attrs {
  /* step in all directions; 0 = the size. Default: 0. */
  int64_t stride;
  /* same: ceil(size / stride); valid: no padding; explicit: the attribute pads. Default: valid. */
  int32_t padding;
  /* depth, height and width of the window where they differ; 0 = size. Default: [0, 0, 0]. */
  int64_t sizes[3];
  /* steps along depth, height and width where they differ; 0 = stride. Default: [0, 0, 0]. */
  int64_t strides[3];
  /* what is added at the front, back, top, bottom, left and right; for explicit. Default: [0, 0, 0, 0, 0, 0]. */
  int64_t pads[6];
  /* divides by the size of the whole window where it lies in the padding, as PyTorch does unless told otherwise. */
  uint8_t count_include_padding;
} tutti_layer_average_pool3d_attrs;
/* The mean of each window of volumes [batch, depth, height, width, channels], padding not counted unless
 * count_include_padding says so. size: depth, height and width of the window. */
static inline tutti_value tutti_layer_average_pool3d(tutti_graph *graph, tutti_value x, int64_t size, const tutti_layer_average_pool3d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_average_pool3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "size", size);
  if (attrs != NULL) {
    if (attrs->stride != 0) tutti_graph_set_i64(graph, "stride", attrs->stride);
    if (attrs->padding != 0) { if (attrs->padding >= 1 && attrs->padding <= 3) tutti_graph_set_string(graph, "padding", tutti_layer_average_pool3d_padding_name(attrs->padding)); else tutti_graph_set_i64(graph, "padding", attrs->padding); }
    if (attrs->sizes[0] != 0 || attrs->sizes[1] != 0 || attrs->sizes[2] != 0) tutti_graph_set_i64s(graph, "sizes", attrs->sizes, 3);
    if (attrs->strides[0] != 0 || attrs->strides[1] != 0 || attrs->strides[2] != 0) tutti_graph_set_i64s(graph, "strides", attrs->strides, 3);
    if (attrs->pads[0] != 0 || attrs->pads[1] != 0 || attrs->pads[2] != 0 || attrs->pads[3] != 0 || attrs->pads[4] != 0 || attrs->pads[5] != 0) tutti_graph_set_i64s(graph, "pads", attrs->pads, 6);
    if (attrs->count_include_padding != 0) tutti_graph_set_bool(graph, "count_include_padding", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* The mean over the length: [batch, length, channels] to [batch, channels]. */
static inline tutti_value tutti_layer_global_average_pool1d(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "layer_global_average_pool1d", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The maximum over the length: [batch, length, channels] to [batch, channels]. */
static inline tutti_value tutti_layer_global_max_pool1d(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "layer_global_max_pool1d", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The mean over height and width (Lin et al., 2014): [batch, height, width, channels] to [batch, channels]. */
static inline tutti_value tutti_layer_global_average_pool2d(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "layer_global_average_pool2d", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The maximum over height and width: [batch, height, width, channels] to [batch, channels]. */
static inline tutti_value tutti_layer_global_max_pool2d(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "layer_global_max_pool2d", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The mean over depth, height and width: [batch, depth, height, width, channels] to [batch, channels]. */
static inline tutti_value tutti_layer_global_average_pool3d(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "layer_global_average_pool3d", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* The maximum over depth, height and width: [batch, depth, height, width, channels] to [batch, channels]. */
static inline tutti_value tutti_layer_global_max_pool3d(tutti_graph *graph, tutti_value x) {
  tutti_graph_begin(graph, "layer_global_max_pool3d", 1);
  tutti_graph_add_input(graph, x);
  return tutti_graph_end(graph, NULL, 0);
}

/* Each position of sequences [batch, length, channels] several times. factor: how often. */
static inline tutti_value tutti_layer_up_sampling1d(tutti_graph *graph, tutti_value x, int64_t factor) {
  tutti_graph_begin(graph, "layer_up_sampling1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "factor", factor);
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_UP_SAMPLING2D_METHOD_NEAREST 1
#define TUTTI_LAYER_UP_SAMPLING2D_METHOD_BILINEAR 2
static inline const char *tutti_layer_up_sampling2d_method_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_UP_SAMPLING2D_METHOD_NEAREST: return "nearest";
    case TUTTI_LAYER_UP_SAMPLING2D_METHOD_BILINEAR: return "bilinear";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_up_sampling2d_attrs {
  /* of height and width where they differ; 0 = factor. Default: [0, 0]. */
  int64_t factors[2];
  /* what lies between the pixels. Default: nearest. */
  int32_t method;
} tutti_layer_up_sampling2d_attrs;
/* Images [batch, height, width, channels] enlarged by whole factors: each pixel several times, or bilinear between
 * the centers of pixels, as Keras and, without align_corners, PyTorch do it. Other sizes: the function resize2d.
 * factor: of height and width. */
static inline tutti_value tutti_layer_up_sampling2d(tutti_graph *graph, tutti_value x, int64_t factor, const tutti_layer_up_sampling2d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_up_sampling2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "factor", factor);
  if (attrs != NULL) {
    if (attrs->factors[0] != 0 || attrs->factors[1] != 0) tutti_graph_set_i64s(graph, "factors", attrs->factors, 2);
    if (attrs->method != 0) { if (attrs->method >= 1 && attrs->method <= 2) tutti_graph_set_string(graph, "method", tutti_layer_up_sampling2d_method_name(attrs->method)); else tutti_graph_set_i64(graph, "method", attrs->method); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_up_sampling3d_attrs {
  /* of depth, height and width where they differ; 0 = factor. Default: [0, 0, 0]. */
  int64_t factors[3];
} tutti_layer_up_sampling3d_attrs;
/* Each voxel of volumes [batch, depth, height, width, channels] several times along each axis. factor: of depth,
 * height and width. */
static inline tutti_value tutti_layer_up_sampling3d(tutti_graph *graph, tutti_value x, int64_t factor, const tutti_layer_up_sampling3d_attrs *attrs) {
  tutti_graph_begin(graph, "layer_up_sampling3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64(graph, "factor", factor);
  if (attrs != NULL) {
    if (attrs->factors[0] != 0 || attrs->factors[1] != 0 || attrs->factors[2] != 0) tutti_graph_set_i64s(graph, "factors", attrs->factors, 3);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* Zeros around sequences [batch, length, channels]. pads: how many before and behind the sequence. */
static inline tutti_value tutti_layer_zero_padding1d(tutti_graph *graph, tutti_value x, const int64_t *pads) {
  tutti_graph_begin(graph, "layer_zero_padding1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "pads", pads, 2);
  return tutti_graph_end(graph, NULL, 0);
}

/* Zeros around images [batch, height, width, channels]. pads: how many at the top, bottom, left and right;
 * PyTorch's ZeroPad2d has left, right, top, bottom. */
static inline tutti_value tutti_layer_zero_padding2d(tutti_graph *graph, tutti_value x, const int64_t *pads) {
  tutti_graph_begin(graph, "layer_zero_padding2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "pads", pads, 4);
  return tutti_graph_end(graph, NULL, 0);
}

/* Zeros around volumes [batch, depth, height, width, channels]. pads: how many at the front, back, top, bottom,
 * left and right. */
static inline tutti_value tutti_layer_zero_padding3d(tutti_graph *graph, tutti_value x, const int64_t *pads) {
  tutti_graph_begin(graph, "layer_zero_padding3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "pads", pads, 6);
  return tutti_graph_end(graph, NULL, 0);
}

/* Sequences [batch, length, channels] without their ends. crops: how many positions at the beginning and at the end
 * are left out; at least one must stay. */
static inline tutti_value tutti_layer_cropping1d(tutti_graph *graph, tutti_value x, const int64_t *crops) {
  tutti_graph_begin(graph, "layer_cropping1d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "crops", crops, 2);
  return tutti_graph_end(graph, NULL, 0);
}

/* Images [batch, height, width, channels] without their borders. crops: how many pixels at the top, bottom, left
 * and right are left out; at least one must stay. */
static inline tutti_value tutti_layer_cropping2d(tutti_graph *graph, tutti_value x, const int64_t *crops) {
  tutti_graph_begin(graph, "layer_cropping2d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "crops", crops, 4);
  return tutti_graph_end(graph, NULL, 0);
}

/* Volumes [batch, depth, height, width, channels] without their borders. crops: how many voxels at the front, back,
 * top, bottom, left and right are left out; at least one must stay. */
static inline tutti_value tutti_layer_cropping3d(tutti_graph *graph, tutti_value x, const int64_t *crops) {
  tutti_graph_begin(graph, "layer_cropping3d", 1);
  tutti_graph_add_input(graph, x);
  tutti_graph_set_i64s(graph, "crops", crops, 6);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_layer_embedding_attrs {
  /* an id whose row begins with zeros and gets no gradient: padding_idx of PyTorch; -1 = none. Default: -1. */
  uint8_t has_padding_id;
  int64_t padding_id;
  /* initial values of the table. Default: random_uniform. */
  const char *table_initializer;
  /* adds this times the sum of the absolute values of the table to the loss, in training and evaluation. Default:
   * 0. */
  double table_l1;
  /* adds this times the sum of the squares of the table to the loss, in training and evaluation. Default: 0. */
  double table_l2;
} tutti_layer_embedding_attrs;
/* Rows of a trained table, looked up by integers of any shape: y[i] = table[ids[i]], [batch, ...] to [batch, ...,
 * width]. Variable, in the scope embedding, embedding_1, ...: table [count, width] of f32, as in Keras and PyTorch.
 * An id that is negative or not below count is an error of the run that names the layer and the row. Keras has no
 * padding_id, but a mask; the initial values are those of Keras, where PyTorch's are normal. PyTorch's max_norm and
 * scale_grad_by_freq have no counterpart. count: rows of the table: ids are 0 to count - 1. width: elements of a
 * row. */
static inline tutti_value tutti_layer_embedding(tutti_graph *graph, tutti_value ids, int64_t count, int64_t width, const tutti_layer_embedding_attrs *attrs) {
  tutti_graph_begin(graph, "layer_embedding", 1);
  tutti_graph_add_input(graph, ids);
  tutti_graph_set_i64(graph, "count", count);
  tutti_graph_set_i64(graph, "width", width);
  if (attrs != NULL) {
    if (attrs->has_padding_id) tutti_graph_set_i64(graph, "padding_id", attrs->padding_id);
    if (attrs->table_initializer != NULL) tutti_graph_set_string(graph, "table_initializer", attrs->table_initializer);
    if (attrs->table_l1 != 0) tutti_graph_set_f64(graph, "table_l1", attrs->table_l1);
    if (attrs->table_l2 != 0) tutti_graph_set_f64(graph, "table_l2", attrs->table_l2);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LAYER_EMBEDDING_BAG_COMBINER_SUM 1
#define TUTTI_LAYER_EMBEDDING_BAG_COMBINER_MEAN 2
#define TUTTI_LAYER_EMBEDDING_BAG_COMBINER_MAX 3
static inline const char *tutti_layer_embedding_bag_combiner_name(int32_t value) {
  switch (value) {
    case TUTTI_LAYER_EMBEDDING_BAG_COMBINER_SUM: return "sum";
    case TUTTI_LAYER_EMBEDDING_BAG_COMBINER_MEAN: return "mean";
    case TUTTI_LAYER_EMBEDDING_BAG_COMBINER_MAX: return "max";
    default: return "(no such value)";
  }
}
typedef struct tutti_layer_embedding_bag_attrs {
  /* [batch, ..., length]: a factor for each row that is looked up, for sum and mean. */
  tutti_value weights;
  /* integers [batch, ...]: how many ids of each bag count, 0 to all, or the run fails with the number of the row;
   * those behind them may be anything. */
  tutti_value lengths;
  /* what is made of the rows of a bag. Default: mean. */
  int32_t combiner;
  /* an id that does not count, and whose row begins with zeros: padding_idx of PyTorch; -1 = none. Default: -1. */
  uint8_t has_padding_id;
  int64_t padding_id;
  /* initial values of the table. Default: random_uniform. */
  const char *table_initializer;
  /* adds this times the sum of the absolute values of the table to the loss, in training and evaluation. Default:
   * 0. */
  double table_l1;
  /* adds this times the sum of the squares of the table to the loss, in training and evaluation. Default: 0. */
  double table_l2;
} tutti_layer_embedding_bag_attrs;
/* Sums, means or maxima of rows of a trained table, which integers [batch, ..., length] look up: [batch, ...,
 * length] to [batch, ..., width]; zeros where a bag has no ids. Variable, in the scope embedding_bag, ...: table
 * [count, width] of f32. With weights a mean is divided by their sum, as in TensorFlow; PyTorch has weights for
 * sums alone. Rows that tie for a maximum share its gradient equally; in PyTorch the first one has it. PyTorch's
 * offsets are bags one behind the other, here they are rows with lengths. Errors as in embedding. count: rows of
 * the table: ids are 0 to count - 1. width: elements of a row. */
static inline tutti_value tutti_layer_embedding_bag(tutti_graph *graph, tutti_value ids, int64_t count, int64_t width, const tutti_layer_embedding_bag_attrs *attrs) {
  tutti_graph_begin(graph, "layer_embedding_bag", 1);
  tutti_graph_add_input(graph, ids);
  tutti_graph_set_i64(graph, "count", count);
  tutti_graph_set_i64(graph, "width", width);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->lengths : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->combiner != 0) { if (attrs->combiner >= 1 && attrs->combiner <= 3) tutti_graph_set_string(graph, "combiner", tutti_layer_embedding_bag_combiner_name(attrs->combiner)); else tutti_graph_set_i64(graph, "combiner", attrs->combiner); }
    if (attrs->has_padding_id) tutti_graph_set_i64(graph, "padding_id", attrs->padding_id);
    if (attrs->table_initializer != NULL) tutti_graph_set_string(graph, "table_initializer", attrs->table_initializer);
    if (attrs->table_l1 != 0) tutti_graph_set_f64(graph, "table_l1", attrs->table_l1);
    if (attrs->table_l2 != 0) tutti_graph_set_f64(graph, "table_l2", attrs->table_l2);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_MEAN 1
#define TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_SUM 2
#define TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_NONE 4
static inline const char *tutti_loss_sparse_softmax_cross_entropy_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SPARSE_SOFTMAX_CROSS_ENTROPY_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_sparse_softmax_cross_entropy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example, as Keras' class_weight; PyTorch's weight
   * with its reduction 'mean' is this with weighted_mean, but for smoothed labels, whose terms PyTorch weights each
   * by its own class. */
  const double *class_weights;
  int64_t class_weights_count;
  /* share of probability spread over all classes. Default: 0. */
  double label_smoothing;
  /* mean: weighted sum / examples; weighted_mean: weighted sum / sum of weights; none: the weighted numbers of all
   * elements as they are, to compute a loss from. Default: mean. */
  int32_t reduction;
} tutti_loss_sparse_softmax_cross_entropy_attrs;
/* Cross-entropy of softmax(logits) against class numbers, -log(softmax(logits)[label]) for each row, reduced to a
 * scalar. Like all losses here, it is a sum or mean of independent rows, so a batch may be computed in parts. */
static inline tutti_value tutti_loss_sparse_softmax_cross_entropy(tutti_graph *graph, tutti_value logits, tutti_value labels, const tutti_loss_sparse_softmax_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "loss_sparse_softmax_cross_entropy", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_sparse_softmax_cross_entropy_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_MEAN 1
#define TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_SUM 2
#define TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_NONE 4
static inline const char *tutti_loss_softmax_cross_entropy_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SOFTMAX_CROSS_ENTROPY_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_softmax_cross_entropy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* share of probability spread over all classes. Default: 0. */
  double label_smoothing;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
  /* one weight for each class, multiplied with the weight of the example: that of the class for one-hot targets, as
   * Keras' class_weight; for others the sum of target * weight over the classes. PyTorch's weight scales the term
   * of each class instead, which is different where targets are not one-hot or smoothed. */
  const double *class_weights;
  int64_t class_weights_count;
} tutti_loss_softmax_cross_entropy_attrs;
/* Cross-entropy of softmax(logits) against class probabilities, -sum(target * log(softmax(logits))) for each row,
 * reduced to a scalar. */
static inline tutti_value tutti_loss_softmax_cross_entropy(tutti_graph *graph, tutti_value logits, tutti_value targets, const tutti_loss_softmax_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "loss_softmax_cross_entropy", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_softmax_cross_entropy_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_MEAN 1
#define TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_SUM 2
#define TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_NONE 4
static inline const char *tutti_loss_sigmoid_cross_entropy_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SIGMOID_CROSS_ENTROPY_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_sigmoid_cross_entropy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
  /* moves targets towards 0.5: target * (1 - label_smoothing) + label_smoothing / 2, as in Keras. Default: 0. */
  double label_smoothing;
  /* two weights, of target 0 and of target 1, multiplied with the weight of the element; a target in between has a
   * weight in between. It counts for weighted_mean, and smoothing does not change it. */
  const double *class_weights;
  int64_t class_weights_count;
  /* factor of the term of target 1: one for all, or one for each element of the last dimension; PyTorch's
   * pos_weight. It does not count for weighted_mean. */
  const double *positive_weights;
  int64_t positive_weights_count;
} tutti_loss_sigmoid_cross_entropy_attrs;
/* Cross-entropy of sigmoid(logits) against targets in [0, 1], elementwise, averaged over the elements of an
 * example: -target * log(sigmoid(x)) - (1 - target) * log(1 - sigmoid(x)). */
static inline tutti_value tutti_loss_sigmoid_cross_entropy(tutti_graph *graph, tutti_value logits, tutti_value targets, const tutti_loss_sigmoid_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "loss_sigmoid_cross_entropy", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_sigmoid_cross_entropy_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->positive_weights != NULL || attrs->positive_weights_count != 0) tutti_graph_set_f64s(graph, "positive_weights", attrs->positive_weights, attrs->positive_weights_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_MEAN 1
#define TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_SUM 2
#define TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_NONE 4
static inline const char *tutti_loss_mean_squared_error_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_MEAN_SQUARED_ERROR_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_mean_squared_error_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_mean_squared_error_attrs;
/* The mean over an example's elements of (prediction - target) squared, reduced over the examples. */
static inline tutti_value tutti_loss_mean_squared_error(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_mean_squared_error_attrs *attrs) {
  tutti_graph_begin(graph, "loss_mean_squared_error", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_mean_squared_error_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* rate times the sum of squares of a variable, to be added to a loss. rate: factor. */
static inline tutti_value tutti_loss_l2_penalty(tutti_graph *graph, tutti_value variable, double rate) {
  tutti_graph_begin(graph, "loss_l2_penalty", 1);
  tutti_graph_add_input(graph, variable);
  tutti_graph_set_f64(graph, "rate", rate);
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_MEAN 1
#define TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_SUM 2
#define TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_NONE 4
static inline const char *tutti_loss_mean_absolute_error_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_MEAN_ABSOLUTE_ERROR_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_mean_absolute_error_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_mean_absolute_error_attrs;
/* The mean over an example's elements of abs(prediction - target), reduced over the examples. Its gradient is 0
 * where they are equal. */
static inline tutti_value tutti_loss_mean_absolute_error(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_mean_absolute_error_attrs *attrs) {
  tutti_graph_begin(graph, "loss_mean_absolute_error", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_mean_absolute_error_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_HUBER_REDUCTION_MEAN 1
#define TUTTI_LOSS_HUBER_REDUCTION_SUM 2
#define TUTTI_LOSS_HUBER_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_HUBER_REDUCTION_NONE 4
static inline const char *tutti_loss_huber_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_HUBER_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_HUBER_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_HUBER_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_HUBER_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_huber_attrs {
  /* the error from which on the loss grows linearly. Default: 1. */
  double delta;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_huber_attrs;
/* Of d = prediction - target, d^2 / 2 where abs(d) <= delta, else delta * (abs(d) - delta / 2); the mean over an
 * example's elements, reduced over the examples (Huber, 1964). Equal to Keras' Huber and PyTorch's HuberLoss;
 * PyTorch's SmoothL1Loss is this divided by its beta = delta. */
static inline tutti_value tutti_loss_huber(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_huber_attrs *attrs) {
  tutti_graph_begin(graph, "loss_huber", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->delta != 0) tutti_graph_set_f64(graph, "delta", attrs->delta);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_huber_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_LOG_COSH_REDUCTION_MEAN 1
#define TUTTI_LOSS_LOG_COSH_REDUCTION_SUM 2
#define TUTTI_LOSS_LOG_COSH_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_LOG_COSH_REDUCTION_NONE 4
static inline const char *tutti_loss_log_cosh_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_LOG_COSH_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_LOG_COSH_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_LOG_COSH_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_LOG_COSH_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_log_cosh_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_log_cosh_attrs;
/* log(cosh(prediction - target)), about d^2 / 2 for small errors and abs(d) - log(2) for large ones; the mean over
 * an example's elements, reduced over the examples. Keras' LogCosh, here without loss of digits for small errors. */
static inline tutti_value tutti_loss_log_cosh(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_log_cosh_attrs *attrs) {
  tutti_graph_begin(graph, "loss_log_cosh", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_log_cosh_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_QUANTILE_REDUCTION_MEAN 1
#define TUTTI_LOSS_QUANTILE_REDUCTION_SUM 2
#define TUTTI_LOSS_QUANTILE_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_QUANTILE_REDUCTION_NONE 4
static inline const char *tutti_loss_quantile_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_QUANTILE_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_QUANTILE_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_QUANTILE_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_QUANTILE_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_quantile_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_quantile_attrs;
/* The pinball loss, whose minimum is a quantile of the targets: of d = target - prediction, max(quantile * d,
 * (quantile - 1) * d); the mean over an example's elements, reduced over the examples (Koenker and Bassett, 1978).
 * With quantile 0.5 it is half the mean absolute error. quantile: which quantile, between 0 and 1. */
static inline tutti_value tutti_loss_quantile(tutti_graph *graph, tutti_value predictions, tutti_value targets, double quantile, const tutti_loss_quantile_attrs *attrs) {
  tutti_graph_begin(graph, "loss_quantile", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_set_f64(graph, "quantile", quantile);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_quantile_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_POISSON_REDUCTION_MEAN 1
#define TUTTI_LOSS_POISSON_REDUCTION_SUM 2
#define TUTTI_LOSS_POISSON_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_POISSON_REDUCTION_NONE 4
static inline const char *tutti_loss_poisson_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_POISSON_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_POISSON_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_POISSON_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_POISSON_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_poisson_attrs {
  /* predictions are logarithms of rates: exp(prediction) - target * prediction. */
  uint8_t log_predictions;
  /* adds Stirling's approximation of log(target!), target * log(target) - target + log(2 * pi * target) / 2, for
   * targets above 1, as PyTorch does. */
  uint8_t full;
  /* added to rates before their logarithm is taken; Keras has 1e-7, PyTorch 1e-8. Default: 1e-07. */
  double epsilon;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_poisson_attrs;
/* Negative log-likelihood of counts under Poisson distributions: rate - target * log(rate + epsilon); the mean over
 * an example's elements, reduced over the examples. Predictions are the rates, as for Keras' Poisson; for PyTorch's
 * PoissonNLLLoss they are logarithms of rates unless log_input=False. */
static inline tutti_value tutti_loss_poisson(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_poisson_attrs *attrs) {
  tutti_graph_begin(graph, "loss_poisson", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->log_predictions != 0) tutti_graph_set_bool(graph, "log_predictions", 1);
    if (attrs->full != 0) tutti_graph_set_bool(graph, "full", 1);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_poisson_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_MEAN 1
#define TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_SUM 2
#define TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_NONE 4
static inline const char *tutti_loss_binary_cross_entropy_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_BINARY_CROSS_ENTROPY_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_binary_cross_entropy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* two weights, of target 0 and of target 1, multiplied with the weight of the element; a target in between has a
   * weight in between. It counts for weighted_mean, and smoothing does not change it. */
  const double *class_weights;
  int64_t class_weights_count;
  /* factor of the term of target 1: one for all, or one for each element of the last dimension; PyTorch's
   * pos_weight. It does not count for weighted_mean. */
  const double *positive_weights;
  int64_t positive_weights_count;
  /* moves targets towards 0.5: target * (1 - label_smoothing) + label_smoothing / 2, as in Keras. Default: 0. */
  double label_smoothing;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
  /* smaller probabilities count as this; where they do, no gradient flows to them. Default: 1e-07. */
  double epsilon;
} tutti_loss_binary_cross_entropy_attrs;
/* Cross-entropy of probabilities against targets in [0, 1], elementwise, averaged over the elements of an example:
 * -target * log(p) - (1 - target) * log(1 - p), each logarithm of at least epsilon. Where there are logits,
 * sigmoid_cross_entropy is more exact. Keras' BinaryCrossentropy; PyTorch's BCELoss limits logarithms to -100
 * instead. */
static inline tutti_value tutti_loss_binary_cross_entropy(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_binary_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "loss_binary_cross_entropy", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->positive_weights != NULL || attrs->positive_weights_count != 0) tutti_graph_set_f64s(graph, "positive_weights", attrs->positive_weights, attrs->positive_weights_count);
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_binary_cross_entropy_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_MEAN 1
#define TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_SUM 2
#define TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_NONE 4
static inline const char *tutti_loss_categorical_cross_entropy_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_CATEGORICAL_CROSS_ENTROPY_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_categorical_cross_entropy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example: that of the class for one-hot targets, as
   * Keras' class_weight; for others the sum of target * weight over the classes. PyTorch's weight scales the term
   * of each class instead, which is different where targets are not one-hot or smoothed. */
  const double *class_weights;
  int64_t class_weights_count;
  /* share of probability spread over all classes. Default: 0. */
  double label_smoothing;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
  /* smaller probabilities count as this; where they do, no gradient flows to them. Default: 1e-07. */
  double epsilon;
} tutti_loss_categorical_cross_entropy_attrs;
/* Cross-entropy of class probabilities over the last dimension against target probabilities: -sum of target * log(p
 * / sum of p). As in Keras' CategoricalCrossentropy, predictions are divided by their sum first; PyTorch's NLLLoss
 * of log(p) is the same where they add up to 1. Where there are logits, softmax_cross_entropy is more exact. */
static inline tutti_value tutti_loss_categorical_cross_entropy(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_categorical_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "loss_categorical_cross_entropy", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_categorical_cross_entropy_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_MEAN 1
#define TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_SUM 2
#define TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_NONE 4
static inline const char *tutti_loss_sparse_categorical_cross_entropy_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SPARSE_CATEGORICAL_CROSS_ENTROPY_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_sparse_categorical_cross_entropy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example, as Keras' class_weight; PyTorch's weight
   * with its reduction 'mean' is this with weighted_mean, but for smoothed labels, whose terms PyTorch weights each
   * by its own class. */
  const double *class_weights;
  int64_t class_weights_count;
  /* share of probability spread over all classes. Default: 0. */
  double label_smoothing;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
  /* smaller probabilities count as this; where they do, no gradient flows to them. Default: 1e-07. */
  double epsilon;
} tutti_loss_sparse_categorical_cross_entropy_attrs;
/* Cross-entropy of class probabilities over the last dimension against class numbers: -log(p[label] / sum of p),
 * otherwise as categorical_cross_entropy. Where there are logits, sparse_softmax_cross_entropy is more exact. */
static inline tutti_value tutti_loss_sparse_categorical_cross_entropy(tutti_graph *graph, tutti_value predictions, tutti_value labels, const tutti_loss_sparse_categorical_cross_entropy_attrs *attrs) {
  tutti_graph_begin(graph, "loss_sparse_categorical_cross_entropy", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_sparse_categorical_cross_entropy_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_KULLBACK_LEIBLER_FORM_PROBABILITIES 1
#define TUTTI_LOSS_KULLBACK_LEIBLER_FORM_LOG_PROBABILITIES 2
#define TUTTI_LOSS_KULLBACK_LEIBLER_FORM_LOGITS 3
static inline const char *tutti_loss_kullback_leibler_form_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_KULLBACK_LEIBLER_FORM_PROBABILITIES: return "probabilities";
    case TUTTI_LOSS_KULLBACK_LEIBLER_FORM_LOG_PROBABILITIES: return "log_probabilities";
    case TUTTI_LOSS_KULLBACK_LEIBLER_FORM_LOGITS: return "logits";
    default: return "(no such value)";
  }
}
#define TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_MEAN 1
#define TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_SUM 2
#define TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_NONE 4
static inline const char *tutti_loss_kullback_leibler_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_KULLBACK_LEIBLER_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_kullback_leibler_attrs {
  /* what the predictions are: of logits the softmax is taken, of probabilities the logarithm, of at least 1e-7.
   * Default: probabilities. */
  int32_t form;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example: that of the class for one-hot targets, as
   * Keras' class_weight; for others the sum of target * weight over the classes. PyTorch's weight scales the term
   * of each class instead, which is different where targets are not one-hot or smoothed. */
  const double *class_weights;
  int64_t class_weights_count;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_kullback_leibler_attrs;
/* Kullback-Leibler divergence of the target distribution from the predicted one over the last dimension: sum of
 * target * (log(target) - log(p)), where 0 * log(0) = 0; the mean over an example's distributions, reduced over the
 * examples (Kullback and Leibler, 1951). Predictions come first, as in PyTorch; Keras' KLDivergence takes targets
 * first. PyTorch's KLDivLoss takes log_probabilities, and its reduction 'mean' also divides by the number of
 * classes ('batchmean' does not). */
static inline tutti_value tutti_loss_kullback_leibler(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_kullback_leibler_attrs *attrs) {
  tutti_graph_begin(graph, "loss_kullback_leibler", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->form != 0) { if (attrs->form >= 1 && attrs->form <= 3) tutti_graph_set_string(graph, "form", tutti_loss_kullback_leibler_form_name(attrs->form)); else tutti_graph_set_i64(graph, "form", attrs->form); }
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_kullback_leibler_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_MEAN 1
#define TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_SUM 2
#define TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_NONE 4
static inline const char *tutti_loss_sigmoid_focal_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SIGMOID_FOCAL_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_sigmoid_focal_attrs {
  /* how much less well classified examples count; 0 is plain cross-entropy. Default: 2. */
  uint8_t has_gamma;
  double gamma;
  /* factor alpha of targets 1 and 1 - alpha of targets 0, after smoothing; 0 = none; 0.25 in the paper. It does not
   * count for weighted_mean. Default: 0. */
  double alpha;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* two weights, of target 0 and of target 1, multiplied with the weight of the element; a target in between has a
   * weight in between. It counts for weighted_mean, and smoothing does not change it. */
  const double *class_weights;
  int64_t class_weights_count;
  /* moves targets towards 0.5: target * (1 - label_smoothing) + label_smoothing / 2, as in Keras. Default: 0. */
  double label_smoothing;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_sigmoid_focal_attrs;
/* Focal loss of independent classes: the cross-entropy of sigmoid(logits) against targets in [0, 1], times (1 -
 * p)^gamma, where p = target * sigmoid(x) + (1 - target) * (1 - sigmoid(x)); averaged over the elements of an
 * example (Lin et al., 2017). Keras' BinaryFocalCrossentropy with from_logits=True. */
static inline tutti_value tutti_loss_sigmoid_focal(tutti_graph *graph, tutti_value logits, tutti_value targets, const tutti_loss_sigmoid_focal_attrs *attrs) {
  tutti_graph_begin(graph, "loss_sigmoid_focal", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_gamma) tutti_graph_set_f64(graph, "gamma", attrs->gamma);
    if (attrs->alpha != 0) tutti_graph_set_f64(graph, "alpha", attrs->alpha);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_sigmoid_focal_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_MEAN 1
#define TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_SUM 2
#define TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_NONE 4
static inline const char *tutti_loss_softmax_focal_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SOFTMAX_FOCAL_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_softmax_focal_attrs {
  /* how much less well classified examples count; 0 is plain cross-entropy. Default: 2. */
  uint8_t has_gamma;
  double gamma;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example: that of the class for one-hot targets, as
   * Keras' class_weight; for others the sum of target * weight over the classes. PyTorch's weight scales the term
   * of each class instead, which is different where targets are not one-hot or smoothed. */
  const double *class_weights;
  int64_t class_weights_count;
  /* share of probability spread over all classes. Default: 0. */
  double label_smoothing;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_softmax_focal_attrs;
/* Focal loss of exclusive classes against target probabilities: -sum of target * (1 - p)^gamma * log(p) over the
 * classes, where p = softmax(logits) (Lin et al., 2017). Keras' CategoricalFocalCrossentropy with from_logits=True
 * multiplies it by alpha, by default 0.25. */
static inline tutti_value tutti_loss_softmax_focal(tutti_graph *graph, tutti_value logits, tutti_value targets, const tutti_loss_softmax_focal_attrs *attrs) {
  tutti_graph_begin(graph, "loss_softmax_focal", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_gamma) tutti_graph_set_f64(graph, "gamma", attrs->gamma);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_softmax_focal_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_MEAN 1
#define TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_SUM 2
#define TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_NONE 4
static inline const char *tutti_loss_sparse_softmax_focal_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SPARSE_SOFTMAX_FOCAL_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_sparse_softmax_focal_attrs {
  /* how much less well classified examples count; 0 is plain cross-entropy. Default: 2. */
  uint8_t has_gamma;
  double gamma;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example, as Keras' class_weight; PyTorch's weight
   * with its reduction 'mean' is this with weighted_mean, but for smoothed labels, whose terms PyTorch weights each
   * by its own class. */
  const double *class_weights;
  int64_t class_weights_count;
  /* share of probability spread over all classes. Default: 0. */
  double label_smoothing;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_sparse_softmax_focal_attrs;
/* Focal loss (Lin et al., 2017) of exclusive classes against class numbers: -(1 - p[label])^gamma * log(p[label]),
 * where p = softmax(logits), otherwise as softmax_focal. */
static inline tutti_value tutti_loss_sparse_softmax_focal(tutti_graph *graph, tutti_value logits, tutti_value labels, const tutti_loss_sparse_softmax_focal_attrs *attrs) {
  tutti_graph_begin(graph, "loss_sparse_softmax_focal", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_gamma) tutti_graph_set_f64(graph, "gamma", attrs->gamma);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->label_smoothing != 0) tutti_graph_set_f64(graph, "label_smoothing", attrs->label_smoothing);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_sparse_softmax_focal_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_HINGE_REDUCTION_MEAN 1
#define TUTTI_LOSS_HINGE_REDUCTION_SUM 2
#define TUTTI_LOSS_HINGE_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_HINGE_REDUCTION_NONE 4
static inline const char *tutti_loss_hinge_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_HINGE_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_HINGE_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_HINGE_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_HINGE_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_hinge_attrs {
  /* the score from which on an example has no loss. Default: 1. */
  uint8_t has_margin;
  double margin;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* two weights, of targets up to 0 and of targets above 0, multiplied with the weight of the element. */
  const double *class_weights;
  int64_t class_weights_count;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_hinge_attrs;
/* max(margin - y * x, 0), elementwise, averaged over the elements of an example, where y is 1 for targets above 0,
 * else -1: targets may be 1 and 0, or 1 and -1. Keras' Hinge; the loss of support vector machines (Cortes and
 * Vapnik, 1995). */
static inline tutti_value tutti_loss_hinge(tutti_graph *graph, tutti_value scores, tutti_value targets, const tutti_loss_hinge_attrs *attrs) {
  tutti_graph_begin(graph, "loss_hinge", 1);
  tutti_graph_add_input(graph, scores);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_margin) tutti_graph_set_f64(graph, "margin", attrs->margin);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_hinge_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_SQUARED_HINGE_REDUCTION_MEAN 1
#define TUTTI_LOSS_SQUARED_HINGE_REDUCTION_SUM 2
#define TUTTI_LOSS_SQUARED_HINGE_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_SQUARED_HINGE_REDUCTION_NONE 4
static inline const char *tutti_loss_squared_hinge_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_SQUARED_HINGE_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_SQUARED_HINGE_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_SQUARED_HINGE_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_SQUARED_HINGE_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_squared_hinge_attrs {
  /* the score from which on an example has no loss. Default: 1. */
  uint8_t has_margin;
  double margin;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* two weights, of targets up to 0 and of targets above 0, multiplied with the weight of the element. */
  const double *class_weights;
  int64_t class_weights_count;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_squared_hinge_attrs;
/* The square of hinge, elementwise, averaged over the elements of an example: max(margin - y * x, 0)^2. Keras'
 * SquaredHinge. */
static inline tutti_value tutti_loss_squared_hinge(tutti_graph *graph, tutti_value scores, tutti_value targets, const tutti_loss_squared_hinge_attrs *attrs) {
  tutti_graph_begin(graph, "loss_squared_hinge", 1);
  tutti_graph_add_input(graph, scores);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_margin) tutti_graph_set_f64(graph, "margin", attrs->margin);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_squared_hinge_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_MEAN 1
#define TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_SUM 2
#define TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_NONE 4
static inline const char *tutti_loss_categorical_hinge_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_CATEGORICAL_HINGE_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_categorical_hinge_attrs {
  /* the score from which on an example has no loss. Default: 1. */
  uint8_t has_margin;
  double margin;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example: that of the class for one-hot targets, as
   * Keras' class_weight; for others the sum of target * weight over the classes. PyTorch's weight scales the term
   * of each class instead, which is different where targets are not one-hot or smoothed. */
  const double *class_weights;
  int64_t class_weights_count;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_categorical_hinge_attrs;
/* max(margin + max((1 - target) * x) - sum(target * x), 0) over the last dimension, for one-hot targets (Crammer
 * and Singer, 2001). As in Keras' CategoricalHinge the score of the target's class counts as 0 among the others, so
 * these count as at least 0; multi_margin compares the scores themselves. */
static inline tutti_value tutti_loss_categorical_hinge(tutti_graph *graph, tutti_value scores, tutti_value targets, const tutti_loss_categorical_hinge_attrs *attrs) {
  tutti_graph_begin(graph, "loss_categorical_hinge", 1);
  tutti_graph_add_input(graph, scores);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_margin) tutti_graph_set_f64(graph, "margin", attrs->margin);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_categorical_hinge_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_MULTI_MARGIN_REDUCTION_MEAN 1
#define TUTTI_LOSS_MULTI_MARGIN_REDUCTION_SUM 2
#define TUTTI_LOSS_MULTI_MARGIN_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_MULTI_MARGIN_REDUCTION_NONE 4
static inline const char *tutti_loss_multi_margin_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_MULTI_MARGIN_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_MULTI_MARGIN_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_MULTI_MARGIN_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_MULTI_MARGIN_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_multi_margin_attrs {
  /* by how much the score of the label is to be above the others. Default: 1. */
  uint8_t has_margin;
  double margin;
  /* takes the square of each class' term. */
  uint8_t squared;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* one weight for each class, multiplied with the weight of the example; PyTorch's weight. */
  const double *class_weights;
  int64_t class_weights_count;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_multi_margin_attrs;
/* Hinge loss of exclusive classes against class numbers: the sum over the classes other than the label of
 * max(margin - x[label] + x[class], 0), or its square, divided by the number of classes (Weston and Watkins, 1999).
 * PyTorch's MultiMarginLoss with p = 1 or, squared, p = 2. */
static inline tutti_value tutti_loss_multi_margin(tutti_graph *graph, tutti_value scores, tutti_value labels, const tutti_loss_multi_margin_attrs *attrs) {
  tutti_graph_begin(graph, "loss_multi_margin", 1);
  tutti_graph_add_input(graph, scores);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_margin) tutti_graph_set_f64(graph, "margin", attrs->margin);
    if (attrs->squared != 0) tutti_graph_set_bool(graph, "squared", 1);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_multi_margin_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_DICE_REDUCTION_MEAN 1
#define TUTTI_LOSS_DICE_REDUCTION_SUM 2
#define TUTTI_LOSS_DICE_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_DICE_REDUCTION_NONE 4
static inline const char *tutti_loss_dice_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_DICE_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_DICE_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_DICE_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_DICE_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
#define TUTTI_LOSS_DICE_OVER_EXAMPLE 1
#define TUTTI_LOSS_DICE_OVER_BATCH 2
static inline const char *tutti_loss_dice_over_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_DICE_OVER_EXAMPLE: return "example";
    case TUTTI_LOSS_DICE_OVER_BATCH: return "batch";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_dice_attrs {
  /* added to both; with 1 an empty mask that is predicted has no loss. Default: 0. */
  double smooth;
  /* added to the denominator. Default: 1e-07. */
  double epsilon;
  /* has sum(p^2) + sum(t^2) in the denominator, as in the paper. */
  uint8_t squared;
  /* takes the last dimension for classes: one number for each class of an example, over the dimensions between. */
  uint8_t per_class;
  /* a weight for each example; with per_class also [batch, classes], over the batch also one for each element. */
  tutti_value weights;
  /* with per_class: one weight for each class, multiplied with the weight of the example. */
  const double *class_weights;
  int64_t class_weights_count;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
  /* batch: sums are over all examples, too, each element times its weight, which gives one number whatever the
   * reduction: of a step over its whole batch, in an evaluation over the whole dataset. Default: example. */
  int32_t over;
} tutti_loss_dice_attrs;
/* 1 - (2 * sum(p * t) + smooth) / (sum(p) + sum(t) + smooth + epsilon) of probabilities p and targets t in [0, 1],
 * over all elements of an example: one number for each (Milletari et al., 2016). Keras' Dice with all axes but the
 * first; over: batch is its default. */
static inline tutti_value tutti_loss_dice(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_dice_attrs *attrs) {
  tutti_graph_begin(graph, "loss_dice", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->smooth != 0) tutti_graph_set_f64(graph, "smooth", attrs->smooth);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->squared != 0) tutti_graph_set_bool(graph, "squared", 1);
    if (attrs->per_class != 0) tutti_graph_set_bool(graph, "per_class", 1);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_dice_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
    if (attrs->over != 0) { if (attrs->over >= 1 && attrs->over <= 2) tutti_graph_set_string(graph, "over", tutti_loss_dice_over_name(attrs->over)); else tutti_graph_set_i64(graph, "over", attrs->over); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_MEAN 1
#define TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_SUM 2
#define TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_NONE 4
static inline const char *tutti_loss_cosine_similarity_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_COSINE_SIMILARITY_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_cosine_similarity_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_cosine_similarity_attrs;
/* The negative cosine of the angle between prediction and target over the last dimension: -sum(p * t) / (norm(p) *
 * norm(t)), from -1 for equal directions to 1; 0 where one of them is zero. Keras' CosineSimilarity; 1 + this is
 * PyTorch's CosineEmbeddingLoss of similar pairs. */
static inline tutti_value tutti_loss_cosine_similarity(tutti_graph *graph, tutti_value predictions, tutti_value targets, const tutti_loss_cosine_similarity_attrs *attrs) {
  tutti_graph_begin(graph, "loss_cosine_similarity", 1);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_cosine_similarity_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_CONTRASTIVE_REDUCTION_MEAN 1
#define TUTTI_LOSS_CONTRASTIVE_REDUCTION_SUM 2
#define TUTTI_LOSS_CONTRASTIVE_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_CONTRASTIVE_REDUCTION_NONE 4
static inline const char *tutti_loss_contrastive_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_CONTRASTIVE_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_CONTRASTIVE_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_CONTRASTIVE_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_CONTRASTIVE_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_contrastive_attrs {
  /* the distance from which on dissimilar pairs have no loss. Default: 1. */
  uint8_t has_margin;
  double margin;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* two weights, of dissimilar and of similar pairs, multiplied with the weight of the pair. */
  const double *class_weights;
  int64_t class_weights_count;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_contrastive_attrs;
/* Of pairs of embeddings with the Euclidean distance d over the last dimension: d^2 where they are similar (target
 * 1), max(margin - d, 0)^2 where they are not (target 0) (Hadsell et al., 2006, without their factor 1/2). */
static inline tutti_value tutti_loss_contrastive(tutti_graph *graph, tutti_value first, tutti_value second, tutti_value targets, const tutti_loss_contrastive_attrs *attrs) {
  tutti_graph_begin(graph, "loss_contrastive", 1);
  tutti_graph_add_input(graph, first);
  tutti_graph_add_input(graph, second);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_margin) tutti_graph_set_f64(graph, "margin", attrs->margin);
    if (attrs->class_weights != NULL || attrs->class_weights_count != 0) tutti_graph_set_f64s(graph, "class_weights", attrs->class_weights, attrs->class_weights_count);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_contrastive_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_TRIPLET_REDUCTION_MEAN 1
#define TUTTI_LOSS_TRIPLET_REDUCTION_SUM 2
#define TUTTI_LOSS_TRIPLET_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_TRIPLET_REDUCTION_NONE 4
static inline const char *tutti_loss_triplet_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_TRIPLET_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_TRIPLET_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_TRIPLET_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_TRIPLET_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_triplet_attrs {
  /* by how much the negative is to be farther away than the positive. Default: 1. */
  uint8_t has_margin;
  double margin;
  /* compares squares of distances, as FaceNet does (Schroff et al., 2015). */
  uint8_t squared;
  /* takes the distance from positive to negative where it is smaller than that from anchor to negative. */
  uint8_t swap;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_triplet_attrs;
/* max(d(anchor, positive) - d(anchor, negative) + margin, 0) of embeddings, where d is the Euclidean distance over
 * the last dimension (Balntas et al., 2016). PyTorch's TripletMarginLoss with p = 2 and eps = 0. */
static inline tutti_value tutti_loss_triplet(tutti_graph *graph, tutti_value anchor, tutti_value positive, tutti_value negative, const tutti_loss_triplet_attrs *attrs) {
  tutti_graph_begin(graph, "loss_triplet", 1);
  tutti_graph_add_input(graph, anchor);
  tutti_graph_add_input(graph, positive);
  tutti_graph_add_input(graph, negative);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_margin) tutti_graph_set_f64(graph, "margin", attrs->margin);
    if (attrs->squared != 0) tutti_graph_set_bool(graph, "squared", 1);
    if (attrs->swap != 0) tutti_graph_set_bool(graph, "swap", 1);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_triplet_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_LOSS_CTC_FORM_LOGITS 1
#define TUTTI_LOSS_CTC_FORM_LOG_PROBABILITIES 2
static inline const char *tutti_loss_ctc_form_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_CTC_FORM_LOGITS: return "logits";
    case TUTTI_LOSS_CTC_FORM_LOG_PROBABILITIES: return "log_probabilities";
    default: return "(no such value)";
  }
}
#define TUTTI_LOSS_CTC_REDUCTION_MEAN 1
#define TUTTI_LOSS_CTC_REDUCTION_SUM 2
#define TUTTI_LOSS_CTC_REDUCTION_WEIGHTED_MEAN 3
#define TUTTI_LOSS_CTC_REDUCTION_NONE 4
static inline const char *tutti_loss_ctc_reduction_name(int32_t value) {
  switch (value) {
    case TUTTI_LOSS_CTC_REDUCTION_MEAN: return "mean";
    case TUTTI_LOSS_CTC_REDUCTION_SUM: return "sum";
    case TUTTI_LOSS_CTC_REDUCTION_WEIGHTED_MEAN: return "weighted_mean";
    case TUTTI_LOSS_CTC_REDUCTION_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_loss_ctc_attrs {
  /* integers [batch], the number of valid frames of each row; all unless it is given. */
  tutti_value input_lengths;
  /* integers [batch], the number of labels of each row; all unless it is given. */
  tutti_value label_lengths;
  /* a weight for each example. */
  tutti_value weights;
  /* the class that stands for no label. Default: 0. */
  int64_t blank;
  /* what the first input is: of logits the logarithm of the softmax is taken. Logarithms of less than -1e20, such
   * as that of 0, count as -1e20. The gradient for log_probabilities is that of the loss; PyTorch's is right only
   * behind a log_softmax. Default: logits. */
  int32_t form;
  /* rows with fewer frames than their labels need, or whose labels have probability 0, have the loss 0 and no
   * gradient, instead of being an error or very large; PyTorch's zero_infinity. */
  uint8_t zero_infinity;
  /* divides the loss of a row by the number of its labels, at least 1. */
  uint8_t per_label;
  /* as for sparse_softmax_cross_entropy. Default: mean. */
  int32_t reduction;
} tutti_loss_ctc_attrs;
/* Connectionist temporal classification of logits [batch, time, classes] against labels, integers [batch, most
 * labels]: the negative logarithm of the probability that the classes of a row's frames, with equal neighbours as
 * one and then without blanks, are its labels (Graves et al., 2006); the sum over all ways in which the labels can
 * lie in the frames, in logarithms. A row may have any number of labels from 0; labels and frames behind its
 * lengths may be anything. The run fails with the number of a row that cannot be, found in ctc/input_lengths or
 * ctc/label_lengths: a length below 0 or above the dimension; in ctc/labels: a label that is no class; in
 * ctc/labels_that_are_blank: one that is the blank; in ctc/spare_frames: fewer frames than the labels need, which
 * is one for each, and one for a blank between two that are equal. Where only the data tells the time, give batches
 * a fixed number of labels (`lengths` of padded_batch): an estimator takes the first unknown dimensions of all
 * inputs to be equal. PyTorch's CTCLoss, whose reduction 'mean' is this with per_label. */
static inline tutti_value tutti_loss_ctc(tutti_graph *graph, tutti_value logits, tutti_value labels, const tutti_loss_ctc_attrs *attrs) {
  tutti_graph_begin(graph, "loss_ctc", 1);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->input_lengths : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->label_lengths : tutti_no_value());
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->blank != 0) tutti_graph_set_i64(graph, "blank", attrs->blank);
    if (attrs->form != 0) { if (attrs->form >= 1 && attrs->form <= 2) tutti_graph_set_string(graph, "form", tutti_loss_ctc_form_name(attrs->form)); else tutti_graph_set_i64(graph, "form", attrs->form); }
    if (attrs->zero_infinity != 0) tutti_graph_set_bool(graph, "zero_infinity", 1);
    if (attrs->per_label != 0) tutti_graph_set_bool(graph, "per_label", 1);
    if (attrs->reduction != 0) { if (attrs->reduction >= 1 && attrs->reduction <= 4) tutti_graph_set_string(graph, "reduction", tutti_loss_ctc_reduction_name(attrs->reduction)); else tutti_graph_set_i64(graph, "reduction", attrs->reduction); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_mean_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_mean_attrs;
/* The (weighted) mean of a value over all examples. */
static inline tutti_value tutti_metric_mean(tutti_graph *graph, const char *name, tutti_value value, const tutti_metric_mean_attrs *attrs) {
  tutti_graph_begin(graph, "metric_mean", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, value);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_accuracy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_accuracy_attrs;
/* Fraction of examples whose largest logit is the label. */
static inline tutti_value tutti_metric_accuracy(tutti_graph *graph, const char *name, tutti_value logits, tutti_value labels, const tutti_metric_accuracy_attrs *attrs) {
  tutti_graph_begin(graph, "metric_accuracy", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_top_k_accuracy_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_top_k_accuracy_attrs;
/* Fraction of examples whose label is among the k largest logits. k: number of candidates. */
static inline tutti_value tutti_metric_top_k_accuracy(tutti_graph *graph, const char *name, tutti_value logits, tutti_value labels, int64_t k, const tutti_metric_top_k_accuracy_attrs *attrs) {
  tutti_graph_begin(graph, "metric_top_k_accuracy", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, logits);
  tutti_graph_add_input(graph, labels);
  tutti_graph_set_i64(graph, "k", k);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_binary_accuracy_attrs {
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_binary_accuracy_attrs;
/* Fraction of elements that are on the right side of the threshold: (prediction > threshold) = target, targets of 0
 * and 1 (floating point above 0.5 is 1). Keras' BinaryAccuracy. */
static inline tutti_value tutti_metric_binary_accuracy(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_binary_accuracy_attrs *attrs) {
  tutti_graph_begin(graph, "metric_binary_accuracy", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_METRIC_PRECISION_AVERAGE_BINARY 1
#define TUTTI_METRIC_PRECISION_AVERAGE_MICRO 2
#define TUTTI_METRIC_PRECISION_AVERAGE_MACRO 3
#define TUTTI_METRIC_PRECISION_AVERAGE_WEIGHTED 4
#define TUTTI_METRIC_PRECISION_AVERAGE_NONE 5
static inline const char *tutti_metric_precision_average_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_PRECISION_AVERAGE_BINARY: return "binary";
    case TUTTI_METRIC_PRECISION_AVERAGE_MICRO: return "micro";
    case TUTTI_METRIC_PRECISION_AVERAGE_MACRO: return "macro";
    case TUTTI_METRIC_PRECISION_AVERAGE_WEIGHTED: return "weighted";
    case TUTTI_METRIC_PRECISION_AVERAGE_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_metric_precision_attrs {
  /* binary: all elements are of one class; else the last dimension has classes: micro: of the counts of all of
   * them; macro: the mean over all of them, with those that do not occur; weighted: the mean by how often each is
   * the target; none: a tensor with a number for each class. scikit-learn's, with all classes as its labels.
   * Default: binary. */
  int32_t average;
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* the classes that averages are taken over; none: all. scikit-learn's labels. */
  const int64_t *classes;
  int64_t classes_count;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_precision_attrs;
/* TP / (TP + FP): of what is predicted to be of a class, the share that is. Targets of 0 and 1 have the shape of
 * the predictions, of which those above the threshold are predicted; class numbers have one dimension less, and the
 * class of the largest prediction is predicted. 0 where nothing is predicted, as in scikit-learn with
 * zero_division=0. */
static inline tutti_value tutti_metric_precision(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_precision_attrs *attrs) {
  tutti_graph_begin(graph, "metric_precision", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->average != 0) { if (attrs->average >= 1 && attrs->average <= 5) tutti_graph_set_string(graph, "average", tutti_metric_precision_average_name(attrs->average)); else tutti_graph_set_i64(graph, "average", attrs->average); }
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->classes != NULL || attrs->classes_count != 0) tutti_graph_set_i64s(graph, "classes", attrs->classes, attrs->classes_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_METRIC_RECALL_AVERAGE_BINARY 1
#define TUTTI_METRIC_RECALL_AVERAGE_MICRO 2
#define TUTTI_METRIC_RECALL_AVERAGE_MACRO 3
#define TUTTI_METRIC_RECALL_AVERAGE_WEIGHTED 4
#define TUTTI_METRIC_RECALL_AVERAGE_NONE 5
static inline const char *tutti_metric_recall_average_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_RECALL_AVERAGE_BINARY: return "binary";
    case TUTTI_METRIC_RECALL_AVERAGE_MICRO: return "micro";
    case TUTTI_METRIC_RECALL_AVERAGE_MACRO: return "macro";
    case TUTTI_METRIC_RECALL_AVERAGE_WEIGHTED: return "weighted";
    case TUTTI_METRIC_RECALL_AVERAGE_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_metric_recall_attrs {
  /* binary: all elements are of one class; else the last dimension has classes: micro: of the counts of all of
   * them; macro: the mean over all of them, with those that do not occur; weighted: the mean by how often each is
   * the target; none: a tensor with a number for each class. scikit-learn's, with all classes as its labels.
   * Default: binary. */
  int32_t average;
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* the classes that averages are taken over; none: all. scikit-learn's labels. */
  const int64_t *classes;
  int64_t classes_count;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_recall_attrs;
/* TP / (TP + FN): of what is of a class, the share that is predicted; also called sensitivity. Otherwise as
 * precision. */
static inline tutti_value tutti_metric_recall(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_recall_attrs *attrs) {
  tutti_graph_begin(graph, "metric_recall", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->average != 0) { if (attrs->average >= 1 && attrs->average <= 5) tutti_graph_set_string(graph, "average", tutti_metric_recall_average_name(attrs->average)); else tutti_graph_set_i64(graph, "average", attrs->average); }
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->classes != NULL || attrs->classes_count != 0) tutti_graph_set_i64s(graph, "classes", attrs->classes, attrs->classes_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_METRIC_F_BETA_AVERAGE_BINARY 1
#define TUTTI_METRIC_F_BETA_AVERAGE_MICRO 2
#define TUTTI_METRIC_F_BETA_AVERAGE_MACRO 3
#define TUTTI_METRIC_F_BETA_AVERAGE_WEIGHTED 4
#define TUTTI_METRIC_F_BETA_AVERAGE_NONE 5
static inline const char *tutti_metric_f_beta_average_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_F_BETA_AVERAGE_BINARY: return "binary";
    case TUTTI_METRIC_F_BETA_AVERAGE_MICRO: return "micro";
    case TUTTI_METRIC_F_BETA_AVERAGE_MACRO: return "macro";
    case TUTTI_METRIC_F_BETA_AVERAGE_WEIGHTED: return "weighted";
    case TUTTI_METRIC_F_BETA_AVERAGE_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_metric_f_beta_attrs {
  /* how many times as much recall counts as precision. Default: 1. */
  uint8_t has_beta;
  double beta;
  /* binary: all elements are of one class; else the last dimension has classes: micro: of the counts of all of
   * them; macro: the mean over all of them, with those that do not occur; weighted: the mean by how often each is
   * the target; none: a tensor with a number for each class. scikit-learn's, with all classes as its labels.
   * Default: binary. */
  int32_t average;
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* the classes that averages are taken over; none: all. scikit-learn's labels. */
  const int64_t *classes;
  int64_t classes_count;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_f_beta_attrs;
/* (1 + beta^2) * precision * recall / (beta^2 * precision + recall), computed as (1 + beta^2) * TP / ((1 + beta^2)
 * * TP + beta^2 * FN + FP); with beta 1 the F1 score (van Rijsbergen, 1979). Otherwise as precision. */
static inline tutti_value tutti_metric_f_beta(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_f_beta_attrs *attrs) {
  tutti_graph_begin(graph, "metric_f_beta", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_beta) tutti_graph_set_f64(graph, "beta", attrs->beta);
    if (attrs->average != 0) { if (attrs->average >= 1 && attrs->average <= 5) tutti_graph_set_string(graph, "average", tutti_metric_f_beta_average_name(attrs->average)); else tutti_graph_set_i64(graph, "average", attrs->average); }
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->classes != NULL || attrs->classes_count != 0) tutti_graph_set_i64s(graph, "classes", attrs->classes, attrs->classes_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_METRIC_SPECIFICITY_AVERAGE_BINARY 1
#define TUTTI_METRIC_SPECIFICITY_AVERAGE_MICRO 2
#define TUTTI_METRIC_SPECIFICITY_AVERAGE_MACRO 3
#define TUTTI_METRIC_SPECIFICITY_AVERAGE_WEIGHTED 4
#define TUTTI_METRIC_SPECIFICITY_AVERAGE_NONE 5
static inline const char *tutti_metric_specificity_average_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_SPECIFICITY_AVERAGE_BINARY: return "binary";
    case TUTTI_METRIC_SPECIFICITY_AVERAGE_MICRO: return "micro";
    case TUTTI_METRIC_SPECIFICITY_AVERAGE_MACRO: return "macro";
    case TUTTI_METRIC_SPECIFICITY_AVERAGE_WEIGHTED: return "weighted";
    case TUTTI_METRIC_SPECIFICITY_AVERAGE_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_metric_specificity_attrs {
  /* binary: all elements are of one class; else the last dimension has classes: micro: of the counts of all of
   * them; macro: the mean over all of them, with those that do not occur; weighted: the mean by how often each is
   * the target; none: a tensor with a number for each class. scikit-learn's, with all classes as its labels.
   * Default: binary. */
  int32_t average;
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* the classes that averages are taken over; none: all. scikit-learn's labels. */
  const int64_t *classes;
  int64_t classes_count;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_specificity_attrs;
/* TN / (TN + FP): of what is not of a class, the share that is not predicted to be. Otherwise as precision. */
static inline tutti_value tutti_metric_specificity(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_specificity_attrs *attrs) {
  tutti_graph_begin(graph, "metric_specificity", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->average != 0) { if (attrs->average >= 1 && attrs->average <= 5) tutti_graph_set_string(graph, "average", tutti_metric_specificity_average_name(attrs->average)); else tutti_graph_set_i64(graph, "average", attrs->average); }
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->classes != NULL || attrs->classes_count != 0) tutti_graph_set_i64s(graph, "classes", attrs->classes, attrs->classes_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_balanced_accuracy_attrs {
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* scaled so that chance has 0 and a perfect score stays 1. */
  uint8_t adjusted;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_balanced_accuracy_attrs;
/* The mean of the recalls of the classes that occur among the targets (Brodersen et al., 2010). Targets of the
 * shape of the predictions are of two classes, 0 and 1; class numbers have one dimension less. scikit-learn's
 * balanced_accuracy_score. */
static inline tutti_value tutti_metric_balanced_accuracy(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_balanced_accuracy_attrs *attrs) {
  tutti_graph_begin(graph, "metric_balanced_accuracy", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->adjusted != 0) tutti_graph_set_bool(graph, "adjusted", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_matthews_correlation_attrs {
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_matthews_correlation_attrs;
/* Correlation of what is predicted with what is so: for two classes (TP * TN - FP * FN) / sqrt((TP + FP) * (TP +
 * FN) * (TN + FP) * (TN + FN)) (Matthews, 1975), for more its generalisation (Gorodkin, 2004); from -1 to 1, and 0
 * where one of them is always the same class. Targets as for balanced_accuracy. scikit-learn's matthews_corrcoef. */
static inline tutti_value tutti_metric_matthews_correlation(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_matthews_correlation_attrs *attrs) {
  tutti_graph_begin(graph, "metric_matthews_correlation", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_mean_iou_attrs {
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* the classes that the mean is taken over; none: all. Keras' target_class_ids. */
  const int64_t *classes;
  int64_t classes_count;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_mean_iou_attrs;
/* Intersection over union (Jaccard, 1912), TP / (TP + FP + FN), averaged over the classes that occur, predicted or
 * not. Targets as for balanced_accuracy. Keras' MeanIoU and BinaryIoU; scikit-learn's jaccard_score counts classes
 * that do not occur as 0. */
static inline tutti_value tutti_metric_mean_iou(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_mean_iou_attrs *attrs) {
  tutti_graph_begin(graph, "metric_mean_iou", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->classes != NULL || attrs->classes_count != 0) tutti_graph_set_i64s(graph, "classes", attrs->classes, attrs->classes_count);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_NONE 1
#define TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_TARGETS 2
#define TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_PREDICTIONS 3
#define TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_ALL 4
static inline const char *tutti_metric_confusion_matrix_normalize_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_NONE: return "none";
    case TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_TARGETS: return "targets";
    case TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_PREDICTIONS: return "predictions";
    case TUTTI_METRIC_CONFUSION_MATRIX_NORMALIZE_ALL: return "all";
    default: return "(no such value)";
  }
}
typedef struct tutti_metric_confusion_matrix_attrs {
  /* divides by the sum of each row, of each column, or of all; scikit-learn's true, pred and all. Default: none. */
  int32_t normalize;
  /* probability above which an element is predicted to be 1. Default: 0.5. */
  uint8_t has_threshold;
  double threshold;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_confusion_matrix_attrs;
/* How often each class is predicted for each: [classes, classes], row i of the target i, column j of the prediction
 * j, as in scikit-learn; a sum of weights where there are weights. Targets as for balanced_accuracy. The result is
 * a tensor. */
static inline tutti_value tutti_metric_confusion_matrix(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_confusion_matrix_attrs *attrs) {
  tutti_graph_begin(graph, "metric_confusion_matrix", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->normalize != 0) { if (attrs->normalize >= 1 && attrs->normalize <= 4) tutti_graph_set_string(graph, "normalize", tutti_metric_confusion_matrix_normalize_name(attrs->normalize)); else tutti_graph_set_i64(graph, "normalize", attrs->normalize); }
    if (attrs->has_threshold) tutti_graph_set_f64(graph, "threshold", attrs->threshold);
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_mean_squared_error_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_mean_squared_error_attrs;
/* The mean over all elements of (prediction - target)^2. */
static inline tutti_value tutti_metric_mean_squared_error(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_mean_squared_error_attrs *attrs) {
  tutti_graph_begin(graph, "metric_mean_squared_error", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_root_mean_squared_error_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_root_mean_squared_error_attrs;
/* The square root of the mean over all elements of (prediction - target)^2. Keras' RootMeanSquaredError; of several
 * outputs scikit-learn takes the mean of their roots instead. */
static inline tutti_value tutti_metric_root_mean_squared_error(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_root_mean_squared_error_attrs *attrs) {
  tutti_graph_begin(graph, "metric_root_mean_squared_error", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_mean_absolute_error_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_mean_absolute_error_attrs;
/* The mean over all elements of abs(prediction - target). */
static inline tutti_value tutti_metric_mean_absolute_error(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_mean_absolute_error_attrs *attrs) {
  tutti_graph_begin(graph, "metric_mean_absolute_error", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_mean_absolute_percentage_error_attrs {
  /* smaller targets count as this. Default: 1e-07. */
  double epsilon;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_mean_absolute_percentage_error_attrs;
/* The mean over all elements of 100 * abs(prediction - target) / max(abs(target), epsilon). As in Keras it is in
 * percent; scikit-learn has the share and a smaller epsilon. */
static inline tutti_value tutti_metric_mean_absolute_percentage_error(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_mean_absolute_percentage_error_attrs *attrs) {
  tutti_graph_begin(graph, "metric_mean_absolute_percentage_error", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_METRIC_R_SQUARED_MULTIOUTPUT_UNIFORM_AVERAGE 1
#define TUTTI_METRIC_R_SQUARED_MULTIOUTPUT_VARIANCE_WEIGHTED 2
static inline const char *tutti_metric_r_squared_multioutput_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_R_SQUARED_MULTIOUTPUT_UNIFORM_AVERAGE: return "uniform_average";
    case TUTTI_METRIC_R_SQUARED_MULTIOUTPUT_VARIANCE_WEIGHTED: return "variance_weighted";
    default: return "(no such value)";
  }
}
typedef struct tutti_metric_r_squared_attrs {
  /* the plain mean over the outputs, or by the variance of each one's targets. Default: uniform_average. */
  int32_t multioutput;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_r_squared_attrs;
/* Coefficient of determination: 1 - sum((target - prediction)^2) / sum((target - mean of targets)^2), for each
 * output of the last dimension, then averaged. Where all targets are equal it is 1 if there is no error, else 0, as
 * in scikit-learn's r2_score; targets whose spread is below 3e-7 of their size count as equal. */
static inline tutti_value tutti_metric_r_squared(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_r_squared_attrs *attrs) {
  tutti_graph_begin(graph, "metric_r_squared", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->multioutput != 0) { if (attrs->multioutput >= 1 && attrs->multioutput <= 2) tutti_graph_set_string(graph, "multioutput", tutti_metric_r_squared_multioutput_name(attrs->multioutput)); else tutti_graph_set_i64(graph, "multioutput", attrs->multioutput); }
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_log_loss_attrs {
  /* predictions are logits, of which the softmax is taken. */
  uint8_t from_logits;
  /* smaller probabilities count as this; not for logits. Default: 1e-07. */
  double epsilon;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_log_loss_attrs;
/* The mean of -log(p[label]) of class probabilities over the last dimension against class numbers; probabilities
 * are divided by their sum. scikit-learn's log_loss; Keras' SparseCategoricalCrossentropy. */
static inline tutti_value tutti_metric_log_loss(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value labels, const tutti_metric_log_loss_attrs *attrs) {
  tutti_graph_begin(graph, "metric_log_loss", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_binary_log_loss_attrs {
  /* predictions are logits, of which the sigmoid is taken. */
  uint8_t from_logits;
  /* smaller probabilities count as this; not for logits. Default: 1e-07. */
  double epsilon;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_binary_log_loss_attrs;
/* The mean over all elements of -target * log(p) - (1 - target) * log(1 - p), targets in [0, 1]. Keras'
 * BinaryCrossentropy. */
static inline tutti_value tutti_metric_binary_log_loss(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_binary_log_loss_attrs *attrs) {
  tutti_graph_begin(graph, "metric_binary_log_loss", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_perplexity_attrs {
  /* predictions are logits, of which the softmax is taken. */
  uint8_t from_logits;
  /* smaller probabilities count as this; not for logits. Default: 1e-07. */
  double epsilon;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_perplexity_attrs;
/* exp(log_loss): the number of equally likely classes that would be as hard to guess (Jelinek et al., 1977); for a
 * language model with weights of 0 where there is padding. */
static inline tutti_value tutti_metric_perplexity(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value labels, const tutti_metric_perplexity_attrs *attrs) {
  tutti_graph_begin(graph, "metric_perplexity", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, labels);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_metric_cosine_similarity_attrs {
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_cosine_similarity_attrs;
/* The mean of the cosines of the angles between predictions and targets over the last dimension: sum(p * t) /
 * (norm(p) * norm(t)), 0 where one of them is zero. Keras' CosineSimilarity. */
static inline tutti_value tutti_metric_cosine_similarity(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_cosine_similarity_attrs *attrs) {
  tutti_graph_begin(graph, "metric_cosine_similarity", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_METRIC_AUC_CURVE_ROC 1
#define TUTTI_METRIC_AUC_CURVE_PRECISION_RECALL 2
static inline const char *tutti_metric_auc_curve_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_AUC_CURVE_ROC: return "roc";
    case TUTTI_METRIC_AUC_CURVE_PRECISION_RECALL: return "precision_recall";
    default: return "(no such value)";
  }
}
#define TUTTI_METRIC_AUC_SUMMATION_INTERPOLATED 1
#define TUTTI_METRIC_AUC_SUMMATION_STEP 2
static inline const char *tutti_metric_auc_summation_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_AUC_SUMMATION_INTERPOLATED: return "interpolated";
    case TUTTI_METRIC_AUC_SUMMATION_STEP: return "step";
    default: return "(no such value)";
  }
}
#define TUTTI_METRIC_AUC_AVERAGE_BINARY 1
#define TUTTI_METRIC_AUC_AVERAGE_MICRO 2
#define TUTTI_METRIC_AUC_AVERAGE_MACRO 3
#define TUTTI_METRIC_AUC_AVERAGE_WEIGHTED 4
#define TUTTI_METRIC_AUC_AVERAGE_NONE 5
static inline const char *tutti_metric_auc_average_name(int32_t value) {
  switch (value) {
    case TUTTI_METRIC_AUC_AVERAGE_BINARY: return "binary";
    case TUTTI_METRIC_AUC_AVERAGE_MICRO: return "micro";
    case TUTTI_METRIC_AUC_AVERAGE_MACRO: return "macro";
    case TUTTI_METRIC_AUC_AVERAGE_WEIGHTED: return "weighted";
    case TUTTI_METRIC_AUC_AVERAGE_NONE: return "none";
    default: return "(no such value)";
  }
}
typedef struct tutti_metric_auc_attrs {
  /* roc: recall over 1 - specificity, by trapezoids; scikit-learn's roc_auc_score. Default: roc. */
  int32_t curve;
  /* of precision_recall. interpolated: between two points TP and FP grow in proportion (Davis and Goadrich, 2006),
   * Keras' interpolation; step: the sum of each gain of recall times the precision behind it, scikit-learn's
   * average_precision_score. Default: interpolated. */
  int32_t summation;
  /* thresholds i / (threshold_count - 1) for i from 0, as in Keras. Default: 200. */
  int64_t threshold_count;
  /* thresholds from 0 to 1 in place of these. */
  const double *thresholds;
  int64_t thresholds_count;
  /* binary: all elements are of one class; else the last dimension has classes: micro: of the counts of all of
   * them; macro: the mean over all of them, with those that do not occur; weighted: the mean by how often each is
   * the target; none: a tensor with a number for each class. scikit-learn's, with all classes as its labels.
   * Default: binary. */
  int32_t average;
  /* predictions are logits x of probabilities 1 / (1 + exp(-x)); thresholds stay probabilities. */
  uint8_t from_logits;
  /* a weight for each example, or for each element that is reduced: [batch, time] for logits [batch, time,
   * classes]; fewer dimensions apply to all elements below. */
  tutti_value weights;
} tutti_metric_auc_attrs;
/* Area under a curve of binary decisions by threshold (Hanley and McNeil, 1982, for the one of ROC; Davis and
 * Goadrich, 2006, for that of precision and recall; Keras' AUC). Counts of each threshold are sums over rows, so
 * that it is exact for any split of the data; it is that of all scores wherever no two scores of different targets
 * lie between two thresholds that follow each other, else it takes them for equal. The ends, where everything and
 * nothing is predicted, are always points of the curve. Targets as for precision; a rate without rows is 0. */
static inline tutti_value tutti_metric_auc(tutti_graph *graph, const char *name, tutti_value predictions, tutti_value targets, const tutti_metric_auc_attrs *attrs) {
  tutti_graph_begin(graph, "metric_auc", 1);
  tutti_graph_set_string(graph, "name", name);
  tutti_graph_add_input(graph, predictions);
  tutti_graph_add_input(graph, targets);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->weights : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->curve != 0) { if (attrs->curve >= 1 && attrs->curve <= 2) tutti_graph_set_string(graph, "curve", tutti_metric_auc_curve_name(attrs->curve)); else tutti_graph_set_i64(graph, "curve", attrs->curve); }
    if (attrs->summation != 0) { if (attrs->summation >= 1 && attrs->summation <= 2) tutti_graph_set_string(graph, "summation", tutti_metric_auc_summation_name(attrs->summation)); else tutti_graph_set_i64(graph, "summation", attrs->summation); }
    if (attrs->threshold_count != 0) tutti_graph_set_i64(graph, "threshold_count", attrs->threshold_count);
    if (attrs->thresholds != NULL || attrs->thresholds_count != 0) tutti_graph_set_f64s(graph, "thresholds", attrs->thresholds, attrs->thresholds_count);
    if (attrs->average != 0) { if (attrs->average >= 1 && attrs->average <= 5) tutti_graph_set_string(graph, "average", tutti_metric_auc_average_name(attrs->average)); else tutti_graph_set_i64(graph, "average", attrs->average); }
    if (attrs->from_logits != 0) tutti_graph_set_bool(graph, "from_logits", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_sgd_attrs {
  /* fraction of the old velocity that is kept; 0 = no momentum. Default: 0. */
  double momentum;
  /* uses Nesterov's look-ahead. */
  uint8_t nesterov;
  /* adds this times the weight to the gradient. Default: 0. */
  double weight_decay;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_sgd_attrs;
/* Stochastic gradient descent, with momentum (Polyak, 1964) or Nesterov's variant (Sutskever et al., 2013). */
static inline tutti_value tutti_optimizer_sgd(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_sgd_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_sgd", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->momentum != 0) tutti_graph_set_f64(graph, "momentum", attrs->momentum);
    if (attrs->nesterov != 0) tutti_graph_set_bool(graph, "nesterov", 1);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_adam_attrs {
  /* decay of the first moment. Default: 0.9. */
  uint8_t has_beta1;
  double beta1;
  /* decay of the second moment. Default: 0.999. */
  uint8_t has_beta2;
  double beta2;
  /* added to the root of the second moment. Default: 1e-08. */
  uint8_t has_epsilon;
  double epsilon;
  /* divides by the root of the largest second moment so far (Reddi, Kale and Kumar, 2018). */
  uint8_t amsgrad;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_adam_attrs;
/* Adam (Kingma and Ba, 2015). */
static inline tutti_value tutti_optimizer_adam(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_adam_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_adam", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_beta1) tutti_graph_set_f64(graph, "beta1", attrs->beta1);
    if (attrs->has_beta2) tutti_graph_set_f64(graph, "beta2", attrs->beta2);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->amsgrad != 0) tutti_graph_set_bool(graph, "amsgrad", 1);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_adamw_attrs {
  /* times learning rate times weight is subtracted. Default: 0.01. */
  uint8_t has_weight_decay;
  double weight_decay;
  /* decay of the first moment. Default: 0.9. */
  uint8_t has_beta1;
  double beta1;
  /* decay of the second moment. Default: 0.999. */
  uint8_t has_beta2;
  double beta2;
  /* added to the root of the second moment. Default: 1e-08. */
  uint8_t has_epsilon;
  double epsilon;
  /* divides by the root of the largest second moment so far (Reddi, Kale and Kumar, 2018). */
  uint8_t amsgrad;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_adamw_attrs;
/* Adam with decoupled weight decay (Loshchilov and Hutter, 2019). */
static inline tutti_value tutti_optimizer_adamw(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_adamw_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_adamw", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_weight_decay) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->has_beta1) tutti_graph_set_f64(graph, "beta1", attrs->beta1);
    if (attrs->has_beta2) tutti_graph_set_f64(graph, "beta2", attrs->beta2);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->amsgrad != 0) tutti_graph_set_bool(graph, "amsgrad", 1);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_adagrad_attrs {
  /* lets the learning rate fall with the number of updates. Default: 0. */
  double rate_decay;
  /* of squared gradients; Keras begins with 0.1. Default: 0. */
  double initial_sum;
  /* added to the root of the sum. Default: 1e-10. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds this times the weight to the gradient. Default: 0. */
  double weight_decay;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_adagrad_attrs;
/* Adagrad (Duchi, Hazan and Singer, 2011): w - rate / (1 + rate_decay * (t - 1)) * g / (sqrt(sum of g^2) + epsilon)
 * at update t, from 1. */
static inline tutti_value tutti_optimizer_adagrad(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_adagrad_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_adagrad", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->rate_decay != 0) tutti_graph_set_f64(graph, "rate_decay", attrs->rate_decay);
    if (attrs->initial_sum != 0) tutti_graph_set_f64(graph, "initial_sum", attrs->initial_sum);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_adadelta_attrs {
  /* share of the old means that is kept. Default: 0.9. */
  uint8_t has_rho;
  double rho;
  /* added to both means. Default: 1e-06. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds this times the weight to the gradient. Default: 0. */
  double weight_decay;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_adadelta_attrs;
/* Adadelta (Zeiler, 2012): w - rate * step, step = sqrt(mean of step^2 + epsilon) / sqrt(mean of g^2 + epsilon) * g
 * with moving means. */
static inline tutti_value tutti_optimizer_adadelta(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_adadelta_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_adadelta", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_rho) tutti_graph_set_f64(graph, "rho", attrs->rho);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_rmsprop_attrs {
  /* share of the old mean that is kept; Keras has 0.9. Default: 0.99. */
  uint8_t has_rho;
  double rho;
  /* fraction of the old velocity that is kept; 0 = no momentum. Default: 0. */
  double momentum;
  /* subtracts the square of the mean gradient from the mean square (Graves, 2013). */
  uint8_t centered;
  /* added to the root. Default: 1e-08. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds this times the weight to the gradient. Default: 0. */
  double weight_decay;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_rmsprop_attrs;
/* RMSprop (Tieleman and Hinton, 2012): w - rate * g / (sqrt(mean of g^2) + epsilon) with a moving mean, as in
 * PyTorch; Keras adds epsilon below the root. */
static inline tutti_value tutti_optimizer_rmsprop(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_rmsprop_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_rmsprop", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_rho) tutti_graph_set_f64(graph, "rho", attrs->rho);
    if (attrs->momentum != 0) tutti_graph_set_f64(graph, "momentum", attrs->momentum);
    if (attrs->centered != 0) tutti_graph_set_bool(graph, "centered", 1);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_adamax_attrs {
  /* decay of the first moment. Default: 0.9. */
  uint8_t has_beta1;
  double beta1;
  /* decay of the largest gradient. Default: 0.999. */
  uint8_t has_beta2;
  double beta2;
  /* added to |g|. Default: 1e-08. */
  uint8_t has_epsilon;
  double epsilon;
  /* adds this times the weight to the gradient. Default: 0. */
  double weight_decay;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_adamax_attrs;
/* AdaMax (Kingma and Ba, 2015): w - rate / (1 - beta1^t) * m / u, u = max(beta2 * u, |g| + epsilon). */
static inline tutti_value tutti_optimizer_adamax(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_adamax_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_adamax", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_beta1) tutti_graph_set_f64(graph, "beta1", attrs->beta1);
    if (attrs->has_beta2) tutti_graph_set_f64(graph, "beta2", attrs->beta2);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_nadam_attrs {
  /* decay of the first moment. Default: 0.9. */
  uint8_t has_beta1;
  double beta1;
  /* decay of the second moment. Default: 0.999. */
  uint8_t has_beta2;
  double beta2;
  /* added to the root of the second moment. Default: 1e-08. */
  uint8_t has_epsilon;
  double epsilon;
  /* how quickly the momentum grows to beta1; Keras has 1. Default: 0.004. */
  uint8_t has_momentum_decay;
  double momentum_decay;
  /* adds this times the weight to the gradient. Default: 0. */
  double weight_decay;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_nadam_attrs;
/* NAdam (Dozat, 2016): Adam with Nesterov's look-ahead, whose momentum is beta1 * (1 - 0.96^(t * momentum_decay) /
 * 2) at update t. */
static inline tutti_value tutti_optimizer_nadam(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_nadam_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_nadam", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_beta1) tutti_graph_set_f64(graph, "beta1", attrs->beta1);
    if (attrs->has_beta2) tutti_graph_set_f64(graph, "beta2", attrs->beta2);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->has_momentum_decay) tutti_graph_set_f64(graph, "momentum_decay", attrs->momentum_decay);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_lion_attrs {
  /* share of the old mean in the step. Default: 0.9. */
  uint8_t has_beta1;
  double beta1;
  /* share of the old mean that is kept. Default: 0.99. */
  uint8_t has_beta2;
  double beta2;
  /* times the weight is added to the step. Default: 0. */
  double weight_decay;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_lion_attrs;
/* Lion (Chen et al., 2023): w - rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w), m = beta2 * m + (1 -
 * beta2) * g. */
static inline tutti_value tutti_optimizer_lion(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_lion_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_lion", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_beta1) tutti_graph_set_f64(graph, "beta1", attrs->beta1);
    if (attrs->has_beta2) tutti_graph_set_f64(graph, "beta2", attrs->beta2);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_ftrl_attrs {
  /* of the sum of squares in the step; 0 = a fixed rate. Default: -0.5. */
  uint8_t has_rate_power;
  double rate_power;
  /* of squared gradients. Default: 0.1. */
  uint8_t has_initial_sum;
  double initial_sum;
  /* strength of the absolute penalty, which makes weights 0. Default: 0. */
  double l1;
  /* strength of the squared penalty. Default: 0. */
  double l2;
  /* strength of a squared penalty on the gradient alone. Default: 0. */
  double l2_shrinkage;
  /* added to the power of the sum. Default: 0. */
  double beta;
  /* of a variable that the model only looks up rows of, by indices of the batch (gather along the first axis,
   * embedding): rows that a step does not look up keep weight and slots, and a step costs what the others cost; by
   * default they are updated as by a gradient of 0. */
  uint8_t lazy;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_ftrl_attrs;
/* Follow the regularized leader, FTRL-Proximal (McMahan et al., 2013), as in TensorFlow: n = sum of g^2, z = sum of
 * g + 2 * l2_shrinkage * w - (n^p - (n before)^p) / rate * w with p = -rate_power, and w = (clip(z, -l1, l1) - z) /
 * ((n^p + beta) / rate + 2 * l2). The learning rate must be above 0. */
static inline tutti_value tutti_optimizer_ftrl(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_ftrl_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_ftrl", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_rate_power) tutti_graph_set_f64(graph, "rate_power", attrs->rate_power);
    if (attrs->has_initial_sum) tutti_graph_set_f64(graph, "initial_sum", attrs->initial_sum);
    if (attrs->l1 != 0) tutti_graph_set_f64(graph, "l1", attrs->l1);
    if (attrs->l2 != 0) tutti_graph_set_f64(graph, "l2", attrs->l2);
    if (attrs->l2_shrinkage != 0) tutti_graph_set_f64(graph, "l2_shrinkage", attrs->l2_shrinkage);
    if (attrs->beta != 0) tutti_graph_set_f64(graph, "beta", attrs->beta);
    if (attrs->lazy != 0) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_lamb_attrs {
  /* decay of the first moment. Default: 0.9. */
  uint8_t has_beta1;
  double beta1;
  /* decay of the second moment. Default: 0.999. */
  uint8_t has_beta2;
  double beta2;
  /* added to the root of the second moment. Default: 1e-06. */
  uint8_t has_epsilon;
  double epsilon;
  /* times the weight is added to the step. Default: 0. */
  double weight_decay;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_lamb_attrs;
/* LAMB (You et al., 2020): w - rate * |w| / |r| * r for each variable, r = m / (1 - beta1^t) / (sqrt(v / (1 -
 * beta2^t)) + epsilon) + weight_decay * w; the ratio is 1 where a norm is 0. */
static inline tutti_value tutti_optimizer_lamb(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_lamb_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_lamb", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_beta1) tutti_graph_set_f64(graph, "beta1", attrs->beta1);
    if (attrs->has_beta2) tutti_graph_set_f64(graph, "beta2", attrs->beta2);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_lars_attrs {
  /* fraction of the old velocity that is kept. Default: 0.9. */
  uint8_t has_momentum;
  double momentum;
  /* uses Nesterov's look-ahead. */
  uint8_t nesterov;
  /* trust coefficient, the length of a step over that of the weights at a rate of 1. Default: 0.001. */
  double trust;
  /* added to the norms. Default: 0. */
  double epsilon;
  /* adds this times the weight to the gradient. Default: 0. */
  double weight_decay;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_lars_attrs;
/* LARS (You, Gitman and Ginsburg, 2017): momentum over trust * |w| / (|g| + weight_decay * |w| + epsilon) * (g +
 * weight_decay * w) for each variable; the ratio is 1 where |w| or |g| is 0. */
static inline tutti_value tutti_optimizer_lars(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_lars_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_lars", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_momentum) tutti_graph_set_f64(graph, "momentum", attrs->momentum);
    if (attrs->nesterov != 0) tutti_graph_set_bool(graph, "nesterov", 1);
    if (attrs->trust != 0) tutti_graph_set_f64(graph, "trust", attrs->trust);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_OPTIMIZER_MUON_SCALE_BY_SHAPE 1
#define TUTTI_OPTIMIZER_MUON_SCALE_LIKE_ADAM 2
static inline const char *tutti_optimizer_muon_scale_name(int32_t value) {
  switch (value) {
    case TUTTI_OPTIMIZER_MUON_SCALE_BY_SHAPE: return "by_shape";
    case TUTTI_OPTIMIZER_MUON_SCALE_LIKE_ADAM: return "like_adam";
    default: return "(no such value)";
  }
}
typedef struct tutti_optimizer_muon_attrs {
  /* share of the old mean gradient that is kept. Default: 0.95. */
  uint8_t has_momentum;
  double momentum;
  /* uses no look-ahead. */
  uint8_t without_nesterov;
  /* of the polynomial. Default: 5. */
  int64_t rounds;
  /* of a matrix's steps; by_shape: sqrt(max(1, columns / rows)); like_adam: 0.2 * sqrt(max(columns, rows)), whose
   * steps are as long as those of AdamW (Liu et al., 2025). Default: by_shape. */
  int32_t scale;
  /* times the learning rate, for vectors. Default: 1. */
  uint8_t has_vector_rate;
  double vector_rate;
  /* of vectors: decay of the first moment. Default: 0.9. */
  uint8_t has_beta1;
  double beta1;
  /* of vectors: decay of the second moment. Default: 0.999. */
  uint8_t has_beta2;
  double beta2;
  /* of vectors: added to the root of the second moment. Default: 1e-08. */
  uint8_t has_epsilon;
  double epsilon;
  /* times the weight is added to the step. Default: 0. */
  double weight_decay;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_muon_attrs;
/* Muon (Jordan, 2024): momentum whose singular values are brought near 1 by rounds of a polynomial of degree 5, for
 * variables with two axes or more, taken as matrices with as many columns as their last axis; AdamW for the others.
 * Embeddings and the last layer are commonly updated as vectors, too (as_vectors of a parameter group). */
static inline tutti_value tutti_optimizer_muon(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_muon_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_muon", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_momentum) tutti_graph_set_f64(graph, "momentum", attrs->momentum);
    if (attrs->without_nesterov != 0) tutti_graph_set_bool(graph, "nesterov", 0);
    if (attrs->rounds != 0) tutti_graph_set_i64(graph, "rounds", attrs->rounds);
    if (attrs->scale != 0) { if (attrs->scale >= 1 && attrs->scale <= 2) tutti_graph_set_string(graph, "scale", tutti_optimizer_muon_scale_name(attrs->scale)); else tutti_graph_set_i64(graph, "scale", attrs->scale); }
    if (attrs->has_vector_rate) tutti_graph_set_f64(graph, "vector_rate", attrs->vector_rate);
    if (attrs->has_beta1) tutti_graph_set_f64(graph, "beta1", attrs->beta1);
    if (attrs->has_beta2) tutti_graph_set_f64(graph, "beta2", attrs->beta2);
    if (attrs->has_epsilon) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_optimizer_adafactor_attrs {
  /* in update t the squares of the gradient have the share t ^ beta2_decay in the second moment. Default: -0.8. */
  uint8_t has_beta2_decay;
  double beta2_decay;
  /* least root of the second moment, and least mean of the values of its rows; 0 = the precision of the dtype, for
   * f32, f16 and bf16 1.19e-7. Default: 0. */
  double epsilon;
  /* epsilon is added to the squares of gradients instead, as by the paper and Keras; then 0 = 1e-30. */
  uint8_t adds_epsilon;
  /* steps are the rate times the root mean square of the variable, or times this where that is less. Default:
   * 0.001. */
  uint8_t has_least_scale;
  double least_scale;
  /* limits the root mean square of a variable's step before it is scaled. Default: 1. */
  double clip_threshold;
  /* the rate is not limited to 1 / sqrt(t) in update t. */
  uint8_t keeps_rate;
  /* times the learning rate and the weight is subtracted from it. Default: 0. */
  double weight_decay;
  /* limits each element of the gradients to [-clip_value, clip_value], before anything else; 0 = off. Default: 0. */
  double clip_value;
  /* limits the Euclidean norm of each variable's gradient, after clip_value and before
   * tutti_graph_set_gradient_clip_norm limits the global norm: g * clip_norm / max(|g|, clip_norm); 0 = off.
   * Default: 0. */
  double clip_norm;
  /* keeps an exponential moving average of each weight, average_decay * average + (1 - average_decay) * weight
   * after each update, as slot <variable>/average, which evaluate and predict use unless their option raw_weights
   * is set; less than 1; 0 = none. Default: 0. */
  double average_decay;
  /* limits the decay to (1 + n) / (10 + n) at update n after average_start, so that the average follows a young
   * model quickly. */
  uint8_t average_ramp;
  /* until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0. */
  int64_t average_start;
} tutti_optimizer_adafactor_attrs;
/* Adafactor (Shazeer and Stern, 2018) as in PyTorch: steps in proportion to the size of each variable, with a
 * second moment of matrices that is kept as one value for each row and one for each column. Of variables with more
 * axes than two, these are the last two; their slots are called row_moment and column_moment. Vectors and scalars
 * have a slot second_moment. A rate of 0.01 is common, for training from the beginning behind a schedule of
 * warm-up. */
static inline tutti_value tutti_optimizer_adafactor(tutti_graph *graph, tutti_value learning_rate, const tutti_optimizer_adafactor_attrs *attrs) {
  tutti_graph_begin(graph, "optimizer_adafactor", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->has_beta2_decay) tutti_graph_set_f64(graph, "beta2_decay", attrs->beta2_decay);
    if (attrs->epsilon != 0) tutti_graph_set_f64(graph, "epsilon", attrs->epsilon);
    if (attrs->adds_epsilon != 0) tutti_graph_set_bool(graph, "adds_epsilon", 1);
    if (attrs->has_least_scale) tutti_graph_set_f64(graph, "least_scale", attrs->least_scale);
    if (attrs->clip_threshold != 0) tutti_graph_set_f64(graph, "clip_threshold", attrs->clip_threshold);
    if (attrs->keeps_rate != 0) tutti_graph_set_bool(graph, "limits_rate", 0);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp != 0) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_parameter_group_attrs {
  /* in place of the optimizer's. */
  tutti_value learning_rate;
  /* times the learning rate. Default: 1. */
  uint8_t has_rate_factor;
  double rate_factor;
  /* in place of the optimizer's; 0 = that. Default: 0. */
  double weight_decay;
  /* they do not decay. */
  uint8_t without_decay;
  /* they keep their values. */
  uint8_t frozen;
  /* an optimizer that takes matrices otherwise than vectors (muon, adafactor) takes them as vectors. */
  uint8_t as_vectors;
} tutti_parameter_group_attrs;
/* Variables that are trained otherwise: those whose full name matches a pattern, with * for any letters and ? for
 * one. A variable belongs to the first group that it matches. With the pattern *bias and without_decay biases do
 * not decay. A group without variables is an error. pattern: of full names, such as *bias or encoder*. */
static inline tutti_value tutti_parameter_group(tutti_graph *graph, const char *pattern, const tutti_parameter_group_attrs *attrs) {
  tutti_graph_begin(graph, "parameter_group", 1);
  tutti_graph_set_string(graph, "pattern", pattern);
  tutti_graph_add_input(graph, attrs != NULL ? attrs->learning_rate : tutti_no_value());
  if (attrs != NULL) {
    if (attrs->has_rate_factor) tutti_graph_set_f64(graph, "rate_factor", attrs->rate_factor);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->without_decay != 0) tutti_graph_set_bool(graph, "without_decay", 1);
    if (attrs->frozen != 0) tutti_graph_set_bool(graph, "frozen", 1);
    if (attrs->as_vectors != 0) tutti_graph_set_bool(graph, "as_vectors", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* What each update keeps the variables to whose full name matches a pattern, with * for any letters and ? for one:
 * a vector whose norm is above a limit to that limit (Srivastava et al., 2014), a vector to a norm of 1, or
 * elements to 0 where they are negative, as in Keras. A variable has one constraint at most, that of a layer
 * included. A pattern without variables is an error. pattern: of full names, such as *bias or encoder*. constraint:
 * max_norm(limit, axes), unit_norm(axes) or non_negative; norms are along all axes but the last unless axes are
 * given, as in max_norm(3, axes=0 1), and of a vector of all its elements; a limit is 2 unless it is given. */
static inline tutti_value tutti_parameter_constraint(tutti_graph *graph, const char *pattern, const char *constraint) {
  tutti_graph_begin(graph, "parameter_constraint", 1);
  tutti_graph_set_string(graph, "pattern", pattern);
  tutti_graph_set_string(graph, "constraint", constraint);
  return tutti_graph_end(graph, NULL, 0);
}

/* The same learning rate in every step. Like all schedules, it is an ordinary scalar of the graph, from which ops
 * may compute another learning rate. value: learning rate. */
static inline tutti_value tutti_schedule_constant(tutti_graph *graph, double value) {
  tutti_graph_begin(graph, "schedule_constant", 1);
  tutti_graph_set_f64(graph, "value", value);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_exponential_attrs {
  /* decays at multiples of decay_steps only. */
  uint8_t staircase;
} tutti_schedule_exponential_attrs;
/* value * decay_rate ^ (step / decay_steps). value: learning rate of the first step. decay_rate: factor per
 * decay_steps. decay_steps: steps over which the factor applies once. */
static inline tutti_value tutti_schedule_exponential(tutti_graph *graph, double value, double decay_rate, int64_t decay_steps, const tutti_schedule_exponential_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_exponential", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_f64(graph, "decay_rate", decay_rate);
  tutti_graph_set_i64(graph, "decay_steps", decay_steps);
  if (attrs != NULL) {
    if (attrs->staircase != 0) tutti_graph_set_bool(graph, "staircase", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_cosine_attrs {
  /* number of warm-up steps. Default: 0. */
  int64_t warmup_steps;
  /* the final value, as a fraction of value. Default: 0. */
  double final_fraction;
} tutti_schedule_cosine_attrs;
/* Half a cosine from value to value * final_fraction (Loshchilov and Hutter, 2017), after a linear warm-up: step s,
 * counted from 0, has (s + 1) / warmup_steps of value, so the first step already learns and the last warm-up step
 * has the full value. PyTorch's LinearLR with start_factor = 1 / warmup_steps and total_iters = warmup_steps - 1
 * has the same; the warm-up of Keras' CosineDecay has step / warmup_steps, so its first step has its initial rate.
 * value: largest learning rate. steps: step at which the final value is reached, including the warm-up. */
static inline tutti_value tutti_schedule_cosine(tutti_graph *graph, double value, int64_t steps, const tutti_schedule_cosine_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_cosine", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_i64(graph, "steps", steps);
  if (attrs != NULL) {
    if (attrs->warmup_steps != 0) tutti_graph_set_i64(graph, "warmup_steps", attrs->warmup_steps);
    if (attrs->final_fraction != 0) tutti_graph_set_f64(graph, "final_fraction", attrs->final_fraction);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* values[i] while step < boundaries[i], steps counted from 0; the last value afterwards. There is one more value
 * than boundaries. Boundaries are equal to the milestones of PyTorch's MultiStepLR; Keras' PiecewiseConstantDecay
 * changes one step later. boundaries: increasing steps at which the next value begins. values: learning rates. */
static inline tutti_value tutti_schedule_piecewise(tutti_graph *graph, const int64_t *boundaries, int64_t boundaries_count, const double *values, int64_t values_count) {
  tutti_graph_begin(graph, "schedule_piecewise", 1);
  tutti_graph_set_i64s(graph, "boundaries", boundaries, boundaries_count);
  tutti_graph_set_f64s(graph, "values", values, values_count);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_natural_exponential_attrs {
  /* decays at multiples of decay_steps only. */
  uint8_t staircase;
} tutti_schedule_natural_exponential_attrs;
/* value * exp(-decay_rate * step / decay_steps), steps counted from 0. TensorFlow's natural_exp_decay. value:
 * learning rate of the first step. decay_rate: by how much the logarithm of the rate falls per decay_steps.
 * decay_steps: steps over which the decay applies once. */
static inline tutti_value tutti_schedule_natural_exponential(tutti_graph *graph, double value, double decay_rate, int64_t decay_steps, const tutti_schedule_natural_exponential_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_natural_exponential", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_f64(graph, "decay_rate", decay_rate);
  tutti_graph_set_i64(graph, "decay_steps", decay_steps);
  if (attrs != NULL) {
    if (attrs->staircase != 0) tutti_graph_set_bool(graph, "staircase", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_inverse_time_attrs {
  /* decays at multiples of decay_steps only. */
  uint8_t staircase;
} tutti_schedule_inverse_time_attrs;
/* value / (1 + decay_rate * step / decay_steps), steps counted from 0 (Robbins and Monro, 1951). Keras'
 * InverseTimeDecay. value: learning rate of the first step. decay_rate: by how much the divisor grows per
 * decay_steps. decay_steps: steps over which the divisor grows by decay_rate. */
static inline tutti_value tutti_schedule_inverse_time(tutti_graph *graph, double value, double decay_rate, int64_t decay_steps, const tutti_schedule_inverse_time_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_inverse_time", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_f64(graph, "decay_rate", decay_rate);
  tutti_graph_set_i64(graph, "decay_steps", decay_steps);
  if (attrs != NULL) {
    if (attrs->staircase != 0) tutti_graph_set_bool(graph, "staircase", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* value * gamma ^ floor(step / step_size), steps counted from 0: constant, and multiplied by gamma every step_size
 * steps. PyTorch's StepLR. value: learning rate of the first step. step_size: steps for which the rate stays the
 * same. gamma: factor between them. */
static inline tutti_value tutti_schedule_step(tutti_graph *graph, double value, int64_t step_size, double gamma) {
  tutti_graph_begin(graph, "schedule_step", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_i64(graph, "step_size", step_size);
  tutti_graph_set_f64(graph, "gamma", gamma);
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_polynomial_attrs {
  /* learning rate at the end, which may be above value. Default: 0. */
  double final_value;
  /* exponent. Default: 1. */
  double power;
  /* never stays at final_value: step `steps` still has it, and from the next step on the formula has the smallest
   * multiple of `steps` that is not below the step in place of `steps`. */
  uint8_t cycle;
} tutti_schedule_polynomial_attrs;
/* (value - final_value) * (1 - step / steps) ^ power + final_value, and final_value from step `steps` on, steps
 * counted from 0; with power 1 a straight line. Keras' PolynomialDecay, which has final_value 0.0001 unless told
 * otherwise. value: learning rate of the first step. steps: step at which final_value is reached. */
static inline tutti_value tutti_schedule_polynomial(tutti_graph *graph, double value, int64_t steps, const tutti_schedule_polynomial_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_polynomial", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_i64(graph, "steps", steps);
  if (attrs != NULL) {
    if (attrs->final_value != 0) tutti_graph_set_f64(graph, "final_value", attrs->final_value);
    if (attrs->power != 0) tutti_graph_set_f64(graph, "power", attrs->power);
    if (attrs->cycle != 0) tutti_graph_set_bool(graph, "cycle", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_cosine_restarts_attrs {
  /* how much longer each period is than the one before: 1, or at least 1.01; Keras' t_mul, which is 2 unless told
   * otherwise. Default: 1. */
  double period_factor;
  /* factor of the largest rate from period to period; Keras' m_mul. Default: 1. */
  uint8_t has_value_factor;
  double value_factor;
  /* the rate that each period goes to, as a fraction of value; Keras' alpha. Default: 0. */
  double final_fraction;
} tutti_schedule_cosine_restarts_attrs;
/* Stochastic gradient descent with warm restarts (Loshchilov and Hutter, 2017): half a cosine from value to value *
 * final_fraction, again and again. In period i, whose length is steps * period_factor ^ i, the rate is value * ((1
 * - final_fraction) * value_factor ^ i * (1 + cos(pi * t)) / 2 + final_fraction), where t is the part of the period
 * that has passed. Keras' CosineDecayRestarts with t_mul and m_mul, PyTorch's CosineAnnealingWarmRestarts with
 * T_mult. value: learning rate of the first step. steps: steps of the first period. */
static inline tutti_value tutti_schedule_cosine_restarts(tutti_graph *graph, double value, int64_t steps, const tutti_schedule_cosine_restarts_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_cosine_restarts", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_i64(graph, "steps", steps);
  if (attrs != NULL) {
    if (attrs->period_factor != 0) tutti_graph_set_f64(graph, "period_factor", attrs->period_factor);
    if (attrs->has_value_factor) tutti_graph_set_f64(graph, "value_factor", attrs->value_factor);
    if (attrs->final_fraction != 0) tutti_graph_set_f64(graph, "final_fraction", attrs->final_fraction);
  }
  return tutti_graph_end(graph, NULL, 0);
}

#define TUTTI_SCHEDULE_ONE_CYCLE_ANNEAL_COSINE 1
#define TUTTI_SCHEDULE_ONE_CYCLE_ANNEAL_LINEAR 2
static inline const char *tutti_schedule_one_cycle_anneal_name(int32_t value) {
  switch (value) {
    case TUTTI_SCHEDULE_ONE_CYCLE_ANNEAL_COSINE: return "cosine";
    case TUTTI_SCHEDULE_ONE_CYCLE_ANNEAL_LINEAR: return "linear";
    default: return "(no such value)";
  }
}
typedef struct tutti_schedule_one_cycle_attrs {
  /* share of the steps in which the rate grows; PyTorch's pct_start. Default: 0.3. */
  uint8_t has_warmup_fraction;
  double warmup_fraction;
  /* half a cosine or a straight line, up and down. Default: cosine. */
  int32_t anneal;
  /* value divided by the rate of the first step; PyTorch's div_factor. Default: 25. */
  double start_divisor;
  /* the rate of the first step divided by that of the last; PyTorch's final_div_factor. Default: 10000. */
  double final_divisor;
  /* goes down to the rate of the first step in as many steps as it went up, and then down to the last rate;
   * warmup_fraction is at most 0.5. */
  uint8_t three_phases;
} tutti_schedule_one_cycle_attrs;
/* One cycle (Smith and Topin, 2019): from value / start_divisor up to value at step warmup_fraction * steps - 1,
 * steps counted from 0, and down to value / start_divisor / final_divisor at step steps - 1, where it stays.
 * PyTorch's OneCycleLR without its momentum. value: largest learning rate. steps: steps of the training. */
static inline tutti_value tutti_schedule_one_cycle(tutti_graph *graph, double value, int64_t steps, const tutti_schedule_one_cycle_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_one_cycle", 1);
  tutti_graph_set_f64(graph, "value", value);
  tutti_graph_set_i64(graph, "steps", steps);
  if (attrs != NULL) {
    if (attrs->has_warmup_fraction) tutti_graph_set_f64(graph, "warmup_fraction", attrs->warmup_fraction);
    if (attrs->anneal != 0) { if (attrs->anneal >= 1 && attrs->anneal <= 2) tutti_graph_set_string(graph, "anneal", tutti_schedule_one_cycle_anneal_name(attrs->anneal)); else tutti_graph_set_i64(graph, "anneal", attrs->anneal); }
    if (attrs->start_divisor != 0) tutti_graph_set_f64(graph, "start_divisor", attrs->start_divisor);
    if (attrs->final_divisor != 0) tutti_graph_set_f64(graph, "final_divisor", attrs->final_divisor);
    if (attrs->three_phases != 0) tutti_graph_set_bool(graph, "three_phases", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_warmup_attrs {
  /* factor of the first step. Default: 0. */
  double start_fraction;
  /* the rate begins after the warm-up: until then it is that of its first step, and step s has that of step s -
   * steps. Else it runs from the first step on, and its first `steps` steps are scaled. */
  uint8_t shifted;
} tutti_schedule_warmup_attrs;
/* A linear warm-up in front of any schedule, or of any other scalar: the rate times start_fraction + (1 -
 * start_fraction) * step / steps, and the rate as it is from step `steps` on, steps counted from 0 (Goyal et al.,
 * 2017). PyTorch's LinearLR with another scheduler; with start_fraction 0 the first step has rate 0. steps: number
 * of warm-up steps. */
static inline tutti_value tutti_schedule_warmup(tutti_graph *graph, tutti_value rate, int64_t steps, const tutti_schedule_warmup_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_warmup", 1);
  tutti_graph_add_input(graph, rate);
  tutti_graph_set_i64(graph, "steps", steps);
  if (attrs != NULL) {
    if (attrs->start_fraction != 0) tutti_graph_set_f64(graph, "start_fraction", attrs->start_fraction);
    if (attrs->shifted != 0) tutti_graph_set_bool(graph, "shifted", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

typedef struct tutti_schedule_switch_attrs {
  /* the second rate begins with the switch: step s has that of step s - step_of_switch, as in PyTorch. Else both
   * run from the first step on. */
  uint8_t shifted;
} tutti_schedule_switch_attrs;
/* One rate while step < step_of_switch, steps counted from 0, and another from then on. Either of them may be such
 * a switch, too: a chain of schedules, PyTorch's SequentialLR. step_of_switch: first step of the second rate. */
static inline tutti_value tutti_schedule_switch(tutti_graph *graph, tutti_value before, tutti_value after, int64_t step_of_switch, const tutti_schedule_switch_attrs *attrs) {
  tutti_graph_begin(graph, "schedule_switch", 1);
  tutti_graph_add_input(graph, before);
  tutti_graph_add_input(graph, after);
  tutti_graph_set_i64(graph, "step_of_switch", step_of_switch);
  if (attrs != NULL) {
    if (attrs->shifted != 0) tutti_graph_set_bool(graph, "shifted", 1);
  }
  return tutti_graph_end(graph, NULL, 0);
}

/* --- dataset sources ---------------------------------------------------------------------------------------------- */

typedef struct tutti_source_arrow_attrs {
  /* Columns to read, each as NAME or, with a value that replaces nulls, NAME = VALUE, as in "age = 0". Empty = all
   * columns, in which nulls are errors. The value also replaces nulls within a list; a list that is itself null
   * becomes an empty list. */
  const char *const *columns;
  int64_t columns_count;
  /* Columns that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Columns that are weights. */
  const char *const *weights;
  int64_t weights_count;
} tutti_source_arrow_attrs;
/* The rows of the record batches of an Arrow C stream. Set the stream on the pipeline first; the source reads it to
 * its end when it is created. Numbers stay in the memory of the producer; dictionaries are decoded. Fixed-size
 * lists become axes. Other lists (including list views) become a dimension of unknown length; their items may be
 * fixed-size lists, but not other lists. */
static inline void tutti_source_arrow(tutti_pipeline *pipeline, const tutti_source_arrow_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "arrow", 1);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->columns_count && (i == 0 || attrs->columns != NULL); i++) tutti_pipeline_set_string(pipeline, "columns", attrs->columns != NULL ? attrs->columns[i] : NULL);
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_csv_attrs {
  /* Columns to read, each as NAME: TYPE = DEFAULT, as in "age: f32 = 0"; without a header, list all columns in the
   * order of the file. Empty = all columns of the first header, as texts. */
  const char *const *columns;
  int64_t columns_count;
  /* Columns that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Columns that are weights. */
  const char *const *weights;
  int64_t weights_count;
  /* The files do not begin with the names of their columns. */
  uint8_t without_header;
  /* Separator between fields. Default: ,. */
  const char *delimiter;
  /* Texts that mark a missing value, such as "NA". An empty field is always a missing value. */
  const char *const *missing;
  int64_t missing_count;
  /* auto, none, gzip or zlib; auto detects gzip by the first bytes. Default: auto. */
  const char *compression;
  /* Maximum size in bytes of a record of a compressed file after decompression, so that a small file cannot fill
   * the memory; a larger one means that the file is damaged. Default: 268435456. */
  int64_t maximum_record_bytes;
} tutti_source_csv_attrs;
/* The records of CSV files (RFC 4180), each an element with one scalar for each column. A record that cannot be
 * read is one error, which names the file, line and column. Among several files, an empty one without a header has
 * no elements. paths: Files, in this order; a pattern ("part-*.csv") stands for the files it matches, ordered by
 * name. */
static inline void tutti_source_csv(tutti_pipeline *pipeline, const char *const *paths, int64_t paths_count, const tutti_source_csv_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "csv", 1);
  for (int64_t i = 0; i < paths_count && (i == 0 || paths != NULL); i++) tutti_pipeline_set_string(pipeline, "paths", paths != NULL ? paths[i] : NULL);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->columns_count && (i == 0 || attrs->columns != NULL); i++) tutti_pipeline_set_string(pipeline, "columns", attrs->columns != NULL ? attrs->columns[i] : NULL);
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
    if (attrs->without_header != 0) tutti_pipeline_set_bool(pipeline, "header", 0);
    if (attrs->delimiter != NULL) tutti_pipeline_set_string(pipeline, "delimiter", attrs->delimiter);
    for (int64_t i = 0; i < attrs->missing_count && (i == 0 || attrs->missing != NULL); i++) tutti_pipeline_set_string(pipeline, "missing", attrs->missing != NULL ? attrs->missing[i] : NULL);
    if (attrs->compression != NULL) tutti_pipeline_set_string(pipeline, "compression", attrs->compression);
    if (attrs->maximum_record_bytes != 0) tutti_pipeline_set_i64(pipeline, "maximum_record_bytes", attrs->maximum_record_bytes);
  }
  tutti_pipeline_end(pipeline);
}

/* Elements written by cache or snapshot, with their components, roles and shapes. The files are memory-mapped and
 * can be read in any order. paths: Files with equal components, in this order; a pattern ("part-*.elements") stands
 * for the files it matches, ordered by name. */
static inline void tutti_source_element_files(tutti_pipeline *pipeline, const char *const *paths, int64_t paths_count) {
  tutti_pipeline_begin(pipeline, "element_files", 1);
  for (int64_t i = 0; i < paths_count && (i == 0 || paths != NULL); i++) tutti_pipeline_set_string(pipeline, "paths", paths != NULL ? paths[i] : NULL);
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_files_attrs {
  /* Name of the component. Default: path. */
  const char *name;
} tutti_source_files_attrs;
/* Paths of files, each a scalar of dtype bytes. paths: Files, in this order; a pattern ("part-*.csv") stands for
 * the files it matches, ordered by name. */
static inline void tutti_source_files(tutti_pipeline *pipeline, const char *const *paths, int64_t paths_count, const tutti_source_files_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "files", 1);
  for (int64_t i = 0; i < paths_count && (i == 0 || paths != NULL); i++) tutti_pipeline_set_string(pipeline, "paths", paths != NULL ? paths[i] : NULL);
  if (attrs != NULL) {
    if (attrs->name != NULL) tutti_pipeline_set_string(pipeline, "name", attrs->name);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_fixed_records_attrs {
  /* The fields of a record in order, each as NAME: TYPE[DIMENSIONS], as in "label: u8" and "image: u8[3, 32, 32]".
   * Empty = the whole record as one text. */
  const char *const *fields;
  int64_t fields_count;
  /* Fields that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Fields that are weights. */
  const char *const *weights;
  int64_t weights_count;
  /* Size of a record; optional if fields are given. Default: 0. */
  int64_t record_bytes;
  /* Bytes to skip at the beginning of each file. Default: 0. */
  int64_t header_bytes;
  /* Bytes to skip at the end of each file. Default: 0. */
  int64_t footer_bytes;
  /* Numbers are in big-endian byte order. */
  uint8_t big_endian;
  /* none, gzip, zlib or auto, which detects gzip by the first bytes. Default: none. */
  const char *compression;
  /* Name of the component if no fields are given. Default: record. */
  const char *name;
} tutti_source_fixed_records_attrs;
/* Records of a fixed size, as numbers or texts. Uncompressed files are memory-mapped and can be read in any order.
 * paths: Files, in this order; a pattern ("data_batch_*.bin") stands for the files it matches, ordered by name. */
static inline void tutti_source_fixed_records(tutti_pipeline *pipeline, const char *const *paths, int64_t paths_count, const tutti_source_fixed_records_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "fixed_records", 1);
  for (int64_t i = 0; i < paths_count && (i == 0 || paths != NULL); i++) tutti_pipeline_set_string(pipeline, "paths", paths != NULL ? paths[i] : NULL);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->fields_count && (i == 0 || attrs->fields != NULL); i++) tutti_pipeline_set_string(pipeline, "fields", attrs->fields != NULL ? attrs->fields[i] : NULL);
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
    if (attrs->record_bytes != 0) tutti_pipeline_set_i64(pipeline, "record_bytes", attrs->record_bytes);
    if (attrs->header_bytes != 0) tutti_pipeline_set_i64(pipeline, "header_bytes", attrs->header_bytes);
    if (attrs->footer_bytes != 0) tutti_pipeline_set_i64(pipeline, "footer_bytes", attrs->footer_bytes);
    if (attrs->big_endian != 0) tutti_pipeline_set_bool(pipeline, "big_endian", 1);
    if (attrs->compression != NULL) tutti_pipeline_set_string(pipeline, "compression", attrs->compression);
    if (attrs->name != NULL) tutti_pipeline_set_string(pipeline, "name", attrs->name);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_image_folder_attrs {
  /* Yield the paths of the files, in a component path, instead of their bytes. */
  uint8_t paths_only;
  /* Name of an additional component with the class name; empty = none. Default: . */
  const char *class_name;
  /* File extensions to read, in lower case; empty = jpg, jpeg and png, which decode_image reads. */
  const char *const *extensions;
  int64_t extensions_count;
} tutti_source_image_folder_attrs;
/* The files of a directory with one subdirectory for each class, including files in nested directories. An element
 * has the components image, the bytes of the file, and label, the class number as i32. Classes are numbered in the
 * order of their names. Names that begin with a dot are ignored; other skipped files are reported in the log of the
 * context, once. path: The directory. */
static inline void tutti_source_image_folder(tutti_pipeline *pipeline, const char *path, const tutti_source_image_folder_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "image_folder", 1);
  tutti_pipeline_set_string(pipeline, "path", path);
  if (attrs != NULL) {
    if (attrs->paths_only != 0) tutti_pipeline_set_bool(pipeline, "contents", 0);
    if (attrs->class_name != NULL) tutti_pipeline_set_string(pipeline, "class_name", attrs->class_name);
    for (int64_t i = 0; i < attrs->extensions_count && (i == 0 || attrs->extensions != NULL); i++) tutti_pipeline_set_string(pipeline, "extensions", attrs->extensions != NULL ? attrs->extensions[i] : NULL);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_npy_attrs {
  /* Components that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Components that are weights. */
  const char *const *weights;
  int64_t weights_count;
} tutti_source_npy_attrs;
/* The rows of NumPy array files, which must have equal numbers of rows; element i is row i of each. The files are
 * memory-mapped. arrays: Components and their files, each as NAME=PATH, as in "x=images.npy". */
static inline void tutti_source_npy(tutti_pipeline *pipeline, const char *const *arrays, int64_t arrays_count, const tutti_source_npy_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "npy", 1);
  for (int64_t i = 0; i < arrays_count && (i == 0 || arrays != NULL); i++) tutti_pipeline_set_string(pipeline, "arrays", arrays != NULL ? arrays[i] : NULL);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_npz_attrs {
  /* Names of the arrays to read; empty = all. */
  const char *const *arrays;
  int64_t arrays_count;
  /* Arrays that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Arrays that are weights. */
  const char *const *weights;
  int64_t weights_count;
  /* Maximum size in bytes of a compressed array after decompression, so that a small file cannot fill the memory; a
   * larger one means that the file is damaged. Default: 4294967296. */
  int64_t maximum_array_bytes;
} tutti_source_npz_attrs;
/* The rows of the arrays of a NumPy archive, which must have equal numbers of rows; element i is row i of each.
 * path: The archive. */
static inline void tutti_source_npz(tutti_pipeline *pipeline, const char *path, const tutti_source_npz_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "npz", 1);
  tutti_pipeline_set_string(pipeline, "path", path);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->arrays_count && (i == 0 || attrs->arrays != NULL); i++) tutti_pipeline_set_string(pipeline, "arrays", attrs->arrays != NULL ? attrs->arrays[i] : NULL);
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
    if (attrs->maximum_array_bytes != 0) tutti_pipeline_set_i64(pipeline, "maximum_array_bytes", attrs->maximum_array_bytes);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_range_attrs {
  /* The first number. Default: 0. */
  int64_t start;
  /* Difference between consecutive numbers; not 0. Default: 1. */
  uint8_t has_step;
  int64_t step;
  /* Name of the component. Default: value. */
  const char *name;
} tutti_source_range_attrs;
/* The numbers start, start + step, ... below (for a negative step, above) stop, as i64 scalars. stop: End of the
 * range, exclusive. */
static inline void tutti_source_range(tutti_pipeline *pipeline, int64_t stop, const tutti_source_range_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "range", 1);
  tutti_pipeline_set_i64(pipeline, "stop", stop);
  if (attrs != NULL) {
    if (attrs->start != 0) tutti_pipeline_set_i64(pipeline, "start", attrs->start);
    if (attrs->has_step) tutti_pipeline_set_i64(pipeline, "step", attrs->step);
    if (attrs->name != NULL) tutti_pipeline_set_string(pipeline, "name", attrs->name);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_tar_attrs {
  /* Parts that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Parts that are weights. */
  const char *const *weights;
  int64_t weights_count;
  /* auto, none, gzip or zlib; auto detects gzip by the first bytes. Default: auto. */
  const char *compression;
  /* Maximum size in bytes of a sample, with its headers, of a compressed file after decompression, so that a small
   * file cannot fill the memory; a larger one means that the file is damaged. Default: 268435456. */
  int64_t maximum_record_bytes;
} tutti_source_tar_attrs;
/* The samples of tar archives in the format of WebDataset. Consecutive files whose paths are equal up to the first
 * dot of the file name form one element; the text after the dot, in lower case, is the name of the part. Files
 * whose name has no dot or begins with a dot are skipped. A sample with a duplicate part, or whose files are not
 * consecutive, is an error. paths: Archives, in this order; a pattern ("train-*.tar") stands for the files it
 * matches, ordered by name. parts: Parts to read, each as NAME: TYPE = DEFAULT, as in "jpg: bytes" and, for a
 * decimal number, "cls: i64"; __key__ is the path up to the dot, including the folder. */
static inline void tutti_source_tar(tutti_pipeline *pipeline, const char *const *paths, int64_t paths_count, const char *const *parts, int64_t parts_count, const tutti_source_tar_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "tar", 1);
  for (int64_t i = 0; i < paths_count && (i == 0 || paths != NULL); i++) tutti_pipeline_set_string(pipeline, "paths", paths != NULL ? paths[i] : NULL);
  for (int64_t i = 0; i < parts_count && (i == 0 || parts != NULL); i++) tutti_pipeline_set_string(pipeline, "parts", parts != NULL ? parts[i] : NULL);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
    if (attrs->compression != NULL) tutti_pipeline_set_string(pipeline, "compression", attrs->compression);
    if (attrs->maximum_record_bytes != 0) tutti_pipeline_set_i64(pipeline, "maximum_record_bytes", attrs->maximum_record_bytes);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_text_lines_attrs {
  /* auto, none, gzip or zlib; auto detects gzip by the first bytes. Default: auto. */
  const char *compression;
  /* Maximum size in bytes of a line of a compressed file after decompression, so that a small file cannot fill the
   * memory; a larger one means that the file is damaged. Default: 268435456. */
  int64_t maximum_record_bytes;
  /* Lines to skip at the beginning of each file. Default: 0. */
  int64_t skip_lines;
  /* Name of the component. Default: text. */
  const char *name;
} tutti_source_text_lines_attrs;
/* The lines of text files, each a scalar of dtype bytes without its line ending (LF or CRLF). The last line of a
 * file may have no line ending. A byte order mark at the beginning of a file is skipped. paths: Files, in this
 * order; a pattern ("part-*.txt") stands for the files it matches, ordered by name. */
static inline void tutti_source_text_lines(tutti_pipeline *pipeline, const char *const *paths, int64_t paths_count, const tutti_source_text_lines_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "text_lines", 1);
  for (int64_t i = 0; i < paths_count && (i == 0 || paths != NULL); i++) tutti_pipeline_set_string(pipeline, "paths", paths != NULL ? paths[i] : NULL);
  if (attrs != NULL) {
    if (attrs->compression != NULL) tutti_pipeline_set_string(pipeline, "compression", attrs->compression);
    if (attrs->maximum_record_bytes != 0) tutti_pipeline_set_i64(pipeline, "maximum_record_bytes", attrs->maximum_record_bytes);
    if (attrs->skip_lines != 0) tutti_pipeline_set_i64(pipeline, "skip_lines", attrs->skip_lines);
    if (attrs->name != NULL) tutti_pipeline_set_string(pipeline, "name", attrs->name);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_source_tfrecord_attrs {
  /* auto, none, gzip or zlib; auto detects gzip and zlib by the first bytes. Default: auto. */
  const char *compression;
  /* Maximum size in bytes of a record of a compressed file after decompression, so that a small file cannot fill
   * the memory; a larger one means that the file is damaged. Default: 268435456. */
  int64_t maximum_record_bytes;
  /* Name of the component. Default: record. */
  const char *name;
} tutti_source_tfrecord_attrs;
/* The records of TFRecord files, each a scalar of dtype bytes; both checksums of each record are verified. A record
 * with damaged data is one error; a damaged length ends the file. paths: Files, in this order; a pattern
 * ("part-*.tfrecord") stands for the files it matches, ordered by name. */
static inline void tutti_source_tfrecord(tutti_pipeline *pipeline, const char *const *paths, int64_t paths_count, const tutti_source_tfrecord_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "tfrecord", 1);
  for (int64_t i = 0; i < paths_count && (i == 0 || paths != NULL); i++) tutti_pipeline_set_string(pipeline, "paths", paths != NULL ? paths[i] : NULL);
  if (attrs != NULL) {
    if (attrs->compression != NULL) tutti_pipeline_set_string(pipeline, "compression", attrs->compression);
    if (attrs->maximum_record_bytes != 0) tutti_pipeline_set_i64(pipeline, "maximum_record_bytes", attrs->maximum_record_bytes);
    if (attrs->name != NULL) tutti_pipeline_set_string(pipeline, "name", attrs->name);
  }
  tutti_pipeline_end(pipeline);
}

/* --- dataset transforms ------------------------------------------------------------------------------------------- */

typedef struct tutti_pipeline_batch_attrs {
  /* Drop a last batch with fewer rows. */
  uint8_t drop_remainder;
} tutti_pipeline_batch_attrs;
/* Joins batch_size consecutive elements along a new first axis. Batch sizes are global, over all replicas.
 * batch_size: Rows of a batch. */
static inline void tutti_pipeline_batch(tutti_pipeline *pipeline, int64_t batch_size, const tutti_pipeline_batch_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "batch", 1);
  tutti_pipeline_set_i64(pipeline, "batch_size", batch_size);
  if (attrs != NULL) {
    if (attrs->drop_remainder != 0) tutti_pipeline_set_bool(pipeline, "drop_remainder", 1);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_bucket_by_length_attrs {
  /* Drop batches that are not full at the end. */
  uint8_t drop_remainder;
  /* Make each batch as long as its bucket's boundary, along the first axis of every component whose length is
   * unknown; elements longer than the last boundary fail. */
  uint8_t pad_to_boundary;
  /* Padding values, one number per component; empty = zeros. Bytes are padded with empty strings and have 0 here. */
  const double *padding;
  int64_t padding_count;
} tutti_pipeline_bucket_by_length_attrs;
/* Batches elements of similar length together and pads them like padded_batch. The length is that of the
 * component's first axis, or its number of bytes if it is a single string. Bucket i takes lengths up to
 * boundaries[i], the last one all longer elements. A bucket yields its batch when it is full; at the end the
 * remaining buckets follow, shortest first. component: The component whose length is used. boundaries: The maximum
 * length of each bucket except the last, in increasing order. batch_sizes: Rows of a batch: one number for all
 * buckets, or one for each (one more than boundaries). */
static inline void tutti_pipeline_bucket_by_length(tutti_pipeline *pipeline, const char *component, const int64_t *boundaries, int64_t boundaries_count, const int64_t *batch_sizes, int64_t batch_sizes_count, const tutti_pipeline_bucket_by_length_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "bucket_by_length", 1);
  tutti_pipeline_set_string(pipeline, "component", component);
  tutti_pipeline_set_i64s(pipeline, "boundaries", boundaries, boundaries_count);
  tutti_pipeline_set_i64s(pipeline, "batch_sizes", batch_sizes, batch_sizes_count);
  if (attrs != NULL) {
    if (attrs->drop_remainder != 0) tutti_pipeline_set_bool(pipeline, "drop_remainder", 1);
    if (attrs->pad_to_boundary != 0) tutti_pipeline_set_bool(pipeline, "pad_to_boundary", 1);
    if (attrs->padding != NULL || attrs->padding_count != 0) tutti_pipeline_set_f64s(pipeline, "padding", attrs->padding, attrs->padding_count);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_cache_attrs {
  /* The file; empty = in memory. Default: . */
  const char *path;
  /* For a file: identifies what the functions in the pipeline do. Required if there are any; change it whenever
   * their results change. Default: . */
  const char *key;
} tutti_pipeline_cache_attrs;
/* Stores the elements of one complete pass, in memory or in a file; later passes read the cache instead of the
 * pipeline before it. Randomness before the cache is frozen. Later processes reuse a file as long as the pipeline
 * before the cache and the files that it reads are unchanged; otherwise it is written again. A pass in which an
 * element fails is not stored. */
static inline void tutti_pipeline_cache(tutti_pipeline *pipeline, const tutti_pipeline_cache_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "cache", 1);
  if (attrs != NULL) {
    if (attrs->path != NULL) tutti_pipeline_set_string(pipeline, "path", attrs->path);
    if (attrs->key != NULL) tutti_pipeline_set_string(pipeline, "key", attrs->key);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_class_weights_attrs {
  /* Name of the new component. Default: weight. */
  const char *name;
} tutti_pipeline_class_weights_attrs;
/* Adds a weight to each element, by its class, so that rare classes count as much as common ones: all elements /
 * (classes that occur * elements of its class). Losses and metrics accept it as weights. Batches get a weight for
 * each row. component: The component with the class: an integer of at least 0. counts: Number of elements of each
 * class. */
static inline void tutti_pipeline_class_weights(tutti_pipeline *pipeline, const char *component, const int64_t *counts, int64_t counts_count, const tutti_pipeline_class_weights_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "class_weights", 1);
  tutti_pipeline_set_string(pipeline, "component", component);
  tutti_pipeline_set_i64s(pipeline, "counts", counts, counts_count);
  if (attrs != NULL) {
    if (attrs->name != NULL) tutti_pipeline_set_string(pipeline, "name", attrs->name);
  }
  tutti_pipeline_end(pipeline);
}

/* Yields all elements of the first dataset, then those of the others, which must have equal specs. */
static inline void tutti_pipeline_concatenate(tutti_pipeline *pipeline, const tutti_dataset *other) {
  tutti_pipeline_begin(pipeline, "concatenate", 1);
  tutti_pipeline_set_dataset(pipeline, "other", other);
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_enumerate_attrs {
  /* Number of the first element. Default: 0. */
  int64_t start;
  /* Name of the new component. Default: index. */
  const char *name;
} tutti_pipeline_enumerate_attrs;
/* Adds a component with the position of the element, counted from start. */
static inline void tutti_pipeline_enumerate(tutti_pipeline *pipeline, const tutti_pipeline_enumerate_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "enumerate", 1);
  if (attrs != NULL) {
    if (attrs->start != 0) tutti_pipeline_set_i64(pipeline, "start", attrs->start);
    if (attrs->name != NULL) tutti_pipeline_set_string(pipeline, "name", attrs->name);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_ignore_errors_attrs {
  /* Maximum number of failing elements that are skipped in a pass. Default: 100. */
  uint8_t has_budget;
  int64_t budget;
} tutti_pipeline_ignore_errors_attrs;
/* Skips elements that fail; more than budget failures end the iteration with an error. The iterator's report counts
 * them and shows the first errors. The log shows the first errors, too, and then the count at 10, 100, 1000 and so
 * on. */
static inline void tutti_pipeline_ignore_errors(tutti_pipeline *pipeline, const tutti_pipeline_ignore_errors_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "ignore_errors", 1);
  if (attrs != NULL) {
    if (attrs->has_budget) tutti_pipeline_set_i64(pipeline, "budget", attrs->budget);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_interleave_attrs {
  /* Datasets open at a time; 0 = all. Default: 0. */
  int64_t cycle_length;
  /* Elements per turn. Default: 1. */
  int64_t block_length;
  /* Datasets read ahead, each on its own thread; 1 = none, 0 = all of the cycle. Default: 1. */
  uint8_t has_parallelism;
  int64_t parallelism;
} tutti_pipeline_interleave_attrs;
/* Takes turns among several datasets of equal specs. cycle_length of them are open at a time; each yields
 * block_length elements per turn. When one ends, the next is opened. The order does not depend on threads. */
static inline void tutti_pipeline_interleave(tutti_pipeline *pipeline, const tutti_dataset *const *others, int64_t others_count, const tutti_pipeline_interleave_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "interleave", 1);
  for (int64_t i = 0; i < others_count && (i == 0 || others != NULL); i++) tutti_pipeline_set_dataset(pipeline, "others", others != NULL ? others[i] : NULL);
  if (attrs != NULL) {
    if (attrs->cycle_length != 0) tutti_pipeline_set_i64(pipeline, "cycle_length", attrs->cycle_length);
    if (attrs->block_length != 0) tutti_pipeline_set_i64(pipeline, "block_length", attrs->block_length);
    if (attrs->has_parallelism) tutti_pipeline_set_i64(pipeline, "parallelism", attrs->parallelism);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_map_process_attrs {
  /* Number of processes; 0 = the number of threads of the budget. Default: 0. */
  int64_t processes;
  /* Has the components of what comes out; its elements are not read. Without it they are as those that go in. */
  const tutti_dataset *like;
} tutti_pipeline_map_process_attrs;
/* Maps each element by a program of the user, which runs in several processes; order is kept. A process reads
 * elements from its standard input and writes the results to its standard output, in the format of
 * tutti/map_process.h. The results have the components of the dataset "like", or otherwise those of the input.
 * Processes are started with the first elements, serve all passes of an iterator, and end with it. An element whose
 * process dies is an error; the next element gets a new process. command: The program, searched in PATH, and its
 * arguments. */
static inline void tutti_pipeline_map_process(tutti_pipeline *pipeline, const char *const *command, int64_t command_count, const tutti_pipeline_map_process_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "map_process", 1);
  for (int64_t i = 0; i < command_count && (i == 0 || command != NULL); i++) tutti_pipeline_set_string(pipeline, "command", command != NULL ? command[i] : NULL);
  if (attrs != NULL) {
    if (attrs->processes != 0) tutti_pipeline_set_i64(pipeline, "processes", attrs->processes);
    if (attrs->like != NULL) tutti_pipeline_set_dataset(pipeline, "like", attrs->like);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_options_attrs {
  /* Number of compute threads for automatic parallelism; 0 = those that the context has for pipelines. Default: 0. */
  int64_t threads;
  /* Bytes of elements that automatic buffers may hold ahead of the reader; 0 = an eighth of the free memory.
   * Default: 0. */
  int64_t memory_bytes;
  /* Interleave and parallel maps yield elements that are ready instead of waiting for the next one in order. The
   * order then differs from run to run. After a restore, shuffle and other transforms that read their buffered
   * elements again may yield some elements twice and skip others. */
  uint8_t any_order;
} tutti_pipeline_options_attrs;
/* Settings for the sources and transforms before it. If there are several, the first one that sets a number wins,
 * and the order is kept only if all of them keep it. Elements pass through unchanged. */
static inline void tutti_pipeline_options(tutti_pipeline *pipeline, const tutti_pipeline_options_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "options", 1);
  if (attrs != NULL) {
    if (attrs->threads != 0) tutti_pipeline_set_i64(pipeline, "threads", attrs->threads);
    if (attrs->memory_bytes != 0) tutti_pipeline_set_i64(pipeline, "memory_bytes", attrs->memory_bytes);
    if (attrs->any_order != 0) tutti_pipeline_set_bool(pipeline, "deterministic", 0);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_padded_batch_attrs {
  /* Drop a last batch with fewer rows. */
  uint8_t drop_remainder;
  /* Padding values, one number per component; empty = zeros. Bytes are padded with empty strings and have 0 here. */
  const double *padding;
  int64_t padding_count;
  /* Fixed lengths, one for each unknown dimension in the order of the components and their axes; 0 = the longest of
   * the batch. Empty = 0 for all. */
  const int64_t *lengths;
  int64_t lengths_count;
} tutti_pipeline_padded_batch_attrs;
/* Joins batch_size consecutive elements of different shapes. Each unknown dimension is padded to the longest of the
 * batch, or to a fixed length. batch_size: Rows of a batch. */
static inline void tutti_pipeline_padded_batch(tutti_pipeline *pipeline, int64_t batch_size, const tutti_pipeline_padded_batch_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "padded_batch", 1);
  tutti_pipeline_set_i64(pipeline, "batch_size", batch_size);
  if (attrs != NULL) {
    if (attrs->drop_remainder != 0) tutti_pipeline_set_bool(pipeline, "drop_remainder", 1);
    if (attrs->padding != NULL || attrs->padding_count != 0) tutti_pipeline_set_f64s(pipeline, "padding", attrs->padding, attrs->padding_count);
    if (attrs->lengths != NULL || attrs->lengths_count != 0) tutti_pipeline_set_i64s(pipeline, "lengths", attrs->lengths, attrs->lengths_count);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_parse_example_attrs {
  /* Features that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Features that are weights. */
  const char *const *weights;
  int64_t weights_count;
  /* Component that holds the examples; optional if only one component has dtype bytes. Default: . */
  const char *input;
} tutti_pipeline_parse_example_attrs;
/* Parses features of a tf.train.Example; they replace the component that holds its bytes. Other components are
 * kept. features: Features to read, each as NAME: TYPE[DIMENSIONS] = DEFAULT, as in "label: i64", "box: f32[4] = 0"
 * or, of any length, "words: bytes[?]". Numbers of a shape, as in "image: u8[32, 32, 3]", are also read from a
 * single bytes value that holds them as in memory, little-endian. */
static inline void tutti_pipeline_parse_example(tutti_pipeline *pipeline, const char *const *features, int64_t features_count, const tutti_pipeline_parse_example_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "parse_example", 1);
  for (int64_t i = 0; i < features_count && (i == 0 || features != NULL); i++) tutti_pipeline_set_string(pipeline, "features", features != NULL ? features[i] : NULL);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
    if (attrs->input != NULL) tutti_pipeline_set_string(pipeline, "input", attrs->input);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_parse_sequence_example_attrs {
  /* Context features to read, each as NAME: TYPE[DIMENSIONS] = DEFAULT. */
  const char *const *context;
  int64_t context_count;
  /* Components that are labels. */
  const char *const *labels;
  int64_t labels_count;
  /* Components that are weights. */
  const char *const *weights;
  int64_t weights_count;
  /* Component that holds the examples; optional if only one component has dtype bytes. Default: . */
  const char *input;
} tutti_pipeline_parse_sequence_example_attrs;
/* Parses a tf.train.SequenceExample, which replaces the component that holds its bytes. Other components are kept.
 * A feature list becomes a component with the steps as its first dimension. sequences: Feature lists to read, each
 * as NAME: TYPE[DIMENSIONS] = DEFAULT of one step, as in "frames: f32[128]", "label: i64 = -1" or, with any number
 * of values in a step, "words: bytes[?]". Then all steps are padded to the longest with 0 or empty texts, and a
 * component NAME_lengths has the number of values of each. */
static inline void tutti_pipeline_parse_sequence_example(tutti_pipeline *pipeline, const char *const *sequences, int64_t sequences_count, const tutti_pipeline_parse_sequence_example_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "parse_sequence_example", 1);
  for (int64_t i = 0; i < sequences_count && (i == 0 || sequences != NULL); i++) tutti_pipeline_set_string(pipeline, "sequences", sequences != NULL ? sequences[i] : NULL);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->context_count && (i == 0 || attrs->context != NULL); i++) tutti_pipeline_set_string(pipeline, "context", attrs->context != NULL ? attrs->context[i] : NULL);
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
    if (attrs->input != NULL) tutti_pipeline_set_string(pipeline, "input", attrs->input);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_prefetch_attrs {
  /* Number of prefetched elements; 0 = automatic. Default: 0. */
  int64_t buffer_size;
} tutti_pipeline_prefetch_attrs;
/* Prepares up to buffer_size elements ahead on its own thread. */
static inline void tutti_pipeline_prefetch(tutti_pipeline *pipeline, const tutti_pipeline_prefetch_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "prefetch", 1);
  if (attrs != NULL) {
    if (attrs->buffer_size != 0) tutti_pipeline_set_i64(pipeline, "buffer_size", attrs->buffer_size);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_rebatch_attrs {
  /* Drop a last batch with fewer rows. */
  uint8_t drop_remainder;
} tutti_pipeline_rebatch_attrs;
/* Changes the size of batches. Rows keep their order. batch_size: Rows of a new batch. */
static inline void tutti_pipeline_rebatch(tutti_pipeline *pipeline, int64_t batch_size, const tutti_pipeline_rebatch_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "rebatch", 1);
  tutti_pipeline_set_i64(pipeline, "batch_size", batch_size);
  if (attrs != NULL) {
    if (attrs->drop_remainder != 0) tutti_pipeline_set_bool(pipeline, "drop_remainder", 1);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_repeat_attrs {
  /* Number of passes; -1 = infinite. Default: -1. */
  uint8_t has_count;
  int64_t count;
} tutti_pipeline_repeat_attrs;
/* Makes count passes over the input, each of them an epoch. An empty input ends immediately. */
static inline void tutti_pipeline_repeat(tutti_pipeline *pipeline, const tutti_pipeline_repeat_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "repeat", 1);
  if (attrs != NULL) {
    if (attrs->has_count) tutti_pipeline_set_i64(pipeline, "count", attrs->count);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_resample_attrs {
  /* Wanted frequency of each class; empty = all equal. */
  const double *target;
  int64_t target_count;
  /* Repeat elements of rare classes and keep the size of the dataset on average. */
  uint8_t repetition;
  /* Seed to use instead of the iterator's. */
  uint8_t has_seed;
  int64_t seed;
} tutti_pipeline_resample_attrs;
/* Changes the frequencies of the classes. Elements of a class are dropped at random, or repeated, so that the
 * shares of the classes become those of target. Without repetition the class that is rarest in comparison keeps all
 * of its elements. component: The component with the class: an integer of at least 0. initial: Frequency of each
 * class in the input, as shares or counts. */
static inline void tutti_pipeline_resample(tutti_pipeline *pipeline, const char *component, const double *initial, int64_t initial_count, const tutti_pipeline_resample_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "resample", 1);
  tutti_pipeline_set_string(pipeline, "component", component);
  tutti_pipeline_set_f64s(pipeline, "initial", initial, initial_count);
  if (attrs != NULL) {
    if (attrs->target != NULL || attrs->target_count != 0) tutti_pipeline_set_f64s(pipeline, "target", attrs->target, attrs->target_count);
    if (attrs->repetition != 0) tutti_pipeline_set_bool(pipeline, "repetition", 1);
    if (attrs->has_seed) tutti_pipeline_set_i64(pipeline, "seed", attrs->seed);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_sample_from_attrs {
  /* One weight for each dataset, the pipeline's own first; empty = all equal. */
  const double *weights;
  int64_t weights_count;
  /* End with the first dataset that ends; otherwise continue with the others. */
  uint8_t stop_on_empty;
  /* Seed to use instead of the iterator's. */
  uint8_t has_seed;
  int64_t seed;
} tutti_pipeline_sample_from_attrs;
/* Draws each element from one of several datasets of equal specs, at random by their weights. The draws depend only
 * on seed and epoch. */
static inline void tutti_pipeline_sample_from(tutti_pipeline *pipeline, const tutti_dataset *const *others, int64_t others_count, const tutti_pipeline_sample_from_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "sample_from", 1);
  for (int64_t i = 0; i < others_count && (i == 0 || others != NULL); i++) tutti_pipeline_set_dataset(pipeline, "others", others != NULL ? others[i] : NULL);
  if (attrs != NULL) {
    if (attrs->weights != NULL || attrs->weights_count != 0) tutti_pipeline_set_f64s(pipeline, "weights", attrs->weights, attrs->weights_count);
    if (attrs->stop_on_empty != 0) tutti_pipeline_set_bool(pipeline, "stop_on_empty", 1);
    if (attrs->has_seed) tutti_pipeline_set_i64(pipeline, "seed", attrs->seed);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_select_attrs {
  /* Components that are features, each as NAME or, to rename it, NEW = OLD. */
  const char *const *features;
  int64_t features_count;
  /* Components that are labels, in the same way. */
  const char *const *labels;
  int64_t labels_count;
  /* Components that are weights, in the same way. */
  const char *const *weights;
  int64_t weights_count;
} tutti_pipeline_select_attrs;
/* Selects the components of the elements: the features, then the labels and the weights, in the given order. Other
 * components are dropped. A component may be used twice under different names, as in an autoencoder. Nothing is
 * copied. */
static inline void tutti_pipeline_select(tutti_pipeline *pipeline, const tutti_pipeline_select_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "select", 1);
  if (attrs != NULL) {
    for (int64_t i = 0; i < attrs->features_count && (i == 0 || attrs->features != NULL); i++) tutti_pipeline_set_string(pipeline, "features", attrs->features != NULL ? attrs->features[i] : NULL);
    for (int64_t i = 0; i < attrs->labels_count && (i == 0 || attrs->labels != NULL); i++) tutti_pipeline_set_string(pipeline, "labels", attrs->labels != NULL ? attrs->labels[i] : NULL);
    for (int64_t i = 0; i < attrs->weights_count && (i == 0 || attrs->weights != NULL); i++) tutti_pipeline_set_string(pipeline, "weights", attrs->weights != NULL ? attrs->weights[i] : NULL);
  }
  tutti_pipeline_end(pipeline);
}

/* Keeps the elements whose position modulo num_shards is index. num_shards: Number of shards. index: Index of this
 * shard. */
static inline void tutti_pipeline_shard(tutti_pipeline *pipeline, int64_t num_shards, int64_t index) {
  tutti_pipeline_begin(pipeline, "shard", 1);
  tutti_pipeline_set_i64(pipeline, "num_shards", num_shards);
  tutti_pipeline_set_i64(pipeline, "index", index);
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_shuffle_attrs {
  /* Seed to use instead of the iterator's. */
  uint8_t has_seed;
  int64_t seed;
  /* The same order in every pass. */
  uint8_t same_order_each_epoch;
} tutti_pipeline_shuffle_attrs;
/* Draws each element uniformly from a buffer of buffer_size elements, so element i comes no earlier than position i
 * - buffer_size + 1. A buffer as large as the dataset gives a uniform permutation. buffer_size: Size of the buffer
 * in elements. */
static inline void tutti_pipeline_shuffle(tutti_pipeline *pipeline, int64_t buffer_size, const tutti_pipeline_shuffle_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  tutti_pipeline_set_i64(pipeline, "buffer_size", buffer_size);
  if (attrs != NULL) {
    if (attrs->has_seed) tutti_pipeline_set_i64(pipeline, "seed", attrs->seed);
    if (attrs->same_order_each_epoch != 0) tutti_pipeline_set_bool(pipeline, "reshuffle_each_epoch", 0);
  }
  tutti_pipeline_end(pipeline);
}

/* Skips the first count elements. count: Elements to skip. */
static inline void tutti_pipeline_skip(tutti_pipeline *pipeline, int64_t count) {
  tutti_pipeline_begin(pipeline, "skip", 1);
  tutti_pipeline_set_i64(pipeline, "count", count);
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_snapshot_attrs {
  /* Identifies what the functions in the pipeline do. Required if there are any; change it whenever their results
   * change. Default: . */
  const char *key;
} tutti_pipeline_snapshot_attrs;
/* Like cache, with files in a folder. Each version of the pipeline before it has its own file there, so that none
 * replaces another. The source element_files reads them without the pipeline. path: The folder; created if it does
 * not exist. */
static inline void tutti_pipeline_snapshot(tutti_pipeline *pipeline, const char *path, const tutti_pipeline_snapshot_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "snapshot", 1);
  tutti_pipeline_set_string(pipeline, "path", path);
  if (attrs != NULL) {
    if (attrs->key != NULL) tutti_pipeline_set_string(pipeline, "key", attrs->key);
  }
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_split_attrs {
  /* Size of the first part. */
  uint8_t has_fraction;
  double fraction;
  /* Size of the first part, instead of fraction. */
  uint8_t has_count;
  int64_t count;
} tutti_pipeline_split_attrs;
/* One of two parts of a dataset of known size. The first part has count elements or fraction of all, rounded down.
 * part: first or second. */
static inline void tutti_pipeline_split(tutti_pipeline *pipeline, const char *part, const tutti_pipeline_split_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "split", 1);
  tutti_pipeline_set_string(pipeline, "part", part);
  if (attrs != NULL) {
    if (attrs->has_fraction) tutti_pipeline_set_f64(pipeline, "fraction", attrs->fraction);
    if (attrs->has_count) tutti_pipeline_set_i64(pipeline, "count", attrs->count);
  }
  tutti_pipeline_end(pipeline);
}

/* Ends after count elements. count: Elements to take; -1 = all. */
static inline void tutti_pipeline_take(tutti_pipeline *pipeline, int64_t count) {
  tutti_pipeline_begin(pipeline, "take", 1);
  tutti_pipeline_set_i64(pipeline, "count", count);
  tutti_pipeline_end(pipeline);
}

/* Yields the rows of each element one by one. */
static inline void tutti_pipeline_unbatch(tutti_pipeline *pipeline) {
  tutti_pipeline_begin(pipeline, "unbatch", 1);
  tutti_pipeline_end(pipeline);
}

/* Skips elements whose value of one component has already occurred in this pass. Keeps all different values in
 * memory; a restored iterator reads the elements before its position again. component: The component whose values
 * are compared. */
static inline void tutti_pipeline_unique(tutti_pipeline *pipeline, const char *component) {
  tutti_pipeline_begin(pipeline, "unique", 1);
  tutti_pipeline_set_string(pipeline, "component", component);
  tutti_pipeline_end(pipeline);
}

typedef struct tutti_pipeline_window_attrs {
  /* Elements from the start of one window to the start of the next; 0 = size. Default: 0. */
  int64_t shift;
  /* Distance between the elements of a window. Default: 1. */
  int64_t stride;
  /* Drop windows with fewer elements. */
  uint8_t drop_remainder;
} tutti_pipeline_window_attrs;
/* Joins size elements along a new first axis, which is not a batch axis. Windows begin shift elements apart and
 * take each stride-th element, so they may overlap or skip elements. Unless drop_remainder is set, the last windows
 * may be shorter. size: Number of elements of a window. */
static inline void tutti_pipeline_window(tutti_pipeline *pipeline, int64_t size, const tutti_pipeline_window_attrs *attrs) {
  tutti_pipeline_begin(pipeline, "window", 1);
  tutti_pipeline_set_i64(pipeline, "size", size);
  if (attrs != NULL) {
    if (attrs->shift != 0) tutti_pipeline_set_i64(pipeline, "shift", attrs->shift);
    if (attrs->stride != 0) tutti_pipeline_set_i64(pipeline, "stride", attrs->stride);
    if (attrs->drop_remainder != 0) tutti_pipeline_set_bool(pipeline, "drop_remainder", 1);
  }
  tutti_pipeline_end(pipeline);
}

/* Joins the components of several datasets side by side; ends with the shortest. */
static inline void tutti_pipeline_zip(tutti_pipeline *pipeline, const tutti_dataset *other) {
  tutti_pipeline_begin(pipeline, "zip", 1);
  tutti_pipeline_set_dataset(pipeline, "other", other);
  tutti_pipeline_end(pipeline);
}

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_OPS_H_ */
