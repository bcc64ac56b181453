// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax, the losses over logits, and in_top_k. log(softmax(x)) is made of differences of logits, so that
// it is exact where they are large and near each other. A label out of range is the run's fault, and its row's floats
// are not numbers.
#include <algorithm>

#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

size_t softmax_axis(const graph::Node &node, size_t rank) {
  const auto axis = node.attributes.find("axis");
  return axis_of(axis == node.attributes.end() ? int64_t{-1} : std::get<int64_t>(axis->second), rank);
}

/// x − max(x) along an axis, and the sum of its exponentials, spread.
struct Shifted {
  Value x, sum;
};

Shifted shift(ProgramText &text, const Value &x, size_t axis) {
  const Dims axes = {static_cast<int64_t>(axis)};
  const Value largest = text.reduce(Reduction::max, x, axes, true);
  Shifted shifted;
  shifted.x = text.sub(x, text.broadcast_to(largest, x.dims));
  const Value sum = text.reduce(Reduction::sum, text.unary("exponential", shifted.x), axes, true);
  shifted.sum = text.broadcast_to(sum, x.dims);
  return shifted;
}

Value log_softmax(ProgramText &text, const Value &x, size_t axis) {
  const Shifted shifted = shift(text, x, axis);
  return text.sub(shifted.x, text.unary("log", shifted.sum));
}

size_t last_axis(const Value &x) { return x.dims.size() - 1; }

/// Each row's number for all its classes.
Value spread_rows(ProgramText &text, const Value &rows, const Value &x) {
  return text.broadcast(rows, x.dims, all_axes(rows.dims.size()));
}

Value sum_rows(ProgramText &text, const Value &x) {
  return text.reduce(Reduction::sum, x, {static_cast<int64_t>(last_axis(x))});
}

/// Where the class is the label's.
Value is_label(ProgramText &text, const Value &labels, const Value &x) {
  const Value classes = text.iota(DType::i64, x.dims, last_axis(x));
  return text.compare("EQ", spread_rows(text, text.convert(labels, DType::i64), x), classes);
}

/// 1 − s + s / classes at the label, s / classes elsewhere.
Value target_of_labels(ProgramText &text, const Value &labels, const Value &x, double smoothing) {
  const double share = smoothing / static_cast<double>(std::max<int64_t>(x.dims.back(), 1));
  return text.select(is_label(text, labels, x), text.like(x, 1 - smoothing + share), text.like(x, share));
}

Value target_of_probabilities(ProgramText &text, const Value &targets, double smoothing) {
  const double share = smoothing / static_cast<double>(std::max<int64_t>(targets.dims.back(), 1));
  return smoothing == 0 ? targets : text.add(text.mul(targets, 1 - smoothing), share);
}

/// −sum(t · log softmax(x)); where t is 0 nothing is added, whatever the logit.
Value loss_of(ProgramText &text, const Value &x, const Value &target) {
  const Value product = text.mul(target, log_softmax(text, x, last_axis(x)));
  const Value counted = text.select(text.compare("EQ", target, 0), text.like(target, 0), product);
  return text.unary("negate", sum_rows(text, counted));
}

/// (softmax(x) · sum(t) − t) · dloss.
Value loss_gradient(ProgramText &text, const Value &dloss, const Value &x, const Value &target) {
  const Value share = text.unary("exponential", log_softmax(text, x, last_axis(x)));
  const Value weighted = text.mul(share, spread_rows(text, sum_rows(text, target), x));
  return text.mul(text.sub(weighted, target), spread_rows(text, dloss, x));
}

}  // namespace

Status emit_softmax(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const size_t axis = softmax_axis(node.node(), x.dims.size());
  if (node.node().op == "log_softmax") {
    node.set_output(0, log_softmax(text, x, axis));
  } else {
    const Shifted shifted = shift(text, x, axis);
    node.set_output(0, text.div(text.unary("exponential", shifted.x), shifted.sum));
  }
  return Status();
}

Status emit_softmax_gradient(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0), y = node.wide_input(1);
  const Dims axes = {static_cast<int64_t>(softmax_axis(node.node(), y.dims.size()))};
  const bool is_log = node.node().op == "log_softmax_gradient";
  const Value sum = text.reduce(Reduction::sum, is_log ? dy : text.mul(dy, y), axes, true);
  const Value spread = text.broadcast_to(sum, dy.dims);
  node.set_output(
      0, is_log ? text.sub(dy, text.mul(text.unary("exponential", y), spread)) : text.mul(y, text.sub(dy, spread)));
  return Status();
}

Status emit_sparse_softmax_cross_entropy(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SparseSoftmaxCrossEntropyAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const Value is_good = node.check_bounds(1, x.dims.back(), "label");
  const Value target = target_of_labels(text, node.input(1), x, attributes.label_smoothing);
  node.set_output(0, text.poison(is_good, loss_of(text, x, target)));
  return Status();
}

Status emit_sparse_softmax_cross_entropy_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SparseSoftmaxCrossEntropyGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value dloss = node.wide_input(0), x = node.wide_input(1);
  const Value is_good = node.check_bounds(2, x.dims.back(), "label");
  const Value target = target_of_labels(text, node.input(2), x, attributes.label_smoothing);
  const Value dx = loss_gradient(text, dloss, x, target);
  node.set_output(0, text.poison(spread_rows(text, is_good, x), dx));
  return Status();
}

Status emit_softmax_cross_entropy(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SoftmaxCrossEntropyAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  node.set_output(0, loss_of(text, x, target_of_probabilities(text, node.wide_input(1), attributes.label_smoothing)));
  return Status();
}

Status emit_softmax_cross_entropy_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SoftmaxCrossEntropyGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value target = target_of_probabilities(text, node.wide_input(2), attributes.label_smoothing);
  node.set_output(0, loss_gradient(text, node.wide_input(0), node.wide_input(1), target));
  return Status();
}

Status emit_sigmoid_cross_entropy(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value x = node.wide_input(0), target = node.wide_input(1);
  const Value above = text.binary("maximum", x, text.like(x, 0));
  const Value falling = text.unary("exponential", text.unary("negate", text.unary("abs", x)));
  node.set_output(0, text.add(text.sub(above, text.mul(x, target)), text.unary("log_plus_one", falling)));
  return Status();
}

Status emit_in_top_k(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::InTopKAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const Dims classes = {static_cast<int64_t>(last_axis(x))};
  // The label's logit, or not a number where there is none: nothing is larger, and it is not finite.
  const Value at_label = is_label(text, node.input(1), x);
  const Value has_label = text.reduce(Reduction::any, at_label, classes);
  const Value own = sum_rows(text, text.select(at_label, x, text.like(x, 0)));
  const Value is_larger = text.compare("GT", x, spread_rows(text, own, x));
  const Value larger = text.reduce(Reduction::sum, text.convert(is_larger, DType::i64), classes);
  const Value is_usable = text.binary("and", has_label, text.op("is_finite", {own}, "", DType::boolean, own.dims));
  node.set_output(0, text.binary("and", is_usable, text.compare("LT", larger, static_cast<double>(attributes.k))));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
