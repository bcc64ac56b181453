// SPDX-License-Identifier: Apache-2.0
//
// The gradient of gather: the slices of dy added up by index. Positions are sorted by index first
// (device_index_sort.h); a thread then adds what a chunk of about sqrt(picks) / 2 sorted positions has in its column,
// and what indices that reach over several chunks have there is joined in the order of the chunks. So sums have one
// order, and neither a large table nor an index that occurs again and again makes it slow.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_GATHER_GRADIENT_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_GATHER_GRADIENT_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device_gather.h"

namespace tutti::impl::backend::gpu {

struct GatherGradient {
  GatherShape shape;
  tensor::DType dtype;
  int64_t chunk, chunks;  ///< of sorted positions
  const uint32_t *keys, *order;
  const void *dy;
  void *dparams;  ///< zero where no index points
  void *partial;  ///< of partial_bytes()

  /// Sizes alone.
  static GatherGradient of(const GatherShape &shape, tensor::DType dtype);
  constexpr int64_t columns() const { return shape.outer * shape.inner; }
  int64_t partial_bytes() const;
};

gpuError_t launch_gather_gradient(const GatherGradient &gradient, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_GATHER_GRADIENT_H_
