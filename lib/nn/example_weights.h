// SPDX-License-Identifier: Apache-2.0
//
// What losses and metrics share: labels and weights brought into one shape, and the reduction of the numbers of all
// examples, or of their elements, to a scalar.
#ifndef TUTTI_NN_EXAMPLE_WEIGHTS_H_
#define TUTTI_NN_EXAMPLE_WEIGHTS_H_

#include "nn/expansion.h"

namespace tutti::impl::nn {

/// `value` without a last dimension of 1 when that makes its rank `rank`.
ValueId squeeze_to_rank(Expansion &e, ValueId value, size_t rank);

/// The mean over all but the first dimension: one number per example.
ValueId per_example(Expansion &e, ValueId value);

/// The weights of a value's elements, of its dtype: one for all, one for each example, or as many dimensions as the
/// value has, each that of the value or 1. kNoValue when there are none, and for others, which are an error.
ValueId element_weights(Expansion &e, ValueId weights, ValueId value);

/// Weights, as element_weights() gives them, to be multiplied with values of more dimensions; kNoValue for none.
ValueId per_row(Expansion &e, ValueId weights, ValueId values);

/// How one number per example becomes a scalar.
enum class Reduction { mean, sum, weighted_mean };

/// Of v, the mean over an example's elements. mean: sum(w v) / examples. sum: sum(w v). weighted_mean: sum(w v) /
/// sum(w), 0 when all weights are 0. `weights`: as element_weights() gives them; of those of elements w v and w are
/// means over an example's elements, too.
ValueId reduce_elements(Expansion &e, ValueId values, ValueId weights, Reduction reduction);

/// The attribute `reduction`.
Reduction reduction_of(const Expansion &e);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_EXAMPLE_WEIGHTS_H_
