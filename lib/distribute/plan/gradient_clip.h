// SPDX-License-Identifier: Apache-2.0
//
// Limits of gradients before the update, in a finish graph: what stands there is the gradient of the global batch, of
// all micro-batches and contributors, divided by the true number of rows. So the result is the same for any number of
// replicas. In this order, each where it is asked for:
//
//   value        each element to [-value, value]
//   norm         g * norm / max(|g|, norm) for the gradient g of each variable (Euclidean norm)
//   global norm  all gradients by global_norm / max(|all of them|, global_norm) (Pascanu et al., On the difficulty of
//                training recurrent neural networks, 2013)
//
// Norms add up squares of the slices that contributors have: all of them meet once, for all norms together. They are
// f64, and right for gradients whose squares no number of their dtype holds; one that is not finite, as of a gradient
// with NaN or infinity, stops the update. Internal to this folder; pure functions.
#ifndef TUTTI_DISTRIBUTE_PLAN_GRADIENT_CLIP_H_
#define TUTTI_DISTRIBUTE_PLAN_GRADIENT_CLIP_H_

#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/builder.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// In the order of the model's variables.
using VariableGradients = std::vector<std::pair<const graph::VariableSpec *, graph::ValueId>>;

struct GradientLimits {
  graph::ClipSpec each;
  double global_norm = 0;  ///< 0 = no limit
  bool is_sliced = false;  ///< gradients are slices, one for each contributor

  bool needs_norms() const { return each.norm > 0 || global_norm > 0; }
};

/// Replaces the gradients, in their variables' dtype, and `ok` by what holds with finite norms. Gives the global norm,
/// f64, as it was before it was limited; no value without such a limit.
base::Result<graph::ValueId> clip_gradients(graph::GraphBuilder &finish, const GradientLimits &limits,
                                            VariableGradients &gradients, graph::ValueId &ok);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_GRADIENT_CLIP_H_
