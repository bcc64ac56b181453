// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/positions.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "base/text.h"
#include "nn/constant_list.h"
#include "nn/expansion.h"

namespace tutti::impl::nn {

using graph::Dim;
using graph::Dims;
using tensor::DType;

ValueId positions_from(GraphBuilder &b, const Dim &first, const Dim &count) {
  const ValueId all = b.op("iota", {}, {{"dims", Dims{first + count}}, {"dtype", DType::i32}});
  return first == Dim(0) ? all : b.slice(all, {first}, {count});
}

ValueId lengths_within(Expansion &e, ValueId lengths, const Dim &longest) {
  GraphBuilder &b = e.builder();
  if (!b.ok()) return kNoValue;
  const DType dtype = b.dtype(lengths);
  if (!tensor::is_integer(dtype))
    return e.fail(base::concat("expected lengths of integers, got ", tensor::name(dtype), " ",
                               graph::to_string(b.dims(lengths))));
  const bool is_wide = dtype == DType::i64 || dtype == DType::u32 || dtype == DType::u64;
  b.push_scope("lengths");
  const ValueId known = b.op("iota", {}, {{"dims", Dims{longest + Dim(1)}}, {"dtype", DType::i32}});
  const ValueId found = b.op("gather", {known, b.cast(lengths, is_wide ? DType::i64 : DType::i32)});
  b.pop_scope();
  return found;
}

namespace {

/// [positions..., count] of f64: each position times each of the factors. In double precision, since an angle may be
/// large.
ValueId angles(GraphBuilder &b, ValueId positions, const std::vector<double> &factors) {
  if (!b.ok()) return kNoValue;
  Dims dims = b.dims(positions);
  dims.emplace_back(1);
  const ValueId column = b.reshape(b.cast(positions, DType::f64), dims);
  return b.mul(column, constant_list(b, factors, column));
}

/// base^(-2 i / channels) for each pair i.
std::vector<double> frequencies(double base, int64_t channels) {
  std::vector<double> made;
  for (int64_t i = 0; 2 * i < channels; ++i)
    made.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(channels)));
  return made;
}

/// x from channel `first` on.
ValueId part_of(GraphBuilder &b, ValueId x, int64_t first, int64_t count) {
  Dims begin(b.rank(x), Dim(0)), size = b.dims(x);
  begin.back() = Dim(first);
  size.back() = Dim(count);
  return b.slice(x, begin, size);
}

/// [1 or batch, length, 1, ..., pairs], which broadcasts to parts of x.
ValueId beside(GraphBuilder &b, ValueId table, ValueId x, ValueId like) {
  const Dims made = b.dims(table);
  Dims dims(b.rank(x), Dim(1));
  if (made.size() == 3) dims[0] = made[0];
  dims[1] = made[made.size() - 2];
  dims.back() = made.back();
  return b.cast(b.reshape(table, dims), b.dtype(like));
}

/// The positions that an entry was given, or all of x; kNoValue after an error.
ValueId positions_of(Expansion &e, ValueId x) {
  GraphBuilder &b = e.builder();
  const ValueId all = positions_from(b, Dim(0), b.dims(x)[1]);
  if (!e.has_input(1)) return all;
  const ValueId positions = e.input(1);
  const Dims dims = b.dims(positions), of_x = b.dims(x);
  const bool is_row = dims.size() == 1, is_table = dims.size() == 2 && dims[0] == of_x[0];
  const bool differs = !dims.empty() && dims.back().is_constant() && of_x[1].is_constant() && dims.back() != of_x[1];
  if ((!is_row && !is_table) || differs || !tensor::is_integer(b.dtype(positions))) {
    e.fail(base::concat("expected positions of integers, [length] or [batch, length], for x ", graph::to_string(of_x),
                        ", got ", tensor::name(b.dtype(positions)), " ", graph::to_string(dims)));
    return kNoValue;
  }
  // Lengths of both that only the data tells are one.
  if (dims.back() != of_x[1]) b.op("equal", {b.cast(positions, DType::i32), all});
  return b.ok() ? positions : kNoValue;
}

/// False with an error unless x is [batch, length, channels].
bool has_positions(Expansion &e, ValueId x) {
  if (x == kNoValue || e.builder().rank(x) == 3) return x != kNoValue;
  e.fail(base::concat("expected x of rank 3, [batch, length, channels], got ", graph::to_string(e.builder().dims(x))));
  return false;
}

}  // namespace

ValueId rotated(GraphBuilder &b, ValueId x, ValueId positions, const Rotation &rotation) {
  if (!b.ok()) return kNoValue;
  const Dims dims = b.dims(x);
  const int64_t channels = dims.back().constant(), half = channels / 2;
  const ValueId angle = angles(b, positions, frequencies(rotation.base, channels));
  ValueId first = kNoValue, second = kNoValue;
  if (rotation.is_adjacent) {
    Dims pairs = dims;
    pairs.back() = Dim(half);
    Dims split = pairs;
    split.emplace_back(2);
    const ValueId both = b.reshape(x, split);
    first = b.reshape(part_of(b, both, 0, 1), pairs);
    second = b.reshape(part_of(b, both, 1, 1), pairs);
  } else {
    first = part_of(b, x, 0, half);
    second = part_of(b, x, half, half);
  }
  const ValueId cosine = beside(b, b.unary("cos", angle), x, x), sine = beside(b, b.unary("sin", angle), x, x);
  ValueId turned_first = b.sub(b.mul(first, cosine), b.mul(second, sine));
  ValueId turned_second = b.add(b.mul(second, cosine), b.mul(first, sine));
  const auto axis = static_cast<int64_t>(dims.size());
  if (!rotation.is_adjacent) return b.concat({turned_first, turned_second}, axis - 1);
  if (!b.ok()) return kNoValue;
  Dims column = b.dims(turned_first);
  column.emplace_back(1);
  return b.reshape(b.concat({b.reshape(turned_first, column), b.reshape(turned_second, column)}, axis), dims);
}

ValueId expand_layer_rotary_positions(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "rotary_positions");
  const ValueId x = e.input(0);
  const int64_t channels = e.last_dimension(x);
  if (channels == 0) return kNoValue;
  if (b.rank(x) < 3 || channels % 2 != 0) {
    return e.fail(base::concat("expected x [batch, length, ..., channels] with an even number of channels, got ",
                               graph::to_string(b.dims(x))));
  }
  const ValueId positions = positions_of(e, x);
  return rotated(b, x, positions, {.base = e.f64("base"), .is_adjacent = e.text("rotary_pairs") == "adjacent"});
}

ValueId expand_layer_sinusoidal_positions(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "sinusoidal_positions");
  const ValueId x = e.input(0);
  if (!has_positions(e, x)) return kNoValue;
  const int64_t channels = e.last_dimension(x);
  if (channels == 0) return kNoValue;
  const std::vector<double> of_pairs = frequencies(e.f64("base"), channels);
  std::vector<double> factors, phases;  // a cosine is a sine, a quarter of a turn on
  for (int64_t channel = 0; channel < channels; ++channel) {
    factors.push_back(of_pairs[static_cast<size_t>(channel / 2)]);
    phases.push_back(channel % 2 == 0 ? 0 : std::numbers::pi / 2);
  }
  const ValueId angle = angles(b, positions_of(e, x), factors);
  if (!b.ok()) return kNoValue;
  return b.add(x, b.cast(b.unary("sin", b.add(angle, constant_list(b, phases, angle))), b.dtype(x)));
}

ValueId expand_layer_learned_positions(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "learned_positions");
  const ValueId x = e.input(0);
  if (!has_positions(e, x)) return kNoValue;
  const int64_t channels = e.last_dimension(x), count = e.i64("count");
  if (channels == 0) return kNoValue;
  const ValueId table = e.weight("positions", x, {count, channels}, e.text("initializer"));
  if (!b.ok()) return kNoValue;
  const Dim length = b.dims(x)[1];
  const bool is_known = !e.has_input(1) && length.is_constant();
  if (is_known && length.constant() > count)
    return e.fail(base::concat("x has ", length.constant(), " positions, and attribute 'count' is ", count));
  if (is_known) return b.add(x, b.slice(table, {Dim(0), Dim(0)}, {length, Dim(channels)}));
  return b.add(x, b.op("gather", {table, positions_of(e, x)}));
}

}  // namespace tutti::impl::nn
