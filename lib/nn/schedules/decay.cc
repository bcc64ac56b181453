// SPDX-License-Identifier: Apache-2.0
//
// Rates that fall from step to step, or stay.
#include "base/text.h"
#include "nn/schedules/schedule_parts.h"

namespace tutti::impl::nn {
namespace {

/// How many times `decay_steps` steps have passed: a fraction, or with staircase only the whole ones.
ValueId decay_times(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId times = divide(b, completed_steps(b), double(e.i64("decay_steps")));
  return e.flag("staircase") ? b.unary("floor", times) : times;
}

ValueId value_times_power(Expansion &e, double base, ValueId exponent) {
  GraphBuilder &b = e.builder();
  return as_rate(b, b.scale(b.op("pow", {exact(b, base), exponent}), e.f64("value")));
}

}  // namespace

ValueId expand_schedule_constant(Expansion &e) { return e.builder().constant(e.f64("value"), kRate); }

ValueId expand_schedule_exponential(Expansion &e) { return value_times_power(e, e.f64("decay_rate"), decay_times(e)); }

ValueId expand_schedule_natural_exponential(Expansion &e) {
  GraphBuilder &b = e.builder();
  return as_rate(b, b.scale(b.unary("exp", b.scale(decay_times(e), -e.f64("decay_rate"))), e.f64("value")));
}

ValueId expand_schedule_inverse_time(Expansion &e) {
  GraphBuilder &b = e.builder();
  return as_rate(b, b.div(exact(b, e.f64("value")), b.add_scalar(b.scale(decay_times(e), e.f64("decay_rate")), 1)));
}

ValueId expand_schedule_step(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId times = b.unary("floor", divide(b, completed_steps(b), double(e.i64("step_size"))));
  return value_times_power(e, e.f64("gamma"), times);
}

ValueId expand_schedule_polynomial(Expansion &e) {
  GraphBuilder &b = e.builder();
  const double steps = double(e.i64("steps")), final_value = e.f64("final_value");
  const ValueId step = completed_steps(b);
  ValueId end = exact(b, steps);
  if (e.flag("cycle")) end = b.scale(b.op("maximum", {b.unary("ceil", divide(b, step, steps)), exact(b, 1)}), steps);
  const ValueId left = clamp01(b, b.div(b.sub(end, step), end));
  const ValueId share = b.op("pow", {left, exact(b, e.f64("power"))});
  return as_rate(b, b.add_scalar(b.scale(share, e.f64("value") - final_value), final_value));
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
