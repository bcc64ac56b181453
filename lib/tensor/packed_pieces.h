// SPDX-License-Identifier: Apache-2.0
//
// Tensors as bytes for another process of the same program: dtype, shape and contents, one tensor behind the other.
//
// Threads: functions without state.
#ifndef TUTTI_TENSOR_PACKED_PIECES_H_
#define TUTTI_TENSOR_PACKED_PIECES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::tensor {

/// Tensors without a buffer are kept as such.
std::vector<std::byte> pieces_to_bytes(std::span<const Tensor> pieces);
/// Appends the pieces. DATA_LOSS where the bytes are not those of pieces_to_bytes().
base::Status pieces_from_bytes(std::span<const std::byte> bytes, std::vector<Tensor> &pieces);

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_PACKED_PIECES_H_
