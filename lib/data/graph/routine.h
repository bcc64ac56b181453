// SPDX-License-Identifier: Apache-2.0
//
// Routine: runs a graph on one element on the host, shapes and all: what kernels give decides the shapes of what
// follows (a decoded image has the size that its file says), dtype bytes included.
//
//   Routine routine(plan, runner);
//   TUTTI_TRY(routine.run(inputs, scalars, targets));                // targets: where results of known size belong
//   const RoutineValue &y = routine.result(0);                       // valid until the next run
//
// Memory: values between steps lie in blocks that are kept from element to element and grow to the largest seen;
// results without a target lie in pooled buffers, in classes of size. In steady state nothing is allocated.
//
// Threads: a Routine belongs to one thread at a time; plan and runner are shared.
#ifndef TUTTI_DATA_GRAPH_ROUTINE_H_
#define TUTTI_DATA_GRAPH_ROUTINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "data/graph/graph_runner.h"
#include "data/graph/routine_kernel.h"
#include "data/graph/routine_plan.h"
#include "graph/dim.h"
#include "tensor/buffer.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// Pools of host memory for results of any size: sizes are rounded up to classes, four to a doubling, and the pools of
/// the classes used last are kept. Shared by threads.
class ResultPools {
 public:
  base::Result<base::Ref<tensor::Buffer>> acquire(int64_t bytes);

 private:
  static constexpr size_t kMostPools = 32;
  std::mutex mutex_;
  std::vector<base::Ref<tensor::BufferPool>> pools_;  // guarded by mutex_; used last in front
};

class Routine {
 public:
  /// `runner` may be null where the plan has no programs. `pools` may be null where every result gets a target.
  Routine(std::shared_ptr<const RoutinePlan> plan, std::shared_ptr<GraphRunner> runner,
          std::shared_ptr<ResultPools> pools);
  ~Routine();

  /// `inputs` in the plan's order, alive during the run; INVALID_ARGUMENT where one has not the shape that the graph
  /// says. `targets`: one per result; null = memory of the routine's own. A target holds the result's constant shape.
  base::Status run(std::span<const RoutineValue> inputs, const GraphScalars &scalars, std::span<void *const> targets);
  /// A result of the last run.
  const RoutineValue &result(size_t index) const;
  /// The same as a tensor; `shape` may leave out axes of length 1.
  base::Result<tensor::Tensor> result_tensor(size_t index, const tensor::Shape &shape);

 private:
  class Frame;

  // Memory of a value between steps.
  struct Block {
    base::AlignedMemory memory;
    int64_t bytes = 0;
  };
  // A program compiled for some shapes.
  struct Form {
    std::vector<int64_t> symbols;
    std::unique_ptr<GraphFunction> function;
    std::vector<tensor::Shape> shapes;  // of its outputs
  };

  base::Status run_step(size_t index);
  base::Status run_kernel(size_t index);
  base::Status run_program(size_t index);
  base::Result<Form *> find_form(size_t index);
  base::Result<bool> fits(graph::ValueId value, const tensor::Shape &shape);
  base::Status check_shape(graph::ValueId value, const tensor::Shape &shape);
  graph::SymbolBindings bindings() const;
  base::Result<void *> place(graph::ValueId value, int64_t bytes, bool wants_alignment);
  base::Result<const void *> aligned(graph::ValueId value);
  base::Status deliver(size_t result);

  const std::shared_ptr<const RoutinePlan> plan_;
  const std::shared_ptr<GraphRunner> runner_;
  const std::shared_ptr<ResultPools> pools_;
  std::vector<RoutineValue> values_;                // by value of the graph
  std::vector<Block> blocks_, copies_;              // likewise
  std::vector<base::Ref<tensor::Buffer>> buffers_;  // of results without a target
  std::vector<std::shared_ptr<void>> states_;       // by step
  std::vector<std::vector<Form>> forms_;            // by step, used last in front
  std::vector<int64_t> symbols_;                    // values of the plan's symbols, -1 = not known yet
  GraphScalars scalars_;
  std::span<void *const> targets_;
  std::vector<const void *> input_pointers_;
  std::vector<void *> output_pointers_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_ROUTINE_H_
