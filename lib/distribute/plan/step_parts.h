// SPDX-License-Identifier: Apache-2.0
//
// What the two halves of a training step (step_graphs.h) share while their graphs are made. Internal to this folder.
//
// Values.
#ifndef TUTTI_DISTRIBUTE_PLAN_STEP_PARTS_H_
#define TUTTI_DISTRIBUTE_PLAN_STEP_PARTS_H_

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "distribute/plan/frontier.h"
#include "distribute/plan/row_gradients.h"
#include "distribute/plan/shared_factors.h"
#include "distribute/plan/state_plan.h"
#include "distribute/plan/step_graphs.h"
#include "graph/model.h"
#include "tensor/dtype.h"

namespace tutti::impl::distribute {

/// What both halves of a step follow: of a model and its options, which outlive it.
struct StepTraits {
  const graph::Model &model;
  const StepGraphOptions &options;
  bool joined = false;  ///< to one program

  bool several() const { return options.contributors > 1 || options.accumulation > 1; }
  /// What is joined refuses bad data before its first update.
  bool is_guarded() const { return options.is_guarded && !joined; }
  bool may_be_ended() const { return options.is_guarded && options.contributors > 1; }
  bool scales_loss() const { return options.scales_loss && model.train->gradients.empty(); }
  tensor::DType dtype_of_faults() const;
};

/// What accumulate leaves for finish.
struct StepParts {
  StepParts(const StepGraphOptions &options, bool joined) : factored(options.factors, options.slices), rows(joined) {}

  Frontier frontier;  ///< its tail has become the graph below
  graph::Graph tail;
  graph::ValueId tail_loss = graph::kNoValue;
  std::vector<graph::ValueId> coefficients;                      ///< by gradient set, in the tail's graph; none = 1
  std::unordered_map<std::string, std::vector<size_t>> sets_of;  ///< gradient sets of a variable
  FactoredGradients factored;
  RowGradients rows;
  std::vector<StateSpec> written;
};

/// "gradient/<set>/<variable>".
std::string gradient_entry(size_t set, const std::string &variable);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_STEP_PARTS_H_
