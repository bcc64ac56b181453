// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/rocblas_product.h"

#include <limits>

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;
using gpu::ProductShape;
using gpu::SummedFactor;
using tensor::DType;

namespace {

rocblas_datatype product_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return rocblas_datatype_f64_r;
    case DType::f16:
      return rocblas_datatype_f16_r;
    case DType::bf16:
      return rocblas_datatype_bf16_r;
    default:
      return rocblas_datatype_f32_r;
  }
}

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool has_types(const ProductShape &shape) {
  if (is_half(shape.dtype)) return shape.result_dtype() == shape.dtype || shape.result_dtype() == DType::f32;
  return (shape.dtype == DType::f32 || shape.dtype == DType::f64) && shape.result_dtype() == shape.dtype;
}

bool has_sizes(const ProductShape &shape) {
  for (const int64_t size : {shape.m, shape.n, shape.k, shape.batches}) {
    if (size > std::numeric_limits<rocblas_int>::max()) return false;
  }
  return true;
}

/// Can what follows the product be in the call? An addend can.
bool takes_tail(const ProductShape &shape) {
  return !shape.has_bias && !shape.has_gelu && !shape.has_relu && !shape.has_gelu_gradient &&
         shape.sums == SummedFactor::none;
}

/// A matrix as it lies, row by row: transposed to rocBLAS where it is not.
struct Factor {
  rocblas_operation operation;
  rocblas_int leading;
};

Factor factor(bool is_transposed, int64_t rows, int64_t columns) {
  return {is_transposed ? rocblas_operation_transpose : rocblas_operation_none,
          static_cast<rocblas_int>(is_transposed ? rows : columns)};
}

}  // namespace

Result<std::optional<RocblasProduct>> RocblasProduct::make(const Rocblas &rocblas, rocblas_handle handle,
                                                           const ProductShape &shape, int64_t most_scratch) {
  if (!has_types(shape) || !has_sizes(shape) || !takes_tail(shape)) return std::optional<RocblasProduct>();
  RocblasProduct product(shape);
  TUTTI_TRY(status_of(rocblas, rocblas.start_device_memory_size_query(handle), "asking what a product needs"));
  const rocblas_status asked = product.multiply(rocblas, handle, {});
  size_t bytes = 0;
  TUTTI_TRY(status_of(rocblas, rocblas.stop_device_memory_size_query(handle, &bytes), "asking what a product needs"));
  const bool is_known = asked == rocblas_status_success || asked == rocblas_status_size_increased ||
                        asked == rocblas_status_size_unchanged;
  if (!is_known || bytes > static_cast<size_t>(most_scratch)) return std::optional<RocblasProduct>();
  product.scratch_bytes_ = static_cast<int64_t>(bytes);
  return std::optional<RocblasProduct>(product);
}

Status RocblasProduct::issue(const Rocblas &rocblas, rocblas_handle handle, const Operands &operands, void *scratch,
                             hipStream_t stream) const {
  TUTTI_TRY(status_of(rocblas, rocblas.set_stream(handle, stream), "choosing a stream"));
  if (scratch_bytes_ > 0)
    TUTTI_TRY(status_of(rocblas, rocblas.set_workspace(handle, scratch, static_cast<size_t>(scratch_bytes_)),
                        "giving memory to products"));
  return status_of(rocblas, multiply(rocblas, handle, operands), "multiplying matrices");
}

rocblas_status RocblasProduct::multiply(const Rocblas &rocblas, rocblas_handle handle, const Operands &operands) const {
  const float factors[] = {1, shape_.has_addend ? 1.0f : 0.0f};
  const double double_factors[] = {1, shape_.has_addend ? 1.0 : 0.0};
  const bool is_double = shape_.dtype == DType::f64;
  const void *const alpha = is_double ? static_cast<const void *>(&double_factors[0]) : &factors[0];
  const void *const beta = is_double ? static_cast<const void *>(&double_factors[1]) : &factors[1];
  const Factor a = factor(shape_.transpose_a, shape_.m, shape_.k), b = factor(shape_.transpose_b, shape_.k, shape_.n);
  const rocblas_datatype type = product_type(shape_.dtype), result = product_type(shape_.result_dtype());
  const auto leading = static_cast<rocblas_int>(shape_.n);
  const void *const addend = shape_.has_addend ? operands.addend : operands.y;
  return rocblas.gemm_strided_batched_ex(handle, b.operation, a.operation, static_cast<rocblas_int>(shape_.n),
                                         static_cast<rocblas_int>(shape_.m), static_cast<rocblas_int>(shape_.k), alpha,
                                         operands.b, type, b.leading, shape_.b_step, operands.a, type, a.leading,
                                         shape_.a_step, beta, addend, result, leading, shape_.y_step, operands.y,
                                         result, leading, shape_.y_step, static_cast<rocblas_int>(shape_.batches),
                                         is_double ? rocblas_datatype_f64_r : rocblas_datatype_f32_r,
                                         rocblas_gemm_algo_standard, 0, rocblas_gemm_flags_none);
}

}  // namespace tutti::impl::backend::hip
