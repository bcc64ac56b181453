// SPDX-License-Identifier: Apache-2.0
//
// The second half of a training step (step_graphs.h): from summed partials to loss, metrics and update. Internal to
// this folder.
//
// Threads: functions without state.
#ifndef TUTTI_DISTRIBUTE_PLAN_FINISH_GRAPH_H_
#define TUTTI_DISTRIBUTE_PLAN_FINISH_GRAPH_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "distribute/plan/state_plan.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/plan/step_parts.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

struct FinishGraph {
  graph::SealedGraph graph;
  std::vector<std::string> metrics;
  std::vector<StateSpec> reports;
};

base::Result<FinishGraph> make_finish_graph(const StepTraits &traits, StepParts &parts);

/// That all gradients are clipped by; 0 = none.
double global_clip_norm(const graph::Model &model, const StepGraphOptions &options);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_FINISH_GRAPH_H_
