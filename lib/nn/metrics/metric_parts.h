// SPDX-License-Identifier: Apache-2.0
//
// What metrics share. A metric is a function of sums over rows, so that sums of batches, replicas and workers are added
// up before it is computed: whatever is computed of rows here ends in a sum. Sums are f64, in which counts are exact up
// to 2^53. Where there is nothing to divide by a quotient is 0, as for scikit-learn with zero_division=0.
//
// Functions that give kNoValue have left an error in the builder, or were given kNoValue.
#ifndef TUTTI_NN_METRICS_METRIC_PARTS_H_
#define TUTTI_NN_METRICS_METRIC_PARTS_H_

#include <string_view>
#include <vector>

#include "nn/example_weights.h"

namespace tutti::impl::nn {

constexpr tensor::DType kSum = tensor::DType::f64;

/// Registers a value under the attribute `name`, and gives it.
ValueId report(Expansion &e, ValueId value);
/// The mean of numbers of rows, or of their elements, weighted by input `weights_index` where it is given.
ValueId mean_of_rows(Expansion &e, ValueId values, size_t weights_index);

ValueId as_sum(GraphBuilder &b, ValueId x);
ValueId sum_constant(GraphBuilder &b, double value);
/// A constant [count].
ValueId sum_constants(GraphBuilder &b, const std::vector<double> &values);
/// x / y, and 0 where y is 0; element by element.
ValueId over(GraphBuilder &b, ValueId x, ValueId y);
/// 1 where x is above the limit, else 0.
ValueId is_above(GraphBuilder &b, ValueId x, double limit);

/// The weight of each element of `like`, which is f64, of its shape: input `index`, or ones.
ValueId full_weights(Expansion &e, size_t index, ValueId like);
/// x with a last dimension of 1.
ValueId with_last(GraphBuilder &b, ValueId x);
/// Sums over all axes but the last `kept` ones.
ValueId sum_rows(GraphBuilder &b, ValueId x, size_t kept);

/// Predictions and targets of one shape: without a last dimension of 1 where the other has none. kNoValue in both with
/// an error where they do not fit.
struct Pair {
  ValueId predictions = kNoValue, targets = kNoValue;
  bool ok() const { return predictions != kNoValue && targets != kNoValue; }
};
Pair same_shape(Expansion &e);
/// Is input 1 class numbers for scores of classes in the last dimension, and not of the shape of input 0?
bool has_class_numbers(Expansion &e);

/// Targets of two classes as f64 0 and 1: floating point above 0.5 is 1; an integer that is neither is an error of the
/// run.
ValueId zero_or_one(Expansion &e, ValueId targets);
/// The limit of scores for a probability in [0, 1]: it, or with from_logits its logit.
double score_limit(const Expansion &e, double probability);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_METRICS_METRIC_PARTS_H_
