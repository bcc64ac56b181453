// SPDX-License-Identifier: Apache-2.0
//
// <tutti_gpu.h> for generated kernels on the emulated GPU: a module of their own, which the emulator lends its machine.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_RUN_TIME_TUTTI_GPU_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_RUN_TIME_TUTTI_GPU_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulated_machine.h"
#include "tensor/half.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define TUTTI_UNROLL

inline constexpr int kBlockThreads = 32;
inline constexpr int warpSize = 8;

/// Set when the module is loaded.
extern "C" {
EmulatedMachine tutti_emulated_machine;
}
#define threadIdx (*tutti_emulated_machine.thread)
#define blockIdx (*tutti_emulated_machine.block)
#define blockDim (*tutti_emulated_machine.block_size)
#define gridDim (*tutti_emulated_machine.grid_size)

inline void __syncthreads() { tutti_emulated_machine.wait_for_block(); }

template <typename T>
T gpu_shuffle_xor(T value, int mask) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  word = tutti_emulated_machine.exchange(word, (static_cast<int>(threadIdx.x) % warpSize) ^ mask);
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

inline float gpu_half_to_float(uint16_t bits) { return tutti::impl::tensor::half_bits_to_float(bits); }
inline uint16_t gpu_float_to_half(float value) { return tutti::impl::tensor::float_to_half_bits(value); }
inline bool gpu_floats_to_bfloat16(float, float, uint32_t *) { return false; }

/// a b + c; on devices rounded once.
inline float gpu_multiply_add(float a, float b, float c) { return a * b + c; }

#define TUTTI_DYNAMIC_SHARED(name) unsigned char *const name = tutti_emulated_machine.dynamic_shared()

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_RUN_TIME_TUTTI_GPU_H_
