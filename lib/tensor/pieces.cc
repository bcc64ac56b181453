// SPDX-License-Identifier: Apache-2.0
#include "tensor/pieces.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

namespace tutti::impl::tensor {

using base::Result;
using base::Status;

namespace {

/// A tensor as outer x along x inner elements, `along` being an axis.
struct Split {
  int64_t outer = 1, along = 1, inner = 1;
};

Split split_at(const Shape &shape, int32_t axis) {
  Split split{.along = shape[axis]};
  for (int32_t i = 0; i < axis; ++i)
    split.outer *= shape[i];
  for (int32_t i = axis + 1; i < shape.rank(); ++i)
    split.inner *= shape[i];
  return split;
}

/// Is `piece` like `first` in everything but the length of `axis`?
bool is_alike(const Tensor &piece, const Tensor &first, std::optional<int64_t> axis) {
  if (piece.dtype() != first.dtype() || piece.rank() != first.rank()) return false;
  for (int32_t i = 0; i < piece.rank(); ++i) {
    if (i != axis && piece.shape()[i] != first.shape()[i]) return false;
  }
  return true;
}

/// The pieces that have a buffer, after checks.
Result<std::vector<const Tensor *>> check_pieces(std::span<const Tensor> pieces, std::optional<int64_t> axis) {
  std::vector<const Tensor *> present;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].empty()) continue;
    if (axis && (*axis < 0 || *axis >= pieces[i].rank()))
      return base::invalid_argument("axis ", *axis, " is none of ", pieces[i].describe());
    if (!present.empty() && !is_alike(pieces[i], *present.front(), axis))
      return base::invalid_argument("replica ", i, " has ", pieces[i].describe(), ", another one ",
                                    present.front()->describe());
    present.push_back(&pieces[i]);
  }
  if (present.empty()) return base::failed_precondition("no replica had rows");
  if (present.front()->dtype() == DType::bytes)
    return base::invalid_argument("values of dtype bytes are not put together");
  return present;
}

template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <typename T>
Sum<T> as_sum(T value) {
  if constexpr (requires { value.bits; }) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<Sum<T>>(value);
  }
}

template <typename T>
T from_sum(Sum<T> sum) {
  if constexpr (requires(T value) { value.bits; }) {
    return T(static_cast<float>(sum));
  } else {
    return static_cast<T>(sum);
  }
}

template <typename T>
void add(const Tensor &piece, const Split &split, std::vector<Sum<T>> &sums) {
  const T *value = piece.data_as<T>();
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t a = 0; a < split.along; ++a) {
      for (int64_t i = 0; i < split.inner; ++i)
        sums[static_cast<size_t>(o * split.inner + i)] += as_sum(*value++);
    }
  }
}

template <typename T>
Result<Tensor> reduce_as(std::span<const Tensor *const> pieces, Reduction reduction, std::optional<int64_t> axis) {
  const Shape &shape = pieces.front()->shape();
  std::vector<int64_t> dims(shape.begin(), shape.end());
  if (axis) dims.erase(dims.begin() + *axis);
  TUTTI_ASSIGN(const Shape result_shape, Shape::make(dims));
  std::vector<Sum<T>> sums(static_cast<size_t>(result_shape.elements()));
  int64_t count = 0;
  for (const Tensor *piece : pieces) {
    const Split split =
        axis ? split_at(piece->shape(), static_cast<int32_t>(*axis)) : Split{.inner = piece->elements()};
    add<T>(*piece, split, sums);
    count += split.along;
  }
  const bool is_mean = reduction == Reduction::mean;
  if (is_mean && std::is_integral_v<T>) {
    TUTTI_ASSIGN(Tensor result, Tensor::allocate(DType::f64, result_shape));
    for (size_t i = 0; i < sums.size(); ++i)
      result.mutable_data_as<double>()[i] = static_cast<double>(sums[i]) / static_cast<double>(count);
    return result;
  }
  TUTTI_ASSIGN(Tensor result, Tensor::allocate(pieces.front()->dtype(), result_shape));
  for (size_t i = 0; i < sums.size(); ++i)
    result.mutable_data_as<T>()[i] = from_sum<T>(is_mean ? sums[i] / static_cast<Sum<T>>(count) : sums[i]);
  return result;
}

}  // namespace

Result<Tensor> concatenate(std::span<const Tensor> pieces, int64_t axis) {
  TUTTI_ASSIGN(const std::vector<const Tensor *> present, check_pieces(pieces, axis));
  const Tensor &first = *present.front();
  std::vector<int64_t> dims(first.shape().begin(), first.shape().end());
  dims[static_cast<size_t>(axis)] = 0;
  for (const Tensor *piece : present)
    dims[static_cast<size_t>(axis)] += piece->shape()[static_cast<int32_t>(axis)];
  TUTTI_ASSIGN(const Shape shape, Shape::make(dims));
  TUTTI_ASSIGN(Tensor result, Tensor::allocate(first.dtype(), shape));
  auto *target = static_cast<std::byte *>(result.mutable_data());
  const int64_t outer = split_at(first.shape(), static_cast<int32_t>(axis)).outer;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Tensor *piece : present) {
      const int64_t bytes = piece->size_bytes() / outer;
      if (bytes > 0)
        std::memcpy(target, static_cast<const std::byte *>(piece->data()) + o * bytes, static_cast<size_t>(bytes));
      target += bytes;
    }
  }
  return result;
}

Result<Tensor> reduce(std::span<const Tensor> pieces, Reduction reduction, std::optional<int64_t> axis) {
  TUTTI_ASSIGN(const std::vector<const Tensor *> present, check_pieces(pieces, axis));
  const DType dtype = present.front()->dtype();
  if (dtype == DType::boolean) return base::invalid_argument("values of dtype bool have no sum: cast them");
  Result<Tensor> result = base::unimplemented("sums of dtype ", dtype);
  visit_dtype(dtype, [&]<typename T>(T) { result = reduce_as<T>(present, reduction, axis); });
  return result;
}

}  // namespace tutti::impl::tensor
