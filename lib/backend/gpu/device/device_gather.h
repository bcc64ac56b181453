// SPDX-License-Identifier: Apache-2.0
//
// Picking by index: gather, one_hot, iota. A thread per word of the result, in its order; words of up to 16 bytes.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_GATHER_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_GATHER_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/faults.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// An array [outer, length, inner] and slices of it, [outer, picks, inner].
struct GatherShape {
  int64_t outer, length, inner, picks;
};

/// Indices, and what is reported about one outside of [0, length).
struct GatherIndices {
  const void *data;
  tensor::DType dtype;
  int32_t fault;
  FaultSink sink;
};

/// `missing` is the element that an index out of range gives. `element_bytes`: 1, 2, 4 or 8.
gpuError_t launch_gather(const GatherShape &shape, const GatherIndices &indices, const void *params, void *to,
                         int64_t element_bytes, uint64_t missing, gpuStream_t stream);

/// Only reports what is out of range.
gpuError_t launch_check_indices(const GatherShape &shape, const GatherIndices &indices, gpuStream_t stream);

/// to[row, i] = i == indices[row] ? on : off, as bits of elements of `element_bytes`.
struct OneHot {
  const void *indices;
  tensor::DType index_dtype;
  int64_t rows, depth;
  void *to;
  int64_t element_bytes;
  uint64_t on, off;
};
gpuError_t launch_one_hot(const OneHot &one_hot, gpuStream_t stream);

/// to[i] = i / stride % length.
gpuError_t launch_iota(int64_t elements, int64_t stride, int64_t length, tensor::DType dtype, void *to,
                       gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_GATHER_H_
