// SPDX-License-Identifier: Apache-2.0
//
// Layer and RMS normalisation over rows on a device. A group of threads has a row, in registers if it fits, and
// computes the variance from the differences. The gradient reads its operands once: threads keep the sums over their
// rows for the columns they have; blocks add up theirs, and a second pass those of all blocks.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_LAYER_NORM_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_LAYER_NORM_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/reduction_data.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// RMS normalisation is not centred: mean and offset, and the gradient for that, are null.
struct LayerNormWork {
  tensor::DType dtype, parameter, statistics;
  SumOrder order;
  int64_t rows, width;
  double epsilon;
  const void *x, *scale, *offset;
  void *y, *mean, *rstd;
};
gpuError_t launch_layer_norm(const LayerNormWork &work, gpuStream_t stream);

struct LayerNormGradientWork {
  tensor::DType dtype, parameter, statistics;
  int64_t rows, width;
  const void *dy, *x, *scale, *mean, *rstd;
  void *dx, *dscale, *doffset, *scratch;
};
int64_t layer_norm_gradient_scratch_bytes(const LayerNormGradientWork &work);
gpuError_t launch_layer_norm_gradient(const LayerNormGradientWork &work, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_LAYER_NORM_H_
