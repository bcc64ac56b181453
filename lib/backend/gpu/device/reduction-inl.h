// SPDX-License-Identifier: Apache-2.0
//
// Launches of reductions (reduction_body-inl.h): in one pass, or in two where there are few results. Included by .cu
// files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_REDUCTION_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_REDUCTION_INL_H_

#include "backend/gpu/device/reduction_body-inl.h"
#include "backend/gpu/device/reduction_layout.h"
#include "backend/gpu/device/storage-inl.h"

namespace tutti::impl::backend::gpu {

template <typename C>
__device__ inline C group_sum(C value, int lanes) {
  return group_combine(value, lanes, [](C a, C b) { return a + b; });
}

template <typename C>
__device__ inline C larger_of(C a, C b) {
  return b > a ? b : a;
}

// ---- columns ----

template <typename Work>
__global__ void reduce_columns(const Work work, const ReductionLayout layout, typename Work::Finish::Total *partials) {
  run_columns(work, layout, partials);
}

/// Work::kBlocksAtOnce blocks share a multiprocessor at least: launches have kFillingBlocks, which are to be done in a
/// whole number of turns.
template <typename Work>
__global__ void __launch_bounds__(kBlockThreads, Work::kBlocksAtOnce)
    reduce_columns_at_once(const Work work, const ReductionLayout layout, typename Work::Finish::Total *partials) {
  run_columns(work, layout, partials);
}

template <typename Work>
constexpr auto column_kernel() {
  if constexpr (requires { Work::kBlocksAtOnce; }) {
    return &reduce_columns_at_once<Work>;
  } else {
    return &reduce_columns<Work>;
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
  return gpu_launch(column_kernel<Work>(), static_cast<unsigned>(std::min(units, kMostBlocks)), kBlockThreads,
                    sizeof(typename Work::Finish::Total) * Work::kWidth * kBlockThreads, stream, work, layout,
                    partials);
}

/// The second pass alone.
template <typename Finish>
gpuError_t launch_column_partials(const Finish &finish, int64_t outer, int64_t columns, int64_t splits,
                                  const typename Finish::Total *partials, gpuStream_t stream,
                                  SumOrder order = SumOrder::by_shape) {
  ReductionLayout second = order == SumOrder::by_length ? columns_reduced(outer, splits, columns, 1, order)
                                                        : column_layout(outer, splits, columns, 1, kBlockThreads / 32);
  split_rows(second, 1);
  return launch_column_pass(PartialColumns<Finish>{finish, partials, outer, columns}, second,
                            static_cast<typename Finish::Total *>(nullptr), stream);
}

/// `scratch` has column_partial_bytes().
template <typename Work>
gpuError_t launch_columns(const Work &work, int64_t outer, int64_t rows, int64_t columns, void *scratch,
                          gpuStream_t stream, SumOrder order = SumOrder::by_shape) {
  using Finish = typename Work::Finish;
  static_assert(sizeof(typename Finish::Total) * Work::kWidth * kBlockThreads <= kMostDynamicShared);
  if (outer * columns == 0) return gpuSuccess;
  const ReductionLayout layout = columns_reduced(outer, rows, columns, Work::kWidth, order);
  if (layout.splits == 1)
    return launch_column_pass(work, layout, static_cast<typename Finish::Total *>(nullptr), stream);
  auto *const partials = static_cast<typename Finish::Total *>(scratch);
  const gpuError_t error = launch_column_pass(work, layout, partials, stream);
  if (error != gpuSuccess) return error;
  return launch_column_partials(work.finish, outer, columns, layout.splits, partials, stream, order);
}

// ---- lines ----

template <typename Work>
__global__ void reduce_lines(const Work work, const ReductionLayout layout, typename Work::Finish::Total *partials) {
  run_lines(work, layout, partials);
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

/// The second pass alone.
template <typename Finish>
gpuError_t launch_line_partials(const Finish &finish, int64_t outer, int64_t splits,
                                const typename Finish::Total *partials, gpuStream_t stream,
                                SumOrder order = SumOrder::by_shape) {
  ReductionLayout second = line_layout(outer, splits, 1, order);
  split_rows(second, 1);
  return launch_line_pass(PartialLines<Finish>{finish, partials, splits}, second,
                          static_cast<typename Finish::Total *>(nullptr), stream);
}

/// `length` elements per line; `scratch` has line_partial_bytes(). By length elements are taken one by one.
template <typename Work>
gpuError_t launch_lines(const Work &work, int64_t outer, int64_t length, void *scratch, gpuStream_t stream,
                        SumOrder order = SumOrder::by_shape) {
  using Finish = typename Work::Finish;
  if (outer == 0) return gpuSuccess;
  const ReductionLayout layout = line_layout(outer, length, Work::kWidth, order);
  if (layout.splits == 1) return launch_line_pass(work, layout, static_cast<typename Finish::Total *>(nullptr), stream);
  auto *const partials = static_cast<typename Finish::Total *>(scratch);
  const gpuError_t error = launch_line_pass(work, layout, partials, stream);
  if (error != gpuSuccess) return error;
  return launch_line_partials(work.finish, outer, layout.splits, partials, stream, order);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_REDUCTION_INL_H_
