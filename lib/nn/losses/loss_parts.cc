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

ValueId per_row(Expansion &e, ValueId weights, ValueId elements) {
  if (weights == kNoValue || elements == kNoValue) return kNoValue;
  graph::Dims dims = e.builder().dims(weights);
  if (dims.size() >= e.builder().rank(elements)) return weights;
  dims.resize(e.builder().rank(elements), graph::Dim(1));
  return e.builder().reshape(weights, std::move(dims));
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

ValueId like_first(Expansion &e, size_t index) {
  GraphBuilder &b = e.builder();
  const ValueId first = e.input(0), other = e.input(index);
  if (first == kNoValue || other == kNoValue) return kNoValue;
  if (!(b.dims(first) == b.dims(other))) {
    return e.fail(base::concat(e.input_name(0), " ", graph::to_string(b.dims(first)), " and ", e.input_name(index), " ",
                               graph::to_string(b.dims(other)), " must have the same shape"));
  }
  return b.cast(other, b.dtype(first));
}

ValueId labels_of(Expansion &e, size_t index) {
  GraphBuilder &b = e.builder();
  const ValueId scores = e.input(0), labels = e.input(index);
  if (scores == kNoValue || labels == kNoValue || !has_classes(e)) return kNoValue;
  if (!tensor::is_integer(b.dtype(labels))) {
    return e.fail(base::concat(e.input_name(index), " are ", tensor::name(b.dtype(labels)),
                               ", expected class numbers, which are integers"));
  }
  const ValueId squeezed = squeeze_to_rank(e, labels, b.rank(scores) - 1);
  graph::Dims rows = b.dims(scores);
  rows.pop_back();
  if (b.dims(squeezed) == rows) return squeezed;
  return e.fail(base::concat(e.input_name(index), " ", graph::to_string(b.dims(labels)), " do not fit ",
                             e.input_name(0), " ", graph::to_string(b.dims(scores)), ": expected ",
                             graph::to_string(rows)));
}

bool has_classes(Expansion &e) {
  if (e.input(0) == kNoValue) return false;
  if (e.builder().rank(e.input(0)) >= 2) return true;
  e.fail(base::concat("expected ", e.input_name(0), " [batch, classes], got a value of lower rank"));
  return false;
}

ValueId as_indices(GraphBuilder &b, ValueId labels) {
  if (labels == kNoValue || b.dtype(labels) == tensor::DType::i32) return labels;
  return b.cast(labels, tensor::size_bytes(b.dtype(labels)) < 4 ? tensor::DType::i32 : tensor::DType::i64);
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

ValueId one_minus(GraphBuilder &b, ValueId x) { return x == kNoValue ? kNoValue : b.sub(b.constant(1, b.dtype(x)), x); }

ValueId at_least(GraphBuilder &b, ValueId x, double limit) {
  return x == kNoValue ? kNoValue : b.op("maximum", {x, b.constant(limit, b.dtype(x))});
}

ValueId sum_last(GraphBuilder &b, ValueId x) { return b.reduce_sum(x, {-1}); }

}  // namespace tutti::impl::nn
