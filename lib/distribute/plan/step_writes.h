// SPDX-License-Identifier: Apache-2.0
//
// The end of an accumulate graph: what it leaves in state, and the order of that. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PLAN_STEP_WRITES_H_
#define TUTTI_DISTRIBUTE_PLAN_STEP_WRITES_H_

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "distribute/plan/state_plan.h"
#include "graph/builder.h"
#include "graph/graph.h"

namespace tutti::impl::distribute {

/// Where a graph reports a value without rows: a number, or a tensor.
StateSpec report_spec(const graph::GraphBuilder &builder, const std::string &name, graph::ValueId value);

/// A value that goes to a partials entry.
struct StepWrite {
  graph::ValueId value = graph::kNoValue;
  std::string entry;
  std::string variable;  ///< whose shape and layout it has; "" = none
  /// What the value is rounded to where it is a gradient of f32: once, when all micro-batches of a step are added up.
  std::optional<tensor::DType> rounded = {};
};

struct StepWriteOptions {
  int32_t contributors = 1;
  int32_t accumulation = 1;
};

struct AccumulateGraphs {
  graph::SealedGraph write, add;
  /// The last micro-batch of a step, where values are rounded: it adds to what the others left, which may be zeros, and
  /// rounds. Else null, and `write` or `add` is the last.
  graph::SealedGraph last;
  /// The written entries in order of readiness: gradients, then aggregates, then sums; then what is accumulated.
  std::vector<StateSpec> specs;
};

/// Adds the writes to the graph under construction, each right behind the node that makes its value, lets contributor 0
/// alone add what is equal everywhere, replicates, and seals the variants.
base::Result<AccumulateGraphs> seal_with_writes(graph::GraphBuilder builder, const std::vector<StepWrite> &writes,
                                                const StepWriteOptions &options);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_STEP_WRITES_H_
