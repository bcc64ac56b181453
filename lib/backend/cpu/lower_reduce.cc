// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cpu/attributes.h"
#include "backend/cpu/lower.h"
#include "backend/cpu/simd_reduce.h"
#include "backend/cpu/strided_copy.h"

namespace tutti::impl::backend::cpu {

using graph::Node;

namespace {

/// Axes of x as runs that are kept or reduced, neighbours of a kind merged.
struct Run {
  int64_t length = 1;
  bool reduced = false;
};

std::vector<Run> runs_of(const std::vector<int64_t> &dims, const std::vector<int64_t> &axes) {
  std::vector<Run> runs;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    const bool reduced = axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int64_t a) {
                           return (a < 0 ? a + static_cast<int64_t>(dims.size()) : a) == static_cast<int64_t>(axis);
                         });
    if (!runs.empty() && runs.back().reduced == reduced) {
      runs.back().length *= dims[axis];
    } else {
      runs.push_back({dims[axis], reduced});
    }
  }
  return runs;
}

ReduceKind kind_of(const std::string &op) {
  if (op == "reduce_max") return ReduceKind::maximum;
  if (op == "reduce_min") return ReduceKind::minimum;
  if (op == "reduce_prod") return ReduceKind::product;
  return ReduceKind::sum;
}

/// [outer,] middle [, inner], if the runs are that.
bool as_shape(const std::vector<Run> &runs, ReduceShape &shape) {
  size_t i = 0;
  if (i < runs.size() && !runs[i].reduced) shape.outer = runs[i++].length;
  if (i < runs.size() && runs[i].reduced) shape.middle = runs[i++].length;
  if (i < runs.size() && !runs[i].reduced) shape.inner = runs[i++].length;
  return i == runs.size();
}

/// Results one by one, or, where all elements come to one row of results, stretches of them whose results are reduced
/// again: stretches by the shape alone, so that the sum does not depend on threads.
void emit_reduce(Lowering &l, std::string_view name, ReduceKind kind, const ReduceShape &shape, BufferId in,
                 BufferId out, float scale) {
  // Of several rows none has stretches.
  const int32_t most = l.graph().is_row_invariant() ? 1 : 16;
  const Parts stretches(shape.middle, grain_of(shape.inner), most, 1);
  if (shape.outer != 1 || stretches.count() == 1) {
    const int64_t row = shape.middle * shape.inner;
    return l.emit_ranges(name, shape.outer, grain_of(row), [=](const RunContext &c, Range r) {
      reduce(kind, {r.size(), shape.middle, shape.inner}, c.in(in) + r.begin * row, c.out(out) + r.begin * shape.inner,
             scale);
    });
  }
  const BufferId partial = l.scratch(stretches.count() * shape.inner * static_cast<int64_t>(sizeof(float)));
  l.emit(name, [=](const RunContext &c) {
    c.for_each(stretches.count(), [&](int32_t part, int32_t) {
      const Range r = stretches[part];
      reduce(kind, {1, r.size(), shape.inner}, c.in(in) + r.begin * shape.inner, c.out(partial) + part * shape.inner);
    });
    reduce(kind, {1, stretches.count(), shape.inner}, c.in(partial), c.out(out), scale);
  });
}

}  // namespace

bool lower_reduce(Lowering &l, const Node &node) {
  const graph::ValueId x = node.inputs[0];
  const graph::ValueId y = node.outputs[0];
  if (!l.is_f32(x)) return false;
  // Columns are added up in another order than a line, which they are where there is one.
  if (l.graph().is_row_invariant() && l.graph().batch_axis(x) > 0) return false;
  ReduceShape shape;
  const std::vector<int64_t> &dims = l.value(x).dims;
  const std::vector<int64_t> axes = integers(node, "axes");
  if (!as_shape(runs_of(dims, axes), shape)) return false;
  const ReduceKind kind = kind_of(node.op);
  float scale = 1.0f;
  if (node.op == "reduce_mean") {
    const int64_t count = l.value(y).elements > 0 ? l.value(x).elements / l.value(y).elements : 0;
    if (count == 0) return false;
    scale = 1.0f / static_cast<float>(count);
  }
  // Sums over rows and positions of images may read the blocked layout: [rows, blocks, positions, 16].
  const bool blocked =
      l.layout_of(x) == kBlocked16 && shape.inner == dims[3] && kind == ReduceKind::sum && shape.outer == dims[0];
  const BufferId in = l.read(x, blocked ? kBlocked16 : std::string_view());
  if (blocked) shape = {shape.outer * dims[3] / 16, shape.middle, 16};
  const BufferId out = l.write(y);
  emit_reduce(l, blocked ? "simd:reduce_blocked" : "simd:reduce", kind, shape, in, out, scale);
  return true;
}

bool lower_all_finite(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const int64_t n = l.value(node.inputs[0]).elements;
  const BufferId x = l.read(node.inputs[0]);
  const BufferId y = l.write(node.outputs[0]);
  const Parts parts(n, kPartElements, l.threads());
  l.emit("simd:all_finite", [=](const RunContext &c) {
    FirstWrong wrong;
    c.for_parts(parts, [&](Range r) { wrong.note(all_finite(c.in(x) + r.begin, r.size()) ? -1 : r.begin); });
    *static_cast<uint8_t *>(c.buffers[y]) = wrong.get() < 0 ? 1 : 0;
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
