// SPDX-License-Identifier: Apache-2.0
//
// Updates of some rows of an array: rows that have the same index are added up (device_index_sort.h,
// device_gather_gradient.h), and rows replace others. A row is a slice along the first axis.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_ROW_UPDATE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_ROW_UPDATE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// to[i] = indices[i] − first.
gpuError_t launch_index_shift(const void *indices, tensor::DType dtype, int64_t count, int64_t first, int64_t *to,
                              gpuStream_t stream);

/// Of sorted indices, of which those from `limit` on are none: where the first that is equal stands, and there the
/// index itself.
struct RowHeads {
  const uint32_t *keys;  ///< sorted
  int64_t count, limit;
  uint32_t *heads;  ///< `count` where there is no index
  int64_t *places;  ///< −1 where no index comes first
};
gpuError_t launch_row_heads(const RowHeads &heads, gpuStream_t stream);

/// Rows of x at places in [0, limit) become others; where a place is none nothing happens.
struct RowUpdate {
  const int64_t *places;
  int64_t count, limit, row_bytes, element_bytes;
  const void *rows;
  void *x;
};
gpuError_t launch_row_update(const RowUpdate &update, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_ROW_UPDATE_H_
