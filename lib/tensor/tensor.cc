// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include <cstring>

#include "tensor/bytes_tensor.h"

namespace tutti::impl::tensor {

namespace {

// Bytes of the elements; the shape's own limit keeps this in range.
int64_t bytes_of(DType dtype, const Shape &shape) { return shape.elements() * static_cast<int64_t>(size_bytes(dtype)); }

base::Status check_fixed_size(DType dtype) {
  if (!is_valid(dtype)) return base::invalid_argument("expected a dtype, got number ", static_cast<int32_t>(dtype));
  if (dtype == DType::bytes) {
    return base::invalid_argument("a tensor of dtype bytes is made from its contents, not from a shape alone");
  }
  return base::Status();
}

void append_element(std::string &out, const Tensor &tensor, int64_t index) {
  if (tensor.dtype() == DType::bytes) {
    base::append_piece(out, base::quoted(bytes_at(tensor, index)));
    return;
  }
  visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    const T value = tensor.data_as<T>()[index];
    if constexpr (requires { value.bits; }) {
      base::append_piece(out, static_cast<float>(value));
    } else {
      base::append_piece(out, value);
    }
  });
}

}  // namespace

base::Result<Tensor> Tensor::allocate(DType dtype, const Shape &shape) {
  TUTTI_TRY(check_fixed_size(dtype));
  TUTTI_ASSIGN(Ref<Buffer> buffer, Buffer::allocate(bytes_of(dtype, shape)));
  return Tensor(dtype, shape, std::move(buffer), 0);
}

base::Result<Tensor> Tensor::zeros(DType dtype, const Shape &shape) {
  TUTTI_TRY(check_fixed_size(dtype));
  TUTTI_ASSIGN(Ref<Buffer> buffer, Buffer::allocate_zeroed(bytes_of(dtype, shape)));
  return Tensor(dtype, shape, std::move(buffer), 0);
}

base::Result<Tensor> Tensor::from_buffer(DType dtype, const Shape &shape, Ref<Buffer> buffer, int64_t offset_bytes) {
  if (!is_valid(dtype)) return base::invalid_argument("expected a dtype, got number ", static_cast<int32_t>(dtype));
  if (buffer == nullptr) return base::invalid_argument("tensor ", dtype, " ", shape, ": expected a buffer, got none");
  const int64_t needed = bytes_of(dtype, shape) + (dtype == DType::bytes ? 8 : 0);
  if (offset_bytes < 0 || offset_bytes > buffer->size_bytes() || needed > buffer->size_bytes() - offset_bytes) {
    return base::out_of_range("tensor ", dtype, " ", shape, " needs ", needed, " bytes at ", offset_bytes,
                              ", the buffer has ", buffer->size_bytes());
  }
  const uintptr_t address = reinterpret_cast<uintptr_t>(buffer->data()) + static_cast<uintptr_t>(offset_bytes);
  if (address % tensor::size_bytes(dtype) != 0) {
    return base::invalid_argument("tensor ", dtype, " ", shape, ": memory at offset ", offset_bytes,
                                  " is not aligned to ", tensor::size_bytes(dtype), " bytes");
  }
  if (dtype == DType::bytes) TUTTI_TRY(check_bytes_layout(shape, *buffer, offset_bytes));
  return Tensor(dtype, shape, std::move(buffer), offset_bytes);
}

base::Result<Tensor> Tensor::copy_of(DType dtype, const Shape &shape, const void *data, int64_t size_bytes) {
  TUTTI_ASSIGN(Tensor tensor, allocate(dtype, shape));
  if (tensor.size_bytes() != size_bytes) {
    return base::invalid_argument("tensor ", tensor.describe(), " needs ", tensor.size_bytes(), " bytes, got ",
                                  size_bytes);
  }
  if (size_bytes > 0) std::memcpy(tensor.mutable_data(), data, static_cast<size_t>(size_bytes));
  return tensor;
}

base::Status Tensor::expect_dtype(DType dtype) const {
  if (dtype == dtype_ && buffer_ != nullptr) [[likely]]
    return base::Status();
  return base::invalid_argument("expected a tensor of ", dtype, ", got ", describe());
}

base::Result<Tensor> Tensor::slice_rows(int64_t begin, int64_t end) const {
  if (rank() == 0) return base::invalid_argument("expected a tensor with rows, got ", describe());
  if (begin < 0 || begin > end || end > rows()) {
    return base::out_of_range("rows [", begin, ", ", end, ") do not lie in ", describe());
  }
  const int64_t row_bytes = shape_.elements_from(1) * static_cast<int64_t>(tensor::size_bytes(dtype_));
  return Tensor(dtype_, shape_.with_rows(end - begin), buffer_, offset_bytes_ + begin * row_bytes);
}

base::Result<Tensor> Tensor::row(int64_t index) const {
  if (index < 0 || index >= rows()) return base::out_of_range("row ", index, " does not lie in ", describe());
  TUTTI_ASSIGN(Tensor one, slice_rows(index, index + 1));
  return Tensor(dtype_, shape_.row_shape(), std::move(one.buffer_), one.offset_bytes_);
}

base::Result<Tensor> Tensor::reshape(const Shape &shape) const {
  if (empty() || shape.elements() != elements_) {
    return base::invalid_argument("cannot reshape ", describe(), " to ", shape);
  }
  return Tensor(dtype_, shape, buffer_, offset_bytes_);
}

base::Result<Tensor> Tensor::clone() const {
  if (dtype_ != DType::bytes) return copy_of(dtype_, shape_, data(), size_bytes());
  TUTTI_ASSIGN(const std::vector<std::string_view> texts, bytes_values(*this));
  return make_bytes_tensor(shape_, texts);
}

base::Status Tensor::copy_from(const Tensor &source) const {
  TUTTI_TRY(check_fixed_size(dtype_));
  if (source.dtype_ != dtype_ || !(source.shape_ == shape_)) {
    return base::invalid_argument("cannot copy ", source.describe(), " into ", describe());
  }
  if (read_only()) return base::failed_precondition("tensor ", describe(), " is read-only");
  if (elements_ > 0) std::memmove(mutable_data(), source.data(), static_cast<size_t>(size_bytes()));
  return base::Status();
}

std::string Tensor::describe() const { return empty() ? "no tensor" : base::concat(dtype_, " ", shape_); }

std::string Tensor::to_string(int64_t limit) const {
  std::string out = describe();
  if (empty()) return out;
  out.append(" {");
  for (int64_t i = 0; i < elements_; ++i) {
    if (i > 0) out.append(", ");
    if (i == limit) {
      out.append("...");
      break;
    }
    append_element(out, *this, i);
  }
  out.push_back('}');
  return out;
}

}  // namespace tutti::impl::tensor
