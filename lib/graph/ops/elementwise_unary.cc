// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops of one input: shape and gradient rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Status infer_unary(InferContext &context) {
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

base::Status infer_same_as_first(InferContext &context) {
  for (size_t i = 1; i < context.input_count(); ++i)
    TUTTI_TRY(require_same_dims(context, 0, i));
  return infer_unary(context);
}

base::Status infer_predicate(InferContext &context) {
  context.add_output(tensor::DType::boolean, context.dims(0));
  return {};
}

base::Status infer_cast(InferContext &context) {
  TUTTI_ASSIGN(const CastAttributes attributes, CastAttributes::from(context.node()));
  if (attributes.dtype == tensor::DType::bytes || context.input(0).dtype == tensor::DType::bytes) {
    return context.error("bytes cannot be cast");
  }
  context.add_output(attributes.dtype, context.dims(0));
  return {};
}

namespace {

// The forward input, output and output gradient of a unary node, with the builder.
struct Unary {
  explicit Unary(GradientContext &context)
      : b(context.builder()), x(context.input(0)), y(context.output(0)), dy(context.output_gradient(0)) {}

  ValueId constant(double value) const { return b.constant(value, b.dtype(x)); }

  GraphBuilder &b;
  ValueId x, y, dy;
};

base::Status set(GradientContext &context, ValueId gradient) {
  context.set(0, gradient);
  return {};
}

}  // namespace

base::Status gradient_identity(GradientContext &context) { return set(context, context.output_gradient(0)); }

base::Status gradient_neg(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.neg(u.dy));
}

base::Status gradient_abs(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.dy, u.b.unary("sign", u.x)));
}

base::Status gradient_exp(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.dy, u.y));
}

base::Status gradient_log(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.div(u.dy, u.x));
}

base::Status gradient_log1p(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.div(u.dy, u.b.add_scalar(u.x, 1)));
}

base::Status gradient_expm1(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.dy, u.b.unary("exp", u.x)));
}

base::Status gradient_sqrt(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.div(u.b.scale(u.dy, 0.5), u.y));
}

base::Status gradient_rsqrt(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.b.scale(u.dy, -0.5), u.b.mul(u.y, u.b.unary("square", u.y))));
}

base::Status gradient_square(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.dy, u.b.scale(u.x, 2)));
}

base::Status gradient_reciprocal(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.neg(u.b.mul(u.dy, u.b.unary("square", u.y))));
}

base::Status gradient_sin(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.dy, u.b.unary("cos", u.x)));
}

base::Status gradient_cos(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.neg(u.b.mul(u.dy, u.b.unary("sin", u.x))));
}

base::Status gradient_tangent(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.dy, u.b.add_scalar(u.b.unary("square", u.y), 1)));
}

base::Status gradient_arc_tangent(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.div(u.dy, u.b.add_scalar(u.b.unary("square", u.x), 1)));
}

// sqrt(1 - x^2), without loss near 1.
static ValueId other_side(GraphBuilder &b, ValueId x) {
  return b.unary("sqrt", b.mul(b.add_scalar(b.neg(x), 1), b.add_scalar(x, 1)));
}

base::Status gradient_arc_sine(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.div(u.dy, other_side(u.b, u.x)));
}

base::Status gradient_arc_cosine(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.neg(u.b.div(u.dy, other_side(u.b, u.x))));
}

base::Status gradient_tanh(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.op("tanh_gradient", {u.dy, u.y}));
}

base::Status gradient_sigmoid(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.op("sigmoid_gradient", {u.dy, u.y}));
}

base::Status gradient_relu(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.op("relu_gradient", {u.dy, u.y}));
}

base::Status gradient_gelu(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.op("gelu_gradient", {u.dy, u.x}, context.node().attributes));
}

// d x·s = s + x·s·(1 − s), s = sigmoid(x).
base::Status gradient_silu(GradientContext &context) {
  const Unary u(context);
  const ValueId s = u.b.unary("sigmoid", u.x);
  const ValueId inner = u.b.add_scalar(u.b.mul(u.x, u.b.sub(u.constant(1), s)), 1);
  return set(context, u.b.mul(u.dy, u.b.mul(s, inner)));
}

base::Status gradient_softplus(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.mul(u.dy, u.b.unary("sigmoid", u.x)));
}

// Below 0 the derivative alpha·exp(x) is y + alpha.
base::Status gradient_elu(GradientContext &context) {
  TUTTI_ASSIGN(const EluAttributes attributes, EluAttributes::from(context.node()));
  const Unary u(context);
  const ValueId positive = u.b.op("greater", {u.x, u.constant(0)});
  return set(context, u.b.select(positive, u.dy, u.b.mul(u.dy, u.b.add_scalar(u.y, attributes.alpha))));
}

base::Status gradient_leaky_relu(GradientContext &context) {
  TUTTI_ASSIGN(const LeakyReluAttributes attributes, LeakyReluAttributes::from(context.node()));
  const Unary u(context);
  const ValueId positive = u.b.op("greater", {u.x, u.constant(0)});
  return set(context, u.b.select(positive, u.dy, u.b.scale(u.dy, attributes.alpha)));
}

base::Status gradient_erf(GradientContext &context) {
  constexpr double kTwoOverRootPi = 1.1283791670955126;
  const Unary u(context);
  const ValueId bell = u.b.unary("exp", u.b.neg(u.b.unary("square", u.x)));
  return set(context, u.b.mul(u.dy, u.b.scale(bell, kTwoOverRootPi)));
}

base::Status gradient_cast(GradientContext &context) {
  const Unary u(context);
  return set(context, u.b.cast(u.dy, u.b.dtype(u.x)));
}

// ---- gradients of the gradient ops ----

base::Status gradient_relu_gradient(GradientContext &context) {
  context.set(0, context.builder().op("relu_gradient", {context.output_gradient(0), context.input(1)}));
  return {};
}

base::Status gradient_sigmoid_gradient(GradientContext &context) {
  GraphBuilder &b = context.builder();
  const ValueId g = context.output_gradient(0), dy = context.input(0), y = context.input(1);
  if (context.needs(0)) context.set(0, b.op("sigmoid_gradient", {g, y}));
  if (context.needs(1)) context.set(1, b.mul(b.mul(g, dy), b.add_scalar(b.scale(y, -2), 1)));
  return {};
}

base::Status gradient_tanh_gradient(GradientContext &context) {
  GraphBuilder &b = context.builder();
  const ValueId g = context.output_gradient(0), dy = context.input(0), y = context.input(1);
  if (context.needs(0)) context.set(0, b.op("tanh_gradient", {g, y}));
  if (context.needs(1)) context.set(1, b.mul(b.mul(g, dy), b.scale(y, -2)));
  return {};
}

}  // namespace tutti::impl::graph::ops
