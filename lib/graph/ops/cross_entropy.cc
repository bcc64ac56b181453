// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy losses over logits: shape and gradient rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

// Logits [..., classes] at position `logits`; gives [...].
base::Result<Dims> rows_of(const InferContext &context, size_t logits) {
  const Dims &dims = context.dims(logits);
  if (dims.empty()) return context.input_error(logits, "is a scalar, expected a last axis of classes");
  return Dims(dims.begin(), dims.end() - 1);
}

}  // namespace

base::Status infer_sparse_softmax_cross_entropy(InferContext &context) {
  TUTTI_ASSIGN(Dims rows, rows_of(context, 0));
  if (context.dims(1) != rows)
    return context.inputs_error(0, 1, base::concat("do not fit: expected labels ", to_string(rows)));
  context.add_output(context.input(0).dtype, std::move(rows));
  return {};
}

base::Status gradient_sparse_softmax_cross_entropy(GradientContext &context) {
  const Attributes attributes = context.node().attributes;
  context.set(0, context.builder().op("sparse_softmax_cross_entropy_gradient",
                                      {context.output_gradient(0), context.input(0), context.input(1)}, attributes));
  return {};
}

base::Status infer_sparse_softmax_cross_entropy_gradient(InferContext &context) {
  TUTTI_ASSIGN(const Dims rows, rows_of(context, 1));
  if (context.dims(0) != rows)
    return context.inputs_error(0, 1, base::concat("do not fit: expected 'dloss' ", to_string(rows)));
  if (context.dims(2) != rows)
    return context.inputs_error(1, 2, base::concat("do not fit: expected labels ", to_string(rows)));
  context.add_output(context.input(1).dtype, context.dims(1));
  return {};
}

base::Status infer_softmax_cross_entropy(InferContext &context) {
  TUTTI_ASSIGN(Dims rows, rows_of(context, 0));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  context.add_output(context.input(0).dtype, std::move(rows));
  return {};
}

// For the targets: −(1 − smoothing) · log softmax(logits).
base::Status gradient_softmax_cross_entropy(GradientContext &context) {
  TUTTI_ASSIGN(const SoftmaxCrossEntropyAttributes attributes, SoftmaxCrossEntropyAttributes::from(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId dloss = context.output_gradient(0), logits = context.input(0);
  if (context.needs(0)) {
    context.set(0,
                b.op("softmax_cross_entropy_gradient", {dloss, logits, context.input(1)}, context.node().attributes));
  }
  if (context.needs(1)) {
    Dims column = b.dims(dloss);
    column.emplace_back(1);
    const ValueId weight = b.scale(b.reshape(dloss, column), attributes.label_smoothing - 1);
    context.set(1, b.mul(weight, b.unary("log_softmax", logits)));
  }
  return {};
}

base::Status infer_softmax_cross_entropy_gradient(InferContext &context) {
  TUTTI_ASSIGN(const Dims rows, rows_of(context, 1));
  TUTTI_TRY(require_same_dims(context, 1, 2));
  if (context.dims(0) != rows)
    return context.inputs_error(0, 1, base::concat("do not fit: expected 'dloss' ", to_string(rows)));
  context.add_output(context.input(1).dtype, context.dims(1));
  return {};
}

// d/dx = sigmoid(x) − targets, d/dtargets = −x.
base::Status gradient_sigmoid_cross_entropy(GradientContext &context) {
  GraphBuilder &b = context.builder();
  const ValueId dloss = context.output_gradient(0), logits = context.input(0), targets = context.input(1);
  if (context.needs(0)) context.set(0, b.mul(dloss, b.sub(b.unary("sigmoid", logits), targets)));
  if (context.needs(1)) context.set(1, b.neg(b.mul(dloss, logits)));
  return {};
}

}  // namespace tutti::impl::graph::ops
