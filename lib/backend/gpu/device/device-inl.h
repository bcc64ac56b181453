// SPDX-License-Identifier: Apache-2.0
//
// What kernels share: positions in the grid, sums over a block. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_INL_H_

#include <tutti/plugin/backend.h>
#include <tutti_gpu.h>

#include <cmath>
#include <cstdint>

#include "backend/gpu/device/elements-inl.h"
#include "backend/gpu/device/faults.h"

// Before a loop that must be unrolled, or arrays of registers become memory.
#ifndef TUTTI_UNROLL
#define TUTTI_UNROLL _Pragma("unroll")
#endif

namespace tutti::impl::backend::gpu {

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

// ---- a block ----

/// What a launch may ask for of the 48 KiB that a block has, beside what kernels declare: a sum over a block, or two.
inline constexpr int64_t kMostDynamicShared = 44 << 10;

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
  if (sink.scalars != nullptr) sink.scalars[TUTTI_RUN_DATA_FAULTS] = 1;
  if (atomicCAS(&sink.record->claimed, 0u, 1u) != 0u) return;
  sink.record->position = position;
  sink.record->value = value;
  sink.record->row_offset = sink.scalars == nullptr ? 0 : sink.scalars[TUTTI_RUN_ROW_OFFSET];
  __threadfence_system();
  sink.record->fault = fault + 1;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_INL_H_
