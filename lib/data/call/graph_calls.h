// SPDX-License-Identifier: Apache-2.0
//
// Running a plan's graph. GraphCalls runs it on one element of whatever shape; RowCalls on many rows of static shape,
// in chunks whose size depends on the row alone, so results do not depend on threads.
//
// Threads: an object of either class belongs to one thread at a time; RowCalls spreads its chunks over a pool itself.
#ifndef TUTTI_DATA_CALL_GRAPH_CALLS_H_
#define TUTTI_DATA_CALL_GRAPH_CALLS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "data/call/routine_calls.h"
#include "data/dataset/stage.h"
#include "data/element/element.h"
#include "data/graph/graph_target.h"
#include "data/thread/row_loops.h"
#include "tensor/buffer.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

/// The error of a map's graph with one element.
base::Status graph_failed(const base::Status &status, const Lineage &lineage);

/// Runs on one element (a single example, or a batch as a whole).
class GraphCalls {
 public:
  explicit GraphCalls(GraphTarget target) : target_(std::move(target)) {
    if (target_.plan->routine != nullptr) routine_ = std::make_unique<RoutineCalls>(target_, LoopThreads());
  }

  /// `results` become those of the graph, in the plan's order, in pooled memory.
  base::Status run(const Element &element, std::vector<tensor::Tensor> &results);
  /// The element as the plan's spec says: results and what passes through. `output` may not be `element`.
  base::Status map(const Element &element, Element &output);

 private:
  // The graph compiled for inputs of some shapes.
  struct Form {
    std::vector<tensor::Shape> input_shapes;
    std::unique_ptr<GraphFunction> function;
    std::vector<tensor::Shape> result_shapes;
    std::vector<base::Ref<tensor::BufferPool>> pools;
  };
  base::Result<Form *> find(const Element &element);
  base::Result<std::unique_ptr<Form>> prepare(const Element &element) const;
  base::Result<graph::SymbolBindings> bind(const Element &element) const;
  /// The element's component where a backend can read it: in place when aligned, else a copy.
  base::Result<const void *> aligned(const tensor::Tensor &tensor, size_t input);

  GraphTarget target_;
  std::unique_ptr<RoutineCalls> routine_;     // of plans that have one; then nothing below is used
  std::vector<std::unique_ptr<Form>> forms_;  // the one used last in front
  std::vector<const void *> input_pointers_;
  std::vector<void *> output_pointers_;
  std::vector<base::Ref<tensor::Buffer>> output_buffers_;
  std::vector<base::AlignedMemory> copies_;
  std::vector<int64_t> copy_bytes_;
  std::vector<tensor::Tensor> results_;
};

/// Runs on rows in memory; for plans whose row shapes are static.
class RowCalls {
 public:
  RowCalls(GraphTarget target, const ElementSpec &input, const LoopThreads &threads);

  /// Rows that run together.
  int64_t chunk_rows() const { return chunk_rows_; }
  /// Are there several threads?
  bool is_parallel() const { return loops_.is_parallel(); }

  /// Runs the graph on `rows` rows. `inputs`: one per input of the plan, `results`: one per result; rows lie one after
  /// the other. Inputs aligned to 64 bytes. Only for plans that are rowwise.
  base::Status run(int64_t rows, std::span<const RowTarget> inputs, std::span<const RowTarget> results);
  /// Is every result looked up byte by byte? Then rows may lie anywhere.
  bool looks_up() const { return target_.tables != nullptr && !target_.tables->empty(); }
  /// run() on elements that lie where RandomAccess::locate() says: one target per component of the plan's spec, what
  /// passes through included. Only where looks_up() says so.
  base::Status run_located(int64_t count, std::span<const std::byte *const> rows, std::span<const RowTarget> targets);
  /// Runs on one row; random ops are keyed by where it came from.
  base::Status run_one(std::span<const RowTarget> inputs, std::span<const RowTarget> results, Lineage lineage);

 private:
  // What one thread needs at a time.
  struct Lane {
    std::vector<std::pair<int64_t, std::unique_ptr<GraphFunction>>> functions;  // by rows
    std::vector<base::AlignedMemory> copies;                                    // for results that are not aligned
    std::vector<const void *> input_pointers;
    std::vector<void *> output_pointers;
  };
  base::Status run_chunk(Lane &lane, int64_t rows, std::span<const RowTarget> inputs,
                         std::span<const RowTarget> results, int64_t first, const GraphScalars &scalars);
  void look_up(int64_t rows, std::span<const RowTarget> inputs, std::span<const RowTarget> results,
               int64_t first) const;
  base::Result<GraphFunction *> function_for(Lane &lane, int64_t rows) const;
  std::unique_ptr<Lane> take_lane();
  void give_back(std::unique_ptr<Lane> lane);

  GraphTarget target_;
  RowLoops loops_;
  int64_t chunk_rows_;
  std::vector<int64_t> input_row_bytes_;
  std::vector<int64_t> result_row_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // guarded by mutex_
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_GRAPH_CALLS_H_
