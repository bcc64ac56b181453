// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices: y = a · b for each of the batches, over which a and b may be repeated. f32, f16 and bf16 are
// summed in float, f64 in double; tiles as device_product-inl.h has them.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_MATMUL_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_MATMUL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device_epilogue.h"
#include "backend/gpu/device/product_plan.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// One of the strides is 1 (or its axis has one element).
struct MatrixView {
  const void *data;
  int64_t row_stride, column_stride;
};

struct Matmul {
  static constexpr int32_t kAxes = 6;

  tensor::DType dtype;
  int64_t m, n, k;
  MatrixView a, b;  ///< [m, k], [k, n]
  void *y;          ///< [batches, m, n], dense

  int64_t batches;
  int32_t batch_rank;  ///< axes of batches, merged where a and b allow
  int64_t batch_dims[kAxes], a_strides[kAxes], b_strides[kAxes];

  /// Null, or what is added, as addend[row * addend_row + column * addend_column].
  const void *addend;
  int64_t addend_row, addend_column;

  /// Null, or what is done with the results, which then have its dtype; not for f64. On the host.
  const Epilogue *epilogue;

  ProductPlan plan;
  void *scratch;
};

gpuError_t launch_matmul(const Matmul &matmul, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_MATMUL_H_
