// SPDX-License-Identifier: Apache-2.0
//
// Hinge losses: nothing is lost once a score is on the right side by a margin.
#include "nn/losses/loss_parts.h"

namespace tutti::impl::nn {
namespace {

struct BinaryHinge {
  ValueId values = kNoValue;    ///< max(margin − y · x, 0)
  ValueId by_class = kNoValue;  ///< weights of the targets
};

BinaryHinge binary_hinge(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId scores = e.input(0), targets = like_first(e, 1);
  if (targets == kNoValue) return {};
  const ValueId positive = b.op("greater", {targets, b.constant(0, b.dtype(targets))});
  const ValueId side = b.select(positive, scores, b.neg(scores));
  const ValueId values = b.unary("relu", b.add_scalar(b.neg(side), e.f64("margin")));
  return {values, weights_by_binary_target(e, b.cast(positive, b.dtype(scores)))};
}

/// The labels, looked up among all classes: one out of range is an error of the run. one_hot takes any number.
ValueId checked_labels(GraphBuilder &b, ValueId labels, int64_t classes) {
  const ValueId all = b.op("iota", {}, {{"dims", graph::to_dims({classes})}, {"dtype", tensor::DType::i32}});
  return b.op("gather", {all, as_indices(b, labels)});
}

}  // namespace

ValueId expand_loss_hinge(Expansion &e) {
  const BinaryHinge hinge = binary_hinge(e);
  return reduce_loss(e, hinge.values, e.input(2), hinge.by_class);
}

ValueId expand_loss_squared_hinge(Expansion &e) {
  const BinaryHinge hinge = binary_hinge(e);
  if (hinge.values == kNoValue) return kNoValue;
  return reduce_loss(e, e.builder().unary("square", hinge.values), e.input(2), hinge.by_class);
}

ValueId expand_loss_categorical_hinge(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId scores = e.input(0), targets = like_first(e, 1);
  if (targets == kNoValue || !has_classes(e)) return kNoValue;
  const ValueId own = sum_last(b, b.mul(targets, scores));
  const ValueId other = b.reduce("reduce_max", b.mul(one_minus(b, targets), scores), {-1});
  const ValueId values = b.unary("relu", b.add_scalar(b.sub(other, own), e.f64("margin")));
  return reduce_loss(e, values, e.input(2), weights_by_target(e, targets));
}

ValueId expand_loss_multi_margin(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId scores = e.input(0), labels = labels_of(e, 1);
  const int64_t classes = labels == kNoValue ? 0 : e.last_dimension(scores);
  if (classes == 0) return kNoValue;
  const ValueId own =
      b.op("one_hot", {checked_labels(b, labels, classes)}, {{"depth", classes}, {"dtype", b.dtype(scores)}});
  const ValueId score = b.reduce_sum(b.mul(own, scores), {-1}, true);
  ValueId terms = b.unary("relu", b.add_scalar(b.sub(scores, score), e.f64("margin")));
  if (e.flag("squared")) terms = b.unary("square", terms);
  const ValueId values = b.reduce_mean(b.mul(one_minus(b, own), terms), {-1});
  return reduce_loss(e, values, e.input(2), weights_by_label(e, labels, scores));
}

}  // namespace tutti::impl::nn
