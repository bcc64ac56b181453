// SPDX-License-Identifier: Apache-2.0
//
// What losses and metrics share: inputs that must fit each other, and short forms of a few ops.
//
// Functions that give kNoValue have left an error in the builder, or were given kNoValue.
#ifndef TUTTI_NN_FITTING_INPUTS_H_
#define TUTTI_NN_FITTING_INPUTS_H_

#include "nn/expansion.h"

namespace tutti::impl::nn {

/// Input `index` in the dtype of the first; an error unless it has the first's shape.
ValueId like_first(Expansion &e, size_t index);
/// Input `index`, class numbers for the scores that are the first input: without a last dimension of 1 where they have
/// one more than the scores without classes.
ValueId labels_of(Expansion &e, size_t index);
/// Class numbers in a dtype that gather takes and that holds them all: one out of range stays out of range.
ValueId as_indices(GraphBuilder &b, ValueId labels);
/// Does the first input have rows and a last dimension of classes? Else an error.
bool has_classes(Expansion &e);

/// 1 - x.
ValueId one_minus(GraphBuilder &b, ValueId x);
/// max(x, limit); where x is smaller no gradient flows to it.
ValueId at_least(GraphBuilder &b, ValueId x, double limit);
/// The sum over the last dimension.
ValueId sum_last(GraphBuilder &b, ValueId x);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_FITTING_INPUTS_H_
