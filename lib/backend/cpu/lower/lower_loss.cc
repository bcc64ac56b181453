// SPDX-License-Identifier: Apache-2.0
#include "backend/bounded_integers.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/simd/simd_loss.h"

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

/// An exponential costs as much as so many elements that are moved.
constexpr int64_t kExpCost = 4;

Parts row_parts(const Lowering &l, const RowShape &shape) {
  return Parts(shape.rows, grain_of(kExpCost * shape.classes), l.threads());
}

/// function(context, rows, first row, offset of the first row in [rows, classes]).
template <typename Function>
void emit_rows(Lowering &l, std::string_view name, const RowShape &shape, Function function) {
  l.emit_ranges(name, shape.rows, grain_of(kExpCost * shape.classes), [=](const RunContext &c, Range r) {
    function(c, RowShape{r.size(), shape.classes}, r.begin, r.begin * shape.classes);
  });
}

bool is_last_axis(const Lowering &l, const Node &node) {
  const auto rank = static_cast<int64_t>(l.value(node.inputs[0]).dims.size());
  const int64_t axis = integer(node, "axis");
  return rank > 0 && (axis == -1 || axis == rank - 1);
}

bool has_label_dtype(const Lowering &l, ValueId labels) {
  return l.value(labels).dtype == DType::i32 || l.value(labels).dtype == DType::i64;
}

/// What the loss and its gradient report of input `input`.
BoundedIntegers label_bounds(const Lowering &l, const Node &node, size_t input, const RowShape &shape) {
  return BoundedIntegers::of(l.graph(), node, input, shape.classes, "label");
}

int32_t check_labels(const RunContext &c, int64_t bad_row, const Labels &labels, const BoundedIntegers &bounds) {
  if (bad_row < 0) return 0;
  return c.fail(bounds.error(bad_row, labels[bad_row], c.scalars[TUTTI_RUN_ROW_OFFSET]));
}

}  // namespace

bool lower_softmax(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0]) || !is_last_axis(l, node)) return false;
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const BufferId x = l.read(node.inputs[0]);
  const BufferId y = l.write(node.outputs[0], "", {node.inputs[0]});
  const auto function = node.op == "softmax" ? softmax : log_softmax;
  emit_rows(l, "simd:" + node.op, shape, [=](const RunContext &c, const RowShape &rows, int64_t, int64_t at) {
    function(rows, c.in(x) + at, c.out(y) + at);
  });
  return true;
}

bool lower_softmax_gradient(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0]) || !is_last_axis(l, node)) return false;
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const BufferId dy = l.read(node.inputs[0]);
  const BufferId y = l.read(node.inputs[1]);
  const BufferId dx = l.write(node.outputs[0], "", {node.inputs[0]});
  const auto function = node.op == "softmax_gradient" ? softmax_gradient : log_softmax_gradient;
  emit_rows(l, "simd:" + node.op, shape, [=](const RunContext &c, const RowShape &rows, int64_t, int64_t at) {
    function(rows, c.in(dy) + at, c.in(y) + at, c.out(dx) + at);
  });
  return true;
}

namespace {

/// The gradient of a sparse cross-entropy that is computed later: its softmax is the loss's.
const Node *later_gradient(const Lowering &l, const Node &loss) {
  for (const int32_t step : l.fusion().uses(loss.inputs[0])) {
    const Node &node = l.graph().step(step);
    if (node.op == "sparse_softmax_cross_entropy_gradient" && node.inputs[1] == loss.inputs[0] &&
        node.inputs[2] == loss.inputs[1] && number(node, "label_smoothing") == number(loss, "label_smoothing") &&
        !l.has_place(node.outputs[0])) {
      return &node;
    }
  }
  return nullptr;
}

/// One pass for the loss and, but for its factor for each row, the gradient.
void lower_loss_and_gradient(Lowering &l, const Node &node, const Node &gradient) {
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const bool wide = l.value(node.inputs[1]).dtype == DType::i64;
  const auto smoothing = static_cast<float>(number(node, "label_smoothing"));
  const BufferId logits = l.read(node.inputs[0]);
  const BufferId classes = l.read(node.inputs[1]);
  const BufferId loss = l.write(node.outputs[0]);
  const BufferId dlogits = l.write(gradient.outputs[0]);
  l.emit("simd:sparse_cross_entropy+gradient", [=, bounds = label_bounds(l, node, 1, shape)](const RunContext &c) {
    const Labels labels{c.buffers[classes], wide};
    const int64_t bad =
        sparse_cross_entropy_gradient(shape, nullptr, c.in(logits), labels, smoothing, c.out(loss), c.out(dlogits));
    return check_labels(c, bad, labels, bounds);
  });
}

}  // namespace

bool lower_sparse_cross_entropy(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0]) || !has_label_dtype(l, node.inputs[1])) return false;
  if (const Node *gradient = later_gradient(l, node)) {
    lower_loss_and_gradient(l, node, *gradient);
    return true;
  }
  const RowShape shape = rows_of(l.value(node.inputs[0]));
  const bool wide = l.value(node.inputs[1]).dtype == DType::i64;
  const auto smoothing = static_cast<float>(number(node, "label_smoothing"));
  const BufferId logits = l.read(node.inputs[0]);
  const BufferId classes = l.read(node.inputs[1]);
  const BufferId loss = l.write(node.outputs[0]);
  const Parts parts = row_parts(l, shape);
  l.emit("simd:sparse_cross_entropy", [=, bounds = label_bounds(l, node, 1, shape)](const RunContext &c) {
    const Labels labels{c.buffers[classes], wide};
    FirstWrong bad;
    c.for_parts(parts, [&](Range r) {
      const float *from = c.in(logits) + r.begin * shape.classes;
      const RowShape rows{r.size(), shape.classes};
      bad.note(sparse_cross_entropy(rows, from, labels.from(r.begin), smoothing, c.out(loss) + r.begin), r.begin);
    });
    return check_labels(c, bad.get(), labels, bounds);
  });
  return true;
}

bool lower_sparse_cross_entropy_gradient(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[1]) || !has_label_dtype(l, node.inputs[2])) return false;
  const RowShape shape = rows_of(l.value(node.inputs[1]));
  const bool wide = l.value(node.inputs[2]).dtype == DType::i64;
  const auto smoothing = static_cast<float>(number(node, "label_smoothing"));
  const BufferId dloss = l.read(node.inputs[0]);
  if (l.has_place(node.outputs[0])) {
    const BufferId dlogits = l.read(node.outputs[0]);
    l.emit("simd:scale_rows", [=](const RunContext &c) { scale_rows(shape, c.in(dloss), c.out(dlogits)); });
    return true;
  }
  const BufferId logits = l.read(node.inputs[1]);
  const BufferId classes = l.read(node.inputs[2]);
  const BufferId dlogits = l.write(node.outputs[0]);
  const Parts parts = row_parts(l, shape);
  l.emit("simd:sparse_cross_entropy_gradient", [=, bounds = label_bounds(l, node, 2, shape)](const RunContext &c) {
    const Labels labels{c.buffers[classes], wide};
    FirstWrong bad;
    c.for_parts(parts, [&](Range r) {
      const int64_t at = r.begin * shape.classes;
      const RowShape rows{r.size(), shape.classes};
      bad.note(sparse_cross_entropy_gradient(rows, c.in(dloss) + r.begin, c.in(logits) + at, labels.from(r.begin),
                                             smoothing, nullptr, c.out(dlogits) + at),
               r.begin);
    });
    return check_labels(c, bad.get(), labels, bounds);
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
  emit_rows(l, "simd:cross_entropy", shape, [=](const RunContext &c, const RowShape &rows, int64_t first, int64_t at) {
    cross_entropy(rows, c.in(logits) + at, c.in(targets) + at, smoothing, c.out(loss) + first);
  });
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
  emit_rows(l, "simd:cross_entropy_gradient", shape,
            [=](const RunContext &c, const RowShape &rows, int64_t first, int64_t at) {
              cross_entropy_gradient(rows, c.in(dloss) + first, c.in(logits) + at, c.in(targets) + at, smoothing,
                                     c.out(dlogits) + at);
            });
  return true;
}

}  // namespace tutti::impl::backend::cpu
