// SPDX-License-Identifier: Apache-2.0
//
// Elements in another order or number: parts and stacks, repetitions, moves along axes.
#include <numeric>

#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

/// Gives all values, the first as the result.
ValueId give_all(Expansion &e, const Values &values) {
  for (size_t i = 1; i < values.size(); ++i)
    e.give(values[i]);
  return values.empty() ? kNoValue : values.front();
}

/// The parts' lengths; none after an error.
Dims sizes_of(Expansion &e, const Dim &whole, int64_t parts) {
  const std::vector<int64_t> &given = e.ints("sizes");
  if (given.empty()) {
    const auto part = whole.divide_exactly(parts);
    if (part) return Dims(static_cast<size_t>(parts), *part);
    e.fail(base::concat("the axis of ", whole, " elements has no ", parts, " equal parts"));
    return {};
  }
  Dims sizes;
  Dim sum = 0;
  for (const int64_t size : given) {
    if (size < 0) {
      e.fail(base::concat("expected sizes of 0 or more, got ", size));
      return {};
    }
    sizes.emplace_back(size);
    sum = sum + Dim(size);
  }
  if (static_cast<int64_t>(given.size()) == parts && sum == whole) return sizes;
  e.fail(base::concat("expected ", parts, " sizes that together are ", whole, ", got ", given.size(),
                      " that together are ", sum));
  return {};
}

ValueId without_axis(GraphBuilder &b, ValueId x, int64_t axis) {
  Dims dims = b.dims(x);
  dims.erase(dims.begin() + axis);
  return b.reshape(x, dims);
}

/// x moved along one axis by 0 < shift < length.
ValueId rolled(GraphBuilder &b, ValueId x, int64_t axis, int64_t shift, int64_t length) {
  const ValueId end = part_of(b, x, axis, length - shift, shift), begin = part_of(b, x, axis, 0, length - shift);
  return b.concat({end, begin}, axis);
}

}  // namespace

ValueId expand_function_split(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const auto axis = axis_of(e, e.i64("axis"), b.rank(x));
  if (!axis) return kNoValue;
  const Dims sizes = sizes_of(e, b.dims(x)[static_cast<size_t>(*axis)], e.i64("parts"));
  Values pieces;
  Dim begin = 0;
  for (const Dim &size : sizes) {
    pieces.push_back(part_of(b, x, *axis, begin, size));
    begin = begin + size;
  }
  return give_all(e, pieces);
}

ValueId expand_function_unstack(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const auto axis = axis_of(e, e.i64("axis"), b.rank(x));
  if (!axis) return kNoValue;
  const Dim &length = b.dims(x)[static_cast<size_t>(*axis)];
  if (length != Dim(e.i64("length")))
    return e.fail(base::concat("axis ", *axis, " of ", graph::to_string(b.dims(x)), " is not of ", e.i64("length")));
  Values pieces;
  for (int64_t i = 0; i < e.i64("length") && b.ok(); ++i)
    pieces.push_back(without_axis(b, part_of(b, x, *axis, i, 1), *axis));
  return give_all(e, pieces);
}

ValueId expand_function_stack(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Dims dims = b.dims(e.input(0));
  const auto axis = axis_of(e, e.i64("axis"), dims.size() + 1);
  if (!axis) return kNoValue;
  Dims thin = dims;
  thin.insert(thin.begin() + *axis, 1);
  Values layers;
  for (const ValueId input : e.inputs()) {
    if (b.dims(input) != dims) {
      return e.fail(base::concat("expected values of one shape, got ", graph::to_string(dims), " and ",
                                 graph::to_string(b.dims(input))));
    }
    layers.push_back(b.reshape(input, thin));
  }
  return b.concat(layers, *axis);
}

// Each axis [n] is [1, n], becomes [multiple, n] and then [multiple * n].
ValueId expand_function_tile(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const std::vector<int64_t> &multiples = e.ints("multiples");
  const Dims dims = b.dims(x);
  if (multiples.size() != dims.size()) {
    return e.fail(base::concat("got ", multiples.size(), " multiples for the axes of ", graph::to_string(dims)));
  }
  Dims apart, repeated, joined;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (multiples[i] < 0) return e.fail(base::concat("expected multiples of 0 or more, got ", multiples[i]));
    if (multiples[i] != 1) apart.emplace_back(1), repeated.emplace_back(multiples[i]);
    apart.push_back(dims[i]), repeated.push_back(dims[i]);
    joined.push_back(dims[i] * Dim(multiples[i]));
  }
  return b.reshape(b.broadcast_to(b.reshape(x, apart), repeated), joined);
}

ValueId expand_function_roll(Expansion &e) {
  GraphBuilder &b = e.builder();
  const std::vector<int64_t> &shifts = e.ints("shifts"), &axes = e.ints("axes");
  if (shifts.size() != axes.size())
    return e.fail(base::concat("got ", shifts.size(), " shifts for ", axes.size(), " axes"));
  ValueId x = e.input(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = axis_of(e, axes[i], b.rank(x));
    const auto length = axis ? known_length(e, x, *axis) : std::nullopt;
    if (!length) return kNoValue;
    const int64_t shift = *length == 0 ? 0 : (shifts[i] % *length + *length) % *length;
    if (shift != 0) x = rolled(b, x, *axis, shift, *length);
  }
  return x;
}

ValueId expand_function_reverse(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (e.ints("axes").empty()) return e.fail("expected axes, got none");
  const auto axes = axes_of(e, b.rank(e.input(0)));
  return axes ? b.op("reverse_axes", {e.input(0)}, {{"axes", *axes}}) : kNoValue;
}

}  // namespace tutti::impl::nn
