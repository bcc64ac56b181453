// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax on a device. Along the innermost axis a group of threads has a row, in registers if it fits,
// else by the online softmax (Milakov and Gimelshein 2018); along another axis a thread has a line.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_SOFTMAX_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_SOFTMAX_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/reduction_data.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// Lines of [outer, length, inner] along the middle.
struct SoftmaxWork {
  tensor::DType dtype;
  bool is_log;
  SumOrder order;
  int64_t outer, length, inner;
  bool goes_by_lines;  ///< a thread has a line; always where inner > 1
  const void *x;       ///< of the gradient: dy
  const void *y;       ///< of the gradient only
  void *result;
};

gpuError_t launch_softmax(const SoftmaxWork &work, gpuStream_t stream);
gpuError_t launch_softmax_gradient(const SoftmaxWork &work, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_SOFTMAX_H_
