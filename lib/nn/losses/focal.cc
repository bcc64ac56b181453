// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy that counts well classified examples less: times (1 − p)^gamma (Lin et al., 2017). Everything is
// computed from logarithms of probabilities, so 1 − p = −expm1(log p) keeps its digits where p is close to 1.
#include "nn/losses/loss_parts.h"

namespace tutti::impl::nn {
namespace {

/// Below this 1 − p counts as this, so that no power of it has an infinite slope; representable in f16.
constexpr double kLeastMiss = 1e-7;

/// miss^gamma · values, where miss = 1 − p.
ValueId focus(Expansion &e, ValueId miss, ValueId values) {
  GraphBuilder &b = e.builder();
  const double gamma = e.f64("gamma");
  if (gamma == 0 || miss == kNoValue) return values;
  if (gamma == 1) return b.mul(miss, values);
  if (gamma == 2) return b.mul(b.unary("square", miss), values);
  return b.mul(b.op("pow", {at_least(b, miss, kLeastMiss), b.constant(gamma, b.dtype(miss))}), values);
}

/// 1 − p of a cross-entropy −log p.
ValueId miss_of(GraphBuilder &b, ValueId cross_entropy) { return b.neg(b.unary("expm1", b.neg(cross_entropy))); }

/// The loss of each class of [..., classes], were it the target.
ValueId class_losses(Expansion &e, ValueId logits) {
  GraphBuilder &b = e.builder();
  const ValueId cross_entropy = b.neg(b.unary("log_softmax", logits));
  return focus(e, miss_of(b, cross_entropy), cross_entropy);
}

}  // namespace

// 1 − p = target · sigmoid(−x) + (1 − target) · sigmoid(x).
ValueId expand_loss_sigmoid_focal(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId logits = e.input(0), targets = like_first(e, 1);
  if (targets == kNoValue) return kNoValue;
  const ValueId smoothed = smooth_binary(e, targets);
  const ValueId miss = b.add(b.mul(smoothed, b.unary("sigmoid", b.neg(logits))),
                             b.mul(one_minus(b, smoothed), b.unary("sigmoid", logits)));
  ValueId values = focus(e, miss, b.op("sigmoid_cross_entropy", {logits, smoothed}));
  const double alpha = e.f64("alpha");
  if (alpha != 0) values = b.mul(values, b.add_scalar(b.scale(smoothed, 2 * alpha - 1), 1 - alpha));
  return reduce_loss(e, values, e.input(2), weights_by_binary_target(e, targets));
}

ValueId expand_loss_softmax_focal(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId targets = like_first(e, 1);
  if (targets == kNoValue || !has_classes(e)) return kNoValue;
  const ValueId values = sum_last(b, b.mul(smooth_classes(e, targets), class_losses(e, e.input(0))));
  return reduce_loss(e, values, e.input(2), weights_by_target(e, targets));
}

// Smoothed: (1 − share) of the label's loss and share / classes of each class' loss.
ValueId expand_loss_sparse_softmax_focal(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId logits = e.input(0), labels = labels_of(e, 1);
  if (labels == kNoValue) return kNoValue;
  const ValueId cross_entropy = b.op("sparse_softmax_cross_entropy", {logits, labels});
  ValueId values = cross_entropy == kNoValue ? kNoValue : focus(e, miss_of(b, cross_entropy), cross_entropy);
  const double share = e.f64("label_smoothing");
  if (share != 0)
    values = b.add(b.scale(values, 1 - share), b.scale(b.reduce_mean(class_losses(e, logits), {-1}), share));
  return reduce_loss(e, values, e.input(2), weights_by_label(e, labels, logits));
}

}  // namespace tutti::impl::nn
