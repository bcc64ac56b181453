// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_matmul.h"

#include "backend/gpu/device/device_product-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// A factor, batch by batch.
struct MatrixSource {
  MatrixLines matrix;
  int32_t batch_rank;
  int64_t batch_dims[Matmul::kAxes], batch_strides[Matmul::kAxes];

  __device__ MatrixLines at_batch(int64_t batch) const {
    MatrixLines made = matrix;
    for (int32_t axis = batch_rank - 1; axis >= 0; --axis) {
      made.first += batch % batch_dims[axis] * batch_strides[axis];
      batch /= batch_dims[axis];
    }
    return made;
  }
};

struct MatrixTarget {
  ResultArray array;
  int64_t rows, columns, first;

  __device__ MatrixTarget at_batch(int64_t batch) const {
    MatrixTarget made = *this;
    made.first = batch * rows * columns;
    return made;
  }
  __device__ int64_t row(int64_t row) const { return first + row * columns; }
};

MatrixSource source(const Matmul &matmul, const void *data, int64_t lines, int64_t line_stride, int64_t depth_stride,
                    const int64_t *batch_strides) {
  MatrixSource made{};
  made.matrix = {{data, matmul.dtype, 0}, lines, matmul.k, line_stride, depth_stride, 0};
  made.batch_rank = matmul.batch_rank;
  // Everything that a run of four begins at, or ends at, is a multiple of four.
  int64_t offsets = depth_stride == 1 ? line_stride | matmul.k : depth_stride | lines;
  for (int32_t axis = 0; axis < matmul.batch_rank; ++axis) {
    made.batch_dims[axis] = matmul.batch_dims[axis];
    made.batch_strides[axis] = batch_strides[axis];
    offsets |= batch_strides[axis];
  }
  made.matrix.array.is_wide = is_wide(data, matmul.dtype, offsets) && (depth_stride == 1 || line_stride == 1);
  return made;
}

}  // namespace

gpuError_t launch_matmul(const Matmul &matmul, gpuStream_t stream) {
  MatrixProduct<MatrixSource, MatrixSource, MatrixTarget> product{};
  const DType dtype = matmul.epilogue == nullptr ? matmul.dtype : matmul.epilogue->dtype;
  product.a = source(matmul, matmul.a.data, matmul.m, matmul.a.row_stride, matmul.a.column_stride, matmul.a_strides);
  product.b = source(matmul, matmul.b.data, matmul.n, matmul.b.column_stride, matmul.b.row_stride, matmul.b_strides);
  product.target.array = {matmul.y,
                          dtype,
                          is_wide(matmul.y, dtype, matmul.n),
                          matmul.addend,
                          matmul.dtype,
                          matmul.addend_row,
                          matmul.addend_column,
                          0};
  product.target.rows = product.m = matmul.m;
  product.target.columns = product.n = matmul.n;
  product.batches = matmul.batches;
  if (matmul.dtype != DType::f64) return launch_finished(product, matmul.epilogue, matmul.plan, matmul.scratch, stream);
  if (matmul.epilogue != nullptr) return gpuErrorInvalidValue;
  return launch_product<double>(product, matmul.plan, matmul.scratch, stream);
}

}  // namespace tutti::impl::backend::gpu
