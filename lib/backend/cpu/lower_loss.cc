// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attributes.h"
#include "backend/cpu/lower.h"
#include "backend/cpu/simd_loss.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

RowShape rows_of(const LoweredValue &value) {
  RowShape shape;
  shape.classes = value.dims.empty() ? 1 : value.dims.back();
  shape.rows = shape.classes > 0 ? value.elements / shape.classes : 0;
  return shape;
}

bool is_last_axis(const Lowering &l, const Node &node) {
  const auto rank = static_cast<int64_t>(l.value(node.inputs[0]).dims.size());
  const int64_t axis = integer(node, "axis");
  return rank > 0 && (axis == -1 || axis == rank - 1);
}

bool has_label_dtype(const Lowering &l, ValueId labels) {
  return l.value(labels).dtype == DType::i32 || l.value(labels).dtype == DType::i64;
}

/// What both the loss and its gradient report.
int32_t check_labels(const RunContext &c, int64_t bad_row, const Labels &labels, int64_t classes,
                     const std::string &node) {
  if (bad_row < 0) return 0;
  return c.fail(base::invalid_argument(node, ": label ", labels[bad_row], " in row ", bad_row, " is not between 0 and ",
                                       classes - 1));
}

}  // namespace

bool lower_softmax(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0]) || !is_last_axis(l, node)) return false;
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const BufferId x = l.read(node.inputs[0]);
  const BufferId y = l.write(node.outputs[0], "", {node.inputs[0]});
  const auto function = node.op == "softmax" ? softmax : log_softmax;
  l.emit("simd:" + node.op, [=](const RunContext &c) { function(shape, c.in(x), c.out(y)); });
  return true;
}

bool lower_softmax_gradient(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0]) || !is_last_axis(l, node)) return false;
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const BufferId dy = l.read(node.inputs[0]);
  const BufferId y = l.read(node.inputs[1]);
  const BufferId dx = l.write(node.outputs[0], "", {node.inputs[0]});
  const auto function = node.op == "softmax_gradient" ? softmax_gradient : log_softmax_gradient;
  l.emit("simd:" + node.op, [=](const RunContext &c) { function(shape, c.in(dy), c.in(y), c.out(dx)); });
  return true;
}

bool lower_sparse_cross_entropy(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0]) || !has_label_dtype(l, node.inputs[1])) return false;
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const bool wide = l.value(node.inputs[1]).dtype == DType::i64;
  const auto smoothing = static_cast<float>(number(node, "label_smoothing"));
  const BufferId logits = l.read(node.inputs[0]);
  const BufferId classes = l.read(node.inputs[1]);
  const BufferId loss = l.write(node.outputs[0]);
  l.emit("simd:sparse_cross_entropy", [=, name = describe(node)](const RunContext &c) {
    const Labels labels{c.buffers[classes], wide};
    const int64_t bad = sparse_cross_entropy(shape, c.in(logits), labels, smoothing, c.out(loss));
    return check_labels(c, bad, labels, shape.classes, name);
  });
  return true;
}

bool lower_sparse_cross_entropy_gradient(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[1]) || !has_label_dtype(l, node.inputs[2])) return false;
  const RowShape shape = rows_of(l.value(node.inputs[1]));
  const bool wide = l.value(node.inputs[2]).dtype == DType::i64;
  const auto smoothing = static_cast<float>(number(node, "label_smoothing"));
  const BufferId dloss = l.read(node.inputs[0]);
  const BufferId logits = l.read(node.inputs[1]);
  const BufferId classes = l.read(node.inputs[2]);
  const BufferId dlogits = l.write(node.outputs[0]);
  l.emit("simd:sparse_cross_entropy_gradient", [=, name = describe(node)](const RunContext &c) {
    const Labels labels{c.buffers[classes], wide};
    const int64_t bad =
        sparse_cross_entropy_gradient(shape, c.in(dloss), c.in(logits), labels, smoothing, nullptr, c.out(dlogits));
    return check_labels(c, bad, labels, shape.classes, name);
  });
  return true;
}

bool lower_cross_entropy(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const auto smoothing = static_cast<float>(number(node, "label_smoothing"));
  const BufferId logits = l.read(node.inputs[0]);
  const BufferId targets = l.read(node.inputs[1]);
  const BufferId loss = l.write(node.outputs[0]);
  l.emit("simd:cross_entropy",
         [=](const RunContext &c) { cross_entropy(shape, c.in(logits), c.in(targets), smoothing, c.out(loss)); });
  return true;
}

bool lower_cross_entropy_gradient(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[1])) return false;
  const RowShape shape = rows_of(l.value(node.inputs[1]));
  const auto smoothing = static_cast<float>(number(node, "label_smoothing"));
  const BufferId dloss = l.read(node.inputs[0]);
  const BufferId logits = l.read(node.inputs[1]);
  const BufferId targets = l.read(node.inputs[2]);
  const BufferId dlogits = l.write(node.outputs[0]);
  l.emit("simd:cross_entropy_gradient", [=](const RunContext &c) {
    cross_entropy_gradient(shape, c.in(dloss), c.in(logits), c.in(targets), smoothing, c.out(dlogits));
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
