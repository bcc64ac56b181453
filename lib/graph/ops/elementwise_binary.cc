// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops of two inputs with broadcasting, and select: shape and gradient rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

base::Status infer_broadcast(InferContext &context, tensor::DType dtype) {
  std::optional<Dims> dims = broadcast_dims(context.dims(0), context.dims(1));
  if (!dims) return context.inputs_error(0, 1, "do not broadcast: dimensions must be equal or 1");
  context.add_output(dtype, std::move(*dims));
  return {};
}

// The inputs and the output gradient of a binary node; set() undoes broadcasting.
struct Binary {
  explicit Binary(GradientContext &context)
      : b(context.builder()),
        context(context),
        x(context.input(0)),
        y(context.input(1)),
        z(context.output(0)),
        dz(context.output_gradient(0)) {}

  ValueId constant(double value) const { return b.constant(value, b.dtype(x)); }

  void set(size_t index, ValueId gradient) const {
    const Dims dims = b.dims(context.input(index));
    context.set(index, b.sum_to(gradient, dims));
  }

  GraphBuilder &b;
  GradientContext &context;
  ValueId x, y, z, dz;
};

}  // namespace

base::Status infer_binary(InferContext &context) { return infer_broadcast(context, context.input(0).dtype); }

base::Status infer_comparison(InferContext &context) { return infer_broadcast(context, tensor::DType::boolean); }

base::Status infer_select(InferContext &context) {
  const std::optional<Dims> values = broadcast_dims(context.dims(1), context.dims(2));
  if (!values) return context.inputs_error(1, 2, "do not broadcast: dimensions must be equal or 1");
  std::optional<Dims> dims = broadcast_dims(context.dims(0), *values);
  if (!dims) {
    return context.input_error(
        0, base::concat("does not broadcast with ", to_string(*values), ": dimensions must be equal or 1"));
  }
  context.add_output(context.input(1).dtype, std::move(*dims));
  return {};
}

base::Status gradient_add(GradientContext &context) {
  const Binary n(context);
  if (context.needs(0)) n.set(0, n.dz);
  if (context.needs(1)) n.set(1, n.dz);
  return {};
}

base::Status gradient_sub(GradientContext &context) {
  const Binary n(context);
  if (context.needs(0)) n.set(0, n.dz);
  if (context.needs(1)) n.set(1, n.b.neg(n.dz));
  return {};
}

base::Status gradient_mul(GradientContext &context) {
  const Binary n(context);
  if (context.needs(0)) n.set(0, n.b.mul(n.dz, n.y));
  if (context.needs(1)) n.set(1, n.b.mul(n.dz, n.x));
  return {};
}

// d a/b = 1/b, −(a/b)/b.
base::Status gradient_div(GradientContext &context) {
  const Binary n(context);
  const ValueId quotient = n.b.div(n.dz, n.y);
  if (context.needs(0)) n.set(0, quotient);
  if (context.needs(1)) n.set(1, n.b.neg(n.b.mul(quotient, n.z)));
  return {};
}

// d a^b = b·a^(b−1), a^b·log(a). The first is 0 for b = 0 even where a = 0; the second is 0 where a ≤ 0.
base::Status gradient_pow(GradientContext &context) {
  const Binary n(context);
  if (context.needs(0)) {
    const ValueId slope = n.b.mul(n.y, n.b.op("pow", {n.x, n.b.add_scalar(n.y, -1)}));
    const ValueId flat = n.b.op("equal", {n.y, n.constant(0)});
    n.set(0, n.b.mul(n.dz, n.b.select(flat, n.constant(0), slope)));
  }
  if (context.needs(1)) {
    const ValueId positive = n.b.op("greater", {n.x, n.constant(0)});
    const ValueId logarithm = n.b.unary("log", n.b.select(positive, n.x, n.constant(1)));
    n.set(1, n.b.mul(n.dz, n.b.mul(n.z, logarithm)));
  }
  return {};
}

// x / (x^2 + y^2) and -y / (x^2 + y^2), 0 at the origin. Scaled by the larger one, so that no square overflows.
base::Status gradient_arc_tangent2(GradientContext &context) {
  const Binary n(context);  // of y and x, in this order
  GraphBuilder &b = n.b;
  const ValueId zero = n.constant(0), one = n.constant(1);
  const ValueId large = b.op("maximum", {b.unary("abs", n.x), b.unary("abs", n.y)});
  const ValueId safe = b.select(b.op("equal", {large, zero}), one, large);
  const ValueId height = b.div(n.x, safe), width = b.div(n.y, safe);
  const ValueId sum = b.add(b.unary("square", height), b.unary("square", width));
  const ValueId square = b.select(b.op("equal", {sum, zero}), one, sum), upstream = b.div(n.dz, safe);
  if (context.needs(0)) n.set(0, b.mul(upstream, b.div(width, square)));
  if (context.needs(1)) n.set(1, b.mul(upstream, b.div(b.neg(height), square)));
  return {};
}

static base::Status gradient_of_choice(GradientContext &context, std::string_view comparison) {
  const Binary n(context);
  const ValueId first = n.b.op(comparison, {n.x, n.y});
  if (context.needs(0)) n.set(0, n.b.select(first, n.dz, n.constant(0)));
  if (context.needs(1)) n.set(1, n.b.select(first, n.constant(0), n.dz));
  return {};
}

base::Status gradient_maximum(GradientContext &context) { return gradient_of_choice(context, "greater_equal"); }

base::Status gradient_minimum(GradientContext &context) { return gradient_of_choice(context, "less_equal"); }

// a − b·floor(a/b): the floor is flat.
base::Status gradient_mod(GradientContext &context) {
  const Binary n(context);
  if (context.needs(0)) n.set(0, n.dz);
  if (context.needs(1)) n.set(1, n.b.neg(n.b.mul(n.dz, n.b.op("floor_divide", {n.x, n.y}))));
  return {};
}

base::Status gradient_select(GradientContext &context) {
  GraphBuilder &b = context.builder();
  const ValueId condition = context.input(0), dy = context.output_gradient(0), zero = constant_like(b, 0, dy);
  const Dims first = b.dims(context.input(1)), second = b.dims(context.input(2));
  if (context.needs(1)) context.set(1, b.sum_to(b.select(condition, dy, zero), first));
  if (context.needs(2)) context.set(2, b.sum_to(b.select(condition, zero, dy), second));
  return {};
}

}  // namespace tutti::impl::graph::ops
