// SPDX-License-Identifier: Apache-2.0
//
// Images of another size (graph/ops/interpolation.h). A thread per element of the result.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_INTERPOLATE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_INTERPOLATE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// [rows, height, width, channels] become [rows, to_height, to_width, channels].
struct Interpolation {
  tensor::DType dtype;
  int64_t rows, height, width, channels, to_height, to_width;
  const void *x;
  void *y;
};
gpuError_t launch_interpolation(const Interpolation &images, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_INTERPOLATE_H_
