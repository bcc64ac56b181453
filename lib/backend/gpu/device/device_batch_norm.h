// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation over all axes but the last on a device: sums over the rows of [rows, channels], variances in one
// pass (moments-inl.h), then a pass over the elements (channel_pass-inl.h).
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_BATCH_NORM_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_BATCH_NORM_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device_epilogue.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// What an op does not have stays null.
struct BatchNormWork {
  tensor::DType dtype, parameter;  ///< of x, dy, y and dx; of scale, offset, mean, variance and the results for them
  tensor::DType statistics;        ///< of the mean and variance that training computes
  int64_t rows, channels;
  double epsilon;
  const void *x, *dy, *scale, *offset, *mean, *variance;
  const double *sum_dy, *sum_dy_xc, *count;  ///< of gradient_apply
  void *y;                                   ///< or dx
  void *first, *second;                      ///< results per channel: mean, variance; sums; dscale, doffset
  void *scratch;
  const Epilogue *epilogue;  ///< what becomes of y before it is stored, or of dy before it is dy; not of f64
  void *made_dy;             ///< of gradients with an epilogue: what it makes of dy, which is dy then
};
int64_t batch_norm_scratch_bytes(const BatchNormWork &work);

/// first = sum(x), second = sum(x²), as f64.
gpuError_t launch_batch_norm_moments(const BatchNormWork &work, gpuStream_t stream);
gpuError_t launch_batch_norm_training(const BatchNormWork &work, gpuStream_t stream);
/// Of sums and sums of squares, f32 per channel, that are there already. For x of 16 bits: what their difference loses
/// is less than what its elements have lost.
gpuError_t launch_batch_norm_of_sums(const BatchNormWork &work, const float *sums, const float *squares,
                                     gpuStream_t stream);
/// The same sums as moments: first and second of f64.
gpuError_t launch_batch_norm_moments_of_sums(const BatchNormWork &work, const float *sums, const float *squares,
                                             gpuStream_t stream);
gpuError_t launch_batch_norm_inference(const BatchNormWork &work, gpuStream_t stream);

/// first = sum(dy), second = sum(dy · (x - mean)), as f64.
gpuError_t launch_batch_norm_gradient_moments(const BatchNormWork &work, gpuStream_t stream);
/// With an offset: dy is the gradient of relu of the normalisation's results, rounded to their dtype, and statistics
/// are those that it was computed with.
gpuError_t launch_batch_norm_training_gradient(const BatchNormWork &work, gpuStream_t stream);
gpuError_t launch_batch_norm_gradient_apply(const BatchNormWork &work, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_BATCH_NORM_H_
