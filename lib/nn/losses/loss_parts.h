// SPDX-License-Identifier: Apache-2.0
//
// What losses share: weights of classes, smoothed targets, and the reduction of the numbers of elements to the loss.
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
#include "nn/fitting_inputs.h"

namespace tutti::impl::nn {

/// The attribute `reduction` of `values`, which are weighted by `weights`, as the model gave them, and by `by_class`,
/// one for each value.
ValueId reduce_loss(Expansion &e, ValueId values, ValueId weights, ValueId by_class = kNoValue);

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

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_LOSSES_LOSS_PARTS_H_
