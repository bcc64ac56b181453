// SPDX-License-Identifier: Apache-2.0
//
// Metrics of numbers that are predicted.
#include "nn/metrics/metric_parts.h"

namespace tutti::impl::nn {
namespace {

/// Both in f64.
Pair exact_pair(Expansion &e) {
  const Pair pair = same_shape(e);
  return {as_sum(e.builder(), pair.predictions), as_sum(e.builder(), pair.targets)};
}

ValueId mean_squared_error(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Pair pair = exact_pair(e);
  return pair.ok() ? mean_of_rows(e, b.unary("square", b.sub(pair.predictions, pair.targets)), 2) : kNoValue;
}

}  // namespace

ValueId expand_metric_mean_squared_error(Expansion &e) { return report(e, mean_squared_error(e)); }

ValueId expand_metric_root_mean_squared_error(Expansion &e) {
  const ValueId square = mean_squared_error(e);
  return square == kNoValue ? kNoValue : report(e, e.builder().unary("sqrt", square));
}

ValueId expand_metric_mean_absolute_error(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Pair pair = exact_pair(e);
  if (!pair.ok()) return kNoValue;
  return report(e, mean_of_rows(e, b.unary("abs", b.sub(pair.predictions, pair.targets)), 2));
}

ValueId expand_metric_mean_absolute_percentage_error(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Pair pair = exact_pair(e);
  if (!pair.ok()) return kNoValue;
  const ValueId size = b.op("maximum", {b.unary("abs", pair.targets), sum_constant(b, e.f64("epsilon"))});
  const ValueId share = b.div(b.unary("abs", b.sub(pair.predictions, pair.targets)), size);
  return report(e, mean_of_rows(e, b.scale(share, 100), 2));
}

ValueId expand_metric_r_squared(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Pair pair = exact_pair(e);
  if (!pair.ok()) return kNoValue;
  const size_t kept = b.rank(pair.targets) >= 2 ? 1 : 0;
  const ValueId weights = full_weights(e, 2, pair.targets);
  const ValueId weighted = b.mul(weights, pair.targets);
  const ValueId error = sum_rows(b, b.mul(weights, b.unary("square", b.sub(pair.predictions, pair.targets))), kept);
  const ValueId squares = sum_rows(b, b.mul(weighted, pair.targets), kept);
  const ValueId mean_part = over(b, b.unary("square", sum_rows(b, weighted, kept)), sum_rows(b, weights, kept));
  const ValueId difference = b.sub(squares, mean_part);
  // Of equal targets rounding is left.
  const ValueId varies = b.op("greater", {difference, b.scale(squares, 1e-13)});
  const ValueId zero = sum_constant(b, 0), one = sum_constant(b, 1);
  const ValueId spread = b.select(varies, difference, zero);
  const ValueId missed = b.select(b.op("greater", {error, zero}), zero, one);
  const ValueId scores = b.select(varies, b.sub(one, over(b, error, spread)), missed);
  if (e.text("multioutput") == "uniform_average") return report(e, kept == 0 ? scores : b.reduce_mean(scores));
  const ValueId total = b.reduce_sum(spread);
  const ValueId by_spread = over(b, b.reduce_sum(b.mul(scores, spread)), total);
  const ValueId plain = kept == 0 ? scores : b.reduce_mean(scores);
  return report(e, b.select(b.op("greater", {total, zero}), by_spread, plain));
}

}  // namespace tutti::impl::nn
