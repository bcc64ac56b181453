// SPDX-License-Identifier: Apache-2.0
//
// Rates that follow parts of cosines: one decay, decays with restarts, one cycle up and down.
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "nn/schedules/schedule_parts.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {

ValueId expand_schedule_cosine(Expansion &e) {
  GraphBuilder &b = e.builder();
  const int64_t steps = e.i64("steps"), warmup = e.i64("warmup_steps");
  if (warmup >= steps) return e.fail(base::concat("warmup_steps ", warmup, " must be below steps ", steps));
  const ValueId step = completed_steps(b);
  const ValueId left = clamp01(b, divide(b, b.sub(exact(b, double(steps)), step), double(steps - warmup)));
  const double end = e.f64("final_fraction");
  ValueId share = b.add_scalar(b.scale(half_wave(b, left), 1 - end), end);
  if (warmup > 0) share = b.mul(share, clamp01(b, divide(b, b.add_scalar(step, 1), double(warmup))));
  return as_rate(b, b.scale(share, e.f64("value")));
}

namespace {

/// Which period a step is in, and what of that period is left: 1 at its first step.
struct Period {
  ValueId index = kNoValue, left = kNoValue;
};

Period equal_periods(GraphBuilder &b, double length) {
  const ValueId step = completed_steps(b);
  const ValueId index = b.unary("floor", divide(b, step, length));
  const ValueId end = b.scale(b.add_scalar(index, 1), length);
  return {index, divide(b, b.sub(end, step), length)};
}

ValueId constant_of(GraphBuilder &b, const std::vector<double> &values) {
  auto table = tensor::Tensor::from_values(tensor::Shape({int64_t(values.size())}), std::span<const double>(values));
  return table.ok() ? b.constant(table.take()) : b.fail(table.status());
}

/// Periods that grow by a factor above 1: their begins as a table, in which the step's is found by comparison. A
/// formula with logarithms would be wrong by a period next to their ends.
Period growing_periods(GraphBuilder &b, double length, double factor) {
  constexpr double kMostSteps = 9007199254740992;  // 2^53
  std::vector<double> begins, ends;
  for (double begin = 0; begin < kMostSteps; begin = ends.back()) {
    begins.push_back(begin);
    ends.push_back(length * (std::pow(factor, double(begins.size())) - 1) / (factor - 1));
  }
  const ValueId step = completed_steps(b);
  const ValueId begin_table = constant_of(b, begins), end_table = constant_of(b, ends);
  const ValueId begun = b.op("greater_equal", {step, begin_table}), over = b.op("greater_equal", {step, end_table});
  const ValueId begin = b.reduce("reduce_max", b.select(begun, begin_table, exact(b, 0)), {});
  const ValueId end =
      b.reduce("reduce_min", b.select(over, exact(b, std::numeric_limits<double>::max()), end_table), {});
  return {b.reduce_sum(b.cast(over, kExact)), b.div(b.sub(end, step), b.sub(end, begin))};
}

}  // namespace

ValueId expand_schedule_cosine_restarts(Expansion &e) {
  GraphBuilder &b = e.builder();
  const double growth = e.f64("period_factor"), end = e.f64("final_fraction"), shrinking = e.f64("value_factor");
  if (growth > 1 && growth < 1.01) {
    return e.fail(base::concat("attribute 'period_factor': expected 1, or at least 1.01, got ", growth));
  }
  const auto steps = double(e.i64("steps"));
  const Period period = growth == 1 ? equal_periods(b, steps) : growing_periods(b, steps, growth);
  ValueId share = half_wave(b, period.left);
  if (shrinking != 1) share = b.mul(share, b.op("pow", {exact(b, shrinking), period.index}));
  return as_rate(b, b.scale(b.add_scalar(b.scale(share, 1 - end), end), e.f64("value")));
}

namespace {

/// A part of one_cycle: up to and including step `last` (it may be a fraction) from one rate to another.
struct Phase {
  double last = 0, from = 0, to = 0;
};

std::vector<Phase> phases_of(const Expansion &e) {
  const double most = e.f64("value"), least = most / e.f64("start_divisor");
  const double end = least / e.f64("final_divisor"), last = double(e.i64("steps")) - 1;
  const double top = e.f64("warmup_fraction") * double(e.i64("steps")) - 1;
  std::vector<Phase> phases = {{top, least, most}};
  if (e.flag("three_phases")) phases.push_back({2 * top, most, least});
  phases.push_back({last, phases.back().to, end});
  return phases;
}

}  // namespace

ValueId expand_schedule_one_cycle(Expansion &e) {
  GraphBuilder &b = e.builder();
  const double share_up = e.f64("warmup_fraction");
  if (e.flag("three_phases") && share_up > 0.5) {
    return e.fail(base::concat("with three_phases, attribute 'warmup_fraction' must be at most 0.5, got ", share_up));
  }
  const std::vector<Phase> phases = phases_of(e);
  const bool linear = e.text("anneal") == "linear";
  const ValueId step = b.op("minimum", {completed_steps(b), exact(b, double(e.i64("steps")) - 1)});
  ValueId rate = kNoValue;
  for (size_t i = phases.size(); i-- > 0;) {
    const Phase &phase = phases[i];
    const double begin = i == 0 ? 0 : phases[i - 1].last, length = phase.last - begin;
    // What is left of it, so that a small rate at its end is exact; no step is inside a phase without length.
    ValueId left = exact(b, 0);
    if (length > 0) left = clamp01(b, divide(b, b.sub(exact(b, phase.last), step), length));
    if (!linear) left = half_wave(b, left);
    const ValueId here = b.add_scalar(b.scale(left, phase.from - phase.to), phase.to);
    rate = rate == kNoValue ? here : b.select(b.op("less_equal", {step, exact(b, phase.last)}), here, rate);
  }
  return as_rate(b, rate);
}

}  // namespace tutti::impl::nn
