// SPDX-License-Identifier: Apache-2.0
//
// <tutti_gpu.h> for kernels that are compiled at run time: what they are written in, and what of the standard library
// they use. The compiler has neither headers of the toolkit nor of the system at hand. Conversions of halves are the
// instructions that cuda_fp16.h has.
#ifndef TUTTI_BACKEND_CUDA_RUN_TIME_TUTTI_GPU_H_
#define TUTTI_BACKEND_CUDA_RUN_TIME_TUTTI_GPU_H_

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long;
using uint64_t = unsigned long;
using size_t = decltype(sizeof(0));

#include <run_time_standard.h>

/// The value of the lane whose number differs in the bits of `mask`; for types of up to 8 bytes.
template <typename T>
__device__ inline T gpu_shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return __shfl_xor_sync(0xffffffffu, value, mask);
}

__device__ inline float gpu_half_to_float(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ inline uint16_t gpu_float_to_half(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ inline bool gpu_floats_to_bfloat16(float low, float high, uint32_t *bits) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(*bits) : "f"(high), "f"(low));
  return true;
#else
  return false;
#endif
}

/// a b + c, rounded once.
__device__ inline float gpu_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }

/// Shared memory of the size that the launch asked for, aligned to 16.
#define TUTTI_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]

#endif  // TUTTI_BACKEND_CUDA_RUN_TIME_TUTTI_GPU_H_
