// SPDX-License-Identifier: Apache-2.0
//
// Gradients in a finish graph: from what contributors left to what the update takes, without the scale of the loss.
//
// Internal to this folder; functions without state.
#ifndef TUTTI_DISTRIBUTE_PLAN_FINISH_GRADIENTS_H_
#define TUTTI_DISTRIBUTE_PLAN_FINISH_GRADIENTS_H_

#include "base/status.h"
#include "distribute/plan/finish_context.h"
#include "distribute/plan/gradient_clip.h"
#include "graph/clone.h"

namespace tutti::impl::distribute {

/// The gradient of each variable that has one: the sum of its gradient sets, each times its coefficient, which `tail`
/// clones and the step reports.
base::Result<VariableGradients> combine_gradients(FinishContext &finish, graph::NodeCloner &tail);

/// Divides them by the scale of the loss, in the variables' dtype, and exactly: the scale is a power of two. No
/// gradient that is not finite makes an update. Nothing where the loss is not scaled.
base::Status unscale_gradients(FinishContext &finish, VariableGradients &gradients);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_FINISH_GRADIENTS_H_
