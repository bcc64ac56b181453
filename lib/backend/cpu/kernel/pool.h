// SPDX-License-Identifier: Apache-2.0
//
// Pooling of f32 images, row-major NHWC. Images in blocks of 16 channels are the same thing with channels = 16 and
// images · blocks images. One thread, no scratch.
#ifndef TUTTI_BACKEND_CPU_KERNEL_POOL_H_
#define TUTTI_BACKEND_CPU_KERNEL_POOL_H_

#include <cstdint>

namespace tutti::impl::backend::cpu {

struct PoolShape {
  int64_t images = 0, channels = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t window[2] = {1, 1}, stride[2] = {1, 1}, pad_low[2] = {0, 0};
  bool count_padding = false;  ///< averages divide by the whole window
};

/// Largest element of each window; NaN wins; padding never does.
void max_pool(const PoolShape &shape, const float *x, float *y);
/// dy goes to the first largest element of each window in row-major order; with `relu` only where that is positive.
void max_pool_gradient(const PoolShape &shape, const float *dy, const float *x, const float *y, bool relu, float *dx);

void average_pool(const PoolShape &shape, const float *x, float *y);
void average_pool_gradient(const PoolShape &shape, const float *dy, float *dx);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_POOL_H_
