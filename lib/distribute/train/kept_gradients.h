// SPDX-License-Identifier: Apache-2.0
//
// Gradients of the last step, where they are kept (TrainerOptions::keep_gradients): each contributor has the sums of
// its slice. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_KEPT_GRADIENTS_H_
#define TUTTI_DISTRIBUTE_TRAIN_KEPT_GRADIENTS_H_

#include <string_view>

#include "backend/backend.h"
#include "base/status.h"
#include "distribute/train/replica_set.h"
#include "distribute/train/train_programs.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// The gradient of a variable before clipping, put together from the slices of all contributors, without the scale of
/// the loss. `weight`: the variable's entry. NOT_FOUND for a variable that is not trained, or that the loss does not
/// depend on. After at least one step, while none runs.
base::Result<tensor::Tensor> gather_gradient(const TrainSetup &setup, const backend::Backend &backend,
                                             ReplicaSet &replicas, const backend::StateEntry &weight,
                                             std::string_view variable);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_KEPT_GRADIENTS_H_
