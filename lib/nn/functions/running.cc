// SPDX-License-Identifier: Apache-2.0
//
// Sums and products up to each index, by doubling (Hillis and Steele, 1986): after the step of distance d each element
// has what 2 d elements make together. That is log2(n) passes over all n elements, with rounding errors that grow as
// log2(n).
#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

class Running {
 public:
  Running(GraphBuilder &b, std::string_view op, double neutral, int64_t axis, int64_t length, bool is_backward)
      : b_(b), op_(op), neutral_(neutral), axis_(axis), length_(length), is_backward_(is_backward) {}

  ValueId run(ValueId x, bool is_exclusive) {
    if (is_exclusive) x = moved(x);
    for (int64_t distance = 1; distance < length_ && x != kNoValue; distance *= 2)
      x = combined(x, distance);
    return x;
  }

 private:
  /// Each element with the one that is so many indices before it; the first ones, which have none, as they are.
  ValueId combined(ValueId x, int64_t distance) {
    const int64_t rest = length_ - distance;
    const ValueId low = part_of(b_, x, axis_, 0, rest), high = part_of(b_, x, axis_, distance, rest);
    if (is_backward_) return b_.concat({b_.op(op_, {high, low}), part_of(b_, x, axis_, rest, distance)}, axis_);
    return b_.concat({part_of(b_, x, axis_, 0, distance), b_.op(op_, {low, high})}, axis_);
  }

  /// x one index further, with a neutral element where nothing comes from.
  ValueId moved(ValueId x) {
    Axes low(b_.rank(x), 0), high = low;
    (is_backward_ ? high : low)[static_cast<size_t>(axis_)] = 1;
    const ValueId rest = part_of(b_, x, axis_, is_backward_ ? 1 : 0, length_ - 1);
    return b_.op("pad", {rest}, {{"low", low}, {"high", high}, {"value", neutral_}});
  }

  GraphBuilder &b_;
  const std::string_view op_;
  const double neutral_;
  const int64_t axis_, length_;
  const bool is_backward_;
};

ValueId run_along_axis(Expansion &e, std::string_view op, double neutral) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const auto axis = axis_of(e, e.i64("axis"), b.rank(x));
  const auto length = axis ? known_length(e, x, *axis) : std::nullopt;
  if (!length) return kNoValue;
  return *length == 0 ? x : Running(b, op, neutral, *axis, *length, e.flag("backward")).run(x, e.flag("exclusive"));
}

}  // namespace

ValueId expand_function_cumsum(Expansion &e) { return run_along_axis(e, "add", 0); }

ValueId expand_function_cumprod(Expansion &e) { return run_along_axis(e, "mul", 1); }

}  // namespace tutti::impl::nn
