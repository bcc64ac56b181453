// SPDX-License-Identifier: Apache-2.0
//
// Losses of how much predicted and true masks overlap.
#include <numeric>

#include "base/text.h"
#include "nn/losses/loss_parts.h"

namespace tutti::impl::nn {
namespace {

/// Dimensions that an example's sums are over; with per_class not the last.
std::vector<int64_t> summed_axes(Expansion &e, ValueId values) {
  const size_t rank = e.builder().rank(values);
  std::vector<int64_t> axes(rank - (e.flag("per_class") ? 2 : 1));
  std::iota(axes.begin(), axes.end(), 1);
  return axes;
}

/// An empty list of axes would mean all of them.
ValueId sum_over(GraphBuilder &b, ValueId x, const std::vector<int64_t> &axes) {
  return axes.empty() ? x : b.reduce_sum(x, axes);
}

/// kNoValue when there are none, or after an error.
ValueId dice_class_weights(Expansion &e, ValueId values) {
  if (e.doubles("class_weights").empty()) return kNoValue;
  if (!e.flag("per_class")) return e.fail("attribute 'class_weights' needs 'per_class'");
  const ValueId table = class_weight_table(e, e.last_dimension(values), values);
  return table == kNoValue ? kNoValue : e.builder().broadcast_to(table, e.builder().dims(values));
}

/// One number of the whole batch: a function of sums over its rows.
ValueId dice_over_batch(Expansion &e, ValueId targets) {
  GraphBuilder &b = e.builder();
  const ValueId predictions = e.input(0);
  if (e.flag("per_class")) return e.fail("attribute 'per_class' is for dice over examples, not over the batch");
  if (!e.doubles("class_weights").empty()) return e.fail("attribute 'class_weights' needs 'per_class'");
  const ValueId weights = per_row(e, element_weights(e, e.input(2), predictions), predictions);
  if (!b.ok()) return kNoValue;
  const auto total = [&](ValueId x) { return b.reduce_sum(weights == kNoValue ? x : b.mul(x, weights)); };
  const auto size = [&](ValueId x) { return total(e.flag("squared") ? b.unary("square", x) : x); };
  const double smooth = e.f64("smooth");
  const ValueId both = b.add_scalar(b.scale(total(b.mul(predictions, targets)), 2), smooth);
  const ValueId all = b.add_scalar(b.add(size(predictions), size(targets)), smooth + e.f64("epsilon"));
  return one_minus(b, b.div(both, all));
}

}  // namespace

ValueId expand_loss_dice(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId predictions = e.input(0), targets = like_first(e, 1);
  if (targets == kNoValue) return kNoValue;
  if (e.text("over") == "batch") return dice_over_batch(e, targets);
  if (e.flag("per_class") && !has_classes(e)) return kNoValue;
  const std::vector<int64_t> axes = summed_axes(e, predictions);
  const auto size = [&](ValueId x) { return sum_over(b, e.flag("squared") ? b.unary("square", x) : x, axes); };
  const double smooth = e.f64("smooth");
  const ValueId both = b.add_scalar(b.scale(sum_over(b, b.mul(predictions, targets), axes), 2), smooth);
  const ValueId all = b.add_scalar(b.add(size(predictions), size(targets)), smooth + e.f64("epsilon"));
  const ValueId values = one_minus(b, b.div(both, all));
  return reduce_loss(e, values, e.input(2), values == kNoValue ? kNoValue : dice_class_weights(e, values));
}

}  // namespace tutti::impl::nn
