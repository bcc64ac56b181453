// SPDX-License-Identifier: Apache-2.0
//
// How a pipeline runs graphs (maps and filters), without knowing a backend: the floor above puts a GraphRunner into the
// IteratorContext.
//
//   TUTTI_ASSIGN(std::unique_ptr<GraphFunction> function, runner->prepare(graph, {{"batch", 64}}));
//   TUTTI_TRY(function->run(inputs, outputs, scalars));
//
// Threads: a GraphRunner may be used from any thread; a GraphFunction by one thread at a time. Functions prepared from
// one graph and the same bindings share what was compiled.
#ifndef TUTTI_DATA_GRAPH_GRAPH_RUNNER_H_
#define TUTTI_DATA_GRAPH_GRAPH_RUNNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/dim.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

namespace tutti::impl::data {

/// The run scalars of a map: random ops are keyed by (seed, op, epoch, row_offset + row).
struct GraphScalars {
  int64_t seed = 0;
  int64_t epoch = 0;
  int64_t row_offset = 0;
  int64_t rows = 1;
};

/// An input or output of a prepared graph: fixed dims, row-major.
struct GraphPort {
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> dims;
  int64_t bytes = 0;
};

/// A graph compiled for fixed shapes, with its workspace.
class GraphFunction {
 public:
  virtual ~GraphFunction() = default;

  /// Inputs in the order of Graph::inputs(), outputs in that of Graph::results(): so does run() take and fill them.
  virtual const std::vector<GraphPort> &inputs() const = 0;
  virtual const std::vector<GraphPort> &outputs() const = 0;
  /// One pointer per port, each aligned to 64 bytes. Allocates nothing.
  virtual base::Status run(std::span<const void *const> inputs, std::span<void *const> outputs,
                           const GraphScalars &scalars) = 0;
};

class GraphRunner {
 public:
  virtual ~GraphRunner() = default;

  /// All symbols of the graph must be bound.
  virtual base::Result<std::unique_ptr<GraphFunction>> prepare(const graph::SealedGraph &graph,
                                                               const graph::SymbolBindings &bindings) = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_GRAPH_RUNNER_H_
