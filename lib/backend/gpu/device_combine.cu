// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_combine.h"

#include "backend/gpu/arithmetic-inl.h"
#include "backend/gpu/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

template <typename C>
__device__ inline C combine_two(Combination combination, C a, C b) {
  if (combination == Combination::sum) return add_of(a, b);
  return combination == Combination::max ? maximum_of(a, b) : minimum_of(a, b);
}

template <typename C>
__global__ void combine(const ArrayList list, DType dtype, Combination combination, int64_t first, int64_t elements) {
  for (int64_t i = first + grid_thread(); i < elements; i += grid_threads()) {
    C total = load_element<C>(dtype, list.arrays[0], i);
    for (int32_t array = 1; array < list.count; ++array)
      total = combine_two(combination, total, load_element<C>(dtype, list.arrays[array], i));
    for (int32_t array = 0; array < list.count; ++array)
      store_element<C>(dtype, list.arrays[array], i, total);
  }
}

struct alignas(16) Quad {
  float lane[4];
};

/// Sums of f32, four at a time; all arrays aligned to 16.
__global__ void sum_quads(const ArrayList list, int64_t quads) {
  for (int64_t i = grid_thread(); i < quads; i += grid_threads()) {
    Quad total = static_cast<const Quad *>(list.arrays[0])[i];
    for (int32_t array = 1; array < list.count; ++array) {
      const Quad next = static_cast<const Quad *>(list.arrays[array])[i];
      for (int32_t lane = 0; lane < 4; ++lane)
        total.lane[lane] += next.lane[lane];
    }
    for (int32_t array = 0; array < list.count; ++array)
      static_cast<Quad *>(list.arrays[array])[i] = total;
  }
}

bool are_aligned(const ArrayList &list) {
  uintptr_t all = 0;
  for (int32_t i = 0; i < list.count; ++i)
    all |= reinterpret_cast<uintptr_t>(list.arrays[i]);
  return all % 16 == 0;
}

template <typename C>
gpuError_t launch(const ArrayList &list, DType dtype, Combination combination, int64_t first, int64_t elements,
                  gpuStream_t stream) {
  if (first == elements) return gpuSuccess;
  return gpu_launch(combine<C>, blocks_for(elements - first), kBlockThreads, 0, stream, list, dtype, combination, first,
                    elements);
}

}  // namespace

gpuError_t launch_combine(const ArrayList &list, DType dtype, Combination combination, int64_t elements,
                          gpuStream_t stream) {
  if (elements == 0 || list.count == 0) return gpuSuccess;
  int64_t done = 0;
  if (dtype == DType::f32 && combination == Combination::sum && elements >= 4 && are_aligned(list)) {
    const gpuError_t error =
        gpu_launch(sum_quads, blocks_for(elements / 4), kBlockThreads, 0, stream, list, elements / 4);
    if (error != gpuSuccess) return error;
    done = elements / 4 * 4;
  }
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return launch<float>(list, dtype, combination, done, elements, stream);
    case DType::f64:
      return launch<double>(list, dtype, combination, 0, elements, stream);
    case DType::u64:
      return launch<uint64_t>(list, dtype, combination, 0, elements, stream);
    case DType::bytes:
      return gpuErrorInvalidValue;
    default:
      return launch<int64_t>(list, dtype, combination, 0, elements, stream);
  }
}

}  // namespace tutti::impl::backend::gpu
