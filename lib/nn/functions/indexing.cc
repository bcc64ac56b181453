// SPDX-License-Identifier: Apache-2.0
//
// Elements that indices name: gather_nd, and updates of rows.
#include "nn/functions/sorting.h"

namespace tutti::impl::nn {
namespace {

/// Checked where it is used: an index out of range is found by the gather from what it may be.
ValueId position(GraphBuilder &b, ValueId indices, int64_t axis, int64_t length, int64_t stride) {
  const ValueId known = b.scale(counting(b, length), static_cast<double>(stride));
  const int64_t last = static_cast<int64_t>(b.rank(indices)) - 1;
  Dims dims = b.dims(indices);
  dims.pop_back();
  return b.op("gather", {known, b.reshape(part_of(b, indices, last, axis, 1), dims)});
}

/// Updates for rows, flat: one row of indices, and the updates behind it as [updates, row...].
struct Updates {
  ValueId indices = kNoValue, values = kNoValue;
  Dims row;           ///< dimensions of a row
  int64_t count = 0;  ///< of updates
};

std::optional<Updates> updates_of(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Dims &x = b.dims(e.input(0));
  if (x.empty()) {
    e.fail("a scalar has no rows");
    return std::nullopt;
  }
  Updates made;
  made.row.assign(x.begin() + 1, x.end());
  Dims expected = b.dims(e.input(1));
  const Dim count = graph::element_count(expected);
  expected.insert(expected.end(), made.row.begin(), made.row.end());
  if (b.dims(e.input(2)) != expected) {
    e.fail(base::concat("updates ", graph::to_string(b.dims(e.input(2))), " do not fit: expected ",
                        graph::to_string(expected)));
    return std::nullopt;
  }
  made.count = count.constant();
  Dims flat = made.row;
  flat.insert(flat.begin(), count);
  made.indices = b.reshape(e.input(1), {count});
  made.values = b.reshape(e.input(2), flat);
  return made;
}

/// Zeros like x with the updates added at their rows.
ValueId spread(GraphBuilder &b, ValueId x, ValueId indices, ValueId values) {
  return b.op("gather_gradient", {values, indices}, {{"axis", int64_t{0}}, {"dims", b.dims(x)}});
}

/// [count] as [count, 1, ...], to go with values [count, row...].
ValueId as_column(GraphBuilder &b, ValueId x, size_t rank) {
  Dims dims(rank, 1);
  dims[0] = b.dims(x)[0];
  return b.reshape(x, dims);
}

/// Updates in the order of their rows; those for one row stay in their order.
Updates in_order(GraphBuilder &b, Updates updates) {
  const Sorted sorted = sorted_ascending(b, updates.indices, updates.count);
  updates.values = b.op("gather", {updates.values, sorted.indices});
  updates.indices = sorted.values;
  return updates;
}

/// Is each update, in order, for the same row as the one `distance` before it?
ValueId is_as_before(GraphBuilder &b, const Updates &updates, int64_t distance) {
  const int64_t rest = updates.count - distance;
  const ValueId now = part_of(b, updates.indices, 0, distance, rest), then = part_of(b, updates.indices, 0, 0, rest);
  const ValueId same = b.op("equal", {now, then});
  return b.op("pad", {same}, {{"low", Axes{distance}}, {"high", Axes{0}}, {"value", 0.0}});
}

/// Is an update, in order, the last for its row?
ValueId is_last(GraphBuilder &b, const Updates &updates) {
  const int64_t rest = updates.count - 1;
  const ValueId differs =
      b.op("not_equal", {part_of(b, updates.indices, 0, 1, rest), part_of(b, updates.indices, 0, 0, rest)});
  return b.op("pad", {differs}, {{"low", Axes{0}}, {"high", Axes{1}}, {"value", 1.0}});
}

struct Placed {
  ValueId is_named = kNoValue;  ///< [rows, 1, ...]
  ValueId values = kNoValue;    ///< like x
};

/// The last update for each row at its row, of updates in order.
Placed place_last(GraphBuilder &b, ValueId x, const Updates &updates) {
  const ValueId last = is_last(b, updates);
  const ValueId kept =
      b.select(as_column(b, last, updates.row.size() + 1), updates.values, number(b, 0, updates.values));
  const ValueId hits = b.op("gather_gradient", {b.cast(last, b.dtype(x)), updates.indices},
                            {{"axis", int64_t{0}}, {"dims", Dims{b.dims(x)[0]}}});
  const ValueId is_named = b.op("greater", {hits, number(b, 0, hits)});
  return {as_column(b, is_named, updates.row.size() + 1), spread(b, x, updates.indices, kept)};
}

/// `merge` of x and the updates, which are in order and of which there is one at least.
ValueId scatter(Expansion &e, const std::function<ValueId(GraphBuilder &, const Updates &)> &merge) {
  GraphBuilder &b = e.builder();
  const auto updates = updates_of(e);
  if (!updates) return kNoValue;
  if (!graph::element_count(b.dims(e.input(1))).is_constant())
    return e.fail(base::concat("expected indices of known number, got ", graph::to_string(b.dims(e.input(1)))));
  if (updates->count == 0) return e.input(0);
  const Updates ordered = in_order(b, *updates);
  return b.ok() ? merge(b, ordered) : kNoValue;
}

}  // namespace

ValueId expand_function_gather_nd(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId params = e.input(0), indices = e.input(1);
  const int64_t depth = e.last_dimension(indices);
  if (!b.ok()) return kNoValue;
  const Dims dims = b.dims(params);
  if (depth < 1 || depth > static_cast<int64_t>(dims.size())) {
    return e.fail(
        base::concat("expected indices for 1 to ", dims.size(), " axes of ", graph::to_string(dims), ", got ", depth));
  }
  int64_t stride = 1;
  ValueId at = kNoValue;
  for (int64_t axis = depth - 1; axis >= 0; --axis) {
    const auto length = known_length(e, params, axis);
    if (!length) return kNoValue;
    const ValueId part = position(b, indices, axis, *length, stride);
    at = at == kNoValue ? part : b.add(at, part);
    stride *= *length;
  }
  Dims flat(dims.begin() + depth, dims.end());
  flat.insert(flat.begin(), stride);
  return b.op("gather", {b.reshape(params, flat), at});
}

ValueId expand_function_scatter_add(Expansion &e) {
  GraphBuilder &b = e.builder();
  const auto updates = updates_of(e);
  if (!updates) return kNoValue;
  return b.add(e.input(0), spread(b, e.input(0), updates->indices, updates->values));
}

ValueId expand_function_scatter_replace(Expansion &e) {
  return scatter(e, [&](GraphBuilder &b, const Updates &updates) {
    const Placed placed = place_last(b, e.input(0), updates);
    return b.select(placed.is_named, placed.values, e.input(0));
  });
}

// The maximum of all updates up to each one for the same row, by doubling; the last one for a row has that of all.
ValueId expand_function_scatter_max(Expansion &e) {
  return scatter(e, [&](GraphBuilder &b, Updates updates) {
    const size_t rank = updates.row.size() + 1;
    for (int64_t distance = 1; distance < updates.count; distance *= 2) {
      Axes low(rank, 0), high(rank, 0);
      low[0] = distance;
      const ValueId rest = part_of(b, updates.values, 0, 0, updates.count - distance);
      const ValueId before = b.op("pad", {rest}, {{"low", low}, {"high", high}});
      const ValueId same = as_column(b, is_as_before(b, updates, distance), rank);
      updates.values = b.select(same, b.op("maximum", {updates.values, before}), updates.values);
    }
    const Placed placed = place_last(b, e.input(0), updates);
    return b.select(placed.is_named, b.op("maximum", {e.input(0), placed.values}), e.input(0));
  });
}

}  // namespace tutti::impl::nn
