// SPDX-License-Identifier: Apache-2.0
//
// Long rows, each of a whole block, that may begin at any element of an array that is aligned to 16 bytes: single
// elements up to the first boundary of 16 bytes, packs, and single elements behind the last pack. Which thread has
// which elements depends on where the row begins, so sums by length are not made of these. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_LONG_ROW_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_LONG_ROW_INL_H_

#include "backend/gpu/device/row-inl.h"

namespace tutti::impl::backend::gpu {

/// Threads of a block that keeps a row in registers.
inline constexpr int kLongRowThreads = 4 * kBlockThreads;

/// Where the elements of a row lie, of which this thread of kThreads has packs thread, thread + kThreads, ... and one
/// single element at most.
template <typename T, int V, int kThreads>
class LongRow {
 public:
  /// There are at least V elements; of a row that is not inside, none.
  __device__ LongRow(const T *array, int64_t index, int32_t length, bool is_inside) {
    const T *const row = array + index * length;
    const auto beyond = static_cast<int32_t>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % V);
    const auto thread = static_cast<int32_t>(threadIdx.x);
    const int32_t head = (V - beyond) % V, packs = (length - head) / V;
    first_ = head + thread * V;
    packs_ = row + first_;
    left_ = is_inside ? packs - thread : 0;
    edge_ = is_inside && thread < length - packs * V ? (thread < head ? thread : thread + packs * V) : -1;
  }

  /// Is there a pack `i` of this thread?
  __device__ bool has(int i) const { return i * kThreads < left_; }
  __device__ int32_t position(int i) const { return first_ + i * kThreads * V; }
  __device__ HeldPack<T, V> pack(int i) const { return held_pack_at<V>(packs_, i * kThreads * V); }

  __device__ bool has_edge() const { return edge_ >= 0; }
  __device__ int32_t edge_position() const { return edge_; }
  __device__ T edge() const { return packs_[edge_ - first_]; }

 private:
  const T *packs_;
  int32_t first_, left_, edge_;
};

/// Calls function(pack) for the packs of this thread, kAhead of which are on their way at once, then function(element)
/// for its single element, as an array of one.
template <int kAhead, typename T, int V, int kThreads, typename Function>
__device__ inline void for_parts(const LongRow<T, V, kThreads> &row, Function function) {
  for (int first = 0; row.has(first); first += kAhead) {
    HeldPack<T, V> packs[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (row.has(first + i)) packs[i] = row.pack(first + i);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      Computed<T> x[V];
      widen_held<V>(packs[i], x);
      if (row.has(first + i)) function(x);
    }
  }
  if (!row.has_edge()) return;
  const Computed<T> x[1] = {widen(row.edge())};
  function(x);
}

/// The packs of a row that a thread keeps as they lie in memory, N at most.
template <typename T, int V, int N>
class KeptLongRow {
 public:
  using C = Computed<T>;
  using Place = LongRow<T, V, kLongRowThreads>;

  __device__ explicit KeptLongRow(const Place &row) : row_(row) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      load(i);
    load_edge();
  }

  /// Calls function(elements) for packs and the single element.
  template <typename Function>
  __device__ void each(Function function) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (!row_.has(i)) continue;
      C x[V];
      widen_held<V>(packs_[i], x);
      function(x);
    }
    if (!row_.has_edge()) return;
    const C x[1] = {widen(edge_)};
    function(x);
  }

  /// The same with their position in the row, where function leaves what is stored at that place of `target`, the row's
  /// result. Of what was taken the place is filled from the row `next`: it is on its way while the others are computed.
  template <typename Function>
  __device__ void replace(const Place &next, T *target, Function function) {
    const Place last = row_;
    row_ = next;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (last.has(i)) {
        C x[V];
        widen_held<V>(packs_[i], x);
        function(last.position(i), x);
        store_pack<V>(target + last.position(i), 0, x);
      }
      load(i);  // behind that, or there would have to be registers for both
    }
    if (last.has_edge()) {
      C x[1] = {widen(edge_)};
      function(last.edge_position(), x);
      store_pack<1>(target, last.edge_position(), x);
    }
    load_edge();
  }

 private:
  __device__ void load(int i) {
    if (row_.has(i)) packs_[i] = row_.pack(i);
  }
  __device__ void load_edge() {
    if (row_.has_edge()) edge_ = row_.edge();
  }

  Place row_;
  HeldPack<T, V> packs_[N];
  T edge_;
};

/// Combines the values of all threads of a block, whose warps are a power of two; all get the result. All must call it.
template <typename C, typename Combine>
__device__ C long_block_combine(C value, Combine combine) {
  __shared__ C partial[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x) / warpSize;
  const int sharing = warps < warpSize ? warps : warpSize, own = thread % sharing;
  for (int mask = warpSize / 2; mask > 0; mask /= 2)
    value = combine(value, gpu_shuffle_xor(value, mask));
  __syncthreads();  // an earlier result may still be read
  if (thread % warpSize == 0) partial[thread / warpSize] = value;
  __syncthreads();
  value = partial[own];
  for (int warp = own + sharing; warp < warps; warp += sharing)
    value = combine(value, partial[warp]);
  for (int mask = sharing / 2; mask > 0; mask /= 2)
    value = combine(value, gpu_shuffle_xor(value, mask));
  return value;
}

// ---- softmax ----

/// exp(difference) for a row of elements of T: what is stored in 16 bits does not ask for more than exp2() gives.
template <typename T>
__device__ inline Computed<T> exp_for(Computed<T> difference) {
  if constexpr (sizeof(T) == 2) {
    return std::exp2(difference * 1.44269504f);
  } else {
    return std::exp(difference);
  }
}

/// As larger_of where a is a number: of a NaN b, a.
template <typename C>
__device__ inline C larger_number(C a, C b) {
  return std::fmax(a, b);
}

template <typename C, int V>
__device__ inline C largest_of(C largest, const C (&x)[V]) {
  for (int v = 0; v < V; ++v)
    largest = larger_number(largest, x[v]);
  return largest;
}

/// sum + sum(exp(x - from)).
template <typename T, int V>
__device__ inline Computed<T> added_exps(Computed<T> sum, const Computed<T> (&x)[V], Computed<T> from) {
  for (int v = 0; v < V; ++v)
    sum += exp_for<T>(x[v] - from);
  return sum;
}

/// The online softmax (Milakov and Gimelshein 2018) of elements of T.
template <typename T, int V>
__device__ inline void add_exps(ExpSum<Computed<T>> &total, const Computed<T> (&x)[V]) {
  const Computed<T> largest = largest_of(total.largest, x), from = subtrahend(largest);
  if (largest > total.largest) total.sum *= exp_for<T>(total.largest - from);
  total.sum = added_exps<T>(total.sum, x, from);
  total.largest = largest;
}

template <typename C>
__device__ inline C block_largest(C largest) {
  return long_block_combine(largest, [](C a, C b) { return larger_number(a, b); });
}
template <typename C>
__device__ inline C block_total(C sum) {
  return long_block_combine(sum, [](C a, C b) { return a + b; });
}

/// Of what the threads of a block have.
template <typename C>
__device__ inline ExpSum<C> block_exp_sum(const ExpSum<C> &own) {
  const C largest = block_largest(own.largest);
  return {largest, block_total(own.sum * std::exp(own.largest - subtrahend(largest)))};
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_LONG_ROW_INL_H_
