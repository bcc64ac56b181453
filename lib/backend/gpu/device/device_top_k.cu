// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_top_k.h"

#include "backend/gpu/device/row-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

// ---- elements in their order ----

/// Bits of a float as a number in the same order.
template <typename K>
__device__ inline K ordered_bits(K bits, K infinity) {
  constexpr K kSign = K(1) << (8 * sizeof(K) - 1);
  if ((bits & ~kSign) > infinity) return ~K(0);
  if (bits == kSign) bits = 0;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

template <typename K>
__device__ inline K key_of(DType dtype, const void *x, int64_t index);

/// Of all types of up to 32 bits.
template <>
__device__ inline uint32_t key_of<uint32_t>(DType dtype, const void *x, int64_t index) {
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) {
    const float value = load_element<float>(dtype, x, index);
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return ordered_bits<uint32_t>(bits, 0x7f800000u);
  }
  const int64_t value = load_element<int64_t>(dtype, x, index);
  return static_cast<uint32_t>(dtype == DType::u32 ? value : value + (int64_t{1} << 31));
}

template <>
__device__ inline uint64_t key_of<uint64_t>(DType dtype, const void *x, int64_t index) {
  const uint64_t bits = static_cast<const uint64_t *>(x)[index];
  if (dtype == DType::f64) return ordered_bits<uint64_t>(bits, 0x7ff0000000000000u);
  return dtype == DType::i64 ? bits ^ (uint64_t{1} << 63) : bits;
}

/// An element of a row; `rest` is what is left of 2^32 behind its index. {0, 0} is none and below all.
template <typename K>
struct Place {
  K key;
  uint32_t rest;

  __device__ uint32_t index() const { return ~rest; }
};

template <typename K>
__device__ inline Place<K> place_of(const TopKWork &work, int64_t row, int64_t index) {
  return {key_of<K>(work.dtype, work.x, row * work.length + index), ~static_cast<uint32_t>(index)};
}

template <typename K>
__device__ inline bool is_above(const Place<K> &a, const Place<K> &b) {
  return a.key > b.key || (a.key == b.key && a.rest > b.rest);
}

template <typename K>
__device__ inline Place<K> exchanged(Place<K> place, int mask) {
  return {gpu_shuffle_xor(place.key, mask), gpu_shuffle_xor(place.rest, mask)};
}

/// Result i of a row is element `index`.
__device__ inline void store_result(const TopKWork &work, int64_t row, int64_t i, uint32_t index) {
  const int64_t from = row * work.length + index, to = row * work.k + i;
  switch (work.element_bytes) {
    case 1:
      static_cast<uint8_t *>(work.values)[to] = static_cast<const uint8_t *>(work.x)[from];
      break;
    case 2:
      static_cast<uint16_t *>(work.values)[to] = static_cast<const uint16_t *>(work.x)[from];
      break;
    case 4:
      static_cast<uint32_t *>(work.values)[to] = static_cast<const uint32_t *>(work.x)[from];
      break;
    default:
      static_cast<uint64_t *>(work.values)[to] = static_cast<const uint64_t *>(work.x)[from];
  }
  work.indices[to] = index;
}

// ---- one by one ----

/// The highest of this thread's elements that is below `last`, or of all.
template <typename K>
__device__ inline Place<K> next_place(const TopKWork &work, int64_t row, int lane, int lanes, bool is_first,
                                      const Place<K> &last) {
  Place<K> best{0, 0};
  for (int64_t i = lane; i < work.length; i += lanes) {
    const Place<K> place = place_of<K>(work, row, i);
    if (is_above(place, best) && (is_first || is_above(last, place))) best = place;
  }
  return best;
}

template <typename K>
__global__ void take_one_by_one(const RowLayout layout, const TopKWork work) {
  const int lane = static_cast<int>(threadIdx.x) % layout.lanes;
  for_group_rows(layout, [&](int64_t row, bool is_inside) {
    Place<K> mine{0, 0};
    if (is_inside) mine = next_place<K>(work, row, lane, layout.lanes, true, mine);
    for (int64_t i = 0; i < work.k; ++i) {
      const Place<K> best = group_combine(mine, layout.lanes,
                                          [](const Place<K> &a, const Place<K> &b) { return is_above(a, b) ? a : b; });
      if (!is_inside) continue;
      if (lane == 0) store_result(work, row, i, best.index());
      if (best.rest == mine.rest && i + 1 < work.k) mine = next_place<K>(work, row, lane, layout.lanes, false, best);
    }
  });
}

// ---- a block for a row ----

constexpr int32_t kDigitBits = 4, kDigits = 1 << kDigitBits;

/// Which elements of a row are taken: all whose key is above `least` in the bits of `mask`, and of those equal to it
/// there the first `equals`.
template <typename K>
struct Taken {
  K least, mask;
  uint32_t equals;
};

/// How many elements each thread has, by digit, then thread.
struct DigitCounts {
  uint32_t counts[kDigits][kBlockThreads];
};

/// counts[digit][0] becomes the sum over all threads. All threads must call it.
__device__ inline void add_up(DigitCounts &digits) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int step = kBlockThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (thread < step) {
      for (auto &counts : digits.counts)
        counts[thread] += counts[thread + step];
    }
  }
  __syncthreads();
}

/// All threads must call it, and get the same.
template <typename K>
__device__ Taken<K> select_keys(const TopKWork &work, int64_t row) {
  __shared__ DigitCounts digits;
  const int thread = static_cast<int>(threadIdx.x);
  Taken<K> taken{0, 0, static_cast<uint32_t>(work.k)};
  for (int32_t shift = 8 * static_cast<int32_t>(sizeof(K)) - kDigitBits; shift >= 0; shift -= kDigitBits) {
    for (auto &counts : digits.counts)
      counts[thread] = 0;
    for (int64_t i = thread; i < work.length; i += kBlockThreads) {
      const K key = key_of<K>(work.dtype, work.x, row * work.length + i);
      if ((key & taken.mask) == taken.least) ++digits.counts[(key >> shift) & (kDigits - 1)][thread];
    }
    add_up(digits);
    uint32_t digit = kDigits - 1;
    while (digits.counts[digit][0] < taken.equals)
      taken.equals -= digits.counts[digit--][0];
    const bool takes_all = digits.counts[digit][0] == taken.equals;
    taken.least |= static_cast<K>(digit) << shift;
    taken.mask |= static_cast<K>(kDigits - 1) << shift;
    __syncthreads();
    if (takes_all) break;
  }
  return taken;
}

/// The sum of the values of the threads before this one. All threads of the block must call it.
__device__ inline uint32_t sum_before(uint32_t value) {
  __shared__ uint32_t sums[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  sums[thread] = value;
  __syncthreads();
  for (int distance = 1; distance < kBlockThreads; distance *= 2) {
    const uint32_t before = thread >= distance ? sums[thread - distance] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  return sums[thread] - value;
}

/// What a block has in scratch memory: two arrays of places.
template <typename K>
struct Places {
  K *keys;
  uint32_t *rests;

  __device__ Place<K> operator[](int64_t i) const { return {keys[i], rests[i]}; }
  __device__ void set(int64_t i, const Place<K> &place) const {
    keys[i] = place.key;
    rests[i] = place.rest;
  }
};

template <typename K>
__device__ inline Places<K> places_of(const TopKWork &work, int second) {
  const int64_t count = work.k, all = 2 * count * gridDim.x;
  const int64_t first = (2 * static_cast<int64_t>(blockIdx.x) + second) * count;
  K *const keys = static_cast<K *>(work.scratch);
  return {keys + first, reinterpret_cast<uint32_t *>(keys + all) + first};
}

/// Puts the elements that are taken into `places`, in any order that is always the same: a thread has neighbours, so
/// that the first of equal ones are known.
template <typename K>
__device__ void gather_places(const TopKWork &work, int64_t row, const Taken<K> &taken, const Places<K> &places) {
  const int64_t each = (work.length + kBlockThreads - 1) / kBlockThreads, begin = threadIdx.x * each;
  const int64_t end = begin + each < work.length ? begin + each : work.length;
  uint32_t above = 0, equal = 0;
  for (int64_t i = begin; i < end; ++i) {
    const K key = key_of<K>(work.dtype, work.x, row * work.length + i) & taken.mask;
    above += key > taken.least ? 1 : 0;
    equal += key == taken.least ? 1 : 0;
  }
  // The equal ones come behind those above, which are k less what is taken of the equal.
  uint32_t to = sum_before(above), equals_before = sum_before(equal);
  const uint32_t first_equal = static_cast<uint32_t>(work.k) - taken.equals;
  for (int64_t i = begin; i < end; ++i) {
    const Place<K> place = place_of<K>(work, row, i);
    const K key = place.key & taken.mask;
    if (key > taken.least) places.set(to++, place);
    if (key == taken.least && equals_before++ < taken.equals) places.set(first_equal + equals_before - 1, place);
  }
  __syncthreads();
}

/// Sorts `size` places, a power of two: a bitonic sort (Batcher 1968). All threads must call it.
template <typename K>
__device__ void sort_tile(const Places<K> &tile, int32_t size) {
  for (int32_t width = 2; width <= size; width *= 2) {
    for (int32_t distance = width / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int32_t i = static_cast<int32_t>(threadIdx.x); i < size / 2; i += kBlockThreads) {
        const int32_t low = i / distance * 2 * distance + i % distance, high = low + distance;
        const Place<K> a = tile[low], b = tile[high];
        if (is_above(b, a) == ((low & width) == 0)) {
          tile.set(low, b);
          tile.set(high, a);
        }
      }
    }
  }
  __syncthreads();
}

/// How many of the sorted places [begin, end) are above one.
template <typename K>
__device__ inline int64_t count_above(const Places<K> &places, int64_t begin, int64_t end, const Place<K> &place) {
  int64_t low = begin, high = end;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (is_above(places[middle], place))
      low = middle + 1;
    else
      high = middle;
  }
  return low - begin;
}

/// Merges sorted runs of `width` in pairs. All threads must call it.
template <typename K>
__device__ void merge_runs(const Places<K> &from, const Places<K> &to, int64_t count, int64_t width) {
  for (int64_t i = threadIdx.x; i < count; i += kBlockThreads) {
    const int64_t first = i / (2 * width) * 2 * width;
    const int64_t middle = first + width < count ? first + width : count;
    const int64_t end = middle + width < count ? middle + width : count;
    const Place<K> place = from[i];
    const bool is_left = i < middle;
    const int64_t others = count_above(from, is_left ? middle : first, is_left ? end : middle, place);
    to.set((is_left ? i : first + i - middle) + others, place);
  }
  __syncthreads();
}

/// Sorts one row's `count` places, at most a tile of them: elements of the row, or those in `places`.
template <typename K>
__device__ void sort_small(const TopKWork &work, int64_t row, int64_t count, const Places<K> *places,
                           const Places<K> &tile) {
  int32_t size = 2;
  while (size < count)
    size *= 2;
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < size; i += kBlockThreads) {
    Place<K> place{0, 0};
    if (i < count) place = places == nullptr ? place_of<K>(work, row, i) : (*places)[i];
    tile.set(i, place);
  }
  sort_tile(tile, size);
}

/// Sorts the row's k places in `first`, by way of `second`; gives that of the two in which they lie then.
template <typename K>
__device__ Places<K> sort_large(const TopKWork &work, int64_t row, Places<K> first, Places<K> second,
                                const Places<K> &tile) {
  for (int64_t begin = 0; begin < work.k; begin += TopKWork::kTile) {
    const int64_t count = work.k - begin < TopKWork::kTile ? work.k - begin : TopKWork::kTile;
    const Places<K> part{first.keys + begin, first.rests + begin};
    sort_small(work, row, count, &part, tile);
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < count; i += kBlockThreads)
      part.set(i, tile[i]);
    __syncthreads();
  }
  for (int64_t width = TopKWork::kTile; width < work.k; width *= 2) {
    merge_runs(first, second, work.k, width);
    const Places<K> merged = second;
    second = first;
    first = merged;
  }
  return first;
}

template <typename K>
__global__ void take_sorted(const TopKWork work) {
  __shared__ K keys[TopKWork::kTile];
  __shared__ uint32_t rests[TopKWork::kTile];
  const Places<K> tile{keys, rests};
  for (int64_t row = blockIdx.x; row < work.rows; row += gridDim.x) {
    Places<K> sorted = tile;
    if (work.length <= TopKWork::kTile) {
      sort_small<K>(work, row, work.length, nullptr, tile);
    } else {
      const Places<K> places = places_of<K>(work, 0);
      gather_places(work, row, select_keys<K>(work, row), places);
      if (work.k <= TopKWork::kTile)
        sort_small(work, row, work.k, &places, tile);
      else
        sorted = sort_large(work, row, places, places_of<K>(work, 1), tile);
    }
    for (int64_t i = threadIdx.x; i < work.k; i += kBlockThreads)
      store_result(work, row, i, sorted[i].index());
    __syncthreads();
  }
}

template <typename K>
gpuError_t launch(const TopKWork &work, gpuStream_t stream) {
  if (!work.takes_one_by_one()) return gpu_launch(take_sorted<K>, work.blocks(), kBlockThreads, 0, stream, work);
  const RowLayout layout = row_layout(work.rows, work.length, 1, 8);
  return gpu_launch(take_one_by_one<K>, layout.blocks(), kBlockThreads, 0, stream, layout, work);
}

// ---- the gradient ----

template <typename T>
__global__ void put_back(const TopKGradient gradient) {
  const int64_t total = gradient.rows * gradient.k;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const int64_t index = gradient.indices[i];
    if (index >= 0 && index < gradient.length)
      static_cast<T *>(gradient.dx)[i / gradient.k * gradient.length + index] = static_cast<const T *>(gradient.dy)[i];
  }
}

}  // namespace

bool TopKWork::takes_one_by_one() const { return k <= 16 && length <= int64_t{16} * kBlockThreads; }

unsigned TopKWork::blocks() const {
  // A block has scratch memory.
  constexpr int64_t kMostRows = 264;
  return static_cast<unsigned>(std::min(rows, length <= kTile ? kMostBlocks : kMostRows));
}

int64_t TopKWork::scratch_bytes() const {
  if (rows == 0 || takes_one_by_one() || length <= kTile) return 0;
  const int64_t bytes = static_cast<int64_t>(element_bytes == 8 ? sizeof(uint64_t) : sizeof(uint32_t));
  return 2 * k * blocks() * (bytes + static_cast<int64_t>(sizeof(uint32_t)));
}

gpuError_t launch_top_k(const TopKWork &work, gpuStream_t stream) {
  if (work.rows == 0) return gpuSuccess;
  return work.element_bytes == 8 ? launch<uint64_t>(work, stream) : launch<uint32_t>(work, stream);
}

gpuError_t launch_top_k_gradient(const TopKGradient &gradient, gpuStream_t stream) {
  if (gradient.rows == 0) return gpuSuccess;
  const unsigned blocks = blocks_for(gradient.rows * gradient.k);
  switch (gradient.element_bytes) {
    case 2:
      return gpu_launch(put_back<uint16_t>, blocks, kBlockThreads, 0, stream, gradient);
    case 4:
      return gpu_launch(put_back<uint32_t>, blocks, kBlockThreads, 0, stream, gradient);
    case 8:
      return gpu_launch(put_back<uint64_t>, blocks, kBlockThreads, 0, stream, gradient);
    default:
      return gpuErrorInvalidValue;
  }
}

}  // namespace tutti::impl::backend::gpu
