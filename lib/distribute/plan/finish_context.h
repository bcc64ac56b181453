// SPDX-License-Identifier: Apache-2.0
//
// A finish graph (finish_graph.h) while it is made: what its parts add to. `ok` is the condition under which the step
// updates anything; parts add theirs to it before the first update, in a fixed order.
//
// Threads: one. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PLAN_FINISH_CONTEXT_H_
#define TUTTI_DISTRIBUTE_PLAN_FINISH_CONTEXT_H_

#include <string>
#include <vector>

#include "distribute/plan/state_plan.h"
#include "distribute/plan/step_parts.h"
#include "graph/builder.h"

namespace tutti::impl::distribute {

/// Traits and parts outlive it.
struct FinishContext {
  const StepTraits &traits;
  StepParts &parts;
  graph::GraphBuilder builder{};
  graph::ValueId ok = graph::kNoValue;
  std::vector<StateSpec> reports{};

  /// Nothing is updated unless this holds as well.
  void require(graph::ValueId condition) { ok = builder.op("logical_and", {ok, condition}); }
  /// Writes the entry "report/<name>".
  void report(const std::string &name, graph::ValueId value);

  /// The slice of an entry that the graph is for, of a variable or of what belongs to it and has a value for each of
  /// these.
  graph::ValueId read_slice(const std::string &entry, const std::string &variable,
                            graph::SlotPer per = graph::SlotPer::element);
  /// The same of what all contributors left there, summed in their order.
  graph::ValueId read_total(const std::string &entry, const std::string &variable);
  /// The same as all_finite of a scalar, elementwise: with what else `ok` depends on it is one launch on a device.
  graph::ValueId is_finite(graph::ValueId scalar);
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_FINISH_CONTEXT_H_
