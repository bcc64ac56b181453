// SPDX-License-Identifier: Apache-2.0
//
// What losses share: inputs that must fit each other, weights of classes, smoothed targets, and the reduction of the
// numbers of elements to the loss.
//
// Functions that give kNoValue have left an error in the builder, or were given kNoValue; class weights may also be
// absent, which reduce_loss() takes as none.
#ifndef TUTTI_NN_LOSSES_LOSS_PARTS_H_
#define TUTTI_NN_LOSSES_LOSS_PARTS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "nn/constant_list.h"
#include "nn/example_weights.h"

namespace tutti::impl::nn {

/// The attribute `reduction` of `values`, which are weighted by `weights`, as the model gave them, and by `by_class`,
/// one for each value.
ValueId reduce_loss(Expansion &e, ValueId values, ValueId weights, ValueId by_class = kNoValue);

/// Weights, as element_weights() gives them, to be multiplied with values of more dimensions; kNoValue for none.
ValueId per_row(Expansion &e, ValueId weights, ValueId values);

/// Input `index` in the dtype of the first; an error unless it has the first's shape.
ValueId like_first(Expansion &e, size_t index);
/// Input `index`, class numbers for the scores that are the first input: without a last dimension of 1 where they have
/// one more than the scores without classes.
ValueId labels_of(Expansion &e, size_t index);
/// Class numbers in a dtype that gather takes and that holds them all: one out of range stays out of range.
ValueId as_indices(GraphBuilder &b, ValueId labels);
/// Does the first input have rows and a last dimension of classes? Else an error.
bool has_classes(Expansion &e);

/// Are all numbers of a list attribute finite and at least 0? Else an error, "<what> <index> is -1".
bool are_factors(Expansion &e, std::string_view name, std::string_view what);
/// The attribute `class_weights` as a constant [classes] of dtype `like`; kNoValue when it is empty.
ValueId class_weight_table(Expansion &e, int64_t classes, ValueId like);
/// The weight of each label's class of the classes of `scores`.
ValueId weights_by_label(Expansion &e, ValueId labels, ValueId scores);
/// Of targets [..., classes] that are probabilities: the sum of target * weight.
ValueId weights_by_target(Expansion &e, ValueId targets);
/// Of targets from 0 to 1, elementwise, with the two weights of 0 and 1.
ValueId weights_by_binary_target(Expansion &e, ValueId targets);

/// The attribute `label_smoothing` of targets from 0 to 1: moved towards 1/2.
ValueId smooth_binary(Expansion &e, ValueId targets);
/// Of probabilities over the last dimension: moved towards 1 / classes.
ValueId smooth_classes(Expansion &e, ValueId targets);

/// 1 - x.
ValueId one_minus(GraphBuilder &b, ValueId x);
/// max(x, limit); where x is smaller no gradient flows to it.
ValueId at_least(GraphBuilder &b, ValueId x, double limit);
/// The sum over the last dimension.
ValueId sum_last(GraphBuilder &b, ValueId x);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_LOSSES_LOSS_PARTS_H_
