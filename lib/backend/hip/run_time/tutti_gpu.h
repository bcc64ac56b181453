// SPDX-License-Identifier: Apache-2.0
//
// <tutti_gpu.h> for kernels that are compiled at run time: what they are written in, and what of the standard library
// they use. hipRTC brings HIP's names for devices, some of the types below among them, and no header of the system.
// Conversions of halves are those of the compiler, to nearest.
#ifndef TUTTI_BACKEND_HIP_RUN_TIME_TUTTI_GPU_H_
#define TUTTI_BACKEND_HIP_RUN_TIME_TUTTI_GPU_H_

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;

#include <run_time_standard.h>

/// The value of the lane whose number differs in the bits of `mask`; for types of up to 8 bytes.
template <typename T>
__device__ inline T gpu_shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return __shfl_xor(value, mask);
}

__device__ inline float gpu_half_to_float(uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
__device__ inline uint16_t gpu_float_to_half(float value) {
  return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value));
}
/// Two floats rounded to bf16 by one instruction: there is none.
__device__ inline bool gpu_floats_to_bfloat16(float, float, uint32_t *) { return false; }

/// a b + c, rounded once.
__device__ inline float gpu_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }

/// Shared memory of the size that the launch asked for, aligned to 16.
#define TUTTI_DYNAMIC_SHARED(name) extern __shared__ __attribute__((aligned(16))) unsigned char name[]

#endif  // TUTTI_BACKEND_HIP_RUN_TIME_TUTTI_GPU_H_
