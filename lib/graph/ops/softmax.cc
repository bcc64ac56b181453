// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and in_top_k: shape and gradient rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

// All inputs have one shape; the axis is made positive.
base::Result<int64_t> axis_of(const Node &node) {
  Node alike;
  alike.op = "softmax";
  alike.scope_name = node.scope_name;
  alike.attributes = node.attributes;
  TUTTI_ASSIGN(const SoftmaxAttributes attributes, SoftmaxAttributes::from(alike));
  return attributes.axis;
}

ValueId sum_along(GraphBuilder &b, ValueId x, int64_t axis) { return b.reduce_sum(x, {axis}, true); }

}  // namespace

base::Status infer_along_axis(InferContext &context) {
  TUTTI_ASSIGN(const int64_t given, axis_of(context.node()));
  TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axis", given, context.rank(0)));
  for (size_t i = 1; i < context.input_count(); ++i)
    TUTTI_TRY(require_same_dims(context, 0, i));
  context.normalize("axis", axis);
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

base::Status gradient_softmax(GradientContext &context) {
  const Attributes attributes = context.node().attributes;
  context.set(0, context.builder().op("softmax_gradient", {context.output_gradient(0), context.output(0)}, attributes));
  return {};
}

base::Status gradient_log_softmax(GradientContext &context) {
  const Attributes attributes = context.node().attributes;
  context.set(
      0, context.builder().op("log_softmax_gradient", {context.output_gradient(0), context.output(0)}, attributes));
  return {};
}

// dx = y · (dy − sum(dy · y)) is symmetric in dy; for y: g · (dy − sum(dy · y)) − dy · sum(g · y).
base::Status gradient_softmax_gradient(GradientContext &context) {
  TUTTI_ASSIGN(const int64_t axis, axis_of(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId g = context.output_gradient(0), dy = context.input(0), y = context.input(1);
  if (context.needs(0)) context.set(0, b.op("softmax_gradient", {g, y}, {{"axis", axis}}));
  if (context.needs(1)) {
    const ValueId left = b.mul(g, b.sub(dy, sum_along(b, b.mul(dy, y), axis)));
    context.set(1, b.sub(left, b.mul(dy, sum_along(b, b.mul(g, y), axis))));
  }
  return {};
}

// dx = dy − exp(y) · sum(dy).
base::Status gradient_log_softmax_gradient(GradientContext &context) {
  TUTTI_ASSIGN(const int64_t axis, axis_of(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId g = context.output_gradient(0), dy = context.input(0),
                weighted = b.mul(g, b.unary("exp", context.input(1)));
  if (context.needs(0)) context.set(0, b.sub(g, sum_along(b, weighted, axis)));
  if (context.needs(1)) context.set(1, b.neg(b.mul(weighted, sum_along(b, dy, axis))));
  return {};
}

base::Status infer_in_top_k(InferContext &context) {
  const Dims &logits = context.dims(0);
  if (logits.empty()) return context.input_error(0, "is a scalar, expected a last axis of classes");
  const Dims rows(logits.begin(), logits.end() - 1);
  if (context.dims(1) != rows)
    return context.inputs_error(0, 1, base::concat("do not fit: expected labels ", to_string(rows)));
  context.add_output(tensor::DType::boolean, rows);
  return {};
}

}  // namespace tutti::impl::graph::ops
