// SPDX-License-Identifier: Apache-2.0
//
// Updates put into rows of a table in place. Their positions are sorted by row first (device_index_sort.h); a thread
// then has a column of one row and all updates for it, in their order.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_MERGE_ROWS_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_MERGE_ROWS_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

enum class MergeMode : int32_t { add, maximum, replace };

struct MergeRows {
  MergeMode mode;
  tensor::DType dtype;
  int64_t rows, count, inner;    ///< a table [rows, inner] and updates [count, inner]
  const uint32_t *keys, *order;  ///< sorted: the row, and the number of the update; a row out of range is not written
  const void *updates;
  void *table;
};
gpuError_t launch_merge_rows(const MergeRows &merge, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_MERGE_ROWS_H_
