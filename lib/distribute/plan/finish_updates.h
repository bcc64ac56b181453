// SPDX-License-Identifier: Apache-2.0
//
// Updates at the end of a finish graph, all of them under its `ok`: where that does not hold every entry keeps its
// value.
//
// Internal to this folder; functions without state.
#ifndef TUTTI_DISTRIBUTE_PLAN_FINISH_UPDATES_H_
#define TUTTI_DISTRIBUTE_PLAN_FINISH_UPDATES_H_

#include <vector>

#include "base/status.h"
#include "distribute/plan/finish_context.h"
#include "distribute/plan/gradient_clip.h"
#include "graph/graph.h"

namespace tutti::impl::distribute {

/// What updates take beside arrays.
struct UpdateScalars {
  graph::ValueId rate = graph::kNoValue;
  std::vector<graph::ValueId> group_rates{};            ///< of the model's parameter groups
  std::vector<std::vector<graph::ValueId>> captures{};  ///< of the optimizer's rules
};

/// The learning rate, which the step reports, and the rest; what a host scalar is in has to be finite. INVALID_ARGUMENT
/// where one depends on an input or a variable.
base::Result<UpdateScalars> add_update_scalars(FinishContext &finish);

/// Weights and slots of the variables that have a gradient, by the optimizer, and the averages of the weights.
base::Status update_variables(FinishContext &finish, const VariableGradients &gradients, const UpdateScalars &scalars);

/// Variables that the model assigns what all contributors have added up.
base::Status update_aggregates(FinishContext &finish);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_FINISH_UPDATES_H_
