// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_index_sort.h"

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

constexpr int32_t kDigits = IndexSort::kDigits;

/// What a pass reads and writes.
struct SortPass {
  const uint32_t *keys, *order;
  uint32_t *keys_out, *order_out;
  uint32_t *counts;  ///< [digit][tile]: how many; then, where the first of them goes
  int64_t count, tiles;
  int32_t shift;
};

/// How many of each digit each thread of a block has, by digit, then thread. Every 32 counters two are left out, so
/// that threads that each add up 32 of them meet different banks.
struct DigitCounters {
  uint16_t counts[kDigits * kBlockThreads / 32 * 34];

  __device__ uint16_t &at(int32_t i) { return counts[i + i / 32 * 2]; }
  __device__ uint16_t &mine(uint32_t digit) {
    return at(static_cast<int32_t>(digit) * kBlockThreads + static_cast<int32_t>(threadIdx.x));
  }
};

__device__ inline uint32_t digit_of(uint32_t key, int32_t shift) { return key >> shift & (kDigits - 1); }

/// The sum of the values of the threads before this one. All threads of the block must call it.
__device__ inline uint32_t sum_before(uint32_t value) {
  __shared__ uint32_t sums[kBlockThreads];
  const int32_t thread = static_cast<int32_t>(threadIdx.x);
  __syncthreads();
  sums[thread] = value;
  __syncthreads();
  for (int32_t distance = 1; distance < kBlockThreads; distance *= 2) {
    const uint32_t before = thread >= distance ? sums[thread - distance] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  return sums[thread] - value;
}

/// Counts the digits of keys [begin, end) of this thread.
__device__ inline void count_digits(DigitCounters &counters, const SortPass &pass, int64_t begin, int64_t end) {
  for (uint32_t digit = 0; digit < kDigits; ++digit)
    counters.mine(digit) = 0;
  for (int64_t i = begin; i < end; ++i)
    ++counters.mine(digit_of(pass.keys[i], pass.shift));
}

/// Each counter becomes the sum of those before it. All threads must call it.
__device__ inline void add_up(DigitCounters &counters) {
  __syncthreads();
  const int32_t first = static_cast<int32_t>(threadIdx.x) * kDigits;
  uint32_t total = 0;
  for (int32_t i = 0; i < kDigits; ++i)
    total += counters.at(first + i);
  uint32_t sum = sum_before(total);
  for (int32_t i = 0; i < kDigits; ++i) {
    const uint32_t own = counters.at(first + i);
    counters.at(first + i) = static_cast<uint16_t>(sum);
    sum += own;
  }
  __syncthreads();
}

/// Puts keys [begin, end) of this thread where its counters say, moved by what `moves` has for the digit.
__device__ inline void place(DigitCounters &counters, const SortPass &pass, int64_t begin, int64_t end,
                             const uint32_t *moves) {
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t key = pass.keys[i], digit = digit_of(key, pass.shift);
    const uint32_t to = counters.mine(digit)++ + (moves == nullptr ? 0 : moves[digit]);
    pass.keys_out[to] = key;
    pass.order_out[to] = pass.order[i];
  }
}

__global__ void read_keys(const GatherIndices indices, int64_t count, int64_t length, uint32_t *keys, uint32_t *order) {
  for (int64_t i = grid_thread(); i < count; i += grid_threads()) {
    const int64_t index = load_element<int64_t>(indices.dtype, indices.data, i);
    const bool is_there = index >= 0 && index < length;
    if (!is_there) report_fault(indices.sink, indices.fault, i, index);
    keys[i] = static_cast<uint32_t>(is_there ? index : length);
    order[i] = static_cast<uint32_t>(i);
  }
}

/// All passes in one block: each thread has `items` neighbours.
__global__ void sort_in_block(SortPass pass, int32_t passes, int64_t items) {
  __shared__ DigitCounters counters;
  const int64_t first = threadIdx.x * items;
  const int64_t begin = first < pass.count ? first : pass.count;
  const int64_t end = begin + items < pass.count ? begin + items : pass.count;
  uint32_t *keys = const_cast<uint32_t *>(pass.keys), *order = const_cast<uint32_t *>(pass.order);
  for (int32_t i = 0; i < passes; ++i) {
    count_digits(counters, pass, begin, end);
    add_up(counters);
    place(counters, pass, begin, end, nullptr);
    __syncthreads();
    pass.keys = pass.keys_out;
    pass.order = pass.order_out;
    pass.keys_out = keys;
    pass.order_out = order;
    keys = const_cast<uint32_t *>(pass.keys);
    order = const_cast<uint32_t *>(pass.order);
    pass.shift += IndexSort::kDigitBits;
  }
}

/// The part of this block's tile that is this thread's.
__device__ inline void find_items(const SortPass &pass, int64_t *begin, int64_t *end) {
  *begin = static_cast<int64_t>(blockIdx.x) * IndexSort::kTile + threadIdx.x * IndexSort::kItems;
  *begin = *begin < pass.count ? *begin : pass.count;
  *end = *begin + IndexSort::kItems < pass.count ? *begin + IndexSort::kItems : pass.count;
}

/// A block per tile.
__global__ void count_tile(const SortPass pass) {
  __shared__ DigitCounters counters;
  int64_t begin, end;
  find_items(pass, &begin, &end);
  count_digits(counters, pass, begin, end);
  add_up(counters);
  for (int32_t digit = static_cast<int32_t>(threadIdx.x); digit < kDigits; digit += kBlockThreads) {
    const int64_t left = pass.count - static_cast<int64_t>(blockIdx.x) * IndexSort::kTile;
    const uint32_t all = static_cast<uint32_t>(left < IndexSort::kTile ? left : IndexSort::kTile);
    const uint32_t next = digit + 1 < kDigits ? counters.at((digit + 1) * kBlockThreads) : all;
    pass.counts[digit * pass.tiles + blockIdx.x] = next - counters.at(digit * kBlockThreads);
  }
}

/// One block: counts become places.
__global__ void add_up_tiles(uint32_t *counts, int64_t entries) {
  const int64_t each = (entries + kBlockThreads - 1) / kBlockThreads, first = threadIdx.x * each;
  const int64_t end = first + each < entries ? first + each : entries;
  uint32_t total = 0;
  for (int64_t i = first; i < end; ++i)
    total += counts[i];
  uint32_t sum = sum_before(total);
  for (int64_t i = first; i < end; ++i) {
    const uint32_t own = counts[i];
    counts[i] = sum;
    sum += own;
  }
}

__global__ void place_tile(const SortPass pass) {
  __shared__ DigitCounters counters;
  __shared__ uint32_t moves[kDigits];
  int64_t begin, end;
  find_items(pass, &begin, &end);
  count_digits(counters, pass, begin, end);
  add_up(counters);
  for (int32_t digit = static_cast<int32_t>(threadIdx.x); digit < kDigits; digit += kBlockThreads)
    moves[digit] = pass.counts[digit * pass.tiles + blockIdx.x] - counters.at(digit * kBlockThreads);
  __syncthreads();
  place(counters, pass, begin, end, moves);
}

gpuError_t launch_pass(const SortPass &pass, gpuStream_t stream) {
  const unsigned tiles = static_cast<unsigned>(pass.tiles);
  gpuError_t error = gpu_launch(count_tile, tiles, kBlockThreads, 0, stream, pass);
  if (error != gpuSuccess) return error;
  error = gpu_launch(add_up_tiles, 1, kBlockThreads, 0, stream, pass.counts, pass.tiles * kDigits);
  if (error != gpuSuccess) return error;
  return gpu_launch(place_tile, tiles, kBlockThreads, 0, stream, pass);
}

}  // namespace

IndexSort IndexSort::of(int64_t count, int64_t length) {
  IndexSort sort{count, length, 1};
  while (length >> (sort.passes * kDigitBits) != 0)
    ++sort.passes;
  return sort;
}

gpuError_t launch_index_sort(const IndexSort &sort, const GatherIndices &indices, void *scratch, gpuStream_t stream) {
  if (sort.count == 0) return gpuSuccess;
  uint32_t *const words = static_cast<uint32_t *>(scratch);
  SortPass pass{words,
                words + sort.count,
                words + 2 * sort.count,
                words + 3 * sort.count,
                words + 4 * sort.count,
                sort.count,
                sort.tiles(),
                0};
  gpuError_t error = gpu_launch(read_keys, blocks_for(sort.count), kBlockThreads, 0, stream, indices, sort.count,
                                sort.length, words, words + sort.count);
  if (error != gpuSuccess) return error;
  if (sort.count <= IndexSort::kMostInBlock) {
    const int64_t items = (sort.count + kBlockThreads - 1) / kBlockThreads;
    return gpu_launch(sort_in_block, 1, kBlockThreads, 0, stream, pass, sort.passes, items);
  }
  for (int32_t i = 0; i < sort.passes; ++i) {
    const int64_t from = i % 2 * 2 * sort.count, to = 2 * sort.count - from;
    pass.keys = words + from;
    pass.order = pass.keys + sort.count;
    pass.keys_out = words + to;
    pass.order_out = pass.keys_out + sort.count;
    pass.shift = i * IndexSort::kDigitBits;
    error = launch_pass(pass, stream);
    if (error != gpuSuccess) return error;
  }
  return gpuSuccess;
}

}  // namespace tutti::impl::backend::gpu
