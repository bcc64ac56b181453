// SPDX-License-Identifier: Apache-2.0
//
// What is counted for each class, from which metrics of classification are computed.
#ifndef TUTTI_NN_METRICS_CLASS_COUNTS_H_
#define TUTTI_NN_METRICS_CLASS_COUNTS_H_

#include <functional>

#include "nn/metrics/metric_parts.h"

namespace tutti::impl::nn {

/// Sums of the weights of rows, f64 [classes]: of those that are predicted and are of the class, that are predicted,
/// that are of the class, and of all.
struct ClassCounts {
  ValueId hits = kNoValue, predicted = kNoValue, actual = kNoValue, all = kNoValue;
  int64_t classes = 0;
  bool ok() const { return all != kNoValue; }
};

/// Scores and class numbers row by row: 1 in the place of the class of the highest score, and of the target [rows...,
/// classes], and weights [rows..., 1]. A class number out of range is an error of the run.
struct ExclusiveRows {
  ValueId predicted = kNoValue, actual = kNoValue, weights = kNoValue;
  int64_t classes = 0;
  bool ok() const { return weights != kNoValue; }
};
ExclusiveRows exclusive_rows(Expansion &e);

/// Of scores and class numbers, whose highest score is predicted.
ClassCounts count_exclusive(Expansion &e);
/// Of scores and targets of 0 and 1 of one shape: each element is predicted whose score is above the attribute
/// `threshold`. Classes are those of the last dimension, or, pooled, all elements are of one class.
ClassCounts count_thresholded(Expansion &e, bool pooled);
/// As the attribute `average` says: one class for binary, else each class, of the attribute `classes`.
ClassCounts count_for_average(Expansion &e);
/// Exclusive classes; of scores and targets of one shape two, that of 0 and that of 1.
ClassCounts count_all_classes(Expansion &e);

/// Those of the attribute `classes`, or all.
ClassCounts chosen_classes(Expansion &e, const ClassCounts &counts);

/// A numerator and its denominator, element by element.
struct Quotient {
  ValueId numerator = kNoValue, denominator = kNoValue;
};
/// Quotients of classes as one number, or, for average none, one for each class.
ValueId averaged(Expansion &e, const ClassCounts &counts,
                 const std::function<Quotient(GraphBuilder &, const ClassCounts &)> &quotient);
/// Numbers of classes with their weights (micro does not come here).
ValueId average_classes(Expansion &e, ValueId values, ValueId actual);
/// The mean of `values` where `counts` is above 0.
ValueId mean_where_positive(GraphBuilder &b, ValueId values, ValueId counts);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_METRICS_CLASS_COUNTS_H_
