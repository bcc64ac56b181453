// SPDX-License-Identifier: Apache-2.0
//
// A graph compiled and bound, with its arenas, for tests of programs with state and segments.
#ifndef TUTTI_TESTS_CONFORMANCE_BOUND_GRAPH_H_
#define TUTTI_TESTS_CONFORMANCE_BOUND_GRAPH_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace tutti::impl::conformance {

/// The arenas of a state table as buffers of one device, zero at first.
class Arenas {
 public:
  static base::Result<Arenas> make(const backend::DeviceRef &device, backend::StateTable table);

  const backend::StateTable &table() const { return table_; }
  std::vector<void *> pointers() const;
  base::Status write(std::string_view entry, const tensor::Tensor &value);
  /// The entry's storage as f32 or the dtype it has, in its logical dims.
  base::Result<tensor::Tensor> read(std::string_view entry) const;

 private:
  backend::StateTable table_;
  std::vector<backend::Buffer> buffers_;
};

/// What stands between two segments: changes the numbers of the external node.
using ExternalFunction =
    std::function<void(int32_t index, const backend::ExternalDescription &external, tensor::Tensor &values)>;

class BoundGraph {
 public:
  /// `arenas` null = no state; it must outlive the bound graph.
  static base::Result<std::unique_ptr<BoundGraph>> make(const backend::DeviceRef &device, const graph::Graph &graph,
                                                        graph::SymbolBindings bindings = {}, Arenas *arenas = nullptr,
                                                        int32_t flags = 0);

  const backend::ExecutableDescription &description() const { return executable_->description(); }
  base::Result<std::vector<tensor::Tensor>> run(const std::vector<tensor::Tensor> &inputs,
                                                const backend::RunScalars &scalars = {},
                                                const ExternalFunction &external = {});
  /// Runs all segments on what the last run() set up, and nothing else.
  base::Status run_again(const backend::RunScalars &scalars);

 private:
  base::Status run_segments(const backend::RunScalars &scalars, const ExternalFunction &external);
  base::Status run_external(int32_t index, const ExternalFunction &external);

  backend::DeviceRef device_;
  backend::ExecutableRef executable_;
  backend::Buffer workspace_;
  backend::Stream stream_;
  backend::Program program_;
  std::vector<backend::Buffer> inputs_, outputs_;
  std::vector<const void *> input_pointers_;
  std::vector<void *> output_pointers_;
};

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_BOUND_GRAPH_H_
