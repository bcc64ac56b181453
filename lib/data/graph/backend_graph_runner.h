// SPDX-License-Identifier: Apache-2.0
//
// The GraphRunner over a device of any backend: graphs compiled for fixed shapes, compiled forms kept and shared, each
// function with a workspace of its own. On devices whose memory the host cannot reach, inputs and outputs are copied.
//
//   context.graphs = BackendGraphRunner::create(device);
//
// Threads: as GraphRunner says.
#ifndef TUTTI_DATA_GRAPH_BACKEND_GRAPH_RUNNER_H_
#define TUTTI_DATA_GRAPH_BACKEND_GRAPH_RUNNER_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "data/graph/graph_runner.h"

namespace tutti::impl::data {

class BackendGraphRunner : public GraphRunner {
 public:
  /// `kept_forms`: how many compiled forms stay; the least recently used goes first.
  static std::shared_ptr<BackendGraphRunner> create(backend::DeviceRef device,
                                                    backend::Level level = backend::Level::fast,
                                                    size_t kept_forms = 64);

  base::Result<std::unique_ptr<GraphFunction>> prepare(const graph::SealedGraph &graph,
                                                       const graph::SymbolBindings &bindings) override;

 private:
  // A graph compiled for one set of bindings; holding the graph keeps its address its own.
  struct Form {
    graph::SealedGraph graph;
    graph::SymbolBindings bindings;
    backend::ExecutableRef executable;
  };

  BackendGraphRunner(backend::DeviceRef device, backend::Level level, size_t kept_forms)
      : device_(std::move(device)), level_(level), kept_forms_(kept_forms) {}
  base::Result<backend::ExecutableRef> compile(const graph::SealedGraph &graph, const graph::SymbolBindings &bindings);

  const backend::DeviceRef device_;
  const backend::Level level_;
  const size_t kept_forms_;
  std::mutex mutex_;
  std::list<Form> forms_;  // guarded by mutex_; most recently used first
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_BACKEND_GRAPH_RUNNER_H_
