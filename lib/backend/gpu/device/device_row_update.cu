// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_row_update.h"

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/divider.h"
#include "backend/gpu/device/element_words-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

__global__ void index_shift(const void *indices, DType dtype, int64_t count, int64_t first, int64_t *to) {
  for (int64_t i = grid_thread(); i < count; i += grid_threads())
    to[i] = load_element<int64_t>(dtype, indices, i) - first;
}

/// The first position that has the key of `position`.
__device__ inline int64_t first_equal(const uint32_t *keys, int64_t position) {
  const uint32_t key = keys[position];
  int64_t less = -1, has = position;
  while (has - less > 1) {
    const int64_t middle = less + (has - less) / 2;
    (keys[middle] == key ? has : less) = middle;
  }
  return has;
}

__global__ void row_heads(const RowHeads heads) {
  for (int64_t i = grid_thread(); i < heads.count; i += grid_threads()) {
    const bool is_index = heads.keys[i] < heads.limit;
    const int64_t head = is_index ? first_equal(heads.keys, i) : heads.count;
    heads.heads[i] = static_cast<uint32_t>(head);
    heads.places[i] = head == i ? static_cast<int64_t>(heads.keys[i]) : -1;
  }
}

struct RowUpdatePlan {
  RowUpdate update;
  int64_t words;  ///< of a row
  Divider row;
};

/// I: uint32_t or uint64_t, what positions are computed in.
template <typename W, typename I>
__global__ void row_update(const RowUpdatePlan plan) {
  const RowUpdate &update = plan.update;
  const int64_t total = update.count * plan.words;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const I row = divide(static_cast<I>(i), plan.row);
    const int64_t word = static_cast<int64_t>(static_cast<I>(i) - row * static_cast<I>(plan.words));
    const int64_t place = update.places[row];
    if (place < 0 || place >= update.limit) continue;
    static_cast<W *>(update.x)[place * plan.words + word] = static_cast<const W *>(update.rows)[i];
  }
}

}  // namespace

gpuError_t launch_index_shift(const void *indices, DType dtype, int64_t count, int64_t first, int64_t *to,
                              gpuStream_t stream) {
  if (count == 0) return gpuSuccess;
  return gpu_launch(index_shift, blocks_for(count), kBlockThreads, 0, stream, indices, dtype, count, first, to);
}

gpuError_t launch_row_heads(const RowHeads &heads, gpuStream_t stream) {
  if (heads.count == 0) return gpuSuccess;
  return gpu_launch(row_heads, blocks_for(heads.count), kBlockThreads, 0, stream, heads);
}

gpuError_t launch_row_update(const RowUpdate &update, gpuStream_t stream) {
  if (update.count * update.row_bytes == 0) return gpuSuccess;
  const int64_t width = widest_word(reinterpret_cast<uintptr_t>(update.rows) | reinterpret_cast<uintptr_t>(update.x) |
                                        static_cast<uint64_t>(update.row_bytes),
                                    update.element_bytes);
  const int64_t words = update.row_bytes / width, total = update.count * words;
  const RowUpdatePlan plan{update, words, Divider::of(words)};
  return with_word(width, [&]<typename W>(W) {
    const auto kernel = total <= Divider::kMost ? row_update<W, uint32_t> : row_update<W, uint64_t>;
    return gpu_launch(kernel, blocks_for(total), kBlockThreads, 0, stream, plan);
  });
}

}  // namespace tutti::impl::backend::gpu
