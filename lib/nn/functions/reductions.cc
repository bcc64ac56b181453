// SPDX-License-Identifier: Apache-2.0
//
// Along axes: sums of exponentials, norms, truth values, counts.

#include "graph/ops/rules.h"
#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

/// The root of sums of squares; 0 with gradient 0 for 0.
ValueId euclidean(GraphBuilder &b, ValueId x, const Axes &axes, bool keep_dims) {
  const ValueId wide = b.cast(x, graph::ops::statistics_dtype(b.dtype(x)));
  const ValueId sum = b.reduce_sum(b.unary("square", wide), axes, keep_dims);
  const ValueId is_zero = b.op("equal", {sum, number(b, 0, sum)});
  const ValueId root = b.unary("sqrt", b.select(is_zero, number(b, 1, sum), sum));
  const ValueId made = b.select(is_zero, number(b, 0, sum), root);
  return made == kNoValue ? kNoValue : b.cast(made, b.dtype(x));
}

/// A maximum or minimum of truth values, as of the numbers 0 and 1.
ValueId reduce_truth(Expansion &e, std::string_view op) {
  GraphBuilder &b = e.builder();
  const auto axes = axes_of(e, b.rank(e.input(0)));
  if (!axes) return kNoValue;
  const ValueId bits = b.cast(e.input(0), tensor::DType::f32);
  const ValueId found = axes->empty() ? bits : b.reduce(op, bits, *axes, e.flag("keep_dims"));
  return b.op("greater", {found, number(b, 0, bits)});
}

/// Of all rows: ones or weights added at the numbers; those that are no bin do not count.
ValueId count_all(GraphBuilder &b, ValueId x, ValueId weights, int64_t bins) {
  // As far as a number of elements is known, f32 counts them exactly.
  constexpr int64_t kExactInFloat = 1 << 24;
  const Dim count = graph::element_count(b.dims(x));
  const bool is_long = count.is_constant() && count.constant() >= kExactInFloat;
  const bool is_index = b.dtype(x) == tensor::DType::i32 || b.dtype(x) == tensor::DType::i64;
  const ValueId index = b.reshape(is_index ? x : b.cast(x, tensor::DType::i64), {count});
  const ValueId one = b.constant(1, is_long ? tensor::DType::f64 : tensor::DType::f32);
  const ValueId values = weights != kNoValue ? b.reshape(weights, {count}) : b.broadcast_to(one, {count});
  const ValueId sums = b.op("gather_gradient", {values, index},
                            {{"axis", int64_t{0}}, {"dims", Dims{Dim(bins)}}, {"ignores_others", true}});
  return weights != kNoValue || sums == kNoValue ? sums : b.cast(sums, tensor::DType::i64);
}

}  // namespace

ValueId expand_function_logsumexp(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const auto axes = axes_of(e, b.rank(x));
  if (!axes) return kNoValue;
  if (axes->empty()) return x;
  const bool keep_dims = e.flag("keep_dims");
  const ValueId largest = b.reduce("reduce_max", x, *axes, true), zero = number(b, 0, x);
  const ValueId shift = b.unary("stop_gradient", b.select(b.unary("is_finite", largest), largest, zero));
  const ValueId sum = b.reduce_sum(b.unary("exp", b.sub(x, shift)), *axes, true);
  // Over nothing but minus infinities, where the logarithm has no gradient.
  const ValueId is_nothing = b.op("equal", {sum, zero});
  const ValueId logarithm = b.unary("log", b.select(is_nothing, number(b, 1, x), sum));
  const ValueId made = b.select(is_nothing, number(b, -kInfinity, x), b.add(logarithm, shift));
  return keep_dims ? made : b.reshape(made, graph::ops::without_axes(b.dims(x), *axes, false));
}

ValueId expand_function_norm(Expansion &e) {
  GraphBuilder &b = e.builder();
  const auto axes = axes_of(e, b.rank(e.input(0)));
  if (!axes) return kNoValue;
  const bool keep_dims = e.flag("keep_dims");
  const ValueId sizes = b.unary("abs", e.input(0));
  if (axes->empty()) return sizes;
  if (e.text("order") == "l1") return b.reduce_sum(sizes, *axes, keep_dims);
  if (e.text("order") == "infinity") return b.reduce("reduce_max", sizes, *axes, keep_dims);
  return euclidean(b, e.input(0), *axes, keep_dims);
}

ValueId expand_function_l2_normalize(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const auto axes = axes_of(e, b.rank(x));
  if (!axes) return kNoValue;
  const ValueId wide = b.cast(x, graph::ops::statistics_dtype(b.dtype(x)));
  const ValueId squares = b.unary("square", wide);
  const ValueId sum = axes->empty() ? squares : b.reduce_sum(squares, *axes, true);
  const ValueId limited = b.op("maximum", {sum, number(b, e.f64("epsilon"), sum)});
  const ValueId made = b.mul(wide, b.unary("rsqrt", limited));
  return made == kNoValue ? kNoValue : b.cast(made, b.dtype(x));
}

ValueId expand_function_reduce_any(Expansion &e) { return reduce_truth(e, "reduce_max"); }

ValueId expand_function_reduce_all(Expansion &e) { return reduce_truth(e, "reduce_min"); }

ValueId expand_function_bincount(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0), weights = e.input(1);
  const size_t rank = b.rank(x);
  if (e.flag("by_row") && rank < 1) return e.fail("a scalar has no rows to count by");
  if (weights != kNoValue && b.dims(weights) != b.dims(x)) {
    return e.fail(
        base::concat("weights ", graph::to_string(b.dims(weights)), " do not fit ", graph::to_string(b.dims(x))));
  }
  if (!e.flag("by_row") && (weights == kNoValue || tensor::is_floating(b.dtype(weights))))
    return count_all(b, x, weights, e.i64("bins"));
  const tensor::DType dtype = weights == kNoValue ? tensor::DType::i64 : b.dtype(weights);
  ValueId hits = b.op("one_hot", {x}, {{"depth", e.i64("bins")}, {"dtype", dtype}});
  if (weights != kNoValue) {
    Dims column = b.dims(x);
    column.push_back(1);
    // Selected, so that a weight counts in its own bin alone, even where it is no number.
    const ValueId is_hit = b.op("not_equal", {hits, number(b, 0, hits)});
    hits = b.select(is_hit, b.reshape(weights, column), number(b, 0, hits));
  }
  Axes axes;
  for (size_t i = e.flag("by_row") ? 1 : 0; i < rank; ++i)
    axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? hits : b.reduce_sum(hits, axes);
}

}  // namespace tutti::impl::nn
