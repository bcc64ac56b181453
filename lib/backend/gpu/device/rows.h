// SPDX-License-Identifier: Apache-2.0
//
// Launches that do the work of several calls: a table on the device with a row for each, that says what it works on.
// The work of a row is cut into chunks, which are counted through all rows; every block takes one after the other.
#ifndef TUTTI_BACKEND_GPU_DEVICE_ROWS_H_
#define TUTTI_BACKEND_GPU_DEVICE_ROWS_H_

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// A Row has `int64_t elements` and `int64_t first_chunk`.
template <typename Row>
struct Rows {
  const Row *table;  ///< on the device, ascending; null: there is one row, which is given beside
  int32_t count;
  int64_t chunks;  ///< of all rows
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ROWS_H_
