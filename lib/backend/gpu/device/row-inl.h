// SPDX-License-Identifier: Apache-2.0
//
// Work on whole rows: a group of `lanes` threads has a row. Rows of up to kRowPacks packs per thread of a block are
// read once, into registers; longer ones are read again in each pass. Included by .cu files only.
//
//   Row<T, V, N> row(x + i * length, length, lanes, is_inside);
//   row.each([&](int64_t position, C (&x)[V]) { ... });            // packs of this thread
#ifndef TUTTI_BACKEND_GPU_DEVICE_ROW_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_ROW_INL_H_

#include "backend/gpu/device/reduction-inl.h"

namespace tutti::impl::backend::gpu {

/// Packs of a row that a thread keeps in registers.
template <int V>
inline constexpr int kRowPacks = V == 1 ? 8 : 4;

/// The part of a row that a thread has: packs lane, lane + lanes, ...; N packs at most, 0: any number, not kept.
template <typename T, int V, int N>
class Row {
 public:
  using C = Computed<T>;

  __device__ Row(const T *row, int64_t length, int lanes, bool is_inside)
      : source_(row),
        length_(is_inside ? length : 0),
        first_(static_cast<int64_t>(static_cast<int>(threadIdx.x) % lanes) * V),
        step_(static_cast<int64_t>(lanes) * V) {
    if constexpr (N > 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (first_ + i * step_ < length_) load_pack<V>(source_, first_ + i * step_, packs_[i]);
      }
    }
  }

  /// Calls function(position, pack) for each pack of this thread; what it writes into a pack stays if N > 0.
  template <typename Function>
  __device__ void each(Function function) {
    if constexpr (N > 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (first_ + i * step_ < length_) function(first_ + i * step_, packs_[i]);
      }
    } else {
      // Several are on their way at once.
      constexpr int kAhead = V == 1 ? 8 : 2;
      int64_t position = first_;
      for (; position + (kAhead - 1) * step_ < length_; position += kAhead * step_) {
        C packs[kAhead][V];
#pragma unroll
        for (int i = 0; i < kAhead; ++i)
          load_pack<V>(source_, position + i * step_, packs[i]);
#pragma unroll
        for (int i = 0; i < kAhead; ++i)
          function(position + i * step_, packs[i]);
      }
      for (; position < length_; position += step_) {
        C pack[V];
        load_pack<V>(source_, position, pack);
        function(position, pack);
      }
    }
  }

  /// The same for two rows of one shape: function(i, position, pack, other pack), i the number of the kept pack.
  template <typename Function>
  __device__ void each_with(Row &other, Function function) {
    if constexpr (N > 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (first_ + i * step_ < length_) function(i, first_ + i * step_, packs_[i], other.packs_[i]);
      }
    } else {
      for (int64_t position = first_; position < length_; position += step_) {
        C mine[V], others[V];
        load_pack<V>(source_, position, mine);
        load_pack<V>(other.source_, position, others);
        function(0, position, mine, others);
      }
    }
  }

 private:
  const T *source_;
  int64_t length_, first_, step_;
  C packs_[N > 0 ? N : 1][V];
};

/// The thread's place among those that share a row which fits their registers.
struct RowLanes {
  int32_t count, lane, length;

  __device__ RowLanes(int32_t lanes, int64_t row_length)
      : count(lanes), lane(static_cast<int32_t>(threadIdx.x) % lanes), length(static_cast<int32_t>(row_length)) {}

  /// The most packs of `width` elements that a thread has.
  __device__ int32_t kept_packs(int32_t width) const { return (length + width * count - 1) / (width * count); }

  /// Calls function(i, position) for the packs of this thread that lie in the row, N at most.
  template <int V, int N, typename Function>
  __device__ void each(Function function) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int32_t position = (i * count + lane) * V;
      if (position < length) function(i, position);
    }
  }
};

/// The packs of one row that a thread keeps as they lie in memory, lane, lane + lanes, ..., N at most: those of one row
/// may be on their way while another is computed.
template <typename T, int V, int N>
class HeldRow {
 public:
  /// Of an array of rows; of a row that is not inside, nothing.
  __device__ HeldRow(const RowLanes &lanes, const void *array, int64_t row, bool is_inside) {
    const T *const source = static_cast<const T *>(array) + row * lanes.length;
    lanes.template each<V, N>([&](int i, int32_t position) {
      if (is_inside) packs_[i] = held_pack_at<V>(source, position);
    });
  }
  __device__ void widen(int i, Computed<T> (&x)[V]) const { widen_held<V>(packs_[i], x); }

 private:
  HeldPack<T, V> packs_[N];
};

/// An array of parameters, one for each element of a row, in shared memory: as one type, and so that threads side by
/// side read side by side.
template <typename C, int V>
class StagedParameter {
  static constexpr int kPart = V * sizeof(C) > 16 ? static_cast<int>(16 / sizeof(C)) : V, kParts = V / kPart;

 public:
  __device__ StagedParameter(void *memory, const RowLanes &lanes)
      : parts_(static_cast<Pack<C, kPart> *>(memory)), lanes_(lanes) {}

  /// All threads of the block, which then wait for one another.
  __device__ void fill(const AnyArray &array) const {
    for (int pack = static_cast<int>(threadIdx.x); pack * V < lanes_.length; pack += kBlockThreads) {
      C values[V];
      load_any<V>(array, pack * V, values);
      for (int part = 0; part < kParts; ++part) {
        Pack<C, kPart> &place = parts_[(pack / lanes_.count * kParts + part) * lanes_.count + pack % lanes_.count];
        for (int v = 0; v < kPart; ++v)
          place.items[v] = values[part * kPart + v];
      }
    }
  }
  /// Of pack `i` of this thread.
  __device__ void load(int i, C (&values)[V]) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const Pack<C, kPart> loaded = parts_[(i * kParts + part) * lanes_.count + lanes_.lane];
      for (int v = 0; v < kPart; ++v)
        values[part * kPart + v] = loaded.items[v];
    }
  }

 private:
  Pack<C, kPart> *parts_;
  RowLanes lanes_;
};

// ---- softmax ----

/// sum(exp(x - largest)) over some elements; the largest of none is -infinity.
template <typename C>
struct ExpSum {
  C largest, sum;

  /// log(sum(exp(x))).
  __device__ C log() const { return largest + std::log(sum); }
};

/// log(softmax(x)) of elements of a row: exact, too, where they are large and near each other.
template <typename C>
struct LogShare {
  C largest, log_sum;  // log_sum of exp(x - largest)

  __device__ explicit LogShare(ExpSum<C> total) : largest(total.largest), log_sum(std::log(total.sum)) {}
  __device__ C operator()(C x) const { return x - largest - log_sum; }
};

template <typename C>
__device__ inline ExpSum<C> exchanged(ExpSum<C> value, int mask) {
  return {gpu_shuffle_xor(value.largest, mask), gpu_shuffle_xor(value.sum, mask)};
}

/// What is subtracted before exp(): nothing while all there is is -infinity.
template <typename C>
__device__ inline C subtrahend(C largest) {
  return largest == -C(HUGE_VAL) ? C(0) : largest;
}

template <typename C>
__device__ inline ExpSum<C> no_exp_sum() {
  return {-C(HUGE_VAL), C(0)};
}

template <typename C>
__device__ inline ExpSum<C> combine_exp_sums(ExpSum<C> a, ExpSum<C> b) {
  const C largest = larger_of(a.largest, b.largest), from = subtrahend(largest);
  return {largest, a.sum * std::exp(a.largest - from) + b.sum * std::exp(b.largest - from)};
}

/// The online softmax (Milakov and Gimelshein 2018) by packs: the sum is rescaled when a larger element is met.
template <int V, typename C>
__device__ inline void add_exp_sum(ExpSum<C> &total, const C (&x)[V]) {
  C largest = total.largest;
  for (int v = 0; v < V; ++v)
    largest = larger_of(largest, x[v]);
  const C from = subtrahend(largest);
  if (largest > total.largest) total.sum *= std::exp(total.largest - from);
  for (int v = 0; v < V; ++v)
    total.sum += std::exp(x[v] - from);
  total.largest = largest;
}

/// Of a whole row, known to all its threads. All threads of the block must call it.
template <typename T, int V, int N>
__device__ ExpSum<Computed<T>> row_exp_sum(Row<T, V, N> &row, int lanes) {
  using C = Computed<T>;
  ExpSum<C> total = no_exp_sum<C>();
  if constexpr (N > 0) {
    row.each([&](int64_t, C(&x)[V]) {
      for (int v = 0; v < V; ++v)
        total.largest = larger_of(total.largest, x[v]);
    });
    total.largest = group_combine(total.largest, lanes, [](C a, C b) { return larger_of(a, b); });
    const C from = subtrahend(total.largest);
    row.each([&](int64_t, C(&x)[V]) {
      for (int v = 0; v < V; ++v)
        total.sum += std::exp(x[v] - from);
    });
    total.sum = group_sum(total.sum, lanes);
  } else {
    row.each([&](int64_t, C(&x)[V]) { add_exp_sum<V>(total, x); });
    total = group_combine(total, lanes, [](ExpSum<C> a, ExpSum<C> b) { return combine_exp_sums(a, b); });
  }
  return total;
}

// ---- launches ----

struct RowLayout {
  int64_t rows, length;
  int32_t lanes;
  bool is_kept;  ///< rows fit registers

  unsigned blocks() const {
    return static_cast<unsigned>(std::min(divide_up(rows, kBlockThreads / lanes), kMostBlocks));
  }
};

/// `kept_packs`: of a row in a thread's registers. By length, a row has no more threads where there are few.
inline RowLayout row_layout(int64_t rows, int64_t length, int64_t width, int64_t kept_packs,
                            SumOrder order = SumOrder::by_shape) {
  const int64_t packs = divide_up(length, width);
  RowLayout layout{rows, length, power_of_two(divide_up(packs, kept_packs)), packs <= kept_packs * kBlockThreads};
  if (order == SumOrder::by_length) return layout;
  // Few rows: more threads for each.
  while (layout.lanes < power_of_two(packs) && rows * layout.lanes < kFillingBlocks * kBlockThreads)
    layout.lanes *= 2;
  return layout;
}

/// Loops over the rows of a group of threads: function(row, is_inside) is called equally often in all threads.
template <typename Function>
__device__ void for_group_rows(const RowLayout &layout, Function function) {
  const int groups = kBlockThreads / layout.lanes, group = static_cast<int>(threadIdx.x) / layout.lanes;
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * groups; base < layout.rows;
       base += static_cast<int64_t>(gridDim.x) * groups)
    function(base + group, base + group < layout.rows);
}

template <int V, int N>
struct RowShape {
  static constexpr int kWidth = V, kPacks = N;
};

/// Calls function(Storage<T, V>(), RowShape<V, N>(), layout) for rows of a float dtype.
template <typename Function>
gpuError_t visit_rows(DType dtype, bool is_wide, SumOrder order, int64_t rows, int64_t length, Function function) {
  if (rows * length == 0) return gpuSuccess;
  return visit_floats(dtype, is_wide, [&](auto storage) {
    constexpr int kWidth = decltype(storage)::kWidth, kPacks = kRowPacks<kWidth>;
    const RowLayout layout = row_layout(rows, length, kWidth, kPacks, order);
    if (layout.is_kept) return function(storage, RowShape<kWidth, kPacks>(), layout);
    return function(storage, RowShape<kWidth, 0>(), layout);
  });
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ROW_INL_H_
