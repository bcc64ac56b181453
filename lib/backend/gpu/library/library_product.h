// SPDX-License-Identifier: Apache-2.0
//
// How a batched matrix product becomes calls of a library (cuBLASLt, rocBLAS), whose batches walk evenly.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_PRODUCT_H_
#define TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_PRODUCT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

enum class SummedFactor : int32_t { none, a, b };

/// y[m, n] = a[m, k] b[k, n], all row-major, in `batches` of them; a lies as [k, m] where it is transposed, b as
/// [n, k].
struct ProductShape {
  tensor::DType dtype = tensor::DType::f32;
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t batches = 1;
  /// Elements from one matrix of the batch to the next; 0 = the same matrix again.
  int64_t a_step = 0, b_step = 0, y_step = 0;
  /// Elements from the beginning of an array to where any call begins in it, combined by or: with the steps, what
  /// matrices are aligned to.
  int64_t a_places = 0, b_places = 0, y_places = 0;
  /// May factors of f32 products be rounded?
  bool allows_rounding = false;

  /// Of y, if it is another than that of the factors.
  std::optional<tensor::DType> result = {};
  /// y = gelu(a b + addend + bias): an addend that lies as y does, a bias of n elements, both of y's dtype; gelu is the
  /// approximate one. Or y = relu(a b + addend + bias).
  bool has_addend = false, has_bias = false, has_gelu = false, has_relu = false;
  /// What gelu is computed of is stored, too: it lies as y does and is of y's dtype; n is a multiple of 8.
  bool keeps_gelu_operand = false;
  /// y = (a b) · gelu'(x), of the approximate gelu, for its operand x, which lies as y does and is of y's dtype; n is a
  /// multiple of 8. With nothing else.
  bool has_gelu_gradient = false;
  /// The sums over k of a factor are stored, too: m or n of y's dtype. Not with a bias, gelu or relu.
  SummedFactor sums = SummedFactor::none;

  tensor::DType result_dtype() const { return result.value_or(dtype); }
};

/// Calls of one shape, each with the elements from the beginning of a, b and y at which its matrices begin.
struct LibraryCalls {
  ProductShape shape;
  std::vector<std::array<int64_t, 3>> calls;
};

/// The dims are those of whole arrays; the batch dims of a and b broadcast to those of y. Nothing where it would take
/// so many calls that one kernel is faster.
std::optional<LibraryCalls> plan_library_calls(tensor::DType dtype, const std::vector<int64_t> &a,
                                               const std::vector<int64_t> &b, const std::vector<int64_t> &y,
                                               bool transpose_a, bool transpose_b);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_PRODUCT_H_
