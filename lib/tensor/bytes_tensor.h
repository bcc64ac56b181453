// SPDX-License-Identifier: Apache-2.0
//
// Tensors of dtype bytes: each element is a string of any bytes.
//
// Layout in the buffer: n + 1 int64 offsets, then the data. Element i is the bytes [offsets[i], offsets[i+1]), counted
// from the beginning of the buffer, so a view of some rows only moves the tensor's own offset.
//
//   TUTTI_ASSIGN(Tensor names, make_bytes_tensor({2}, {"left", "right"}));
//   bytes_at(names, 1);                                // "right"
//
// Threads: as for Tensor.
#ifndef TUTTI_TENSOR_BYTES_TENSOR_H_
#define TUTTI_TENSOR_BYTES_TENSOR_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::tensor {

/// A copy of the texts, as many as the shape has elements.
base::Result<Tensor> make_bytes_tensor(const Shape &shape, std::span<const std::string_view> texts);
base::Result<Tensor> make_bytes_tensor(const Shape &shape, std::initializer_list<std::string_view> texts);
base::Result<Tensor> make_bytes_tensor(const Shape &shape, const std::vector<std::string> &texts);
/// A copy of the Arrow-like form: n + 1 offsets into `data`, not decreasing and inside it; INVALID_ARGUMENT otherwise.
base::Result<Tensor> make_bytes_tensor(const Shape &shape, std::span<const int64_t> offsets, std::string_view data);

/// Element `index` in row-major order; requires dtype bytes and 0 <= index < elements().
std::string_view bytes_at(const Tensor &tensor, int64_t index);
/// All elements; INVALID_ARGUMENT when the dtype is another one.
base::Result<std::vector<std::string_view>> bytes_values(const Tensor &tensor);
/// Length of all elements together.
int64_t bytes_total(const Tensor &tensor);

/// Checks that n + 1 offsets at `offset_bytes` of a buffer are in order and inside it.
base::Status check_bytes_layout(const Shape &shape, const Buffer &buffer, int64_t offset_bytes);

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_BYTES_TENSOR_H_
