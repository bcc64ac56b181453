// SPDX-License-Identifier: Apache-2.0
//
// BytesRows: values of dtype bytes written one behind the other to where the tensor of them will have them.
//
//   TUTTI_TRY(rows.begin(32));
//   TUTTI_ASSIGN(char *const target, rows.add(size));      // `size` bytes go there
//   TUTTI_ASSIGN(Tensor batch, rows.finish());             // bytes[1]
//
// Memory of tensors that nobody holds any more is used again.
//
// Threads: one at a time.
#ifndef TUTTI_DATA_ELEMENT_BYTES_ROWS_H_
#define TUTTI_DATA_ELEMENT_BYTES_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "tensor/buffer.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

class BytesRows {
 public:
  /// Room for the offsets of all rows is made at once.
  static constexpr int64_t kMostRows = 65536;

  /// Begins a tensor of at most so many rows, up to kMostRows; what was added to another one is forgotten.
  base::Status begin(int64_t most_rows);
  int64_t rows() const { return rows_; }
  /// Of all rows and what leads to them.
  int64_t bytes() const { return static_cast<int64_t>(end_); }
  /// One row more, of this size; gives where its bytes go, which holds until the next add().
  base::Result<char *> add(size_t size);
  /// Takes the last row away.
  void drop_last() { end_ = static_cast<size_t>(offsets()[--rows_]); }
  /// The rows as bytes[rows]. begin() comes next.
  base::Result<tensor::Tensor> finish();

 private:
  int64_t *offsets() const { return static_cast<int64_t *>(buffer_->data()); }
  base::Status grow(size_t size);

  base::Ref<tensor::Buffer> buffer_;              // offsets of all rows there may be, then the bytes
  std::vector<base::Ref<tensor::Buffer>> given_;  // of tensors given out, perhaps still in use
  int64_t rows_ = 0, most_rows_ = 0;
  size_t end_ = 0;    // of the bytes, in the buffer
  size_t usual_ = 0;  // size of the last tensor
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ELEMENT_BYTES_ROWS_H_
