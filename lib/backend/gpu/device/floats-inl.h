// SPDX-License-Identifier: Apache-2.0
//
// Elements of the floating types in device code, for kernels that need no other: fewer branches than load_element and
// store_element. C is float for f32, f16 and bf16, double for f64. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_FLOATS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_FLOATS_INL_H_

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {

/// A 16-bit element's bits as a float.
__device__ inline float half_to_float(DType dtype, uint32_t bits) {
  const uint16_t half = static_cast<uint16_t>(bits);
  return dtype == DType::bf16 ? bfloat16_to_float(half) : gpu_half_to_float(half);
}
__device__ inline uint16_t float_to_half(DType dtype, float value) {
  return dtype == DType::bf16 ? float_to_bfloat16(value) : gpu_float_to_half(value);
}

template <typename C>
__device__ inline C load_float(DType dtype, const void *source, int64_t index) {
  if constexpr (sizeof(C) == sizeof(double)) {
    return static_cast<const double *>(source)[index];
  } else {
    if (dtype == DType::f32) return static_cast<const float *>(source)[index];
    return half_to_float(dtype, static_cast<const uint16_t *>(source)[index]);
  }
}

template <typename C>
__device__ inline void store_float(DType dtype, void *target, int64_t index, C value) {
  if constexpr (sizeof(C) == sizeof(double)) {
    static_cast<double *>(target)[index] = value;
  } else {
    if (dtype == DType::f32) {
      static_cast<float *>(target)[index] = value;
    } else {
      static_cast<uint16_t *>(target)[index] = float_to_half(dtype, value);
    }
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_FLOATS_INL_H_
