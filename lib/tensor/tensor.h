// SPDX-License-Identifier: Apache-2.0
//
// A tensor in host memory: element type, shape, and a place in a shared buffer. Always dense and row-major. Copying a
// Tensor shares the buffer; views (rows, reshaped) are Tensors too.
//
//   TUTTI_ASSIGN(Tensor batch, Tensor::from_values<float>({2, 2}, {1, 2, 3, 4}));
//   TUTTI_ASSIGN(Tensor row, batch.slice_rows(1, 2));          // shares memory
//   TUTTI_ASSIGN(std::span<const float> values, row.values<float>());
//
// Tensors of dtype bytes are made and read by bytes_tensor.h; slicing, reshaping and comparing work on them too.
//
// Threads: a value over shared memory: concurrent reading is fine, writing needs the only hand on the elements.
// Invariant: the elements lie inside the buffer and are aligned to their size; a default Tensor is empty() and has no
// dtype.
#ifndef TUTTI_TENSOR_TENSOR_H_
#define TUTTI_TENSOR_TENSOR_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tutti::impl::tensor {

class Tensor {
 public:
  /// No tensor at all.
  Tensor() = default;

  /// Undefined contents. INVALID_ARGUMENT for dtype bytes, whose size depends on its contents.
  static base::Result<Tensor> allocate(DType dtype, const Shape &shape);
  static base::Result<Tensor> zeros(DType dtype, const Shape &shape);
  /// Elements somewhere in a buffer. INVALID_ARGUMENT when misaligned, OUT_OF_RANGE when they do not fit. For dtype
  /// bytes the offsets are checked too.
  static base::Result<Tensor> from_buffer(DType dtype, const Shape &shape, Ref<Buffer> buffer,
                                          int64_t offset_bytes = 0);
  /// A copy of `values`, as many as the shape has elements.
  template <Element T>
  static base::Result<Tensor> from_values(const Shape &shape, std::span<const T> values);
  template <Element T>
  static base::Result<Tensor> from_values(const Shape &shape, std::initializer_list<T> values) {
    return from_values<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  template <Element T>
  static base::Result<Tensor> scalar(T value) {
    return from_values<T>(Shape(), std::span<const T>(&value, 1));
  }
  /// A copy of `size_bytes` at `data`, which must be what the shape needs.
  static base::Result<Tensor> copy_of(DType dtype, const Shape &shape, const void *data, int64_t size_bytes);

  /// Is there no tensor? (One of zero elements is a tensor.)
  bool empty() const { return buffer_ == nullptr; }
  explicit operator bool() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape &shape() const { return shape_; }
  int32_t rank() const { return shape_.rank(); }
  int64_t elements() const { return elements_; }
  int64_t rows() const { return shape_.rows(); }
  /// Bytes of the elements; of the offsets for dtype bytes.
  int64_t size_bytes() const { return elements_ * static_cast<int64_t>(tensor::size_bytes(dtype_)); }
  const Ref<Buffer> &buffer() const { return buffer_; }
  int64_t offset_bytes() const { return offset_bytes_; }
  bool read_only() const { return buffer_ != nullptr && buffer_->read_only(); }

  // Without checks: for code that knows dtype and access.
  const void *data() const {
    return buffer_ == nullptr ? nullptr : static_cast<char *>(buffer_->data()) + offset_bytes_;
  }
  void *mutable_data() const { return const_cast<void *>(data()); }
  template <typename T>
  const T *data_as() const {
    return static_cast<const T *>(data());
  }
  template <typename T>
  T *mutable_data_as() const {
    return static_cast<T *>(mutable_data());
  }

  /// The elements. INVALID_ARGUMENT naming both types when the dtype is another one.
  template <Element T>
  base::Result<std::span<const T>> values() const {
    TUTTI_TRY(expect_dtype(dtype_of<T>));
    return std::span<const T>(data_as<T>(), static_cast<size_t>(elements_));
  }
  /// The same for writing; FAILED_PRECONDITION when the memory is read-only.
  template <Element T>
  base::Result<std::span<T>> mutable_values() const {
    TUTTI_TRY(expect_dtype(dtype_of<T>));
    if (read_only()) return base::failed_precondition("tensor ", describe(), " is read-only");
    return std::span<T>(mutable_data_as<T>(), static_cast<size_t>(elements_));
  }
  /// The one element of a tensor with one element.
  template <Element T>
  base::Result<T> scalar_value() const {
    TUTTI_ASSIGN(const std::span<const T> all, values<T>());
    if (all.size() != 1) return base::invalid_argument("expected a tensor of one element, got ", describe());
    return all[0];
  }

  /// Rows [begin, end) as a view. OUT_OF_RANGE, or INVALID_ARGUMENT for a scalar.
  base::Result<Tensor> slice_rows(int64_t begin, int64_t end) const;
  /// One row, without the first axis, as a view.
  base::Result<Tensor> row(int64_t index) const;
  /// The same elements under another shape of as many elements, as a view.
  base::Result<Tensor> reshape(const Shape &shape) const;
  /// A copy in memory of its own, writable.
  base::Result<Tensor> clone() const;
  /// Copies the elements of `source` (same dtype and shape, not bytes) into this one.
  base::Status copy_from(const Tensor &source) const;

  /// "f32 [64, 784]".
  std::string describe() const;
  /// describe() and the elements, cut after `limit` of them.
  std::string to_string(int64_t limit = 16) const;

 private:
  Tensor(DType dtype, const Shape &shape, Ref<Buffer> buffer, int64_t offset_bytes)
      : dtype_(dtype),
        shape_(shape),
        elements_(shape.elements()),
        offset_bytes_(offset_bytes),
        buffer_(std::move(buffer)) {}
  base::Status expect_dtype(DType dtype) const;

  DType dtype_ = static_cast<DType>(0);
  Shape shape_;
  int64_t elements_ = 0;
  int64_t offset_bytes_ = 0;
  Ref<Buffer> buffer_;
};

template <Element T>
base::Result<Tensor> Tensor::from_values(const Shape &shape, std::span<const T> values) {
  return copy_of(dtype_of<T>, shape, values.data(), static_cast<int64_t>(values.size_bytes()));
}

/// Same dtype, shape and elements; floats by their bits (so NaN equals itself and 0.0 differs from -0.0).
bool identical(const Tensor &a, const Tensor &b);

/// The first difference beyond |a - b| <= absolute + relative * |b|, as an INVALID_ARGUMENT naming index and values; ok
/// when there is none. Works for all dtypes; NaN equals NaN.
base::Status compare_close(const Tensor &a, const Tensor &b, double relative, double absolute);

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_TENSOR_H_
