// SPDX-License-Identifier: Apache-2.0
//
// Means over rows: of any value, of right answers, of logarithms and of cosines.
#include "nn/fitting_inputs.h"
#include "nn/metrics/metric_parts.h"

namespace tutti::impl::nn {
namespace {

ValueId report_mean(Expansion &e, ValueId values, size_t weights_index) {
  return report(e, mean_of_rows(e, values, weights_index));
}

/// -log of probabilities of at least the attribute `epsilon`.
ValueId negative_log(Expansion &e, ValueId probabilities) {
  GraphBuilder &b = e.builder();
  return b.neg(b.unary("log", at_least(b, probabilities, e.f64("epsilon"))));
}

/// The cross-entropy of each row against class numbers.
ValueId log_losses(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId labels = labels_of(e, 1);
  if (labels == kNoValue) return kNoValue;
  const ValueId logits = e.flag("from_logits") ? e.input(0) : b.neg(negative_log(e, e.input(0)));
  return as_sum(b, b.op("sparse_softmax_cross_entropy", {logits, labels}));
}

}  // namespace

ValueId expand_metric_mean(Expansion &e) { return report_mean(e, e.input(0), 1); }

ValueId expand_metric_accuracy(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (e.input(0) == kNoValue || e.input(1) == kNoValue) return kNoValue;
  const ValueId predicted = b.op("argmax", {e.input(0)}, {{"axis", int64_t{-1}}});
  if (predicted == kNoValue) return kNoValue;
  const ValueId labels = b.cast(squeeze_to_rank(e, e.input(1), b.rank(predicted)), tensor::DType::i64);
  return report_mean(e, as_sum(b, b.op("equal", {predicted, labels})), 2);
}

ValueId expand_metric_top_k_accuracy(Expansion &e) {
  GraphBuilder &b = e.builder();
  if (e.input(0) == kNoValue || b.rank(e.input(0)) == 0) return kNoValue;
  const ValueId labels = squeeze_to_rank(e, e.input(1), b.rank(e.input(0)) - 1);
  return report_mean(e, as_sum(b, b.op("in_top_k", {e.input(0), labels}, {{"k", e.i64("k")}})), 2);
}

ValueId expand_metric_binary_accuracy(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Pair pair = same_shape(e);
  if (!pair.ok()) return kNoValue;
  const ValueId predicted = is_above(b, pair.predictions, score_limit(e, e.f64("threshold")));
  return report_mean(e, as_sum(b, b.op("equal", {predicted, zero_or_one(e, pair.targets)})), 2);
}

ValueId expand_metric_log_loss(Expansion &e) { return report_mean(e, log_losses(e), 2); }

ValueId expand_metric_perplexity(Expansion &e) {
  const ValueId mean = mean_of_rows(e, log_losses(e), 2);
  return mean == kNoValue ? kNoValue : report(e, e.builder().unary("exp", mean));
}

ValueId expand_metric_binary_log_loss(Expansion &e) {
  GraphBuilder &b = e.builder();
  const Pair pair = same_shape(e);
  if (!pair.ok()) return kNoValue;
  const ValueId targets = b.cast(pair.targets, b.dtype(pair.predictions));
  if (e.flag("from_logits"))
    return report_mean(e, as_sum(b, b.op("sigmoid_cross_entropy", {pair.predictions, targets})), 2);
  const ValueId of_one = b.mul(targets, negative_log(e, pair.predictions));
  const ValueId of_zero = b.mul(one_minus(b, targets), negative_log(e, one_minus(b, pair.predictions)));
  return report_mean(e, as_sum(b, b.add(of_one, of_zero)), 2);
}

ValueId expand_metric_cosine_similarity(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId predictions = as_sum(b, e.input(0)), targets = as_sum(b, like_first(e, 1));
  if (targets == kNoValue || !has_classes(e)) return kNoValue;
  const auto squares = [&](ValueId x) { return sum_last(b, b.unary("square", x)); };
  const ValueId norms = b.mul(b.unary("sqrt", squares(predictions)), b.unary("sqrt", squares(targets)));
  return report_mean(e, over(b, sum_last(b, b.mul(predictions, targets)), norms), 2);
}

}  // namespace tutti::impl::nn
