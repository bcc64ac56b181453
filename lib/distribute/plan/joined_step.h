// SPDX-License-Identifier: Apache-2.0
//
// A step as one program updates variables while other nodes have not run. What its data may be refused for has to show
// before the first update, or the weights would be those of no step.
#ifndef TUTTI_DISTRIBUTE_PLAN_JOINED_STEP_H_
#define TUTTI_DISTRIBUTE_PLAN_JOINED_STEP_H_

#include "graph/graph.h"

namespace tutti::impl::distribute {

/// Whether every index of a joined step's graph that may be out of range is refused before the first update.
/// `by_the_loss`: on devices, which put NaN where a processor refuses; so the loss has to become NaN, too.
bool refuses_before_updates(const graph::Graph &joined, bool by_the_loss);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_JOINED_STEP_H_
