// SPDX-License-Identifier: Apache-2.0
//
// Rows in device code. Included by .cu files, and by kernels that are compiled at run time.
#ifndef TUTTI_BACKEND_GPU_DEVICE_ROWS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_ROWS_INL_H_

#include <tutti_gpu.h>

#include "backend/gpu/device/rows.h"

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

/// Calls work(row, number of the chunk within the row) for the chunks of the block, on all of its threads; what they
/// wrote to shared memory before is seen in the first call. A row that is given alone is read but once.
template <typename Row, typename Work>
__device__ inline void for_chunks(const Rows<Row> &rows, const Row &one, Work work) {
  __shared__ Row row;
  if (rows.table == nullptr && threadIdx.x == 0) row = one;
  __syncthreads();
  for (int64_t chunk = blockIdx.x; chunk < rows.chunks; chunk += gridDim.x) {
    if (rows.table != nullptr) {
      __syncthreads();  // the row before may still be read
      if (threadIdx.x == 0) row = rows.table[find_row(rows, chunk)];
      __syncthreads();
    }
    work(row, chunk - row.first_chunk);
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ROWS_INL_H_
