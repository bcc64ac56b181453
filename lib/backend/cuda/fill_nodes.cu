// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/fill_nodes.h"

#include <algorithm>
#include <cstdint>
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

/// The nodes on one side of a node.
class Neighbours {
 public:
  std::vector<cudaGraphNode_t> nodes;

#if CUDART_VERSION >= 13000
  // An edge may have a meaning of its own, between kernels that overlap: then all stays as it is.
  using Ask = cudaError_t (*)(cudaGraphNode_t, cudaGraphNode_t *, cudaGraphEdgeData *, size_t *);

  bool find(cudaGraphNode_t node, Ask ask) {
    size_t count = 0;
    if (ask(node, nullptr, nullptr, &count) != cudaSuccess) return false;
    nodes.resize(count);
    std::vector<cudaGraphEdgeData> edges(count);
    if (count > 0 && ask(node, nodes.data(), edges.data(), &count) != cudaSuccess) return false;
    return std::all_of(edges.begin(), edges.end(), [](const cudaGraphEdgeData &edge) {
      return edge.from_port == 0 && edge.to_port == 0 && edge.type == cudaGraphDependencyTypeDefault;
    });
  }
  bool put_behind(cudaGraph_t graph, cudaGraphNode_t node) const {
    const std::vector<cudaGraphNode_t> from(nodes.size(), node);
    return nodes.empty() ||
           cudaGraphAddDependencies(graph, from.data(), nodes.data(), nullptr, nodes.size()) == cudaSuccess;
  }
#else
  using Ask = cudaError_t (*)(cudaGraphNode_t, cudaGraphNode_t *, size_t *);

  bool find(cudaGraphNode_t node, Ask ask) {
    size_t count = 0;
    if (ask(node, nullptr, &count) != cudaSuccess) return false;
    nodes.resize(count);
    return count == 0 || ask(node, nodes.data(), &count) == cudaSuccess;
  }
  bool put_behind(cudaGraph_t graph, cudaGraphNode_t node) const {
    const std::vector<cudaGraphNode_t> from(nodes.size(), node);
    return nodes.empty() || cudaGraphAddDependencies(graph, from.data(), nodes.data(), nodes.size()) == cudaSuccess;
  }
#endif
};

bool replace(cudaGraph_t graph, cudaGraphNode_t node) {
  cudaMemsetParams fill{};
  Neighbours before, behind;
  if (cudaGraphMemsetNodeGetParams(node, &fill) != cudaSuccess || !before.find(node, cudaGraphNodeGetDependencies) ||
      !behind.find(node, cudaGraphNodeGetDependentNodes))
    return false;
  const Fill same{static_cast<char *>(fill.dst), fill.pitch, fill.width, fill.height, fill.value, fill.elementSize};
  cudaGraphNode_t kernel = nullptr;
  if (add_kernel(graph, before.nodes, same, &kernel) != cudaSuccess) return false;
  if (behind.put_behind(graph, kernel)) return cudaGraphDestroyNode(node) == cudaSuccess;
  (void)cudaGraphDestroyNode(kernel);
  return false;
}

}  // namespace

int replace_fills(gpuGraph_t graph) {
  size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return 0;
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0 && cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return 0;
  int replaced = 0;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    const bool fills = cudaGraphNodeGetType(node, &type) == cudaSuccess && type == cudaGraphNodeTypeMemset;
    replaced += fills && replace(graph, node) ? 1 : 0;
  }
  (void)cudaGetLastError();  // a library that launches next would take it for its own
  return replaced;
}

}  // namespace tutti::impl::backend::cuda
