// SPDX-License-Identifier: Apache-2.0
//
// Reductions of [outer, rows, columns] over rows, for any plain-data total. Threads accumulate in registers, a block
// combines its threads in a tree; where there are few results a second pass combines partial results of several blocks.
// Included by .cu files only.
//
//   struct Work {
//     static constexpr int kWidth = ..;         // neighbouring columns (or elements of a line) that a thread takes
//     using Finish = ..;                        // below
//     struct State { .. };                      // a thread's registers
//     Finish finish;
//     __device__ State begin(int64_t outer, int64_t first_row, bool has_row, int64_t column) const;
//     __device__ void add(State &, int64_t outer, int64_t row, int64_t column) const;
//     __device__ typename Finish::Total total(const State &, int v) const;                      // of column + v
//   };
//   struct Finish {
//     using Total = ..;
//     __device__ Total none() const;            // combining with it changes nothing
//     __device__ static Total combine(Total, Total);
//     __device__ void write(int64_t outer, int64_t column, const Total &) const;
//   };
#ifndef TUTTI_BACKEND_GPU_REDUCTION_INL_H_
#define TUTTI_BACKEND_GPU_REDUCTION_INL_H_

#include "backend/gpu/reduction_layout.h"
#include "backend/gpu/storage-inl.h"

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

template <typename C>
__device__ inline C group_sum(C value, int lanes) {
  return group_combine(value, lanes, [](C a, C b) { return a + b; });
}

template <typename C>
__device__ inline C larger_of(C a, C b) {
  return b > a ? b : a;
}

// ---- columns ----

/// Rows first, first + step, ... of a column; several loads are on their way at once.
template <typename Work>
__device__ inline void add_rows(const Work &work, typename Work::State &state, int64_t outer, int64_t first,
                                int64_t end, int64_t step, int64_t column) {
  int64_t row = first;
  for (; row + 3 * step < end; row += 4 * step) {
    for (int i = 0; i < 4; ++i)
      work.add(state, outer, row + i * step, column);
  }
  for (; row < end; row += step)
    work.add(state, outer, row, column);
}

/// A block has `lanes` vectors of columns side by side, in kBlockThreads / lanes lines of rows.
template <typename Work>
__global__ void reduce_columns(const Work work, const ReductionLayout layout, typename Work::Finish::Total *partials) {
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
    const int64_t first = split * layout.split_rows + line;
    const int64_t end = first - line + layout.split_rows < layout.rows ? first - line + layout.split_rows : layout.rows;
    const bool is_inside = column < layout.columns;
    __syncthreads();  // the block's last results are read
    if (is_inside) {
      typename Work::State state = work.begin(outer, first, first < end, column);
      add_rows(work, state, outer, first, end, lines, column);
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

/// The second pass: rows are the partial results, [splits, outer * columns].
template <typename FinishType>
struct PartialColumns {
  static constexpr int kWidth = 1;
  using Finish = FinishType;
  using State = typename Finish::Total;
  Finish finish;
  const State *partials;
  int64_t outer_count, columns;

  __device__ State begin(int64_t, int64_t, bool, int64_t) const { return finish.none(); }
  __device__ void add(State &state, int64_t outer, int64_t row, int64_t column) const {
    state = Finish::combine(state, partials[(row * outer_count + outer) * columns + column]);
  }
  __device__ State total(const State &state, int) const { return state; }
};

template <typename Work>
gpuError_t launch_column_pass(const Work &work, const ReductionLayout &layout, typename Work::Finish::Total *partials,
                              gpuStream_t stream) {
  const int64_t units = layout.outer * layout.splits * layout.tiles;
  return gpu_launch(reduce_columns<Work>, static_cast<unsigned>(std::min(units, kMostBlocks)), kBlockThreads,
                    sizeof(typename Work::Finish::Total) * Work::kWidth * kBlockThreads, stream, work, layout,
                    partials);
}

/// `scratch` has column_partial_bytes().
template <typename Work>
gpuError_t launch_columns(const Work &work, int64_t outer, int64_t rows, int64_t columns, void *scratch,
                          gpuStream_t stream) {
  using Finish = typename Work::Finish;
  static_assert(sizeof(typename Finish::Total) * Work::kWidth * kBlockThreads <= 48 << 10);
  if (outer * columns == 0) return gpuSuccess;
  const ReductionLayout layout = columns_reduced(outer, rows, columns, Work::kWidth);
  if (layout.splits == 1)
    return launch_column_pass(work, layout, static_cast<typename Finish::Total *>(nullptr), stream);
  auto *const partials = static_cast<typename Finish::Total *>(scratch);
  const gpuError_t error = launch_column_pass(work, layout, partials, stream);
  if (error != gpuSuccess) return error;
  ReductionLayout second = column_layout(outer, layout.splits, columns, 1, kBlockThreads / 32);
  split_rows(second, 1);
  return launch_column_pass(PartialColumns<Finish>{work.finish, partials, outer, columns}, second,
                            static_cast<typename Finish::Total *>(nullptr), stream);
}

// ---- lines ----

/// One column: groups of `lanes` threads take a line, or a part of one, together. Rows are elements of the line.
template <typename Work>
__global__ void reduce_lines(const Work work, const ReductionLayout layout, typename Work::Finish::Total *partials) {
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

/// The second pass: a line is the partial results of one result.
template <typename FinishType>
struct PartialLines {
  static constexpr int kWidth = 1;
  using Finish = FinishType;
  using State = typename Finish::Total;
  Finish finish;
  const State *partials;
  int64_t splits;

  __device__ State begin(int64_t, int64_t, bool, int64_t) const { return finish.none(); }
  __device__ void add(State &state, int64_t outer, int64_t row, int64_t) const {
    state = Finish::combine(state, partials[outer * splits + row]);
  }
  __device__ State total(const State &state, int) const { return state; }
};

template <typename Work>
gpuError_t launch_line_pass(const Work &work, const ReductionLayout &layout, typename Work::Finish::Total *partials,
                            gpuStream_t stream) {
  const int64_t blocks = divide_up(layout.outer * layout.splits, kBlockThreads / layout.lanes);
  return gpu_launch(reduce_lines<Work>, static_cast<unsigned>(std::min(blocks, kMostBlocks)), kBlockThreads, 0, stream,
                    work, layout, partials);
}

/// `length` elements per line; `scratch` has line_partial_bytes().
template <typename Work>
gpuError_t launch_lines(const Work &work, int64_t outer, int64_t length, void *scratch, gpuStream_t stream) {
  using Finish = typename Work::Finish;
  if (outer == 0) return gpuSuccess;
  const ReductionLayout layout = line_layout(outer, length, Work::kWidth);
  if (layout.splits == 1) return launch_line_pass(work, layout, static_cast<typename Finish::Total *>(nullptr), stream);
  auto *const partials = static_cast<typename Finish::Total *>(scratch);
  const gpuError_t error = launch_line_pass(work, layout, partials, stream);
  if (error != gpuSuccess) return error;
  ReductionLayout second = line_layout(outer, layout.splits, 1);
  split_rows(second, 1);
  return launch_line_pass(PartialLines<Finish>{work.finish, partials, layout.splits}, second,
                          static_cast<typename Finish::Total *>(nullptr), stream);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_REDUCTION_INL_H_
