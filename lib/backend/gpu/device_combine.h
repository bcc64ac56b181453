// SPDX-License-Identifier: Apache-2.0
//
// The reduction over several arrays of one device's reach, written to all of them: what replicas on one GPU, or on GPUs
// that read each other's memory, do with their gradients.
#ifndef TUTTI_BACKEND_GPU_DEVICE_COMBINE_H_
#define TUTTI_BACKEND_GPU_DEVICE_COMBINE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

enum class Combination : int32_t { sum = 1, max, min };

/// Arrays of a launch, by value.
struct ArrayList {
  static constexpr int32_t kArrays = 128;

  int32_t count;
  void *arrays[kArrays];
};

/// arrays[i][e] becomes the reduction of arrays[0][e], arrays[1][e], ... in this order, for all i. Every element is
/// read of each array once, and written once. Sums of f16 and bf16 are rounded at the end.
gpuError_t launch_combine(const ArrayList &list, tensor::DType dtype, Combination combination, int64_t elements,
                          gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_COMBINE_H_
