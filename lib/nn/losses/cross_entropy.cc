// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy from logits and from probabilities, and the Kullback-Leibler divergence.
#include <string>

#include "base/text.h"
#include "nn/losses/loss_parts.h"

namespace tutti::impl::nn {
namespace {

/// Probabilities of less than this have its logarithm, as in Keras.
constexpr double kLeastProbability = 1e-7;

/// Of logits, or of logarithms of probabilities, which need not add up to 1.
ValueId against_labels(Expansion &e, ValueId logits) {
  GraphBuilder &b = e.builder();
  const ValueId labels = labels_of(e, 1);
  if (labels == kNoValue || logits == kNoValue) return kNoValue;
  const ValueId values =
      b.op("sparse_softmax_cross_entropy", {logits, labels}, {{"label_smoothing", e.f64("label_smoothing")}});
  return reduce_loss(e, values, e.input(2), weights_by_label(e, labels, logits));
}

/// The same against class probabilities.
ValueId against_targets(Expansion &e, ValueId logits) {
  GraphBuilder &b = e.builder();
  const ValueId targets = like_first(e, 1);
  if (targets == kNoValue || logits == kNoValue || !has_classes(e)) return kNoValue;
  const ValueId values =
      b.op("softmax_cross_entropy", {logits, targets}, {{"label_smoothing", e.f64("label_smoothing")}});
  return reduce_loss(e, values, e.input(2), weights_by_target(e, targets));
}

ValueId log_probabilities(Expansion &e, ValueId probabilities, double least) {
  return e.builder().unary("log", at_least(e.builder(), probabilities, least));
}

/// The attribute `positive_weights`: a scalar for all, or one for each element of the last dimension.
ValueId positive_weights(Expansion &e, ValueId values) {
  GraphBuilder &b = e.builder();
  const std::vector<double> &weights = e.doubles("positive_weights");
  if (!are_factors(e, "positive_weights", "number")) return kNoValue;
  if (weights.size() == 1) return b.constant(weights[0], b.dtype(values));
  const int64_t elements = b.rank(values) >= 2 ? e.last_dimension(values) : 1;
  if (elements == int64_t(weights.size())) return constant_list(b, weights, values);
  return e.fail(base::concat("attribute 'positive_weights' needs one number, or one for each of the ", elements,
                             " elements of the last dimension, got ", weights.size()));
}

}  // namespace

ValueId expand_loss_sparse_softmax_cross_entropy(Expansion &e) { return against_labels(e, e.input(0)); }

ValueId expand_loss_softmax_cross_entropy(Expansion &e) { return against_targets(e, e.input(0)); }

ValueId expand_loss_sparse_categorical_cross_entropy(Expansion &e) {
  return against_labels(e, log_probabilities(e, e.input(0), e.f64("epsilon")));
}

ValueId expand_loss_categorical_cross_entropy(Expansion &e) {
  return against_targets(e, log_probabilities(e, e.input(0), e.f64("epsilon")));
}

// With a factor w of the term of target 1: the plain loss + (w − 1) · target · softplus(−x).
ValueId expand_loss_sigmoid_cross_entropy(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId logits = e.input(0), targets = like_first(e, 1);
  if (targets == kNoValue) return kNoValue;
  const ValueId smoothed = smooth_binary(e, targets);
  ValueId values = b.op("sigmoid_cross_entropy", {logits, smoothed});
  if (!e.doubles("positive_weights").empty() && values != kNoValue) {
    const ValueId more = b.add_scalar(positive_weights(e, values), -1);
    values = b.add(values, b.mul(more, b.mul(smoothed, b.unary("softplus", b.neg(logits)))));
  }
  return reduce_loss(e, values, e.input(2), weights_by_binary_target(e, targets));
}

ValueId expand_loss_binary_cross_entropy(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId targets = like_first(e, 1);
  if (targets == kNoValue) return kNoValue;
  const ValueId smoothed = smooth_binary(e, targets);
  const double least = e.f64("epsilon");
  ValueId of_one = b.mul(smoothed, log_probabilities(e, e.input(0), least));
  const ValueId of_zero = b.mul(one_minus(b, smoothed), log_probabilities(e, one_minus(b, e.input(0)), least));
  if (!e.doubles("positive_weights").empty() && of_one != kNoValue) of_one = b.mul(positive_weights(e, of_one), of_one);
  return reduce_loss(e, b.neg(b.add(of_one, of_zero)), e.input(2), weights_by_binary_target(e, targets));
}

ValueId expand_loss_kullback_leibler(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId targets = like_first(e, 1);
  if (targets == kNoValue || !has_classes(e)) return kNoValue;
  const std::string &form = e.text("form");
  const ValueId predicted = form == "logits"          ? b.unary("log_softmax", e.input(0))
                            : form == "probabilities" ? log_probabilities(e, e.input(0), kLeastProbability)
                                                      : e.input(0);
  // log(1) where the target is 0, whose term is 0.
  const ValueId positive = b.op("greater", {targets, b.constant(0, b.dtype(targets))});
  const ValueId own = b.unary("log", b.select(positive, targets, b.constant(1, b.dtype(targets))));
  return reduce_loss(e, sum_last(b, b.mul(targets, b.sub(own, predicted))), e.input(2), weights_by_target(e, targets));
}

}  // namespace tutti::impl::nn
