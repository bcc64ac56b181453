// SPDX-License-Identifier: Apache-2.0
//
// A graph cut for the Routine: kernels of its own for nodes that exist in routine form alone or touch dtype bytes, and
// Programs for everything between them. Each part stands as early as its inputs allow, so neighbouring nodes with a
// program form share one Program.
//
//   input -> decode_jpeg -> resize -> cast -> mul -> y
//            kernel         kernel    program: one graph of cast and mul, compiled for the shapes that come
//
// Programs are compiled per shape and kept (BackendGraphRunner keeps the forms used last): what follows a resize or
// crop has one shape and is compiled once; ops on images of varying size belong behind it.
//
// Threads: plans are immutable.
#ifndef TUTTI_DATA_GRAPH_ROUTINE_PLAN_H_
#define TUTTI_DATA_GRAPH_ROUTINE_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/graph/routine_kernel.h"
#include "graph/graph.h"

namespace tutti::impl::data {

/// Can the graph only be run by the Routine? True when a node has no program form or any value is of dtype bytes.
bool needs_routine(const graph::Graph &graph);

struct RoutinePlan {
  /// One kernel, or one program when `program` is there.
  struct Step {
    graph::NodeId node = graph::kNoNode;
    RoutineKernel kernel;
    graph::SealedGraph program;
    /// Values of the whole graph, in the order of the node's or the program's inputs and outputs; kNoValue = absent.
    std::vector<graph::ValueId> inputs, outputs;
    /// What the program's shapes depend on: positions in RoutinePlan::symbols.
    std::vector<int32_t> symbols;
    /// Where one kernel alone reads output 0, and only a part of each image: that kernel's step, and the part. Else -1.
    int32_t reader = -1;
    RoutineWindow window_read;
  };
  /// One dimension of a value: a constant, factor × symbol, or (neither) an expression of several symbols.
  struct Axis {
    int64_t constant = -1;
    int32_t symbol = -1;
    int64_t factor = 1;
  };

  graph::SealedGraph graph;
  std::vector<Step> steps;  ///< in execution order
  /// Values in the order of Graph::inputs() and Graph::results().
  std::vector<graph::ValueId> inputs, results;
  std::vector<std::string> symbols;     ///< that shapes of the graph mention
  std::vector<std::vector<Axis>> axes;  ///< by value
  /// Position of a value among the results, -1 for others.
  std::vector<int32_t> result_of_value;

  /// Errors name the node that cannot be run.
  static base::Result<std::shared_ptr<const RoutinePlan>> create(graph::SealedGraph graph);
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_ROUTINE_PLAN_H_
