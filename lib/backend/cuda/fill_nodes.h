// SPDX-License-Identifier: Apache-2.0
//
// Fills of memory in captured graphs, as kernels. A driver launches a graph of kernels alone in 3 to 5 us, however many
// they are, and takes 1.5 us longer for each node that fills memory (measured on an H200, CUDA 13.0); libraries fill
// memory for each gradient of a kernel that several blocks add up.
#ifndef TUTTI_BACKEND_CUDA_FILL_NODES_H_
#define TUTTI_BACKEND_CUDA_FILL_NODES_H_

#include <tutti_gpu.h>

namespace tutti::impl::backend::cuda {

/// Replaces nodes that fill memory by kernels that do the same, between the same nodes; how many. What cannot be
/// replaced stays as it is. The graph is not made ready yet. Threads: the graph's.
int replace_fills(gpuGraph_t graph);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_FILL_NODES_H_
