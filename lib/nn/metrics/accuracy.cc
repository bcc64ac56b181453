// SPDX-License-Identifier: Apache-2.0
#include "nn/example_weights.h"

namespace tutti::impl::nn {
namespace {

/// Registers the weighted mean of a value under the attribute `name`.
ValueId add_mean(Expansion &e, ValueId values, ValueId weights) {
  if (values == kNoValue) return kNoValue;
  const Reduction reduction = weights == kNoValue ? Reduction::mean : Reduction::weighted_mean;
  const ValueId mean = reduce_elements(e, values, element_weights(e, weights, values), reduction);
  e.builder().add_metric(e.text("name"), mean);
  return mean;
}

ValueId as_number(Expansion &e, ValueId truth) {
  return truth == kNoValue ? kNoValue : e.builder().cast(truth, tensor::DType::f32);
}

}  // namespace

ValueId expand_metric_mean(Expansion &e) { return add_mean(e, e.input(0), e.input(1)); }

ValueId expand_metric_accuracy(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (e.input(0) == kNoValue || e.input(1) == kNoValue) return kNoValue;
  const ValueId predicted = b.op("argmax", {e.input(0)}, {{"axis", int64_t{-1}}});
  if (predicted == kNoValue) return kNoValue;
  const ValueId labels = b.cast(squeeze_to_rank(e, e.input(1), b.rank(predicted)), tensor::DType::i64);
  return add_mean(e, as_number(e, b.op("equal", {predicted, labels})), e.input(2));
}

ValueId expand_metric_top_k_accuracy(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (e.input(0) == kNoValue || b.rank(e.input(0)) == 0) return kNoValue;
  const ValueId labels = squeeze_to_rank(e, e.input(1), b.rank(e.input(0)) - 1);
  return add_mean(e, as_number(e, b.op("in_top_k", {e.input(0), labels}, {{"k", e.i64("k")}})), e.input(2));
}

}  // namespace tutti::impl::nn
