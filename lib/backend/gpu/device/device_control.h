// SPDX-License-Identifier: Apache-2.0
//
// What ops with regions need of a device: copies of slices, results of the branch that was taken, and the run's
// scalars. And whether it has code at all.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_CONTROL_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_CONTROL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// `count` pieces of `bytes` each: piece i lies at i * stride of its array, strides in bytes.
struct PieceCopy {
  void *to;
  const void *from;
  int64_t count, bytes;
  int64_t to_stride, from_stride;
};
gpuError_t launch_copy_pieces(const PieceCopy &copy, gpuStream_t stream);

/// to = *flag ? yes : no, byte by byte.
gpuError_t launch_choose(const bool *flag, const void *yes, const void *no, void *to, int64_t bytes,
                         gpuStream_t stream);

/// gates[0] = (outer is null or *outer) and *flag; gates[1] the same and not *flag.
gpuError_t launch_make_gates(const bool *flag, const bool *outer, bool *gates, gpuStream_t stream);

/// *to = *scalar as the dtype.
gpuError_t launch_store_scalar(const int64_t *scalar, tensor::DType dtype, void *to, gpuStream_t stream);

/// An error where the build has no code for the current device: all kernels are compiled for the same ones.
gpuError_t look_for_code();

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_CONTROL_H_
