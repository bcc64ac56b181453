// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "base/text.h"
#include "nn/expansion.h"

namespace tutti::impl::nn {
namespace {

constexpr tensor::DType kRate = tensor::DType::f32;

/// The number of completed steps; 0 in the first step.
ValueId completed_steps(GraphBuilder &b) { return b.run_scalar("step", kRate); }

ValueId clamp01(GraphBuilder &b, ValueId x) {
  return b.op("minimum", {b.op("maximum", {x, b.constant(0, kRate)}), b.constant(1, kRate)});
}

}  // namespace

ValueId expand_schedule_constant(Expansion &e) { return e.builder().constant(e.f64("value"), kRate); }

ValueId expand_schedule_exponential(Expansion &e) {
  GraphBuilder &b = e.builder();
  ValueId times = b.scale(completed_steps(b), 1.0 / double(e.i64("decay_steps")));
  if (e.flag("staircase")) {
    // Exact at the multiples, where the product above may round down.
    const ValueId quotient = b.op("floor_divide", {b.run_scalar("step", tensor::DType::i64),
                                                   b.constant(double(e.i64("decay_steps")), tensor::DType::i64)});
    times = b.cast(quotient, kRate);
  }
  return b.scale(b.op("pow", {b.constant(e.f64("decay_rate"), kRate), times}), e.f64("value"));
}

ValueId expand_schedule_cosine(Expansion &e) {
  GraphBuilder &b = e.builder();
  const int64_t steps = e.i64("steps"), warmup = e.i64("warmup_steps");
  if (warmup >= steps) return e.fail(base::concat("warmup_steps ", warmup, " must be below steps ", steps));
  const ValueId step = completed_steps(b);
  const ValueId progress = clamp01(b, b.scale(b.add_scalar(step, -double(warmup)), 1.0 / double(steps - warmup)));
  const ValueId half_wave = b.scale(b.add_scalar(b.unary("cos", b.scale(progress, std::numbers::pi)), 1), 0.5);
  const double end = e.f64("final_fraction");
  ValueId share = b.add_scalar(b.scale(half_wave, 1 - end), end);
  if (warmup > 0) share = b.mul(share, clamp01(b, b.scale(b.add_scalar(step, 1), 1.0 / double(warmup))));
  return b.scale(share, e.f64("value"));
}

ValueId expand_schedule_piecewise(Expansion &e) {
  GraphBuilder &b = e.builder();
  const auto &boundaries = e.ints("boundaries");
  const auto &values = e.doubles("values");
  if (values.size() != boundaries.size() + 1) {
    return e.fail(
        base::concat(boundaries.size(), " boundaries need ", boundaries.size() + 1, " values, got ", values.size()));
  }
  for (const double value : values) {
    if (!(value >= 0)) return e.fail(base::concat("the learning rate is ", value, ", expected 0 or more"));
  }
  const ValueId step = b.run_scalar("step", tensor::DType::i64);
  ValueId rate = b.constant(values.back(), kRate);
  for (size_t i = boundaries.size(); i-- > 0;) {
    if (i > 0 && boundaries[i] <= boundaries[i - 1]) return e.fail("boundaries must increase");
    const ValueId before = b.op("less", {step, b.constant(double(boundaries[i]), tensor::DType::i64)});
    rate = b.select(before, b.constant(values[i], kRate), rate);
  }
  return rate;
}

}  // namespace tutti::impl::nn
