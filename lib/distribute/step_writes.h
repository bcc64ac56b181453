// SPDX-License-Identifier: Apache-2.0
//
// The end of an accumulate graph: what it leaves in state, and the order of that. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_STEP_WRITES_H_
#define TUTTI_DISTRIBUTE_STEP_WRITES_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "distribute/state_plan.h"
#include "graph/builder.h"
#include "graph/graph.h"

namespace tutti::impl::distribute {

/// A value that goes to a partials entry.
struct StepWrite {
  graph::ValueId value = graph::kNoValue;
  std::string entry;
  std::string variable;  ///< whose shape and layout it has; "" = none
};

struct StepWriteOptions {
  int32_t contributors = 1;
  int32_t accumulation = 1;
};

struct AccumulateGraphs {
  graph::SealedGraph write, add;
  /// The written entries in order of readiness: gradients, then aggregates, then sums.
  std::vector<StateSpec> specs;
};

/// Adds the writes to the graph under construction, each right behind the node that makes its value, lets contributor 0
/// alone add what is equal everywhere, replicates, and seals both variants.
base::Result<AccumulateGraphs> seal_with_writes(graph::GraphBuilder builder, const std::vector<StepWrite> &writes,
                                                const StepWriteOptions &options);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STEP_WRITES_H_
