// SPDX-License-Identifier: Apache-2.0
//
// Elements that indices name: gather_nd, and updates of rows.
#include "nn/functions/function_parts.h"

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

/// Updates for rows, flat: one row of indices, and the updates as [updates, row...].
struct Updates {
  ValueId indices = kNoValue, values = kNoValue;
};

std::optional<Updates> updates_of(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Dims x = b.dims(e.input(0));
  if (x.empty()) {
    e.fail("a scalar has no rows");
    return std::nullopt;
  }
  Dims expected = b.dims(e.input(1));
  const Dim count = graph::element_count(expected);
  expected.insert(expected.end(), x.begin() + 1, x.end());
  if (b.dims(e.input(2)) != expected) {
    e.fail(base::concat("updates ", graph::to_string(b.dims(e.input(2))), " do not fit: expected ",
                        graph::to_string(expected)));
    return std::nullopt;
  }
  Dims flat = x;
  flat[0] = count;
  return Updates{b.reshape(e.input(1), {count}), b.reshape(e.input(2), flat)};
}

/// x with the updates put into their rows.
ValueId merged(Expansion &e, std::string_view mode) {
  const auto updates = updates_of(e);
  if (!updates) return kNoValue;
  return e.builder().op("merge_rows", {e.input(0), updates->indices, updates->values}, {{"mode", std::string(mode)}});
}

/// One after the other, for which there has to be an order.
ValueId of_known_number(Expansion &e, std::string_view mode) {
  const Dims &indices = e.builder().dims(e.input(1));
  if (graph::element_count(indices).is_constant()) return merged(e, mode);
  return e.fail(base::concat("expected indices of known number, got ", graph::to_string(indices)));
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

// Updates of the rows of a batch, whose number only data tells, may come in parts: their sum is one of parts.
ValueId expand_function_scatter_add(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (graph::element_count(b.dims(e.input(1))).is_constant()) return merged(e, "add");
  const auto updates = updates_of(e);
  if (!updates) return kNoValue;
  return b.add(e.input(0), b.op("gather_gradient", {updates->values, updates->indices},
                                {{"axis", int64_t{0}}, {"dims", b.dims(e.input(0))}}));
}

ValueId expand_function_scatter_replace(Expansion &e) { return of_known_number(e, "replace"); }

ValueId expand_function_scatter_max(Expansion &e) { return of_known_number(e, "maximum"); }

}  // namespace tutti::impl::nn
