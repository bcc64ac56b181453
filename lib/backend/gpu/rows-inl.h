// SPDX-License-Identifier: Apache-2.0
//
// Rows in device code. Included by .cu files, and by kernels that are compiled at run time.
#ifndef TUTTI_BACKEND_GPU_ROWS_INL_H_
#define TUTTI_BACKEND_GPU_ROWS_INL_H_

#include <tutti_gpu.h>

#include "backend/gpu/rows.h"

namespace tutti::impl::backend::gpu {

/// The last row that begins at the chunk or before: rows without elements have none.
template <typename Row>
__device__ inline int32_t find_row(const Rows<Row> &rows, int64_t chunk) {
  int32_t first = 0;
  for (int32_t count = rows.count; count > 1;) {
    const int32_t half = count / 2;
    const bool is_behind = rows.table[first + half].first_chunk <= chunk;
    first += is_behind ? half : 0;
    count = is_behind ? count - half : half;
  }
  return first;
}

/// The chunk's row, for all threads of the block. All must call it; it is valid until the next call.
template <typename Row>
__device__ inline const Row &row_of_block(const Rows<Row> &rows, const Row &one, int64_t chunk) {
  __shared__ Row row;
  __syncthreads();  // the row before may still be read
  if (threadIdx.x == 0) row = rows.table == nullptr ? one : rows.table[find_row(rows, chunk)];
  __syncthreads();
  return row;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_ROWS_INL_H_
