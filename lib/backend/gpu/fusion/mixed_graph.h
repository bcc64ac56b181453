// SPDX-License-Identifier: Apache-2.0
//
// What GPUs change in a graph before it is compiled: mixed precision where it is allowed, and reads that widen.
#ifndef TUTTI_BACKEND_GPU_FUSION_MIXED_GRAPH_H_
#define TUTTI_BACKEND_GPU_FUSION_MIXED_GRAPH_H_

#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::backend::gpu {

/// For LoweredGraph::decode(): graph/rewrite/rewrites.h, mix_precision(), then read_halves().
base::Result<graph::Graph> mixed_graph(graph::Graph graph, tensor::DType half);

/// Casts from 16 bits to f32 become part of the reads of elementwise nodes and reductions, of updates for their
/// gradient and of cross entropies for their logits, for their kernels take any dtype for each operand: an f32 node may
/// then have a 16-bit operand, against the rules of its op. The gradient of such logits is stored in 16 bits where all
/// that reads it is casts to that.
graph::Graph read_halves(graph::Graph graph);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_MIXED_GRAPH_H_
