// SPDX-License-Identifier: Apache-2.0
//
// What tests of steps that are computed with a batch normalisation share: operands, and a graph on the device against
// the reference backend.
#ifndef TUTTI_TESTS_BACKEND_GPU_NORM_CASES_H_
#define TUTTI_TESTS_BACKEND_GPU_NORM_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "testing.h"

namespace tutti::testing {

/// Set by main().
inline impl::conformance::BackendUnderTest *tested = nullptr;

inline const impl::graph::Attributes kEpsilon = {{"epsilon", 0.01}};

/// Numbers between low and high, the same for the same seed.
inline impl::tensor::Tensor operand(const std::vector<int64_t> &dims, uint64_t seed,
                                    impl::tensor::DType dtype = impl::tensor::DType::f32, double low = -2,
                                    double high = 2) {
  impl::conformance::Operand made;
  made.dtype = dtype;
  made.dims = dims;
  made.low = low;
  made.high = high;
  return assert_ok_value(impl::conformance::make_operand(made, seed));
}

/// That all results are right, and whether a kernel of that name is among those of the graph.
inline bool check(const std::vector<impl::tensor::Tensor> &inputs, const impl::conformance::BuildFunction &build,
                  const std::string &kernel, double limit = 1e-4) {
  const auto expected = assert_ok_value(impl::conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(impl::conformance::run_graph(tested->device, inputs, build));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(impl::tensor::compare_close(results[i], expected[i], limit, limit));
  const auto graph = assert_ok_value(impl::conformance::build_graph(inputs, build));
  const auto bound = assert_ok_value(impl::conformance::BoundGraph::make(tested->device, graph));
  return bound->description().report_json.find("\"" + kernel + "\"") != std::string::npos;
}

/// Of x, scale and offset, the first three of `v`.
inline impl::graph::GraphBuilder::Values norm(impl::graph::GraphBuilder &b,
                                              const impl::graph::GraphBuilder::Values &v) {
  return b.op_n("batch_norm_training", {v[0], v[1], v[2]}, kEpsilon, 3);
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_GPU_NORM_CASES_H_
