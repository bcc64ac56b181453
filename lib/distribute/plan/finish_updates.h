// SPDX-License-Identifier: Apache-2.0
//
// Updates at the end of a finish graph, all of them under its `ok`: where that does not hold every entry keeps its
// value.
//
// Internal to this folder; functions without state.
#ifndef TUTTI_DISTRIBUTE_PLAN_FINISH_UPDATES_H_
#define TUTTI_DISTRIBUTE_PLAN_FINISH_UPDATES_H_

#include "base/status.h"
#include "distribute/plan/finish_context.h"
#include "distribute/plan/gradient_clip.h"
#include "graph/graph.h"

namespace tutti::impl::distribute {

/// The learning rate of the step, which it reports; one that a host scalar is in has to be finite. INVALID_ARGUMENT
/// where it depends on an input or a variable.
base::Result<graph::ValueId> add_learning_rate(FinishContext &finish);

/// Weights and slots of the variables that have a gradient, by the optimizer, and the averages of the weights.
base::Status update_variables(FinishContext &finish, const VariableGradients &gradients, graph::ValueId rate);

/// Variables that the model assigns what all contributors have added up.
base::Status update_aggregates(FinishContext &finish);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_FINISH_UPDATES_H_
