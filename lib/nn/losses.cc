// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/text.h"
#include "nn/example_weights.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {
namespace {

/// `weights`: as the model gave them.
ValueId reduce_loss(Expansion &e, ValueId values, ValueId weights) {
  return reduce_elements(e, values, element_weights(e, weights, values), reduction_of(e));
}

/// The weight of each label's class, or kNoValue when there are no class weights.
ValueId class_weights(Expansion &e, ValueId labels, ValueId logits) {
  const std::vector<double> &weights = e.doubles("class_weights");
  if (weights.empty() || labels == kNoValue || logits == kNoValue) return kNoValue;
  GraphBuilder &b = e.builder();
  const int64_t classes = e.last_dimension(logits);
  if (classes != int64_t(weights.size())) {
    return e.fail(base::concat("attribute 'class_weights' needs one weight for each of the ", classes, " classes, got ",
                               weights.size()));
  }
  const std::vector<float> values(weights.begin(), weights.end());
  auto table = tensor::Tensor::from_values(tensor::Shape({classes}), std::span<const float>(values));
  if (!table.ok()) return b.fail(table.status());
  const ValueId picked = b.op("gather", {b.constant(table.take()), b.cast(labels, tensor::DType::i32)});
  return b.cast(picked, b.dtype(logits));
}

/// Weights of examples, to be multiplied into those of their elements.
ValueId per_row(Expansion &e, ValueId weights, ValueId elements) {
  graph::Dims dims = e.builder().dims(weights);
  dims.resize(e.builder().rank(elements), graph::Dim(1));
  return e.builder().reshape(weights, std::move(dims));
}

}  // namespace

ValueId expand_loss_sparse_softmax_cross_entropy(Expansion &e) {
  const ValueId logits = e.input(0);
  if (logits == kNoValue || e.builder().rank(logits) < 2)
    return e.fail("expected logits [batch, classes], got a value of lower rank");
  const ValueId labels = squeeze_to_rank(e, e.input(1), e.builder().rank(logits) - 1);
  const ValueId values =
      e.builder().op("sparse_softmax_cross_entropy", {logits, labels}, {{"label_smoothing", e.f64("label_smoothing")}});
  if (values == kNoValue) return kNoValue;
  const ValueId by_class = class_weights(e, labels, logits);
  if (by_class == kNoValue) return reduce_loss(e, values, e.input(2));
  ValueId weights = element_weights(e, e.input(2), values);
  if (weights != kNoValue && e.builder().rank(weights) < e.builder().rank(by_class))
    weights = per_row(e, weights, by_class);
  return reduce_elements(e, values, weights == kNoValue ? by_class : e.builder().mul(weights, by_class),
                         reduction_of(e));
}

ValueId expand_loss_softmax_cross_entropy(Expansion &e) {
  const ValueId values = e.builder().op("softmax_cross_entropy", {e.input(0), e.input(1)},
                                        {{"label_smoothing", e.f64("label_smoothing")}});
  return reduce_loss(e, values, e.input(2));
}

ValueId expand_loss_sigmoid_cross_entropy(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId logits = e.input(0);
  if (logits == kNoValue || e.input(1) == kNoValue) return kNoValue;
  const ValueId values = b.op("sigmoid_cross_entropy", {logits, b.cast(e.input(1), b.dtype(logits))});
  return reduce_loss(e, values, e.input(2));
}

ValueId expand_loss_mean_squared_error(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId predictions = e.input(0);
  if (predictions == kNoValue || e.input(1) == kNoValue) return kNoValue;
  const ValueId targets = b.cast(e.input(1), b.dtype(predictions));
  if (!(b.dims(predictions) == b.dims(targets))) {
    return e.fail(base::concat("predictions ", graph::to_string(b.dims(predictions)), " and targets ",
                               graph::to_string(b.dims(targets)), " must have the same shape"));
  }
  const ValueId values = b.unary("square", b.sub(predictions, targets));
  return reduce_loss(e, values, e.input(2));
}

ValueId expand_loss_l2_penalty(Expansion &e) {
  GraphBuilder &b = e.builder();
  return b.scale(b.reduce_sum(b.unary("square", e.input(0))), e.f64("rate"));
}

}  // namespace tutti::impl::nn
