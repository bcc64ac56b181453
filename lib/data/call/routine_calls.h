// SPDX-License-Identifier: Apache-2.0
//
// Running a plan's Routine: on one element of whatever shape, or on many into rows of static shape, spread over a pool.
// Random ops are keyed by where each element came from, so neither grouping nor threads change what comes out; of
// several errors the one of the first row is given.
//
// Threads: an object belongs to one thread at a time and spreads rows over its pool itself.
#ifndef TUTTI_DATA_CALL_ROUTINE_CALLS_H_
#define TUTTI_DATA_CALL_ROUTINE_CALLS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "data/dataset/stage.h"
#include "data/element/element.h"
#include "data/graph/graph_target.h"
#include "data/graph/routine.h"
#include "data/thread/row_loops.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// Where rows came from: the index of each, and on demand the file of one.
struct RowOrigins {
  int64_t epoch;
  std::span<const int64_t> indices;
  base::FunctionRef<FileName(int64_t row)> file;

  Lineage of(int64_t row) const { return {epoch, indices[static_cast<size_t>(row)], file(row)}; }
};

class RoutineCalls {
 public:
  /// For plans with a routine.
  RoutineCalls(const GraphTarget &target, const LoopThreads &threads);

  /// Runs on one element (a single example, or a batch as a whole); `results` in the plan's order, in pooled memory.
  base::Status run(const Element &element, std::vector<tensor::Tensor> &results);
  /// Runs on each element; row i of the targets, one for each component of the plan's spec, gets what comes of element
  /// i, what passes through included. Elements without components are left out.
  base::Status run_elements(std::span<const Element> elements, std::span<const RowTarget> targets);
  /// The same with inputs in rows: one per input of the plan, `results` one per result, `origins` one per row.
  base::Status run_rows(std::span<const RowTarget> inputs, std::span<const RowTarget> results,
                        const RowOrigins &origins);
  /// The same with elements that lie where RandomAccess::locate() says; `targets` as for run_elements(). Where there
  /// are threads one of them calls `meanwhile`.
  base::Status run_located(std::span<const std::byte *const> rows, std::span<const RowTarget> targets,
                           const RowOrigins &origins, base::FunctionRef<void()> meanwhile);

 private:
  // What one thread needs at a time.
  struct Lane {
    Routine routine;
    std::vector<RoutineValue> inputs;
    std::vector<void *> targets;
  };
  std::unique_ptr<Lane> take_lane();
  void give_back(std::unique_ptr<Lane> lane);
  base::Status set_inputs(Lane &lane, const Element &element) const;
  base::Status run_element(Lane &lane, const Element &element, std::span<const RowTarget> targets, int64_t row) const;
  base::Status for_rows(
      int64_t rows, base::FunctionRef<base::Status(Lane &, int64_t, int64_t)> run_one,
      base::FunctionRef<Lineage(int64_t)> origin_of, base::FunctionRef<void()> meanwhile = [] {});
  GraphScalars scalars(int64_t epoch, int64_t index, int64_t rows) const { return {target_.seed, epoch, index, rows}; }

  const GraphTarget target_;
  RowLoops loops_;
  const bool adds_rows_;  // the graph has a batch axis that single examples lack
  std::shared_ptr<ResultPools> pools_ = std::make_shared<ResultPools>();
  std::vector<tensor::Shape> row_shapes_;  // of inputs in rows
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // guarded by mutex_
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_ROUTINE_CALLS_H_
