// SPDX-License-Identifier: Apache-2.0
//
// The numbers of backend/random_elements.h on a device. A thread makes the four of a block of Philox words, and where
// rows are made of whole blocks it stores them at once. Seed, batch counter and row offset are read from the run's
// scalars by the device.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_RANDOM_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_RANDOM_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// Which number belongs to which element: RandomRows, with what a run adds.
struct RandomLayout {
  int64_t outer, rows, factor, inner;
  int32_t has_batch;
  tensor::DType dtype;
  uint64_t stream;
  int64_t iteration;       ///< of the scans around
  const int64_t *scalars;  ///< on the device
};

enum class Normal : int32_t { plain, truncated };

/// y = x / (1 - rate) where the uniform is at least the rate, else 0.
gpuError_t launch_dropout(const RandomLayout &layout, double rate, const void *x, void *y, gpuStream_t stream);
gpuError_t launch_random_uniform(const RandomLayout &layout, double low, double high, void *y, gpuStream_t stream);
gpuError_t launch_random_normal(const RandomLayout &layout, Normal kind, double mean, double deviation, void *y,
                                gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_RANDOM_H_
