// SPDX-License-Identifier: Apache-2.0
//
// What graphs of cuDNN's operations compute, on the host: convolutions, products, reductions and pointwise operations
// of f32, f16 and bf16, in f32. As cuDNN documents little of what becomes of NaNs, activations and extremes make 0 of
// them here. A convolution that pads one side of an axis more than the other is not right, nor one with a stride and a
// dilation on the same axis: not every engine of the real one computes them right.
#ifndef TUTTI_TESTS_BACKEND_CUDA_HOST_CUDNN_GRAPH_H_
#define TUTTI_TESTS_BACKEND_CUDA_HOST_CUDNN_GRAPH_H_

#include <cudnn_graph.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

namespace tutti::testing {

/// A descriptor: the bytes of its attributes.
struct CudnnGraphDescriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::vector<char>> attributes;
  bool is_final = false;

  bool has(int name) const { return attributes.count(name) != 0; }
  template <typename T>
  T get(int name, size_t index = 0) const {
    T value{};
    std::memcpy(&value, attributes.at(name).data() + index * sizeof(T), sizeof(T));
    return value;
  }
  const CudnnGraphDescriptor &part(int name) const { return *get<const CudnnGraphDescriptor *>(name); }
};

/// Operations in the order in which they were given; what is not right about them is BAD_PARAM.
cudnnStatus_t run_cudnn_graph(const CudnnGraphDescriptor &graph, const CudnnGraphDescriptor &variant_pack);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CUDA_HOST_CUDNN_GRAPH_H_
