// SPDX-License-Identifier: Apache-2.0
//
// Schedules made of others.
#include "nn/schedules/schedule_parts.h"

namespace tutti::impl::nn {

ValueId expand_schedule_warmup(Expansion &e) {
  GraphBuilder &b = e.builder();
  const int64_t steps = e.i64("steps");
  const double start = e.f64("start_fraction");
  ValueId rate = rate_input(e, 0);
  if (e.flag("shifted")) rate = delayed(e, rate, steps);
  if (rate == kNoValue) return kNoValue;
  const ValueId progress = clamp01(b, divide(b, completed_steps(b), double(steps)));
  const ValueId share = b.add_scalar(b.scale(progress, 1 - start), start);
  return b.mul(rate, b.cast(share, b.dtype(rate)));
}

ValueId expand_schedule_switch(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId before = rate_input(e, 0);
  ValueId after = rate_input(e, 1);
  if (e.flag("shifted")) after = delayed(e, after, e.i64("step_of_switch"));
  if (before == kNoValue || after == kNoValue) return kNoValue;
  const ValueId step = b.run_scalar("step", tensor::DType::i64);
  const ValueId is_before = b.op("less", {step, b.constant(double(e.i64("step_of_switch")), tensor::DType::i64)});
  return b.select(is_before, before, b.cast(after, b.dtype(before)));
}

}  // namespace tutti::impl::nn
