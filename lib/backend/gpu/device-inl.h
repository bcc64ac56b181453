// SPDX-License-Identifier: Apache-2.0
//
// What kernels share: positions in the grid, elements of any type, sums over a block. Included by .cu files only.
//
// Arithmetic is done in float for f32, f16 and bf16, in double for f64, in 64-bit integers for integers and booleans.
#ifndef TUTTI_BACKEND_GPU_DEVICE_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_INL_H_

#include <tutti_gpu.h>

#include <cmath>
#include <cstdint>

#include "backend/gpu/faults.h"
#include "tensor/element_type.h"

// Before a loop that must be unrolled, or arrays of registers become memory.
#ifndef TUTTI_UNROLL
#define TUTTI_UNROLL _Pragma("unroll")
#endif

namespace tutti::impl::backend::gpu {

using tensor::DType;

struct alignas(16) Bytes16 {
  uint32_t words[4];
};

// ---- the grid ----

/// Number of this thread along x of the whole grid.
__device__ inline int64_t grid_thread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
/// Threads along x of the whole grid: the stride of a loop over elements.
__device__ inline int64_t grid_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// Blocks of kBlockThreads for a loop over `elements` in which each thread has few: enough to fill any GPU.
inline unsigned blocks_for(int64_t elements, int64_t most = 4096) {
  const int64_t blocks = (elements + kBlockThreads - 1) / kBlockThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : (blocks < most ? blocks : most));
}

// ---- elements ----

__device__ inline float bfloat16_to_float(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &word, sizeof(value));
  return value;
}

/// Round to nearest even; a NaN stays a quiet NaN.
__device__ inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits;
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

// ---- a block ----

/// The sum over all threads of a block of kBlockThreads (one-dimensional), in an order that depends on their number
/// alone; every thread gets it. All threads must call it.
template <typename C>
__device__ C block_sum(C value) {
  __shared__ C partial[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  for (int mask = warpSize / 2; mask > 0; mask /= 2)
    value += gpu_shuffle_xor(value, mask);
  const int warps = (static_cast<int>(blockDim.x) + warpSize - 1) / warpSize;
  __syncthreads();  // an earlier result may still be read
  if (thread % warpSize == 0) partial[thread / warpSize] = value;
  __syncthreads();
  C total = partial[0];
  for (int warp = 1; warp < warps; ++warp)
    total += partial[warp];
  return total;
}

/// The same for any associative and commutative function of two values.
template <typename C, typename Combine>
__device__ C block_combine(C value, Combine combine) {
  __shared__ C partial[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  for (int mask = warpSize / 2; mask > 0; mask /= 2)
    value = combine(value, gpu_shuffle_xor(value, mask));
  const int warps = (static_cast<int>(blockDim.x) + warpSize - 1) / warpSize;
  __syncthreads();
  if (thread % warpSize == 0) partial[thread / warpSize] = value;
  __syncthreads();
  C total = partial[0];
  for (int warp = 1; warp < warps; ++warp)
    total = combine(total, partial[warp]);
  return total;
}

// ---- faults ----

/// Bad data was found; the first report counts.
__device__ inline void report_fault(FaultSink sink, int32_t fault, int64_t position, int64_t value) {
  if (sink.record == nullptr || (sink.gate != nullptr && !*sink.gate)) return;
  if (atomicCAS(&sink.record->claimed, 0u, 1u) != 0u) return;
  sink.record->position = position;
  sink.record->value = value;
  __threadfence_system();
  sink.record->fault = fault + 1;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_INL_H_
