// SPDX-License-Identifier: Apache-2.0
//
// Bands around the diagonal of matrices, and triangles.
#include <algorithm>
#include <limits>
#include <optional>

#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

/// No matrix that is counted in i32 has diagonals further away.
constexpr double kMost = std::numeric_limits<int32_t>::max();

/// column - row from `lowest` to `highest`, as far as there are such bounds; nothing where there are none.
ValueId mask(GraphBuilder &b, Dim rows, Dim columns, std::optional<int64_t> lowest, std::optional<int64_t> highest) {
  // Short axes are counted in f32, which is as exact and part of other elementwise work.
  constexpr int64_t kExactInFloat = 1 << 23;
  const auto is_short = [](const Dim &dim) { return dim.is_constant() && dim.constant() < kExactInFloat; };
  const bool is_small = is_short(rows) && is_short(columns);
  const tensor::DType dtype = is_small ? tensor::DType::f32 : tensor::DType::i32;
  const double most = is_small ? 2.0 * kExactInFloat : kMost;
  const auto indices = [&](Dims dims, int64_t axis) {
    return b.op("iota", {}, {{"dims", std::move(dims)}, {"axis", axis}, {"dtype", dtype}});
  };
  const ValueId diagonal = b.sub(indices({Dim(1), columns}, 1), indices({rows, Dim(1)}, 0));
  const auto limit = [&](int64_t bound) {
    return b.constant(std::clamp(static_cast<double>(bound), -most, most), dtype);
  };
  ValueId made = kNoValue;
  if (lowest) made = b.op("greater_equal", {diagonal, limit(*lowest)});
  if (!highest) return made;
  const ValueId below = b.op("less_equal", {diagonal, limit(*highest)});
  return made == kNoValue ? below : b.op("logical_and", {made, below});
}

ValueId masked(Expansion &e, std::optional<int64_t> lowest, std::optional<int64_t> highest) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const Dims dims = b.dims(x);
  if (dims.size() < 2) return e.fail(base::concat("expected matrices, got ", graph::to_string(dims)));
  if (!lowest && !highest) return x;
  return b.select(mask(b, dims[dims.size() - 2], dims[dims.size() - 1], lowest, highest), x, number(b, 0, x));
}

std::optional<int64_t> bound(int64_t diagonals, int64_t sign) {
  return diagonals < 0 ? std::nullopt : std::optional<int64_t>(sign * diagonals);
}

}  // namespace

ValueId expand_function_band_part(Expansion &e) {
  return masked(e, bound(e.i64("lower"), -1), bound(e.i64("upper"), 1));
}

ValueId expand_function_lower_triangle(Expansion &e) { return masked(e, std::nullopt, e.i64("diagonal")); }

ValueId expand_function_upper_triangle(Expansion &e) { return masked(e, e.i64("diagonal"), std::nullopt); }

ValueId expand_function_band_mask(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Dims dims = {e.i64("rows"), e.i64("columns")};
  const auto lowest = bound(e.i64("lower"), -1), highest = bound(e.i64("upper"), 1);
  const ValueId made =
      lowest || highest ? mask(b, dims[0], dims[1], lowest, highest) : b.constant(1, tensor::DType::boolean);
  return b.broadcast_to(made, dims);
}

}  // namespace tutti::impl::nn
