// SPDX-License-Identifier: Apache-2.0
//
// Four neighbours of a float array in one access of up to 16 bytes. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_FOURS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_FOURS_INL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {

template <typename T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Four {
  T values[4];
};

template <typename T, typename C>
__device__ inline void load_four_of(DType dtype, const void *source, int64_t four, C *out) {
  const Four<T> loaded = static_cast<const Four<T> *>(source)[four];
  for (int k = 0; k < 4; ++k)
    out[k] = load_element<C>(dtype, loaded.values, k);
}

/// Elements 4 * four, ... of an array that is aligned for it; a float dtype.
template <typename C>
__device__ inline void load_four(DType dtype, const void *source, int64_t four, C *out) {
  if (dtype == DType::f32) {
    load_four_of<float>(DType::f32, source, four, out);
  } else if (dtype == DType::f64) {
    load_four_of<double>(DType::f64, source, four, out);
  } else {
    load_four_of<uint16_t>(dtype, source, four, out);
  }
}

template <typename T, typename C>
__device__ inline void store_four_of(DType dtype, void *target, int64_t four, const C *in) {
  Four<T> stored;
  for (int k = 0; k < 4; ++k)
    store_element<C>(dtype, stored.values, k, in[k]);
  static_cast<Four<T> *>(target)[four] = stored;
}

template <typename C>
__device__ inline void store_four(DType dtype, void *target, int64_t four, const C *in) {
  if (dtype == DType::f32) {
    store_four_of<float>(DType::f32, target, four, in);
  } else if (dtype == DType::f64) {
    store_four_of<double>(DType::f64, target, four, in);
  } else {
    store_four_of<uint16_t>(dtype, target, four, in);
  }
}

/// Can an array of a float dtype be taken four at a time?
inline bool has_fours(DType dtype, const void *array) {
  const uintptr_t alignment = dtype == DType::f16 || dtype == DType::bf16 ? 8 : 16;
  return reinterpret_cast<uintptr_t>(array) % alignment == 0;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_FOURS_INL_H_
