// SPDX-License-Identifier: Apache-2.0
//
// The last node of a graph: inputs for it, and what the reference backend makes of them.
#ifndef TUTTI_TESTS_BACKEND_HIP_LAST_NODE_H_
#define TUTTI_TESTS_BACKEND_HIP_LAST_NODE_H_

#include <vector>

#include "backend/lowered_graph.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace tutti::testing {

const impl::graph::Node &last_of(const impl::backend::LoweredGraph &lowered);

/// Small whole numbers in the graph's inputs, which are floating point.
std::vector<impl::tensor::Tensor> inputs_of(const impl::backend::LoweredGraph &lowered);

/// Of a graph of one node.
impl::tensor::Tensor expected_of(const impl::backend::LoweredGraph &lowered,
                                 const std::vector<impl::tensor::Tensor> &inputs);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_HIP_LAST_NODE_H_
