// SPDX-License-Identifier: Apache-2.0
#include "nn/losses/loss_parts.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"

namespace tutti::impl::nn {

bool are_factors(Expansion &e, std::string_view name, std::string_view what) {
  const std::vector<double> &factors = e.doubles(name);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (std::isfinite(factors[i]) && factors[i] >= 0) continue;
    e.fail(base::concat("attribute '", name, "': ", what, " ", i, " is ", factors[i],
                        ", expected a number of at least 0"));
    return false;
  }
  return true;
}

ValueId reduce_loss(Expansion &e, ValueId values, ValueId weights, ValueId by_class) {
  GraphBuilder &b = e.builder();
  if (values == kNoValue || !b.ok()) return kNoValue;
  ValueId all = element_weights(e, weights, values);
  if (by_class != kNoValue) all = all == kNoValue ? by_class : b.mul(per_row(e, all, by_class), by_class);
  if (!b.ok()) return kNoValue;
  if (e.text("reduction") != "none") return reduce_elements(e, values, all, reduction_of(e));
  return all == kNoValue ? values : b.mul(values, per_row(e, all, values));
}

ValueId class_weight_table(Expansion &e, int64_t classes, ValueId like) {
  const std::vector<double> &weights = e.doubles("class_weights");
  if (weights.empty() || like == kNoValue || !are_factors(e, "class_weights", "the weight of class")) return kNoValue;
  if (classes != int64_t(weights.size())) {
    return e.fail(base::concat("attribute 'class_weights' needs one weight for each of the ", classes, " classes, got ",
                               weights.size()));
  }
  return constant_list(e.builder(), weights, like);
}

ValueId weights_by_label(Expansion &e, ValueId labels, ValueId scores) {
  if (e.doubles("class_weights").empty() || labels == kNoValue || scores == kNoValue) return kNoValue;
  const ValueId table = class_weight_table(e, e.last_dimension(scores), scores);
  return e.builder().op("gather", {table, as_indices(e.builder(), labels)});
}

ValueId weights_by_target(Expansion &e, ValueId targets) {
  if (e.doubles("class_weights").empty() || targets == kNoValue) return kNoValue;
  const ValueId table = class_weight_table(e, e.last_dimension(targets), targets);
  return sum_last(e.builder(), e.builder().mul(targets, table));
}

ValueId weights_by_binary_target(Expansion &e, ValueId targets) {
  const std::vector<double> &weights = e.doubles("class_weights");
  if (weights.empty() || targets == kNoValue || !are_factors(e, "class_weights", "the weight of class"))
    return kNoValue;
  if (weights.size() != 2) {
    return e.fail(
        base::concat("attribute 'class_weights' needs two weights, of target 0 and of target 1, got ", weights.size()));
  }
  return e.builder().add_scalar(e.builder().scale(targets, weights[1] - weights[0]), weights[0]);
}

ValueId smooth_binary(Expansion &e, ValueId targets) {
  const double share = e.f64("label_smoothing");
  if (share == 0) return targets;
  return e.builder().add_scalar(e.builder().scale(targets, 1 - share), share / 2);
}

ValueId smooth_classes(Expansion &e, ValueId targets) {
  const double share = e.f64("label_smoothing");
  if (share == 0 || targets == kNoValue) return targets;
  const int64_t classes = e.last_dimension(targets);
  return e.builder().add_scalar(e.builder().scale(targets, 1 - share), share / double(classes));
}

}  // namespace tutti::impl::nn
