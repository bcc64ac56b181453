// SPDX-License-Identifier: Apache-2.0
#include "nn/functions/function_parts.h"

#include <algorithm>
#include <numeric>

namespace tutti::impl::nn {

std::optional<int64_t> axis_of(Expansion &e, int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis >= -count && axis < count) return axis < 0 ? axis + count : axis;
  e.fail(base::concat("there is no axis ", axis, ": the value has rank ", rank));
  return std::nullopt;
}

std::optional<Axes> axes_of(Expansion &e, size_t rank) {
  Axes axes;
  for (const int64_t given : e.ints("axes")) {
    const auto axis = axis_of(e, given, rank);
    if (!axis) return std::nullopt;
    if (std::ranges::find(axes, *axis) != axes.end()) {
      e.fail(base::concat("attribute 'axes' names axis ", *axis, " twice"));
      return std::nullopt;
    }
    axes.push_back(*axis);
  }
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::ranges::sort(axes);
  return axes;
}

std::optional<int64_t> known_length(Expansion &e, ValueId x, int64_t axis) {
  const Dim &length = e.builder().dims(x)[static_cast<size_t>(axis)];
  if (length.is_constant()) return length.constant();
  e.fail(base::concat("expected an axis of known length, but axis ", axis, " of ",
                      graph::to_string(e.builder().dims(x)), " is not"));
  return std::nullopt;
}

ValueId number(GraphBuilder &b, double value, ValueId like) {
  return b.ok() && like != kNoValue ? b.constant(value, b.dtype(like)) : kNoValue;
}

ValueId part_of(GraphBuilder &b, ValueId x, int64_t axis, const Dim &begin, const Dim &size) {
  if (x == kNoValue) return kNoValue;
  Dims first(b.rank(x), 0), sizes = b.dims(x);
  first[static_cast<size_t>(axis)] = begin;
  sizes[static_cast<size_t>(axis)] = size;
  return b.slice(x, first, sizes);
}

ValueId move_axis(GraphBuilder &b, ValueId x, int64_t from, int64_t to) {
  if (from == to || x == kNoValue) return x;
  Axes permutation(b.rank(x));
  std::iota(permutation.begin(), permutation.end(), 0);
  permutation.erase(permutation.begin() + from);
  permutation.insert(permutation.begin() + to, from);
  return b.transpose(x, permutation);
}

ValueId counting(GraphBuilder &b, const Dim &length) {
  return b.op("iota", {}, {{"dims", Dims{length}}, {"dtype", tensor::DType::i64}});
}

ValueId reversed(GraphBuilder &b, ValueId x, int64_t axis) {
  if (x == kNoValue) return kNoValue;
  return b.op("reverse_axes", {x}, {{"axes", Axes{axis}}});
}

ValueId with_derivative(GraphBuilder &b, ValueId x, const std::function<ValueId(ValueId)> &f,
                        const std::function<ValueId(ValueId x, ValueId y)> &derivative) {
  if (!b.ok() || x == kNoValue) return kNoValue;
  const Values made = b.custom_gradient(
      {x}, [&](GraphBuilder &, const Values &p) { return Values{f(p[0])}; },
      [&](GraphBuilder &inner, const Values &p) { return Values{inner.mul(p[2], derivative(p[0], p[1]))}; });
  return b.ok() ? made.front() : kNoValue;
}

}  // namespace tutti::impl::nn
