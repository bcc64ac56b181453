// SPDX-License-Identifier: Apache-2.0
//
// Maximum and average over windows of images [rows, height, width, channels], and their gradients: one thread to an
// element of the result, of maxima to a pack of neighbouring channels, neighbours having neighbouring ones. Gradients
// are gathered: a pixel looks at the windows that it lies in, in row-major order.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_POOL2D_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_POOL2D_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/image_window.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

struct Pooling {
  tensor::DType dtype;
  ImageWindow window;
  int64_t channels;
  int32_t counts_padding;  ///< average of whole windows at borders too
};

/// NaN is larger than every number; windows outside of the image give -inf.
gpuError_t launch_max_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream);
/// The first maximum, or the first NaN, of each window takes its dy. One pass finds where these are, another gathers.
int64_t max_pool2d_gradient_scratch_bytes(const Pooling &pooling);
gpuError_t launch_max_pool2d_gradient(const Pooling &pooling, const void *dy, const void *x, void *scratch, void *dx,
                                      gpuStream_t stream);
gpuError_t launch_avg_pool2d(const Pooling &pooling, const void *x, void *y, gpuStream_t stream);
gpuError_t launch_avg_pool2d_gradient(const Pooling &pooling, const void *dy, void *dx, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_POOL2D_H_
