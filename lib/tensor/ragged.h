// SPDX-License-Identifier: Apache-2.0
//
// Rows of different lengths: the values of all rows one after the other, and where each row begins.
//
//   values     [7, 3]            seven items of three numbers
//   row_splits [0, 2, 2, 7]      rows of 2, 0 and 5 items
//
// Threads: as for Tensor. Invariant: row_splits is i64 of rank 1, begins with 0, never decreases, ends with the rows of
// values.
#ifndef TUTTI_TENSOR_RAGGED_H_
#define TUTTI_TENSOR_RAGGED_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::tensor {

class RaggedTensor {
 public:
  RaggedTensor() = default;
  /// Checks the invariant; INVALID_ARGUMENT naming the entry that breaks it.
  static base::Result<RaggedTensor> make(Tensor values, Tensor row_splits);
  /// From rows of one dtype and one shape beyond the first axis, copied together.
  static base::Result<RaggedTensor> from_rows(std::span<const Tensor> rows);

  const Tensor &values() const { return values_; }
  const Tensor &row_splits() const { return row_splits_; }
  int64_t rows() const { return row_splits_.elements() - 1; }
  /// Items of row `index`; requires 0 <= index < rows().
  int64_t row_length(int64_t index) const { return splits()[index + 1] - splits()[index]; }
  int64_t longest_row() const;

  /// One row as a view. OUT_OF_RANGE.
  base::Result<Tensor> row(int64_t index) const;
  /// Rows [begin, end): values as a view, splits anew.
  base::Result<RaggedTensor> slice_rows(int64_t begin, int64_t end) const;
  /// [rows, length, ...] with short rows filled by `padding` (null: zeros) and long ones cut; length < 0: the longest
  /// row.
  base::Result<Tensor> to_dense(int64_t length, const Tensor *padding) const;

  /// "ragged f32 [3, (0..5), 3]".
  std::string describe() const;

 private:
  RaggedTensor(Tensor values, Tensor row_splits) : values_(std::move(values)), row_splits_(std::move(row_splits)) {}
  const int64_t *splits() const { return row_splits_.data_as<int64_t>(); }

  Tensor values_;
  Tensor row_splits_;
};

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_RAGGED_H_
