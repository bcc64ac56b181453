// SPDX-License-Identifier: Apache-2.0
//
// Vectorized access: four neighbours of a float array at once, in up to 16 bytes. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_VECTOR4_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_VECTOR4_INL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {

template <typename T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Vector4 {
  T values[4];
};

template <typename T, typename C>
__device__ inline void load_vector4_of(DType dtype, const void *source, int64_t vector, C *out) {
  const Vector4<T> loaded = static_cast<const Vector4<T> *>(source)[vector];
  for (int k = 0; k < 4; ++k)
    out[k] = load_element<C>(dtype, loaded.values, k);
}

/// Elements 4 * vector, ... of an array that is aligned for it; a float dtype.
template <typename C>
__device__ inline void load_vector4(DType dtype, const void *source, int64_t vector, C *out) {
  if (dtype == DType::f32) {
    load_vector4_of<float>(DType::f32, source, vector, out);
  } else if (dtype == DType::f64) {
    load_vector4_of<double>(DType::f64, source, vector, out);
  } else {
    load_vector4_of<uint16_t>(dtype, source, vector, out);
  }
}

template <typename T, typename C>
__device__ inline void store_vector4_of(DType dtype, void *target, int64_t vector, const C *in) {
  Vector4<T> stored;
  for (int k = 0; k < 4; ++k)
    store_element<C>(dtype, stored.values, k, in[k]);
  static_cast<Vector4<T> *>(target)[vector] = stored;
}

template <typename C>
__device__ inline void store_vector4(DType dtype, void *target, int64_t vector, const C *in) {
  if (dtype == DType::f32) {
    store_vector4_of<float>(DType::f32, target, vector, in);
  } else if (dtype == DType::f64) {
    store_vector4_of<double>(DType::f64, target, vector, in);
  } else {
    store_vector4_of<uint16_t>(dtype, target, vector, in);
  }
}

/// Can an array of a float dtype be taken four at a time?
inline bool is_vector4_aligned(DType dtype, const void *array) {
  const uintptr_t alignment = dtype == DType::f16 || dtype == DType::bf16 ? 8 : 16;
  return reinterpret_cast<uintptr_t>(array) % alignment == 0;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_VECTOR4_INL_H_
