// SPDX-License-Identifier: Apache-2.0
//
// Metrics of what is predicted and what is so, class by class.
#include <string>
#include <vector>

#include "nn/metrics/class_counts.h"

namespace tutti::impl::nn {
namespace {

Quotient precision_of(GraphBuilder &, const ClassCounts &counts) { return {counts.hits, counts.predicted}; }

Quotient recall_of(GraphBuilder &, const ClassCounts &counts) { return {counts.hits, counts.actual}; }

/// Of rows that are not of the class, those that are not predicted to be.
Quotient specificity_of(GraphBuilder &b, const ClassCounts &counts) {
  const ValueId others = b.sub(counts.all, counts.actual);
  return {b.sub(others, b.sub(counts.predicted, counts.hits)), others};
}

Quotient overlap_of(GraphBuilder &b, const ClassCounts &counts) {
  return {counts.hits, b.sub(b.add(counts.predicted, counts.actual), counts.hits)};
}

/// [targets, predictions], of class numbers.
ValueId confusion_of_numbers(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ExclusiveRows rows = exclusive_rows(e);
  return rows.ok() ? sum_rows(b, b.matmul(b.mul(rows.actual, rows.weights), rows.predicted, true), 2) : kNoValue;
}

/// Of two classes.
ValueId confusion_of_two(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ClassCounts one = count_thresholded(e, true);
  if (!one.ok()) return kNoValue;
  const ValueId missed = b.sub(one.actual, one.hits), alarms = b.sub(one.predicted, one.hits);
  const ValueId neither = b.sub(b.sub(one.all, one.actual), alarms);
  return b.reshape(b.concat({neither, alarms, missed, one.hits}, 0), {graph::Dim(2), graph::Dim(2)});
}

}  // namespace

ValueId expand_metric_confusion_matrix(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId counts = has_class_numbers(e) ? confusion_of_numbers(e) : confusion_of_two(e);
  const std::string &normalize = e.text("normalize");
  if (counts == kNoValue || normalize == "none") return report(e, counts);
  const std::vector<int64_t> axes = normalize == "targets"       ? std::vector<int64_t>{1}
                                    : normalize == "predictions" ? std::vector<int64_t>{0}
                                                                 : std::vector<int64_t>{0, 1};
  return report(e, over(b, counts, b.reduce_sum(counts, axes, true)));
}

ValueId expand_metric_precision(Expansion &e) { return report(e, averaged(e, count_for_average(e), precision_of)); }

ValueId expand_metric_recall(Expansion &e) { return report(e, averaged(e, count_for_average(e), recall_of)); }

ValueId expand_metric_specificity(Expansion &e) { return report(e, averaged(e, count_for_average(e), specificity_of)); }

ValueId expand_metric_f_beta(Expansion &e) {
  const double square = e.f64("beta") * e.f64("beta");
  return report(
      e, averaged(e, count_for_average(e), [square](GraphBuilder &b, const ClassCounts &counts) {
        return Quotient{b.scale(counts.hits, 1 + square), b.add(b.scale(counts.actual, square), counts.predicted)};
      }));
}

ValueId expand_metric_balanced_accuracy(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ClassCounts counts = count_all_classes(e);
  if (!counts.ok()) return kNoValue;
  const ValueId score = mean_where_positive(b, over(b, counts.hits, counts.actual), counts.actual);
  if (!e.flag("adjusted")) return report(e, score);
  const ValueId by_chance = over(b, sum_constant(b, 1), b.reduce_sum(is_above(b, counts.actual, 0)));
  return report(e, over(b, b.sub(score, by_chance), b.sub(sum_constant(b, 1), by_chance)));
}

ValueId expand_metric_matthews_correlation(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ClassCounts counts = count_all_classes(e);
  if (!counts.ok()) return kNoValue;
  const ValueId all = b.reduce("reduce_max", counts.all, {});
  // Shares of all rows, so that squares of large counts stay exact enough to be subtracted.
  const auto share = [&](ValueId x) { return over(b, x, all); };
  const ValueId predicted = share(counts.predicted), actual = share(counts.actual);
  const auto spread = [&](ValueId x) { return b.sub(sum_constant(b, 1), b.reduce_sum(b.unary("square", x))); };
  const ValueId above_chance = b.sub(share(b.reduce_sum(counts.hits)), b.reduce_sum(b.mul(predicted, actual)));
  // Where one of them is always the same class nothing is left but rounding.
  const auto root = [&](ValueId x) {
    return b.unary("sqrt", b.select(b.op("greater", {x, sum_constant(b, 1e-14)}), x, sum_constant(b, 0)));
  };
  return report(e, over(b, above_chance, b.mul(root(spread(predicted)), root(spread(actual)))));
}

ValueId expand_metric_mean_iou(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ClassCounts counts = chosen_classes(e, count_all_classes(e));
  if (!counts.ok()) return kNoValue;
  const Quotient overlap = overlap_of(b, counts);
  return report(e, mean_where_positive(b, over(b, overlap.numerator, overlap.denominator), overlap.denominator));
}

}  // namespace tutti::impl::nn
