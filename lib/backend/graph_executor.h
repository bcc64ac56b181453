// SPDX-License-Identifier: Apache-2.0
//
// Runs a graph on tensors in host memory: compiles it for the shapes that come, keeps the last few compiled forms, and
// allocates the results. For work beside training: initial values of variables, maps of datasets, tests.
//
//   TUTTI_ASSIGN(GraphExecutorRef executor, GraphExecutor::create(device, graph));
//   TUTTI_ASSIGN(std::vector<Tensor> results, executor->run(std::vector<Tensor>{image, label}, scalars));
//
// Symbols are bound from the shapes of the inputs ("batch" from [batch, 784]); those that no input shows are given by
// the caller. An all_reduce changes nothing: there is one replica. Graphs with state need programs of their own
// (executable.h).
//
// Threads: run() may be called from any thread at the same time; each run in progress has a workspace of its own, which
// is kept for the next.
#ifndef TUTTI_BACKEND_GRAPH_EXECUTOR_H_
#define TUTTI_BACKEND_GRAPH_EXECUTOR_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace tutti::impl::backend {

class GraphExecutor;
using GraphExecutorRef = std::shared_ptr<GraphExecutor>;

struct GraphExecutorOptions {
  /// Compiled forms kept; the least recently used goes first.
  size_t cache_limit = 16;
  Level level = Level::fast;
  int32_t threads = 1;
  Precision precision = Precision::f32;
};

/// What happened so far.
struct GraphExecutorCounters {
  int64_t runs = 0;
  int64_t compiled = 0;
  int64_t evicted = 0;
};

class GraphExecutor {
 public:
  static base::Result<GraphExecutorRef> create(DeviceRef device, const graph::Graph &graph,
                                               GraphExecutorOptions options = {});
  ~GraphExecutor();

  /// Names in the order of run()'s inputs (node order) and of its results (by name).
  const std::vector<std::string> &input_names() const { return input_names_; }
  const std::vector<std::string> &output_names() const { return output_names_; }

  /// INVALID_ARGUMENT naming the input whose dtype or shape does not fit.
  base::Result<std::vector<tensor::Tensor>> run(std::span<const tensor::Tensor> inputs, const RunScalars &scalars = {},
                                                const graph::SymbolBindings &bindings = {});
  GraphExecutorCounters counters() const;

 private:
  struct Slot;
  struct Form;

  GraphExecutor(DeviceRef device, const graph::Graph &graph, GraphExecutorOptions options);
  base::Result<graph::SymbolBindings> bind_symbols(std::span<const tensor::Tensor> inputs,
                                                   graph::SymbolBindings bindings) const;
  base::Result<std::shared_ptr<Form>> find_form(const graph::SymbolBindings &bindings);
  base::Result<std::unique_ptr<Slot>> take_slot(Form &form);
  base::Result<std::vector<tensor::Tensor>> run_in_slot(Slot &slot, std::span<const tensor::Tensor> inputs,
                                                        const RunScalars &scalars);

  const DeviceRef device_;
  const GraphExecutorOptions options_;
  std::string graph_text_;
  std::vector<std::string> input_names_, output_names_;
  std::vector<graph::ValueInfo> input_infos_;

  std::mutex compile_mutex_;  // held while compiling, so that one shape is compiled once
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::list<std::shared_ptr<Form>> forms_;  // most recently used first
  GraphExecutorCounters counters_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_GRAPH_EXECUTOR_H_
