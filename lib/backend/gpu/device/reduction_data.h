// SPDX-License-Identifier: Apache-2.0
//
// How a reduction is laid out and where its elements lie, as plain data for kernels; reduction_layout.h chooses.
#ifndef TUTTI_BACKEND_GPU_DEVICE_REDUCTION_DATA_H_
#define TUTTI_BACKEND_GPU_DEVICE_REDUCTION_DATA_H_

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// What the order in which a result takes its elements may depend on.
enum class SumOrder : int32_t {
  by_shape,   ///< the whole shape: the fastest
  by_length,  ///< how many elements the result has, but not how many results there are, nor where they lie
};

struct ReductionLayout {
  int64_t outer, rows, columns;
  int32_t lanes;   ///< threads that share a row: side by side along columns, or along the row if there is one column
  int64_t tiles;   ///< blocks that share a row
  int64_t splits;  ///< parts of the rows, each reduced to a partial result
  int64_t split_rows;  ///< rows of a part
};

/// Positions of the elements of a box: index i, row-major over dims, lies at the sum of its coordinates times strides.
struct ReduceWalk {
  int32_t rank;
  int64_t dims[4], strides[4];
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_REDUCTION_DATA_H_
