// SPDX-License-Identifier: Apache-2.0
//
// What the programs of the backend suite share: the backend named on the command line, the reference backend to compare
// it with, and running one graph on a device.
//
//   backend_ops_test reference            a backend of runtime/backend_list.h
//   backend_ops_test /path/tutti-x.so     a plug-in
//
// TUTTI_TESTED_OPTIONS has the backend's options as JSON where they are not its defaults.
//
// A new backend runs the suite by one more name in tests/conformance/meson.build. Ops on f32, integers and booleans
// must exist; on other dtypes a backend may answer UNIMPLEMENTED, which is counted and printed.
#ifndef TUTTI_TESTS_CONFORMANCE_BACKEND_UNDER_TEST_H_
#define TUTTI_TESTS_CONFORMANCE_BACKEND_UNDER_TEST_H_

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "backend/graph_executor.h"
#include "base/status.h"
#include "graph/builder.h"
#include "tensor/tensor.h"

namespace tutti::impl::conformance {

struct BackendUnderTest {
  std::string name;
  backend::DeviceRef device;
  /// Device 0 of the reference backend as linked in.
  backend::DeviceRef oracle;
};

/// Opens what argv[1] names; the suite's own failure when it cannot.
base::Result<BackendUnderTest> open_backend_under_test(int argc, char **argv);

/// What main() returns when the backend cannot be opened: 77, which skips the program, where there is no such device
/// here; else 1. Says why.
int exit_without_backend(const base::Status &status);

/// The node under test: adds nodes to a graph whose inputs are given, returns the values to compare.
using BuildFunction =
    std::function<graph::GraphBuilder::Values(graph::GraphBuilder &, const graph::GraphBuilder::Values &)>;

/// A graph with inputs "i0", "i1", ... of these tensors' types and shapes and results "r0", "r1", ...
base::Result<graph::Graph> build_graph(const std::vector<tensor::Tensor> &inputs, const BuildFunction &build);

/// Builds, compiles and runs.
base::Result<std::vector<tensor::Tensor>> run_graph(const backend::DeviceRef &device,
                                                    const std::vector<tensor::Tensor> &inputs,
                                                    const BuildFunction &build, const backend::RunScalars &scalars = {},
                                                    const backend::GraphExecutorOptions &options = {});

/// May a backend leave a node of these dtypes out?
bool is_optional(const std::vector<tensor::Tensor> &inputs, const graph::Attributes &attributes);

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_BACKEND_UNDER_TEST_H_
