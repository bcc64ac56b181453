// SPDX-License-Identifier: Apache-2.0
//
// Reductions along axes: shape and gradient rules.
#include <algorithm>

#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

// The attributes of all reductions are alike; shape inference left the axes as a sorted list without negative ones.
base::Result<ReduceSumAttributes> reduction_of(const Node &node) {
  Node alike;
  alike.op = "reduce_sum";
  alike.scope_name = node.scope_name;
  alike.attributes = node.attributes;
  return ReduceSumAttributes::from(alike);
}

// An empty list means all axes.
void fill_axes(size_t rank, std::vector<int64_t> &axes) {
  if (!axes.empty()) return;
  for (size_t i = 0; i < rank; ++i)
    axes.push_back(static_cast<int64_t>(i));
}

// What the gradient rules of reductions need: the reduced axes, and dy put where it broadcasts against x.
struct Reduction {
  static base::Result<Reduction> of(GradientContext &context) {
    TUTTI_ASSIGN(ReduceSumAttributes attributes, reduction_of(context.node()));
    GraphBuilder &b = context.builder();
    Reduction r{b, context.input(0), kNoValue, kNoValue, std::move(attributes.axes)};
    fill_axes(b.rank(r.x), r.axes);
    r.dy = expand_reduced(b, context.output_gradient(0), r.x, r.axes);
    r.y = expand_reduced(b, context.output(0), r.x, r.axes);
    return r;
  }

  ValueId over_x(ValueId value) const {
    const Dims dims = b.dims(x);
    return b.broadcast_to(value, dims);
  }

  GraphBuilder &b;
  ValueId x, y, dy;
  std::vector<int64_t> axes;
};

}  // namespace

base::Status infer_reduce(InferContext &context) {
  TUTTI_ASSIGN(ReduceSumAttributes attributes, reduction_of(context.node()));
  std::vector<int64_t> axes;
  for (const int64_t axis : attributes.axes) {
    TUTTI_ASSIGN(const int64_t positive, context.normalize_axis("axes", axis, context.rank(0)));
    if (std::count(axes.begin(), axes.end(), positive) != 0) {
      return context.attribute_error("axes",
                                     base::concat("is ", attributes.axes, ", which names axis ", positive, " twice"));
    }
    axes.push_back(positive);
  }
  std::sort(axes.begin(), axes.end());
  fill_axes(context.rank(0), axes);
  context.add_output(context.input(0).dtype, without_axes(context.dims(0), axes, attributes.keep_dims));
  context.normalize("axes", std::move(axes));
  return {};
}

base::Status infer_arg_reduce(InferContext &context) {
  const Attribute *given = resolve_attribute(context.definition(), context.node(), "axis");
  TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axis", std::get<int64_t>(*given), context.rank(0)));
  if (context.dims(0)[static_cast<size_t>(axis)] == 0)
    return context.input_error(0, base::concat("has no elements along axis ", axis));
  context.add_output(tensor::DType::i64, without_axes(context.dims(0), {axis}, false));
  context.normalize("axis", axis);
  return {};
}

base::Status infer_all_finite(InferContext &context) {
  context.add_output(tensor::DType::boolean, {});
  return {};
}

base::Status gradient_reduce_sum(GradientContext &context) {
  TUTTI_ASSIGN(const Reduction r, Reduction::of(context));
  context.set(0, r.over_x(r.dy));
  return {};
}

// A symbolic count is found by adding up ones.
base::Status gradient_reduce_mean(GradientContext &context) {
  TUTTI_ASSIGN(const Reduction r, Reduction::of(context));
  Dim count = 1;
  for (const int64_t axis : r.axes)
    count = count * r.b.dims(r.x)[static_cast<size_t>(axis)];
  if (count.is_constant()) {
    const double share = count.constant() == 0 ? 0.0 : 1.0 / static_cast<double>(count.constant());
    context.set(0, r.over_x(r.b.scale(r.dy, share)));
  } else {
    const ValueId ones = r.over_x(constant_like(r.b, 1, r.x));
    context.set(0, r.over_x(r.b.div(r.dy, r.b.reduce_sum(ones, r.axes, true))));
  }
  return {};
}

// Elements equal to the extreme share its gradient.
static base::Status gradient_of_extreme(GradientContext &context) {
  TUTTI_ASSIGN(const Reduction r, Reduction::of(context));
  const ValueId hits = r.b.cast(r.b.op("equal", {r.x, r.y}), r.b.dtype(r.x));
  const ValueId count = r.b.reduce_sum(hits, r.axes, true);
  context.set(0, r.b.mul(hits, r.b.div(r.dy, count)));
  return {};
}

base::Status gradient_reduce_max(GradientContext &context) { return gradient_of_extreme(context); }

base::Status gradient_reduce_min(GradientContext &context) { return gradient_of_extreme(context); }

// The product of all other elements: product / x where no element is 0; with exactly one 0, the product of the others,
// there only; with more, nothing.
base::Status gradient_reduce_prod(GradientContext &context) {
  TUTTI_ASSIGN(const Reduction r, Reduction::of(context));
  GraphBuilder &b = r.b;
  const ValueId zero = constant_like(b, 0, r.x), one = constant_like(b, 1, r.x);
  const ValueId is_zero = b.op("equal", {r.x, zero});
  const ValueId zeros = b.reduce_sum(b.cast(is_zero, b.dtype(r.x)), r.axes, true);
  const ValueId nonzero = b.select(is_zero, one, r.x);
  const ValueId product = b.reduce("reduce_prod", nonzero, r.axes, true);
  const ValueId at_nonzero = b.select(b.op("equal", {zeros, zero}), b.div(product, nonzero), zero);
  const ValueId at_zero = b.select(b.op("equal", {zeros, one}), product, zero);
  context.set(0, b.mul(r.dy, b.select(is_zero, at_zero, at_nonzero)));
  return {};
}

}  // namespace tutti::impl::graph::ops
