// SPDX-License-Identifier: Apache-2.0
//
// Reductions of [outer, rows, columns] over rows, for any plain-data total. Threads accumulate in registers, a block
// combines its threads in a tree; where there are few results a second pass combines partial results of several blocks.
// Included by .cu files, and by kernels that are compiled at run time.
//
//   struct Work {
//     static constexpr int kWidth = ..;         // neighbouring columns (or elements of a line) that a thread takes
//     using Finish = ..;                        // below
//     struct State { .. };                      // a thread's registers
//     static constexpr bool kTakesTurns = true; // if it is there, splits take rows in turns, all from the first on
//     Finish finish;
//     __device__ State begin(int64_t outer, int64_t first_row, bool has_row, int64_t column) const;
//     __device__ void add(State &, int64_t outer, int64_t row, int64_t column) const;
//     // or, where the loads of kRowsAhead rows are to be on their way before the first of them is added:
//     struct Loaded { .. };
//     __device__ Loaded load(int64_t outer, int64_t row, int64_t column) const;
//     __device__ void add(State &, int64_t outer, int64_t row, int64_t column, const Loaded &) const;
//     __device__ typename Finish::Total total(const State &, int v) const;                      // of column + v
//   };
//   struct Finish {
//     using Total = ..;
//     __device__ Total none() const;            // combining with it changes nothing
//     __device__ static Total combine(Total, Total);
//     __device__ void write(int64_t outer, int64_t column, const Total &) const;
//   };
#ifndef TUTTI_BACKEND_GPU_DEVICE_REDUCTION_BODY_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_REDUCTION_BODY_INL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/reduction_data.h"

namespace tutti::impl::backend::gpu {

// ---- groups of threads ----

template <typename C>
__device__ inline C exchanged(C value, int mask) {
  return gpu_shuffle_xor(value, mask);
}

/// Combines the values of groups of `lanes` neighbouring threads, a power of two; all threads of the group get it (to
/// rounding). All threads of the block must call it.
template <typename Total, typename Combine>
__device__ Total group_combine(Total value, int lanes, Combine combine) {
  __shared__ Total partial[kBlockThreads];
  const int within = lanes < warpSize ? lanes : warpSize;
  for (int mask = within / 2; mask > 0; mask /= 2)
    value = combine(value, exchanged(value, mask));
  if (lanes <= warpSize) return value;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / warpSize, warps = lanes / warpSize;
  __syncthreads();  // an earlier result may still be read
  if (thread % warpSize == 0) partial[warp] = value;
  __syncthreads();
  const int first = warp / warps * warps;
  value = partial[first];
  for (int i = 1; i < warps; ++i)
    value = combine(value, partial[first + i]);
  return value;
}

// ---- columns ----

template <typename Work>
inline constexpr bool kLoadsAhead = requires {
  typename Work::Loaded;
};
template <typename Work>
inline constexpr bool kSplitsTakeTurns = requires {
  Work::kTakesTurns;
};

/// Rows first, first + step, ... of a column; several loads are on their way at once.
template <typename Work>
__device__ inline void add_rows(const Work &work, typename Work::State &state, int64_t outer, int64_t first,
                                int64_t end, int64_t step, int64_t column) {
  int64_t row = first;
  if constexpr (kLoadsAhead<Work>) {
    constexpr int kAhead = Work::kRowsAhead;
    for (; row + (kAhead - 1) * step < end; row += kAhead * step) {
      typename Work::Loaded loaded[kAhead];
      TUTTI_UNROLL
      for (int i = 0; i < kAhead; ++i)
        loaded[i] = work.load(outer, row + i * step, column);
      TUTTI_UNROLL
      for (int i = 0; i < kAhead; ++i)
        work.add(state, outer, row + i * step, column, loaded[i]);
    }
    if (row >= end) return;
    typename Work::Loaded loaded[kAhead];  // of the last, too
    TUTTI_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (row + i * step < end) loaded[i] = work.load(outer, row + i * step, column);
    }
    TUTTI_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (row + i * step < end) work.add(state, outer, row + i * step, column, loaded[i]);
    }
  } else {
    for (; row + 3 * step < end; row += 4 * step) {
      for (int i = 0; i < 4; ++i)
        work.add(state, outer, row + i * step, column);
    }
    for (; row < end; row += step)
      work.add(state, outer, row, column);
  }
}

/// The rows of a thread in line `line` of `lines`.
struct RowsOfThread {
  int64_t first, end, step;
};
template <bool kTakesTurns>
__device__ inline RowsOfThread rows_of_thread(const ReductionLayout &layout, int64_t split, int line, int lines) {
  if (kTakesTurns) return {split * lines + line, layout.rows, layout.splits * lines};
  const int64_t begin = split * layout.split_rows, end = begin + layout.split_rows;
  return {begin + line, end < layout.rows ? end : layout.rows, lines};
}

/// A block has `lanes` vectors of columns side by side, in kBlockThreads / lanes lines of rows.
template <typename Work>
__device__ __forceinline__ void run_columns(const Work &work, const ReductionLayout &layout,
                                            typename Work::Finish::Total *partials) {
  using Finish = typename Work::Finish;
  using Total = typename Finish::Total;
  constexpr int kWidth = Work::kWidth;
  TUTTI_DYNAMIC_SHARED(memory);
  Total *const shared = reinterpret_cast<Total *>(memory) + threadIdx.x;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % layout.lanes, line = thread / layout.lanes;
  const int lines = kBlockThreads / layout.lanes;
  for (int64_t unit = blockIdx.x; unit < layout.outer * layout.splits * layout.tiles; unit += gridDim.x) {
    const int64_t column = (unit % layout.tiles * layout.lanes + lane) * kWidth;
    const int64_t split = unit / layout.tiles % layout.splits, outer = unit / layout.tiles / layout.splits;
    const RowsOfThread rows = rows_of_thread<kSplitsTakeTurns<Work>>(layout, split, line, lines);
    const bool is_inside = column < layout.columns;
    __syncthreads();  // the block's last results are read
    if (is_inside) {
      typename Work::State state = work.begin(outer, rows.first, rows.first < rows.end, column);
      add_rows(work, state, outer, rows.first, rows.end, rows.step, column);
      for (int v = 0; v < kWidth; ++v)
        shared[v * kBlockThreads] = work.total(state, v);
    }
    for (int half = lines / 2; half > 0; half /= 2) {
      __syncthreads();
      for (int v = 0; is_inside && line < half && v < kWidth; ++v) {
        Total &mine = shared[v * kBlockThreads];
        mine = Finish::combine(mine, shared[v * kBlockThreads + half * layout.lanes]);
      }
    }
    for (int v = 0; is_inside && line == 0 && v < kWidth; ++v) {
      if (partials == nullptr) {
        work.finish.write(outer, column + v, shared[v * kBlockThreads]);
      } else {
        partials[(split * layout.outer + outer) * layout.columns + column + v] = shared[v * kBlockThreads];
      }
    }
  }
}

// ---- lines ----

/// One column: groups of `lanes` threads take a line, or a part of one, together. Rows are elements of the line.
template <typename Work>
__device__ __forceinline__ void run_lines(const Work &work, const ReductionLayout &layout,
                                          typename Work::Finish::Total *partials) {
  using Finish = typename Work::Finish;
  using Total = typename Finish::Total;
  constexpr int kWidth = Work::kWidth;
  const int lane = static_cast<int>(threadIdx.x) % layout.lanes, groups = kBlockThreads / layout.lanes;
  const int64_t units = layout.outer * layout.splits;
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * groups; base < units;
       base += static_cast<int64_t>(gridDim.x) * groups) {
    const int64_t unit = base + static_cast<int>(threadIdx.x) / layout.lanes;
    const int64_t split = unit % layout.splits, outer = unit / layout.splits;
    Total total = work.finish.none();
    if (unit < units) {
      const int64_t start = split * layout.split_rows, first = start + lane * kWidth;
      const int64_t end = start + layout.split_rows < layout.rows ? start + layout.split_rows : layout.rows;
      typename Work::State state = work.begin(outer, first, first < end, 0);
      add_rows(work, state, outer, first, end, int64_t{layout.lanes} * kWidth, 0);
      total = work.total(state, 0);
      for (int v = 1; v < kWidth; ++v)
        total = Finish::combine(total, work.total(state, v));
    }
    total = group_combine(total, layout.lanes, [](const Total &a, const Total &b) { return Finish::combine(a, b); });
    if (unit >= units || lane != 0) continue;
    if (partials == nullptr) {
      work.finish.write(outer, 0, total);
    } else {
      partials[outer * layout.splits + split] = total;
    }
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_REDUCTION_BODY_INL_H_
