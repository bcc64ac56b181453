// SPDX-License-Identifier: Apache-2.0
//
// The loss frontier: where a model is cut between what each contributor computes on its rows and the tail, which is
// computed once from sums. See step_graphs.h. Internal to this folder; functions without state.
#ifndef TUTTI_DISTRIBUTE_PLAN_FRONTIER_H_
#define TUTTI_DISTRIBUTE_PLAN_FRONTIER_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/model.h"
#include "graph/replicate.h"

namespace tutti::impl::distribute {

/// A value that crosses from the rows' side to the tail.
struct FrontierValue {
  graph::ValueId value = graph::kNoValue;  ///< in the model's graph
  /// A sum over rows, partial on each contributor; else the same everywhere, and contributor 0 adds it once.
  bool is_sum = true;
  /// Depends on trainable variables, so a gradient may flow into it.
  bool has_gradient = false;
};

struct Frontier {
  std::vector<FrontierValue> values;
  /// The tail: inputs "sum/<i>" by position in `values`, results "loss", "metric/<name>", "summary/<name>".
  graph::GraphBuilder tail;
  std::vector<graph::ValueId> tail_inputs;  ///< in the tail's graph, by position in `values`
};

struct FrontierOptions {
  bool several_contributors = false;
  bool several_batches = false;
  bool is_training = false;  ///< summaries that are known are left out
};

/// Cuts loss (when there is one), metrics and summaries without rows off `model`.
base::Result<Frontier> cut_frontier(const graph::Model &model, const FrontierOptions &options);

/// Name of the state entry of frontier value i: "sum/<i>".
std::string sum_entry(size_t i);

/// Those that are reported as metrics are: of values without rows; in a training not those that are known either.
std::vector<const graph::SummarySpec *> reduced_summaries(const graph::Model &model, bool is_training);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_FRONTIER_H_
