// SPDX-License-Identifier: Apache-2.0
//
// How reductions are laid out over blocks. What is reduced is [outer, rows, columns]: each of outer x columns results
// takes the `rows` elements between. The layout depends on the shape alone: sums come in the same order on every GPU.
// By length, each result has as many threads, in columns as in lines, and as many splits, as its `rows` alone tell.
#ifndef TUTTI_BACKEND_GPU_DEVICE_REDUCTION_LAYOUT_H_
#define TUTTI_BACKEND_GPU_DEVICE_REDUCTION_LAYOUT_H_

#include <tutti_gpu.h>

#include <algorithm>
#include <cstdint>

#include "backend/gpu/device/reduction_data.h"

namespace tutti::impl::backend::gpu {

/// Blocks that keep any GPU's memory busy.
inline constexpr int64_t kFillingBlocks = 512;
/// Launches have no more; each block goes on with the next unit of work.
inline constexpr int64_t kMostBlocks = int64_t{1} << 20;

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// By length: threads that share a result. Groups of one warp combine theirs in the order in which columns do.
inline constexpr int64_t kThreadsByLength = kBlockThreads >= 256 ? 32 : 8;
/// By length: the most rows that these take, one after the other.
inline constexpr int64_t kSplitByLength = kThreadsByLength * 128;

/// The smallest power of two that is >= count, at most kBlockThreads.
inline int32_t power_of_two(int64_t count) {
  int32_t power = 1;
  while (power < count && power < kBlockThreads)
    power *= 2;
  return power;
}

inline void split_rows(ReductionLayout &layout, int64_t parts) {
  layout.splits = std::max<int64_t>(1, parts);
  layout.split_rows = divide_up(layout.rows, layout.splits);
  if (layout.split_rows > 0) layout.splits = divide_up(layout.rows, layout.split_rows);
}

/// Several columns: a thread has `width` neighbouring ones; lanes x lines = kBlockThreads.
inline ReductionLayout column_layout(int64_t outer, int64_t rows, int64_t columns, int64_t width, int32_t most_lanes) {
  ReductionLayout layout{outer, rows, columns, 1, 1, 1, rows};
  const int64_t vectors = divide_up(columns, width);
  layout.lanes = std::min(power_of_two(vectors), most_lanes);
  while (layout.lanes < power_of_two(vectors) && rows < kBlockThreads / layout.lanes * 4)
    layout.lanes *= 2;
  layout.tiles = divide_up(vectors, layout.lanes);
  const int64_t lines = kBlockThreads / layout.lanes;
  split_rows(layout, std::min(kFillingBlocks / std::max<int64_t>(1, outer * layout.tiles), rows / (lines * 8)));
  return layout;
}

inline int32_t threads_by_length(int64_t rows) { return power_of_two(std::min(rows, kThreadsByLength)); }

/// Either, by length: `lanes` threads side by side.
inline ReductionLayout layout_by_length(int64_t outer, int64_t rows, int64_t columns, int64_t width, int32_t lanes) {
  ReductionLayout layout{outer, rows, columns, lanes, 1, 1, rows};
  split_rows(layout, divide_up(rows, kSplitByLength));
  if (columns > 1) layout.tiles = divide_up(divide_up(columns, width), lanes);
  return layout;
}

/// One column: `rows` is the length of a line of elements, `lanes` threads have a line or a part of one.
inline ReductionLayout line_layout(int64_t outer, int64_t rows, int64_t width, SumOrder order = SumOrder::by_shape) {
  if (order == SumOrder::by_length) return layout_by_length(outer, rows, 1, 1, threads_by_length(rows));
  ReductionLayout layout{outer, rows, 1, 1, 1, 1, rows};
  const int64_t vectors = divide_up(rows, width);
  layout.lanes = power_of_two(divide_up(vectors, outer * kBlockThreads < kFillingBlocks * 1024 ? 1 : 4));
  const int64_t blocks = divide_up(outer, kBlockThreads / layout.lanes);
  split_rows(layout, std::min(kFillingBlocks / std::max<int64_t>(1, blocks), vectors / (int64_t{8} * layout.lanes)));
  layout.split_rows = divide_up(layout.split_rows, width) * width;
  return layout;
}

/// The layouts that launches choose from: packs of `width`, or single elements where memory is not aligned.
inline ReductionLayout columns_reduced(int64_t outer, int64_t rows, int64_t columns, int64_t width,
                                       SumOrder order = SumOrder::by_shape) {
  if (order == SumOrder::by_length)
    return layout_by_length(outer, rows, columns, width, kBlockThreads / threads_by_length(rows));
  return column_layout(outer, rows, columns, width, kBlockThreads / 8);
}

/// Bytes for the partial results of either width that a launch may choose.
inline int64_t column_partial_bytes(int64_t outer, int64_t rows, int64_t columns, int64_t width, int64_t total_bytes,
                                    SumOrder order = SumOrder::by_shape) {
  const int64_t splits = std::max(columns_reduced(outer, rows, columns, width, order).splits,
                                  columns_reduced(outer, rows, columns, 1, order).splits);
  return splits == 1 ? 0 : splits * outer * columns * total_bytes;
}

inline int64_t line_partial_bytes(int64_t outer, int64_t rows, int64_t width, int64_t total_bytes,
                                  SumOrder order = SumOrder::by_shape) {
  const int64_t splits =
      std::max(line_layout(outer, rows, width, order).splits, line_layout(outer, rows, 1, order).splits);
  return splits == 1 ? 0 : splits * outer * total_bytes;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_REDUCTION_LAYOUT_H_
