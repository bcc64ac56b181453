// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/fill_nodes.h"

#include <algorithm>
#include <vector>

namespace tutti::impl::backend::cuda {
namespace {

/// Lines of elements of 1, 2 or 4 bytes, `pitch` bytes from one to the next.
struct Fill {
  char *to;
  size_t pitch, width, height;
  unsigned value, element_bytes;
};

/// Whole words of 16 bytes where lines consist of these.
__global__ void fill_words(const Fill fill, const uint4 word) {
  const size_t words = fill.width * fill.element_bytes / sizeof(uint4), step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words * fill.height; i += step)
    reinterpret_cast<uint4 *>(fill.to + i / words * fill.pitch)[i % words] = word;
}

template <typename T>
__global__ void fill_elements(const Fill fill) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < fill.width * fill.height; i += step)
    reinterpret_cast<T *>(fill.to + i / fill.width * fill.pitch)[i % fill.width] = static_cast<T>(fill.value);
}

bool has_words(const Fill &fill) {
  return (reinterpret_cast<uintptr_t>(fill.to) | fill.pitch | fill.width * fill.element_bytes) % sizeof(uint4) == 0;
}

/// Four times the value's bytes, as often as it has room in them.
uint4 word_of(const Fill &fill) {
  unsigned word = fill.value;
  if (fill.element_bytes == 1) word = (word & 0xffu) * 0x01010101u;
  if (fill.element_bytes == 2) word = (word & 0xffffu) * 0x00010001u;
  return {word, word, word, word};
}

gpuError_t add_kernel(cudaGraph_t graph, const std::vector<cudaGraphNode_t> &behind, Fill fill, cudaGraphNode_t *node) {
  uint4 word = word_of(fill);
  void *arguments[] = {&fill, &word};
  cudaKernelNodeParams parameters{};
  parameters.func = has_words(fill)           ? reinterpret_cast<void *>(fill_words)
                    : fill.element_bytes == 1 ? reinterpret_cast<void *>(fill_elements<uint8_t>)
                    : fill.element_bytes == 2 ? reinterpret_cast<void *>(fill_elements<uint16_t>)
                                              : reinterpret_cast<void *>(fill_elements<uint32_t>);
  const size_t elements = fill.width * fill.height / (has_words(fill) ? sizeof(uint4) / fill.element_bytes : 1);
  constexpr size_t kMostBlocks = 1024;
  parameters.gridDim =
      dim3(static_cast<unsigned>(std::clamp<size_t>((elements + kBlockThreads - 1) / kBlockThreads, 1, kMostBlocks)));
  parameters.blockDim = dim3(kBlockThreads);
  parameters.kernelParams = arguments;
  return cudaGraphAddKernelNode(node, graph, behind.data(), behind.size(), &parameters);
}

// CUDA 13 tells of each edge what it is.
#if CUDART_VERSION >= 13000
#define TUTTI_EDGE_DATA nullptr,
#else
#define TUTTI_EDGE_DATA
#endif

using Neighbours = std::vector<cudaGraphNode_t>;

gpuError_t find_neighbours(cudaGraphNode_t node, Neighbours &before, Neighbours &behind) {
  size_t count = 0;
  gpuError_t error = cudaGraphNodeGetDependencies(node, nullptr, TUTTI_EDGE_DATA & count);
  before.resize(count);
  if (error == cudaSuccess && count > 0)
    error = cudaGraphNodeGetDependencies(node, before.data(), TUTTI_EDGE_DATA & count);
  if (error == cudaSuccess) error = cudaGraphNodeGetDependentNodes(node, nullptr, TUTTI_EDGE_DATA & count);
  if (error != cudaSuccess) return error;
  behind.resize(count);
  return count == 0 ? cudaSuccess : cudaGraphNodeGetDependentNodes(node, behind.data(), TUTTI_EDGE_DATA & count);
}

gpuError_t replace(cudaGraph_t graph, cudaGraphNode_t node) {
  cudaMemsetParams fill{};
  gpuError_t error = cudaGraphMemsetNodeGetParams(node, &fill);
  Neighbours before, behind;
  if (error == cudaSuccess) error = find_neighbours(node, before, behind);
  cudaGraphNode_t kernel = nullptr;
  if (error == cudaSuccess)
    error = add_kernel(
        graph, before,
        {static_cast<char *>(fill.dst), fill.pitch, fill.width, fill.height, fill.value, fill.elementSize}, &kernel);
  const Neighbours from(behind.size(), kernel);
  if (error == cudaSuccess && !behind.empty())
    error = cudaGraphAddDependencies(graph, from.data(), behind.data(), TUTTI_EDGE_DATA behind.size());
  return error == cudaSuccess ? cudaGraphDestroyNode(node) : error;
}

}  // namespace

gpuError_t replace_fills(gpuGraph_t graph) {
  size_t count = 0;
  gpuError_t error = cudaGraphGetNodes(graph, nullptr, &count);
  std::vector<cudaGraphNode_t> nodes(count);
  if (error == cudaSuccess && count > 0) error = cudaGraphGetNodes(graph, nodes.data(), &count);
  for (size_t i = 0; error == cudaSuccess && i < nodes.size(); ++i) {
    cudaGraphNodeType type;
    error = cudaGraphNodeGetType(nodes[i], &type);
    if (error == cudaSuccess && type == cudaGraphNodeTypeMemset) error = replace(graph, nodes[i]);
  }
  return error;
}

}  // namespace tutti::impl::backend::cuda
