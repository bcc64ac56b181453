// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_merge_rows.h"

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// NaN wins, and what was there where both are equal.
template <typename C>
__device__ inline C merged(MergeMode mode, C x, C update) {
  if (mode == MergeMode::replace) return update;
  if (mode == MergeMode::add) return x + update;
  return x != x || !(update != update || update > x) ? x : update;
}

template <typename C>
__global__ void merge_rows(const MergeRows merge) {
  const int64_t total = merge.count * merge.inner;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const int64_t first = i / merge.inner, column = i % merge.inner;
    const uint32_t row = merge.keys[first];
    if (row >= merge.rows || (first > 0 && merge.keys[first - 1] == row)) continue;
    const int64_t place = row * merge.inner + column;
    C value = load_element<C>(merge.dtype, merge.table, place);
    for (int64_t position = first; position < merge.count && merge.keys[position] == row; ++position) {
      const int64_t from = merge.order[position] * merge.inner + column;
      value = merged(merge.mode, value, load_element<C>(merge.dtype, merge.updates, from));
    }
    store_element<C>(merge.dtype, merge.table, place, value);
  }
}

template <typename C>
gpuError_t launch(const MergeRows &merge, gpuStream_t stream) {
  return gpu_launch(merge_rows<C>, blocks_for(merge.count * merge.inner), kBlockThreads, 0, stream, merge);
}

}  // namespace

gpuError_t launch_merge_rows(const MergeRows &merge, gpuStream_t stream) {
  if (merge.count * merge.inner == 0) return gpuSuccess;
  switch (merge.dtype) {
    case tensor::DType::f64:
      return launch<double>(merge, stream);
    case tensor::DType::f32:
    case tensor::DType::f16:
    case tensor::DType::bf16:
      return launch<float>(merge, stream);
    case tensor::DType::u64:
      return launch<uint64_t>(merge, stream);
    default:
      return launch<int64_t>(merge, stream);
  }
}

}  // namespace tutti::impl::backend::gpu
