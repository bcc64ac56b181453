// SPDX-License-Identifier: Apache-2.0
//
// What both directions of a batch normalisation share. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_BATCH_NORM_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_BATCH_NORM_INL_H_

#include "backend/gpu/device/device_batch_norm.h"
#include "backend/gpu/device/reduction-inl.h"

namespace tutti::impl::backend::gpu {

/// Two arrays of C per channel in scratch memory, in front of partial results.
template <typename C>
struct ChannelScratch {
  C *first, *second;
  void *partials;

  explicit ChannelScratch(const BatchNormWork &work)
      : first(static_cast<C *>(work.scratch)),
        second(first + work.channels),
        partials(static_cast<char *>(work.scratch) + bytes(work)) {}
  static int64_t bytes(const BatchNormWork &work) {
    return divide_up(2 * work.channels * static_cast<int64_t>(sizeof(C)), 16) * 16;
  }
};

template <typename C>
inline constexpr DType kDTypeOf = sizeof(C) == 8 ? DType::f64 : DType::f32;

/// What x is multiplied by, less its mean.
template <typename C>
__device__ inline C norm_factor(C scale, C variance, C epsilon) {
  return scale / std::sqrt(variance + epsilon);
}

/// Of an element less its mean. Both directions round alike.
template <typename C>
__device__ inline C normalized(C centred, C factor, C offset) {
  return gpu_multiply_add(centred, factor, offset);
}

/// Calls function(Storage<T, V>()) for the work's dtype.
template <typename Function>
gpuError_t visit_batch_norm(const BatchNormWork &work, Function function) {
  return visit_floats(work.dtype, is_wide(work.dtype, work.channels, {work.x, work.dy, work.y, work.made_dy}),
                      function);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_BATCH_NORM_INL_H_
