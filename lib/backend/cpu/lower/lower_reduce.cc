// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/strided_copy.h"
#include "backend/cpu/simd/simd_reduce.h"

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

/// What a reduction to one row is cut into, by its shape alone, so that the sum does not depend on threads.
constexpr int32_t kMostStretches = 16;

/// Results one by one, or, where all elements come to one row of results, stretches of them whose results are reduced
/// again.
void emit_reduce(Lowering &l, std::string_view name, ReduceKind kind, const ReduceShape &shape, BufferId in,
                 BufferId out, float scale) {
  // Of several rows none has stretches.
  const int32_t most = l.graph().is_row_invariant() ? 1 : kMostStretches;
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
    const ReduceKind last = kind == ReduceKind::squares ? ReduceKind::sum : kind;
    reduce(last, {1, stretches.count(), shape.inner}, c.in(partial), c.out(out), scale);
  });
}

/// Elements of a row, or columns, that are looked at together.
constexpr int64_t kBlock = 64;

/// The first element that `is_it` holds of, of which there is one. A block at a time: that can be done in vectors.
template <typename IsIt>
int64_t first_of(const float *x, int64_t n, const IsIt &is_it) {
  int64_t begin = 0;
  for (; begin + kBlock < n; begin += kBlock) {
    int32_t found = 0;
    for (int64_t i = 0; i < kBlock; ++i)
      found |= static_cast<int32_t>(is_it(x[begin + i]));
    if (found != 0) break;
  }
  while (begin + 1 < n && !is_it(x[begin]))
    ++begin;
  return begin;
}

int64_t arg_of_row(ReduceKind kind, const float *x, int64_t n) {
  float best = 0;
  reduce(kind, {1, n, 1}, x, &best, 1.0f);
  if (best != best) return first_of(x, n, [](float value) { return value != value; });
  return first_of(x, n, [best](float value) { return value == best; });
}

/// Of `width` columns (kBlock at most) of `rows` rows, `stride` apart.
template <bool kMaximum>
void arg_of_columns(const float *x, int64_t rows, int64_t stride, int64_t width, int64_t *out) {
  float best[kBlock];
  int32_t at[kBlock] = {};
  std::copy_n(x, width, best);
  for (int64_t row = 1; row < rows; ++row) {
    const float *const values = x + row * stride;
    for (int64_t i = 0; i < width; ++i) {
      const bool is_behind = kMaximum ? values[i] <= best[i] : values[i] >= best[i];
      const bool is_better = !is_behind & (best[i] == best[i]);  // so is the first NaN
      best[i] = is_better ? values[i] : best[i];
      at[i] = is_better ? static_cast<int32_t>(row) : at[i];
    }
  }
  std::copy_n(at, width, out);
}

void arg_reduce(ReduceKind kind, const ReduceShape &shape, const float *x, int64_t *out) {
  const int64_t row = shape.middle * shape.inner;
  for (int64_t o = 0; o < shape.outer; ++o, x += row, out += shape.inner) {
    if (shape.inner == 1) *out = arg_of_row(kind, x, row);
    for (int64_t i = 0; shape.inner > 1 && i < shape.inner; i += kBlock) {
      const int64_t width = std::min(kBlock, shape.inner - i);
      const auto columns = kind == ReduceKind::maximum ? arg_of_columns<true> : arg_of_columns<false>;
      columns(x + i, shape.middle, shape.inner, width, out + i);
    }
  }
}

}  // namespace

bool is_one_reduction(const std::vector<int64_t> &dims, const std::vector<int64_t> &axes) {
  ReduceShape shape;
  return as_shape(runs_of(dims, axes), shape);
}

bool lower_arg_reduce(Lowering &l, const Node &node) {
  const graph::ValueId x = node.inputs[0];
  ReduceShape shape;
  if (!l.is_f32(x) || l.value(x).elements == 0) return false;
  if (!as_shape(runs_of(l.value(x).dims, {integer(node, "axis")}), shape)) return false;
  if (shape.middle > INT32_MAX) return false;
  const ReduceKind kind = node.op == "argmax" ? ReduceKind::maximum : ReduceKind::minimum;
  const BufferId in = l.read(x), out = l.write(node.outputs[0]);
  const int64_t row = shape.middle * shape.inner;
  l.emit_ranges("simd:arg_reduce", shape.outer, grain_of(row), [=](const RunContext &c, Range r) {
    arg_reduce(kind, {r.size(), shape.middle, shape.inner}, c.in(in) + r.begin * row,
               static_cast<int64_t *>(c.buffers[out]) + r.begin * shape.inner);
  });
  return true;
}

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

/// Of rows or columns.
static void lower_sums_of_squares(Lowering &l, const Node &square, const Node &sum) {
  ReduceShape shape;
  as_shape(runs_of(l.value(square.inputs[0]).dims, integers(sum, "axes")), shape);
  const BufferId in = l.read(square.inputs[0]), out = l.write(sum.outputs[0]);
  emit_reduce(l, "simd:sums_of_squares", ReduceKind::squares, shape, in, out, 1.0f);
}

void lower_sum_of_squares(Lowering &l, const Group &group) {
  const Node &last = l.graph().step(group.steps.back());
  if (l.value(last.outputs[0]).elements != 1)
    return lower_sums_of_squares(l, l.graph().step(group.steps.front()), last);
  const Node &first = l.graph().step(group.steps.front());
  const ScaledValue x = scaled_value(l.graph(), l.fusion(), first).value_or(ScaledValue{first.inputs[0]});
  // Of all elements, in any order.
  const BufferId in = l.read(x.value, l.layout_of(x.value) == kBlocked16 ? kBlocked16 : std::string_view());
  const BufferId out = l.write(last.outputs[0]);
  const Parts stretches(l.value(x.value).elements, kPartElements, kMostStretches, 1);
  const BufferId partial = l.scratch(stretches.count() * static_cast<int64_t>(sizeof(double)));
  l.emit("simd:sum_of_squares", [=, factor = x.factor](const RunContext &c) {
    const std::span sums(static_cast<double *>(c.buffers[partial]), static_cast<size_t>(stretches.count()));
    c.for_each(stretches.count(), [&](int32_t part, int32_t) {
      const Range r = stretches[part];
      sums[static_cast<size_t>(part)] = sum_of_squares(c.in(in) + r.begin, r.size(), factor);
    });
    *c.out(out) = static_cast<float>(std::accumulate(sums.begin(), sums.end(), 0.0));
  });
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
