// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of a map's input go: what passes through, straight to its place; the rest, into scratch memory, which
// the graph reads.
//
// Threads: belongs to its stage.
#ifndef TUTTI_DATA_TRANSFORM_ROW_FLOW_H_
#define TUTTI_DATA_TRANSFORM_ROW_FLOW_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset/stage.h"
#include "data/graph/graph_plan.h"

namespace tutti::impl::data {

class RowFlow {
 public:
  RowFlow(const GraphPlan &plan, const ElementSpec &input) : plan_(plan), input_row_bytes_(row_bytes(input)) {
    scratch_.resize(input_row_bytes_.size());
    into_.resize(input_row_bytes_.size());
    graph_inputs_.resize(plan.inputs.size());
    graph_results_.resize(plan.results.size());
  }

  /// Makes room for so many rows.
  base::Status reserve(int64_t rows) {
    if (rows <= reserved_rows_) return base::Status();
    for (size_t i = 0; i < scratch_.size(); ++i) {
      if (plan_.passed_to(static_cast<int32_t>(i)) >= 0) continue;
      TUTTI_ASSIGN(scratch_[i], base::allocate_aligned(static_cast<size_t>(rows * input_row_bytes_[i])));
    }
    reserved_rows_ = rows;
    return base::Status();
  }
  /// Where the input's rows go that are to end up at row `first` of the targets.
  std::span<const RowTarget> into(std::span<const RowTarget> targets, int64_t first) {
    for (size_t i = 0; i < into_.size(); ++i) {
      const int32_t passed = plan_.passed_to(static_cast<int32_t>(i));
      into_[i] = passed >= 0 ? targets[static_cast<size_t>(passed)].from_row(first)
                             : RowTarget{static_cast<std::byte *>(scratch_[i].get()), input_row_bytes_[i]};
    }
    return into_;
  }
  /// The graph's inputs among the rows of the last into().
  std::span<const RowTarget> graph_inputs() {
    for (size_t i = 0; i < graph_inputs_.size(); ++i) {
      graph_inputs_[i] = into_[static_cast<size_t>(plan_.inputs[i].component)];
    }
    return graph_inputs_;
  }
  /// Where the graph's results go from row `first` of the targets on.
  std::span<const RowTarget> graph_results(std::span<const RowTarget> targets, int64_t first) {
    for (size_t i = 0; i < plan_.sources.size(); ++i) {
      const int32_t result = plan_.sources[i].result;
      if (result >= 0) graph_results_[static_cast<size_t>(result)] = targets[i].from_row(first);
    }
    return graph_results_;
  }

 private:
  const GraphPlan &plan_;
  std::vector<int64_t> input_row_bytes_;
  std::vector<base::AlignedMemory> scratch_;  // by component; of those that do not pass through
  int64_t reserved_rows_ = 0;
  std::vector<RowTarget> into_, graph_inputs_, graph_results_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_TRANSFORM_ROW_FLOW_H_
