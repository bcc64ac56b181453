// SPDX-License-Identifier: Apache-2.0
//
// Element by element: limits, activations, tests for NaN and infinity, logarithms.
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/ops/rules.h"
#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

/// The limits that a value of a dtype can be compared with; those that none of its values reaches become infinite.
struct Limits {
  double low, high;
  bool is_empty = false;
};

Limits limits_within(tensor::DType dtype, double low, double high) {
  Limits limits{low, high};
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const auto least = static_cast<double>(std::numeric_limits<T>::min()),
                 most = static_cast<double>(std::numeric_limits<T>::max());
      limits.low = std::ceil(low), limits.high = std::floor(high);
      limits.is_empty = limits.low > limits.high || limits.high < least || limits.low > most;
      if (limits.low <= least) limits.low = -kInfinity;
      if (limits.high >= most) limits.high = kInfinity;
    }
  });
  return limits;
}

// A limit is the first operand of minimum and maximum, which is where the gradient goes when both are equal.

ValueId relu6(GraphBuilder &b, ValueId x) { return b.op("minimum", {number(b, 6, x), b.unary("relu", x)}); }

ValueId hard_sigmoid(GraphBuilder &b, ValueId x) { return b.scale(relu6(b, b.add_scalar(x, 3)), 1.0 / 6); }

}  // namespace

ValueId expand_function_clip(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const double low = e.f64("low"), high = e.f64("high");
  if (!(low <= high)) return e.fail(base::concat("expected limits in order, got ", low, " and ", high));
  const Limits limits = limits_within(b.dtype(x), low, high);
  if (limits.is_empty) return e.fail(base::concat("no ", tensor::name(b.dtype(x)), " is from ", low, " to ", high));
  ValueId y = x;
  if (limits.low != -kInfinity) y = b.op("maximum", {number(b, limits.low, x), y});
  if (limits.high != kInfinity) y = b.op("minimum", {number(b, limits.high, x), y});
  return y;
}

ValueId expand_function_relu6(Expansion &e) { return relu6(e.builder(), e.input(0)); }

ValueId expand_function_selu(Expansion &e) {
  constexpr double kScale = 1.0507009873554804934193349852946, kAlpha = 1.6732632423543772848170429916717;
  return e.builder().scale(e.builder().op("elu", {e.input(0)}, {{"alpha", kAlpha}}), kScale);
}

ValueId expand_function_mish(Expansion &e) {
  GraphBuilder &b = e.builder();
  return b.mul(e.input(0), b.unary("tanh", b.unary("softplus", e.input(0))));
}

ValueId expand_function_hard_sigmoid(Expansion &e) { return hard_sigmoid(e.builder(), e.input(0)); }

ValueId expand_function_hard_swish(Expansion &e) {
  return e.builder().mul(e.input(0), hard_sigmoid(e.builder(), e.input(0)));
}

ValueId expand_function_softsign(Expansion &e) {
  GraphBuilder &b = e.builder();
  const auto size = [&](ValueId x) { return b.add_scalar(b.unary("abs", x), 1); };
  return with_derivative(
      b, e.input(0), [&](ValueId x) { return b.div(x, size(x)); },
      [&](ValueId x, ValueId) { return b.unary("square", b.unary("reciprocal", size(x))); });
}

ValueId expand_function_log_sigmoid(Expansion &e) {
  GraphBuilder &b = e.builder();
  return b.neg(b.unary("softplus", b.neg(e.input(0))));
}

ValueId expand_function_prelu(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0), slope = e.input(1);
  if (graph::ops::broadcast_dims(b.dims(x), b.dims(slope)) != b.dims(x)) {
    return e.fail(base::concat("a slope ", graph::to_string(b.dims(slope)), " does not broadcast to ",
                               graph::to_string(b.dims(x))));
  }
  const ValueId zero = number(b, 0, x);
  // Limited, so that an infinity has no part in the gradient of a slope that it does not meet.
  const ValueId below = b.mul(slope, b.op("minimum", {x, zero}));
  return b.select(b.op("greater", {x, zero}), x, below);
}

ValueId expand_function_is_nan(Expansion &e) { return e.builder().op("not_equal", {e.input(0), e.input(0)}); }

ValueId expand_function_is_inf(Expansion &e) {
  GraphBuilder &b = e.builder();
  return b.op("equal", {b.unary("abs", e.input(0)), number(b, kInfinity, e.input(0))});
}

ValueId expand_function_log2(Expansion &e) {
  return e.builder().scale(e.builder().unary("log", e.input(0)), std::numbers::log2e);
}

ValueId expand_function_log10(Expansion &e) {
  return e.builder().scale(e.builder().unary("log", e.input(0)), std::numbers::log10e);
}

}  // namespace tutti::impl::nn
