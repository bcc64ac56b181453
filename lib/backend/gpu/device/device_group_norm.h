// SPDX-License-Identifier: Apache-2.0
//
// Group normalisation of [images, positions, channels] on a device: moments, or sums of the gradient, of each image and
// channel, which groups combine; then a pass over the elements (channel_pass-inl.h). So x is read twice, whatever the
// groups.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_GROUP_NORM_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_GROUP_NORM_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/reduction_data.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

struct GroupNormShape {
  tensor::DType dtype, parameter, statistics;  ///< of x, y and dx; of scale and offset; of mean and rstd
  int64_t images, positions, channels, groups;
  SumOrder order;  ///< of the statistics
};

struct GroupNormWork {
  GroupNormShape shape;
  double epsilon;
  const void *x, *scale, *offset;
  void *y, *mean, *rstd, *scratch;
};
int64_t group_norm_scratch_bytes(const GroupNormShape &shape);
gpuError_t launch_group_norm(const GroupNormWork &work, gpuStream_t stream);

struct GroupNormGradientWork {
  GroupNormShape shape;
  const void *dy, *x, *scale, *mean, *rstd;
  void *dx, *dscale, *doffset, *scratch;
};
int64_t group_norm_gradient_scratch_bytes(const GroupNormShape &shape);
gpuError_t launch_group_norm_gradient(const GroupNormGradientWork &work, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_GROUP_NORM_H_
