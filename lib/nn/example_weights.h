// SPDX-License-Identifier: Apache-2.0
//
// What losses and metrics share: labels and weights brought into one shape, and the reduction of one number per example
// to a scalar.
#ifndef TUTTI_NN_EXAMPLE_WEIGHTS_H_
#define TUTTI_NN_EXAMPLE_WEIGHTS_H_

#include "nn/expansion.h"

namespace tutti::impl::nn {

/// `value` without a last dimension of 1 when that makes its rank `rank`.
ValueId squeeze_to_rank(Expansion &e, ValueId value, size_t rank);

/// The mean over all but the first dimension: one number per example.
ValueId per_example(Expansion &e, ValueId value);

/// The weights as one number per example, of the dtype of `like`; kNoValue when there are none.
ValueId example_weights(Expansion &e, ValueId weights, ValueId like);

/// How one number per example becomes a scalar.
enum class Reduction { mean, sum, weighted_mean };

/// mean: sum(w v) / examples. sum: sum(w v). weighted_mean: sum(w v) / sum(w), 0 when all weights are 0.
/// `weights` kNoValue = all 1.
ValueId reduce_examples(Expansion &e, ValueId values, ValueId weights, Reduction reduction);

/// The attribute `reduction`.
Reduction reduction_of(const Expansion &e);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_EXAMPLE_WEIGHTS_H_
