// SPDX-License-Identifier: Apache-2.0
//
// Calls that do the same to different operands as one launch, over a table with a row for each (rows.h). The table is
// written once, when a program is bound: pointers do not change from run to run.
//
// Threads: immutable.
#ifndef TUTTI_BACKEND_GPU_KERNEL_ROWS_KERNEL_H_
#define TUTTI_BACKEND_GPU_KERNEL_ROWS_KERNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backend/gpu/device/rows.h"
#include "backend/gpu/kernel/kernel.h"

namespace tutti::impl::backend::gpu {

/// The launch. In its frame the operands of the calls stand one behind the other.
class RowsKernel {
 public:
  virtual ~RowsKernel() = default;

  virtual int64_t row_bytes() const = 0;
  /// Writes a row for each call, which has so many elements, to memory of the host.
  virtual void fill(const Frame &frame, std::span<const int64_t> elements, void *rows) const = 0;
  /// Frame::rows() has them.
  virtual base::Status launch(const Frame &frame, std::span<const int64_t> elements) const = 0;
  /// What may do it, or null.
  virtual std::shared_ptr<const GeneratedProgram> generated() const { return nullptr; }
};

/// What makes a call one of several.
struct Joinable {
  std::string key;  ///< calls of equal keys do the same, but for elements and operands
  int64_t elements = 0;
  /// The launch of calls with this key; `all_elements`: of all of them.
  std::function<std::shared_ptr<const RowsKernel>(KernelBatch &batch, int64_t all_elements)> join;
};

/// Chunks of so many elements, of all calls.
inline int64_t count_chunks(std::span<const int64_t> elements, int64_t chunk_elements) {
  int64_t chunks = 0;
  for (const int64_t count : elements)
    chunks += (count + chunk_elements - 1) / chunk_elements;
  return chunks;
}

/// Sets where the chunks of each row begin.
template <typename Row>
void place_chunks(std::span<Row> rows, int64_t chunk_elements) {
  int64_t next = 0;
  for (Row &row : rows) {
    row.first_chunk = next;
    next += (row.elements + chunk_elements - 1) / chunk_elements;
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNEL_ROWS_KERNEL_H_
