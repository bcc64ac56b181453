// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products of lines (backend/running_lines.h), in double or 64-bit integers. Where there are many
// lines side by side a thread has one; else a block has one, of which it does a stretch at a time by doubling (Hillis,
// Steele: "Data parallel algorithms", 1986).
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_RUNNING_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_RUNNING_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// An array [outer, length, inner] whose lines are along the length.
struct RunningWork {
  tensor::DType dtype;
  int64_t outer, length, inner;
  bool is_product, is_exclusive, is_backward;
  const void *x;
  void *y;

  constexpr int64_t lines() const { return outer * inner; }
};
gpuError_t launch_running(const RunningWork &work, gpuStream_t stream);

/// y of `work` is the gradient of a running product of x, from that of its result.
struct RunningProductGradient {
  RunningWork work;
  const void *dy;
  double *before;  ///< as many as x has elements: the product of the elements before each
};
gpuError_t launch_running_product_gradient(const RunningProductGradient &gradient, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_RUNNING_H_
