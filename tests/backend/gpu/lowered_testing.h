// SPDX-License-Identifier: Apache-2.0
//
// What tests of the libraries' kernels share: graphs as a plug-in gets them, trials on memory of the host, and a call
// on tensors.
#ifndef TUTTI_TESTS_BACKEND_CUDA_LOWERED_TESTING_H_
#define TUTTI_TESTS_BACKEND_CUDA_LOWERED_TESTING_H_

#include <cstdint>
#include <vector>

#include "backend/gpu/kernel/kernel.h"
#include "backend/gpu/library/algorithm_probes.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/lowered_graph.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace tutti::testing {

impl::backend::LoweredGraph lower(const impl::graph::Graph &graph, int32_t level = TUTTI_LEVEL_FAST);
/// `flags`: TUTTI_COMPILE_*.
impl::backend::LoweredGraph lower(impl::graph::GraphBuilder &builder, int32_t level = TUTTI_LEVEL_FAST,
                                  int32_t flags = 0);

/// With reads that widen (mixed_graph.h).
impl::backend::LoweredGraph lower_halves(impl::graph::GraphBuilder &builder);
/// In mixed precision, with bf16.
impl::backend::LoweredGraph lower_mixed(impl::graph::GraphBuilder &builder);

/// Small whole numbers: sums are exact in any order.
std::vector<float> numbers(int64_t count, int seed);

/// Trials without a plan cache, whose times are those that the stand-ins tell. A line for the log fails the test.
struct HostTrials {
  impl::backend::gpu::AlgorithmTrials trials;

  HostTrials();
};

/// Probes of the same kind.
struct HostProbes {
  impl::backend::gpu::AlgorithmProbes probes;

  HostProbes();
};

/// The operands of a call, by value of the graph.
struct CallOperands {
  std::vector<impl::graph::ValueId> inputs, outputs;
  int64_t scratch_bytes = 0;
};

/// The outputs of a call, in order. `graph_inputs` are those of the graph. The scratch memory is what the call asks for
/// and not a byte more.
std::vector<impl::tensor::Tensor> run_call(const impl::backend::LoweredGraph &lowered,
                                           const impl::backend::gpu::Kernel &kernel, const CallOperands &operands,
                                           const std::vector<impl::tensor::Tensor> &graph_inputs);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CUDA_LOWERED_TESTING_H_
