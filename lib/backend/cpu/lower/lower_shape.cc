// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "backend/bounded_integers.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/strided_copy.h"
#include "backend/cpu/shapes/strided_view.h"
#include "backend/cpu/simd/simd_reduce.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

int64_t element_bytes(const Lowering &l, ValueId id) {
  return static_cast<int64_t>(tensor::size_bytes(l.value(id).dtype));
}

bool is_fixed_size(const Lowering &l, ValueId id) { return l.value(id).dtype != DType::bytes; }

template <typename T>
T read_index(const void *values, int64_t i) {
  return static_cast<const T *>(values)[i];
}

int64_t index_at(const void *values, bool wide, int64_t i) {
  return wide ? read_index<int64_t>(values, i) : read_index<int32_t>(values, i);
}

/// What gather and its gradient report.
int32_t check_index(const RunContext &c, const FirstWrong &wrong, BufferId indices, bool wide,
                    const BoundedIntegers &bounds) {
  const int64_t i = wrong.get();
  if (i < 0) return 0;
  return c.fail(bounds.error(i, index_at(c.buffers[indices], wide, i), c.scalars[TUTTI_RUN_ROW_OFFSET]));
}

/// Indices of rows, which must be below a limit.
struct Places {
  const void *values;
  bool wide;
  int64_t limit;

  int64_t operator[](int64_t i) const { return index_at(values, wide, i); }
  /// -1: none.
  int64_t first_wrong(Range range) const {
    for (int64_t i = range.begin; i < range.end; ++i) {
      if (static_cast<uint64_t>((*this)[i]) >= static_cast<uint64_t>(limit)) return i;
    }
    return -1;
  }
};

struct GatherSizes {
  int64_t outer, count, bytes;
};

/// Single elements: one line of the table after the other.
template <typename T>
void gather_elements(const void *from, void *to, const Places &places, Range range, const GatherSizes &sizes) {
  for (int64_t o = 0; o < sizes.outer; ++o) {
    const T *const source = static_cast<const T *>(from) + o * places.limit;
    T *const target = static_cast<T *>(to) + o * sizes.count;
    for (int64_t i = range.begin; i < range.end; ++i)
      target[i] = source[places[i]];
  }
}

void gather(const void *from, void *to, const Places &places, Range range, const GatherSizes &sizes) {
  const int64_t bytes = sizes.bytes;
  if (bytes == 4) return gather_elements<uint32_t>(from, to, places, range, sizes);
  if (bytes == 8) return gather_elements<uint64_t>(from, to, places, range, sizes);
  const char *const source = static_cast<const char *>(from);
  char *const target = static_cast<char *>(to);
  for (int64_t i = range.begin; i < range.end; ++i) {
    for (int64_t o = 0; o < sizes.outer; ++o) {
      std::memcpy(target + (o * sizes.count + i) * bytes, source + (o * places.limit + places[i]) * bytes,
                  static_cast<size_t>(bytes));
    }
  }
}

int64_t product(const std::vector<int64_t> &dims, size_t begin, size_t end) {
  return std::accumulate(dims.begin() + static_cast<ptrdiff_t>(begin), dims.begin() + static_cast<ptrdiff_t>(end),
                         int64_t{1}, std::multiplies<>());
}

Parts parts_of(const Lowering &l, const StridedCopy &copy) {
  return Parts(copy.steps(), grain_of(copy.step_bytes() / 4), l.threads());
}

void run_copy(const RunContext &c, const Parts &parts, const StridedCopy &copy, BufferId in, BufferId out) {
  c.for_parts(parts, [&](Range range) { copy.run(range.begin, range.end, c.buffers[in], c.buffers[out]); });
}

void emit_copy(Lowering &l, const char *name, const StridedCopy &copy, BufferId in, BufferId out) {
  l.emit(name, [=, parts = parts_of(l, copy)](const RunContext &c) { run_copy(c, parts, copy, in, out); });
}

/// Fills a buffer with copies of a number.
template <typename T>
void run_fill(const RunContext &c, const Parts &parts, BufferId out, T value) {
  c.for_parts(parts,
              [&](Range range) { std::fill_n(static_cast<T *>(c.buffers[out]) + range.begin, range.size(), value); });
}

}  // namespace

bool lower_transpose(Lowering &l, const Node &node) {
  const ValueId x = node.inputs[0];
  if (!is_fixed_size(l, x)) return false;
  const std::vector<int64_t> &dims = l.value(node.outputs[0]).dims;
  const std::vector<int64_t> from = dense_strides(l.value(x).dims);
  const std::vector<int64_t> permutation = integers(node, "permutation");
  std::vector<int64_t> strides(dims.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    strides[axis] = permutation.empty() ? from[dims.size() - 1 - axis] : from[static_cast<size_t>(permutation[axis])];
  }
  const StridedCopy copy = StridedCopy::make(dims, strides, 0, dense_strides(dims), 0, element_bytes(l, x));
  const BufferId in = l.read(x);
  const BufferId out = l.write(node.outputs[0]);
  emit_copy(l, "copy:transpose", copy, in, out);
  return true;
}

bool lower_reverse_axes(Lowering &l, const Node &node) {
  const ValueId x = node.inputs[0];
  if (!is_fixed_size(l, x) || l.value(x).elements == 0) return false;
  const std::vector<int64_t> &dims = l.value(x).dims;
  std::vector<int64_t> strides = dense_strides(dims);
  int64_t offset = 0;
  for (const int64_t given : integers(node, "axes")) {
    const auto axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(dims.size()) : given);
    offset += (dims[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  const StridedCopy copy = StridedCopy::make(dims, strides, offset, dense_strides(dims), 0, element_bytes(l, x));
  const BufferId in = l.read(x);
  const BufferId out = l.write(node.outputs[0]);
  emit_copy(l, "copy:reverse", copy, in, out);
  return true;
}

bool lower_broadcast_to(Lowering &l, const Node &node) {
  const ValueId x = node.inputs[0];
  if (!is_fixed_size(l, x)) return false;
  const std::vector<int64_t> &dims = l.value(node.outputs[0]).dims;
  const std::vector<int64_t> &own = l.value(x).dims;
  const std::vector<int64_t> from = dense_strides(own);
  std::vector<int64_t> strides(dims.size(), 0);
  for (size_t axis = 0; axis < own.size(); ++axis) {
    strides[dims.size() - own.size() + axis] = own[axis] == 1 ? 0 : from[axis];
  }
  const StridedCopy copy = StridedCopy::make(dims, strides, 0, dense_strides(dims), 0, element_bytes(l, x));
  const BufferId in = l.read(x);
  const BufferId out = l.write(node.outputs[0]);
  emit_copy(l, "copy:broadcast", copy, in, out);
  return true;
}

bool lower_concat(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.back());
  const ValueId y = node.outputs[0];
  if (!is_fixed_size(l, y)) return false;
  const std::vector<int64_t> &dims = l.value(y).dims;
  const int64_t asked = integer(node, "axis");
  const auto axis = static_cast<size_t>(asked < 0 ? asked + static_cast<int64_t>(dims.size()) : asked);
  const std::vector<int64_t> strides = dense_strides(dims);
  struct Piece {
    BufferId in;
    StridedCopy copy;
    Parts parts;
  };
  std::vector<Piece> pieces;
  int64_t at = 0;
  for (const ValueId input : node.inputs) {
    // A slice of the group is read where it was taken from.
    const int32_t maker = l.fusion().producer(input);
    const bool is_slice = std::ranges::find(group.steps, maker) != group.steps.end();
    const ValueId source = is_slice ? l.graph().step(maker).inputs[0] : input;
    const std::vector<int64_t> &own = l.value(input).dims;
    StridedView view{0, dense_strides(own)};
    if (is_slice && !view_of(l.graph(), l.graph().step(maker), l.value(source).dims, view)) return false;
    const StridedCopy copy =
        StridedCopy::make(own, view.strides, view.offset, strides, at * strides[axis], element_bytes(l, y));
    pieces.push_back({l.read(source), copy, parts_of(l, copy)});
    at += own[axis];
  }
  const BufferId out = l.write(y);
  l.emit("copy:concat", [pieces = std::move(pieces), out](const RunContext &c) {
    for (const Piece &piece : pieces)
      run_copy(c, piece.parts, piece.copy, piece.in, out);
  });
  return true;
}

bool lower_slice(Lowering &l, const Node &node) {
  const ValueId x = node.inputs[0];
  if (l.views().of(node.outputs[0]) != nullptr) {
    l.alias(node.outputs[0], x);
    return true;
  }
  StridedView view;
  if (!is_fixed_size(l, x) || !view_of(l.graph(), node, l.value(x).dims, view)) return false;
  const std::vector<int64_t> &dims = l.value(node.outputs[0]).dims;
  const StridedCopy copy =
      StridedCopy::make(dims, view.strides, view.offset, dense_strides(dims), 0, element_bytes(l, x));
  const BufferId in = l.read(x);
  const BufferId out = l.write(node.outputs[0]);
  emit_copy(l, "copy:slice", copy, in, out);
  return true;
}

bool lower_slice_gradient(Lowering &l, const Node &node) {
  const ValueId dy = node.inputs[0];
  const LoweredValue &whole = l.value(node.outputs[0]);
  StridedView view;
  if (!is_fixed_size(l, dy) || !view_of(l.graph(), node, whole.dims, view)) return false;
  const std::vector<int64_t> &dims = l.value(dy).dims;
  const StridedCopy copy =
      StridedCopy::make(dims, dense_strides(dims), 0, view.strides, view.offset, element_bytes(l, dy));
  const BufferId in = l.read(dy);
  const BufferId out = l.write(node.outputs[0]);
  const Parts all(whole.bytes, 4 * kPartElements, l.threads());
  l.emit("copy:slice_gradient", [=, parts = parts_of(l, copy)](const RunContext &c) {
    run_fill(c, all, out, '\0');
    run_copy(c, parts, copy, in, out);
  });
  return true;
}

namespace {

/// One axis of what is padded: so many of its indices are padding, data, padding. Strides in elements.
struct PaddedAxis {
  int64_t low, count, high, from_stride, to_stride;

  int64_t total() const { return low + count + high; }
};

/// Axes that are not padded are one with the axis before.
std::vector<PaddedAxis> padded_axes(const std::vector<int64_t> &dims, const std::vector<int64_t> &low,
                                    const std::vector<int64_t> &high) {
  std::vector<PaddedAxis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!axes.empty() && low[i] == 0 && high[i] == 0) {
      PaddedAxis &before = axes.back();
      before.low *= dims[i], before.count *= dims[i], before.high *= dims[i];
    } else {
      axes.push_back({low[i], dims[i], high[i], 1, 1});
    }
  }
  if (axes.empty()) axes.push_back({0, 1, 0, 1, 1});
  for (size_t i = axes.size() - 1; i-- > 0;) {
    axes[i].from_stride = axes[i + 1].from_stride * axes[i + 1].count;
    axes[i].to_stride = axes[i + 1].to_stride * axes[i + 1].total();
  }
  return axes;
}

/// Indices of a range along an axis, and all of the axes behind it.
void pad(std::span<const PaddedAxis> axes, Range r, float fill, const float *from, float *to) {
  const PaddedAxis &axis = axes.front();
  const int64_t begin = std::clamp(axis.low, r.begin, r.end), end = std::clamp(axis.low + axis.count, begin, r.end);
  std::fill(to + r.begin * axis.to_stride, to + begin * axis.to_stride, fill);
  if (axes.size() == 1) {
    std::copy_n(from + (begin - axis.low), end - begin, to + begin);
  } else {
    for (int64_t i = begin; i < end; ++i) {
      pad(axes.subspan(1), {0, axes[1].total()}, fill, from + (i - axis.low) * axis.from_stride,
          to + i * axis.to_stride);
    }
  }
  std::fill(to + end * axis.to_stride, to + r.end * axis.to_stride, fill);
}

}  // namespace

bool lower_pad(Lowering &l, const Node &node) {
  const ValueId x = node.inputs[0];
  if (!l.is_f32(x)) return false;
  std::vector<PaddedAxis> axes = padded_axes(l.value(x).dims, integers(node, "low"), integers(node, "high"));
  const auto fill = static_cast<float>(number(node, "value"));
  const BufferId in = l.read(x);
  const BufferId out = l.write(node.outputs[0]);
  const int64_t items = axes.front().total(), grain = grain_of(axes.front().to_stride);
  l.emit_ranges("copy:pad", items, grain, [=, axes = std::move(axes)](const RunContext &c, Range r) {
    pad(axes, r, fill, c.in(in), c.out(out));
  });
  return true;
}

bool lower_one_hot(Lowering &l, const Node &node) {
  const ValueId y = node.outputs[0];
  const DType from = l.value(node.inputs[0]).dtype;
  if (l.value(y).dtype != DType::f32 || (from != DType::i64 && from != DType::i32)) return false;
  const int64_t count = l.value(node.inputs[0]).elements, depth = integer(node, "depth");
  const auto on = static_cast<float>(number(node, "on")), off = static_cast<float>(number(node, "off"));
  const BufferId in = l.read(node.inputs[0]), out = l.write(y);
  l.emit_ranges("copy:one_hot", count, grain_of(depth), [=](const RunContext &c, Range r) {
    const Places places{c.buffers[in], from == DType::i64, depth};
    std::fill_n(c.out(out) + r.begin * depth, r.size() * depth, off);
    for (int64_t i = r.begin; i < r.end; ++i) {
      if (places[i] >= 0 && places[i] < depth) c.out(out)[i * depth + places[i]] = on;
    }
  });
  return true;
}

bool lower_gather(Lowering &l, const Node &node) {
  const ValueId params = node.inputs[0];
  const LoweredValue &table = l.value(params);
  const LoweredValue &indices = l.value(node.inputs[1]);
  if (!is_fixed_size(l, params)) return false;
  const int64_t asked = integer(node, "axis");
  const auto axis = static_cast<size_t>(asked < 0 ? asked + static_cast<int64_t>(table.dims.size()) : asked);
  const int64_t outer = product(table.dims, 0, axis);
  const int64_t limit = table.dims[axis];
  const int64_t bytes = product(table.dims, axis + 1, table.dims.size()) * element_bytes(l, params);
  const int64_t count = indices.elements;
  const bool wide = indices.dtype == DType::i64;
  const BufferId from = l.read(params), at = l.read(node.inputs[1]);
  const BufferId to = l.write(node.outputs[0]);
  const Parts parts(count, grain_of(outer * bytes / 4), l.threads());
  l.emit("copy:gather",
         [=, bounds = BoundedIntegers::of(l.graph(), node, 1, limit, "index")](const RunContext &c) -> int32_t {
           FirstWrong wrong;
           c.for_parts(parts, [&](Range range) {
             const Places places{c.buffers[at], wide, limit};
             const int64_t bad = places.first_wrong(range);
             if (bad >= 0) return wrong.note(bad);
             gather(c.buffers[from], c.buffers[to], places, range, {outer, count, bytes});
           });
           return check_index(c, wrong, at, wide, bounds);
         });
  return true;
}

namespace {

/// Numbers added one by one to the elements of a range.
template <typename Index>
int64_t add_numbers(const Index *indices, int64_t count, int64_t limit, Range rows, const float *dy, float *out) {
  int64_t wrong = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[i];
    if (index >= rows.begin && index < rows.end)
      out[index] += dy[i];
    else if (wrong < 0 && (index < 0 || index >= limit))
      wrong = i;
  }
  return wrong;
}

int64_t add_numbers(const Places &places, int64_t count, Range rows, const float *dy, float *out) {
  if (places.wide) return add_numbers(static_cast<const int64_t *>(places.values), count, places.limit, rows, dy, out);
  return add_numbers(static_cast<const int32_t *>(places.values), count, places.limit, rows, dy, out);
}

/// Rows added one by one to those of a range; the first index that is out of the limit, or -1.
int64_t add_rows(const Places &places, Range rows, const GatherSizes &sizes, const float *dy, float *out) {
  const int64_t inner = sizes.bytes / static_cast<int64_t>(sizeof(float));
  if (sizes.outer == 1 && inner == 1) return add_numbers(places, sizes.count, rows, dy, out);
  int64_t wrong = -1;
  for (int64_t i = 0; i < sizes.count; ++i) {
    const int64_t index = places[i];
    if (wrong < 0 && (index < 0 || index >= places.limit)) wrong = i;
    if (index < rows.begin || index >= rows.end) continue;
    for (int64_t o = 0; o < sizes.outer; ++o)
      add_to(dy + (o * sizes.count + i) * inner, out + (o * places.limit + index) * inner, inner);
  }
  return wrong;
}

}  // namespace

bool lower_gather_gradient(Lowering &l, const Node &node) {
  const LoweredValue &table = l.value(node.outputs[0]);
  const LoweredValue &indices = l.value(node.inputs[1]);
  if (!l.is_f32(node.inputs[0])) return false;
  const int64_t asked = integer(node, "axis");
  const auto axis = static_cast<size_t>(asked < 0 ? asked + static_cast<int64_t>(table.dims.size()) : asked);
  const int64_t outer = product(table.dims, 0, axis);
  const int64_t limit = table.dims[axis];
  const int64_t inner = product(table.dims, axis + 1, table.dims.size());
  const GatherSizes sizes{outer, indices.elements, inner * static_cast<int64_t>(sizeof(float))};
  const bool wide = indices.dtype == DType::i64, ignores_others = flag(node, "ignores_others");
  const BufferId dy = l.read(node.inputs[0]), at = l.read(node.inputs[1]);
  const BufferId out = l.write(node.outputs[0]);
  // A part adds up what belongs to some rows of the table.
  const int64_t work = outer * inner * (sizes.count + limit);
  const int64_t grain = work > 0 ? std::max<int64_t>(1, kPartElements * limit / work) : 1;
  const Parts parts(limit, grain, l.threads(), 1);
  l.emit("simd:gather_gradient",
         [=, bounds = BoundedIntegers::of(l.graph(), node, 1, limit, "index")](const RunContext &c) -> int32_t {
           FirstWrong wrong;
           c.for_parts(parts, [&](Range rows) {
             for (int64_t o = 0; o < outer; ++o)
               std::fill_n(c.out(out) + (o * limit + rows.begin) * inner, rows.size() * inner, 0.0f);
             wrong.note(add_rows({c.buffers[at], wide, limit}, rows, sizes, c.in(dy), c.out(out)));
           });
           return ignores_others ? 0 : check_index(c, wrong, at, wide, bounds);
         });
  return true;
}

namespace {

enum class MergeMode : uint8_t { add, maximum, replace };

/// Puts the updates of a range of rows into them, in order; the first index that is out of the limit, or -1.
int64_t merge_rows(MergeMode mode, const Places &places, Range rows, const GatherSizes &sizes, const char *updates,
                   char *table) {
  const int64_t numbers = sizes.bytes / static_cast<int64_t>(sizeof(float));
  int64_t wrong = -1;
  for (int64_t i = 0; i < sizes.count; ++i) {
    const int64_t index = places[i];
    if (wrong < 0 && (index < 0 || index >= places.limit)) wrong = i;
    if (index < rows.begin || index >= rows.end) continue;
    const char *const update = updates + i * sizes.bytes;
    char *const row = table + index * sizes.bytes;
    if (mode == MergeMode::replace)
      std::memcpy(row, update, static_cast<size_t>(sizes.bytes));
    else
      (mode == MergeMode::add ? add_to : raise_to)(reinterpret_cast<const float *>(update),
                                                   reinterpret_cast<float *>(row), numbers);
  }
  return wrong;
}

}  // namespace

bool lower_merge_rows(Lowering &l, const Node &node) {
  const ValueId x = node.inputs[0];
  const std::string name = text(node, "mode");
  const MergeMode mode = name == "add" ? MergeMode::add : name == "maximum" ? MergeMode::maximum : MergeMode::replace;
  if (mode == MergeMode::replace ? !is_fixed_size(l, x) : !l.is_f32(x)) return false;
  const LoweredValue &table = l.value(x), &indices = l.value(node.inputs[1]);
  const int64_t limit = table.dims[0], bytes = product(table.dims, 1, table.dims.size()) * element_bytes(l, x);
  const GatherSizes sizes{1, indices.elements, bytes};
  const bool wide = indices.dtype == DType::i64;
  const BufferId in = l.read(x), at = l.read(node.inputs[1]), updates = l.read(node.inputs[2]);
  // Not onto x where it is read as updates, too.
  const BufferId out = in == updates ? l.write(node.outputs[0]) : l.write(node.outputs[0], "", {x});
  const int64_t work = bytes / 4 * (sizes.count + limit);
  const Parts parts(limit, work > 0 ? std::max<int64_t>(1, kPartElements * limit / work) : 1, l.threads(), 1);
  l.emit("simd:merge_rows",
         [=, bounds = BoundedIntegers::of(l.graph(), node, 1, limit, "index")](const RunContext &c) -> int32_t {
           FirstWrong wrong;
           c.for_parts(parts, [&](Range rows) {
             const char *const from = static_cast<const char *>(c.buffers[in]);
             char *const to = static_cast<char *>(c.buffers[out]);
             if (from != to && bytes * rows.size() > 0)
               std::memcpy(to + rows.begin * bytes, from + rows.begin * bytes,
                           static_cast<size_t>(rows.size() * bytes));
             const Places places{c.buffers[at], wide, limit};
             wrong.note(merge_rows(mode, places, rows, sizes, static_cast<const char *>(c.buffers[updates]), to));
           });
           return check_index(c, wrong, at, wide, bounds);
         });
  return true;
}

}  // namespace tutti::impl::backend::cpu
