// SPDX-License-Identifier: Apache-2.0
//
// Gradients of tables. A model looks rows of a variable up by indices of its batch: gather along the first axis. The
// gradient is zero but for these rows, so a step is not given an array of all rows: accumulate leaves the indices and
// the gradient of each lookup, and finish adds up what belongs to the same row, limits it as gradients are limited, and
// updates these rows alone. A step costs what the rows cost that it looks up, however many the table has.
//
// A variable qualifies by what the model does with it, on all strategies alike:
//   * each use is a gather along its first axis, by indices whose first axis is the batch
//   * its update works element by element, and leaves an element without a gradient as it is: or is asked to skip what
//     was not looked up (OptimizerSpec::lazy)
//   * no average of it is kept, and it is not constrained
//
// Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PLAN_ROW_GRADIENTS_H_
#define TUTTI_DISTRIBUTE_PLAN_ROW_GRADIENTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "distribute/plan/shared_factors.h"
#include "graph/builder.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// Whether the model's update of a variable may be one of some rows, if its gradient is.
bool updates_rows(const graph::Model &model, const graph::VariableSpec &variable);

/// A gradient of a variable as a step has it: the sum of those of its lookups.
struct GradientOfSet {
  size_t set = 0;
  graph::ValueId value = graph::kNoValue;
};

/// What a finish graph knows of the rows of a variable.
struct MergedRows {
  graph::ValueId sums = graph::kNoValue;    ///< [n, ...]
  graph::ValueId places = graph::kNoValue;  ///< [n]: of the rows in the slice that it updates; negative: none
};

/// Are the gradients of a variable, one for each set, sums of those of lookups?
bool are_of_lookups(const graph::Graph &step, const std::vector<GradientOfSet> &gradients);
/// Of such, does the model tell how many lookups an example has?
bool have_known_lengths(const graph::Graph &step, const std::vector<GradientOfSet> &gradients);

class RowGradients {
 public:
  /// `joined`: both graphs become one program, and what passes between them is no result.
  explicit RowGradients(bool joined) : joined_(joined) {}

  /// Finish is given rows of the gradients of a variable, which are sums of those of its lookups: what it needs becomes
  /// results of the accumulate graph, which is over the global batch.
  void take(graph::GraphBuilder &step, const graph::VariableSpec &variable,
            const std::vector<GradientOfSet> &gradients);
  bool has(const std::string &variable) const { return lookups_.contains(variable); }
  std::vector<std::string> variables() const;

  /// Adds up the rows of a slice. `coefficients` of the sets, no value for 1.
  MergedRows merge(graph::GraphBuilder &finish, const graph::VariableSpec &variable,
                   const std::vector<graph::ValueId> &coefficients, bool is_sliced);
  /// What was merged.
  const MergedRows &merged(const std::string &variable) const { return merged_.at(variable); }

  /// What passes from one graph to the other: names of results and inputs, or of state where they are joined.
  const std::vector<SharedFactor> &factors() const { return factors_; }

 private:
  struct Lookup {
    size_t set = 0;
    size_t indices = 0, rows = 0;  ///< positions in factors_
  };
  size_t leave(graph::GraphBuilder &step, const std::string &name, graph::ValueId value);
  graph::ValueId read(graph::GraphBuilder &finish, size_t factor) const;

  const bool joined_;
  std::map<std::string, std::vector<Lookup>, std::less<>> lookups_;  // by variable
  std::map<std::string, MergedRows, std::less<>> merged_;
  std::vector<SharedFactor> factors_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_ROW_GRADIENTS_H_
