// SPDX-License-Identifier: Apache-2.0
//
// Elements of any type in device code. Arithmetic is done in float for f32, f16 and bf16, in double for f64, in 64-bit
// integers for integers and booleans. Included by .cu files, and by kernels that are compiled at run time.
#ifndef TUTTI_BACKEND_GPU_DEVICE_ELEMENTS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_ELEMENTS_INL_H_

#include <tutti_gpu.h>

#include <cstdint>
#include <cstring>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

using tensor::DType;

/// Neighbours that are read and written together.
template <typename T, int V>
struct alignas(sizeof(T) * V) Pack {
  T items[V];
};

__device__ inline float bfloat16_to_float(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &word, sizeof(value));
  return value;
}

/// Round to nearest even; a NaN stays a quiet NaN. Without an instruction for it, of the platform's, it takes nine.
__device__ inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits;
  if (gpu_floats_to_bfloat16(value, 0, &bits)) return static_cast<uint16_t>(bits);
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// Element `index` as C: float, double, int64_t or uint64_t.
template <typename C>
__device__ inline C load_element(DType dtype, const void *source, int64_t index) {
  switch (dtype) {
    case DType::f32:
      return static_cast<C>(static_cast<const float *>(source)[index]);
    case DType::f64:
      return static_cast<C>(static_cast<const double *>(source)[index]);
    case DType::f16:
      return static_cast<C>(gpu_half_to_float(static_cast<const uint16_t *>(source)[index]));
    case DType::bf16:
      return static_cast<C>(bfloat16_to_float(static_cast<const uint16_t *>(source)[index]));
    case DType::i32:
      return static_cast<C>(static_cast<const int32_t *>(source)[index]);
    case DType::i64:
      return static_cast<C>(static_cast<const int64_t *>(source)[index]);
    case DType::u8:
    case DType::boolean:
      return static_cast<C>(static_cast<const uint8_t *>(source)[index]);
    case DType::i8:
      return static_cast<C>(static_cast<const int8_t *>(source)[index]);
    case DType::i16:
      return static_cast<C>(static_cast<const int16_t *>(source)[index]);
    case DType::u16:
      return static_cast<C>(static_cast<const uint16_t *>(source)[index]);
    case DType::u32:
      return static_cast<C>(static_cast<const uint32_t *>(source)[index]);
    case DType::u64:
      return static_cast<C>(static_cast<const uint64_t *>(source)[index]);
    case DType::bytes:
      break;
  }
  return C{};
}

/// A float as an integer: towards zero, saturated, NaN is 0. Integers wrap.
template <typename T, typename C>
__device__ inline T to_integer(C value, double lowest, double highest, T least, T most) {
  if constexpr (C(0.5) == C(0)) {
    return static_cast<T>(value);
  } else {
    const double wide = static_cast<double>(value);
    if (wide != wide) return T(0);
    if (wide <= lowest) return least;
    if (wide >= highest) return most;
    return static_cast<T>(wide);
  }
}

template <typename C>
__device__ inline void store_element(DType dtype, void *target, int64_t index, C value) {
  switch (dtype) {
    case DType::f32:
      static_cast<float *>(target)[index] = static_cast<float>(value);
      break;
    case DType::f64:
      static_cast<double *>(target)[index] = static_cast<double>(value);
      break;
    case DType::f16:
      static_cast<uint16_t *>(target)[index] = gpu_float_to_half(static_cast<float>(value));
      break;
    case DType::bf16:
      static_cast<uint16_t *>(target)[index] = float_to_bfloat16(static_cast<float>(value));
      break;
    case DType::i32:
      static_cast<int32_t *>(target)[index] =
          to_integer<int32_t>(value, -2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX);
      break;
    case DType::i64:
      static_cast<int64_t *>(target)[index] = to_integer<int64_t>(value, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
      break;
    case DType::u8:
      static_cast<uint8_t *>(target)[index] = to_integer<uint8_t>(value, 0, 255, 0, UINT8_MAX);
      break;
    case DType::boolean:
      static_cast<uint8_t *>(target)[index] = value != C(0) ? 1 : 0;
      break;
    case DType::i8:
      static_cast<int8_t *>(target)[index] = to_integer<int8_t>(value, -128, 127, INT8_MIN, INT8_MAX);
      break;
    case DType::i16:
      static_cast<int16_t *>(target)[index] = to_integer<int16_t>(value, -32768, 32767, INT16_MIN, INT16_MAX);
      break;
    case DType::u16:
      static_cast<uint16_t *>(target)[index] = to_integer<uint16_t>(value, 0, 65535, 0, UINT16_MAX);
      break;
    case DType::u32:
      static_cast<uint32_t *>(target)[index] = to_integer<uint32_t>(value, 0, 4294967295.0, 0, UINT32_MAX);
      break;
    case DType::u64:
      static_cast<uint64_t *>(target)[index] = to_integer<uint64_t>(value, 0, 0x1p64, 0, UINT64_MAX);
      break;
    case DType::bytes:
      break;
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ELEMENTS_INL_H_
