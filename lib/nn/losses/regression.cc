// SPDX-License-Identifier: Apache-2.0
//
// Losses of predicted numbers, element by element.
#include <cmath>
#include <numbers>

#include "nn/losses/loss_parts.h"

namespace tutti::impl::nn {
namespace {

/// prediction − target, or kNoValue after an error.
ValueId error_of(Expansion &e) {
  const ValueId targets = like_first(e, 1);
  return targets == kNoValue ? kNoValue : e.builder().sub(e.input(0), targets);
}

/// log(cosh(a)) of a ≥ 0. Up to 1 it is −log(1 − tanh²(a)) / 2, which keeps all digits near 0; above that
/// a + log(1 + e^(−2a)) − log(2), which does not overflow. Each is finite where the other is taken.
ValueId log_cosh(GraphBuilder &b, ValueId a) {
  const ValueId one = b.constant(1, b.dtype(a));
  const ValueId tangent = b.unary("tanh", b.op("minimum", {a, one}));
  const ValueId near = b.scale(b.unary("log1p", b.neg(b.unary("square", tangent))), -0.5);
  const ValueId far = b.add_scalar(b.add(a, b.unary("softplus", b.scale(a, -2))), -std::numbers::ln2);
  return b.select(b.op("less", {a, one}), near, far);
}

/// Stirling's approximation of log(target!) above 1, else 0.
ValueId log_factorial(GraphBuilder &b, ValueId targets) {
  const ValueId above = b.op("greater", {targets, b.constant(1, b.dtype(targets))});
  const ValueId safe = at_least(b, targets, 1);
  const ValueId logarithm = b.unary("log", safe);
  const ValueId root = b.add_scalar(b.scale(logarithm, 0.5), 0.5 * std::log(2 * std::numbers::pi));
  const ValueId value = b.add(b.sub(b.mul(safe, logarithm), safe), root);
  return b.select(above, value, b.constant(0, b.dtype(targets)));
}

}  // namespace

ValueId expand_loss_mean_squared_error(Expansion &e) {
  const ValueId error = error_of(e);
  return error == kNoValue ? kNoValue : reduce_loss(e, e.builder().unary("square", error), e.input(2));
}

ValueId expand_loss_mean_absolute_error(Expansion &e) {
  const ValueId error = error_of(e);
  return error == kNoValue ? kNoValue : reduce_loss(e, e.builder().unary("abs", error), e.input(2));
}

// With c = min(|d|, delta): c · (|d| − c / 2).
ValueId expand_loss_huber(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId error = error_of(e);
  if (error == kNoValue) return kNoValue;
  const ValueId size = b.unary("abs", error);
  const ValueId inner = b.op("minimum", {size, b.constant(e.f64("delta"), b.dtype(size))});
  return reduce_loss(e, b.mul(inner, b.sub(size, b.scale(inner, 0.5))), e.input(2));
}

ValueId expand_loss_log_cosh(Expansion &e) {
  const ValueId error = error_of(e);
  if (error == kNoValue) return kNoValue;
  return reduce_loss(e, log_cosh(e.builder(), e.builder().unary("abs", error)), e.input(2));
}

// Of −d, the error: max(−quantile · error, (1 − quantile) · error).
ValueId expand_loss_quantile(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId error = error_of(e);
  if (error == kNoValue) return kNoValue;
  const double quantile = e.f64("quantile");
  return reduce_loss(e, b.op("maximum", {b.scale(error, -quantile), b.scale(error, 1 - quantile)}), e.input(2));
}

ValueId expand_loss_poisson(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId targets = like_first(e, 1), predictions = e.input(0);
  if (targets == kNoValue) return kNoValue;
  const bool is_log = e.flag("log_predictions");
  const ValueId rate = is_log ? b.unary("exp", predictions) : predictions;
  const ValueId logarithm = is_log ? predictions : b.unary("log", b.add_scalar(predictions, e.f64("epsilon")));
  const ValueId values = b.sub(rate, b.mul(targets, logarithm));
  return reduce_loss(e, e.flag("full") ? b.add(values, log_factorial(b, targets)) : values, e.input(2));
}

}  // namespace tutti::impl::nn
