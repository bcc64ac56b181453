// SPDX-License-Identifier: Apache-2.0
//
// One value in pieces, as replicas have it: put together along an axis, or reduced. Pieces without a buffer (those of
// replicas that had no rows) count for nothing.
//
//   TUTTI_ASSIGN(const Tensor rows, concatenate(pieces, 0));
//   TUTTI_ASSIGN(const Tensor mean, reduce(pieces, Reduction::mean, 0));      // over all rows, each counted once
//   TUTTI_ASSIGN(const Tensor sum, reduce(pieces, Reduction::sum, nullopt));  // of the pieces, element by element
//
// Sums are made in f64, of integers in i64. A result has the dtype of the pieces, a mean of integers is f64.
//
// Threads: functions without state.
#ifndef TUTTI_TENSOR_PIECES_H_
#define TUTTI_TENSOR_PIECES_H_

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::tensor {

enum class Reduction { sum, mean };

/// INVALID_ARGUMENT naming the piece whose type or other dimensions are not those of the first, an axis that there is
/// not, or that there is no piece.
base::Result<Tensor> concatenate(std::span<const Tensor> pieces, int64_t axis);
/// Over `axis` of all pieces; without an axis element by element, for pieces of one shape. Likewise; and for dtypes
/// that are no numbers.
base::Result<Tensor> reduce(std::span<const Tensor> pieces, Reduction reduction, std::optional<int64_t> axis);

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_PIECES_H_
