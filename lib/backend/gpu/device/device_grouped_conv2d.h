// SPDX-License-Identifier: Apache-2.0
//
// Convolution with groups of few channels, depthwise above all: tiles of products would be nearly empty, so each result
// is one thread's sum, neighbours having neighbouring channels. Sums of the kernel's gradient, over all positions, are
// shared by a column of threads and, if there are few of them, split between blocks. Any convolution of f64, too, which
// is rare and not worth the time to compile its tiles.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_GROUPED_CONV2D_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_GROUPED_CONV2D_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device_conv2d.h"

namespace tutti::impl::backend::gpu {

/// Into how many parts the sums of the kernel's gradient are split; scratch memory is theirs.
struct GroupedPlan {
  int64_t splits = 1, split_positions = 0;
  int64_t scratch_bytes = 0;
};
GroupedPlan plan_grouped_kernel_gradient(const Convolution &convolution);

/// `bias` may be null.
gpuError_t launch_grouped_conv2d(const Convolution &convolution, const void *x, const void *kernel, const void *bias,
                                 void *y, gpuStream_t stream);
gpuError_t launch_grouped_conv2d_input_gradient(const Convolution &convolution, const void *dy, const void *kernel,
                                                void *dx, gpuStream_t stream);
gpuError_t launch_grouped_conv2d_kernel_gradient(const Convolution &convolution, const void *x, const void *dy,
                                                 void *dkernel, const GroupedPlan &plan, void *scratch,
                                                 gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_GROUPED_CONV2D_H_
