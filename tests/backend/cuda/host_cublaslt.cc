// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/host_cublaslt.h"

#include <cstring>

namespace tutti::testing {

namespace {

struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, leading;
  int32_t batches = 1;
  int64_t step = 0;
};
struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};

/// Made when it is first asked for, which may be before anything of this file is.
HostCublasLt &record() {
  static HostCublasLt made;
  return made;
}

Layout &layout_of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<Layout *>(layout); }
Operation &operation_of(cublasLtMatmulDesc_t operation) { return *reinterpret_cast<Operation *>(operation); }

cublasStatus_t create_layout(cublasLtMatrixLayout_t *layout, cudaDataType_t type, uint64_t rows, uint64_t columns,
                             int64_t leading) {
  ++record().descriptors;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy_layout(cublasLtMatrixLayout_t layout) {
  --record().descriptors;
  delete &layout_of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_layout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const void *value,
                          size_t size) {
  Layout &self = layout_of(layout);
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof(self.batches)) {
    std::memcpy(&self.batches, value, size);
  } else if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof(self.step)) {
    std::memcpy(&self.step, value, size);
  } else {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t create_operation(cublasLtMatmulDesc_t *operation, cublasComputeType_t compute, cudaDataType_t scale) {
  ++record().descriptors;
  record().compute = compute;
  *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy_operation(cublasLtMatmulDesc_t operation) {
  --record().descriptors;
  delete &operation_of(operation);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_operation(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, const void *value,
                             size_t size) {
  if (size != sizeof(cublasOperation_t)) return CUBLAS_STATUS_INVALID_VALUE;
  Operation &self = operation_of(operation);
  std::memcpy(name == CUBLASLT_MATMUL_DESC_TRANSA ? &self.a : &self.b, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t create_preference(cublasLtMatmulPreference_t *preference) {
  ++record().descriptors;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(&record());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy_preference(cublasLtMatmulPreference_t) {
  --record().descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_preference(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t name, const void *value,
                              size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, value, size);
  record().preferences[name] = word;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                         cublasLtMatmulHeuristicResult_t *results, int *count) {
  results[0] = {};
  results[0].workspaceSize = 1000;
  *count = record().algorithms;
  return record().heuristic;
}

/// D = alpha op(A) op(B) + beta C.
template <typename T>
cublasStatus_t multiply(const Operation &operation, const void *alpha, const T *a, const Layout &layout_a, const T *b,
                        const Layout &layout_b, const void *beta, T *d, const Layout &layout_d) {
  const bool turned_a = operation.a == CUBLAS_OP_T, turned_b = operation.b == CUBLAS_OP_T;
  const int64_t inner = turned_a ? layout_a.rows : layout_a.columns;
  if ((turned_a ? layout_a.columns : layout_a.rows) != layout_d.rows ||
      (turned_b ? layout_b.rows : layout_b.columns) != layout_d.columns ||
      (turned_b ? layout_b.columns : layout_b.rows) != inner || *static_cast<const T *>(alpha) != 1 ||
      *static_cast<const T *>(beta) != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (layout_a.batches != layout_d.batches || layout_b.batches != layout_d.batches) return CUBLAS_STATUS_INVALID_VALUE;
  const auto at = [](const T *matrix, const Layout &layout, bool turned, int64_t row, int64_t column) {
    return turned ? matrix[column + row * layout.leading] : matrix[row + column * layout.leading];
  };
  for (int64_t batch = 0; batch < layout_d.batches; ++batch) {
    for (int64_t row = 0; row < layout_d.rows; ++row) {
      for (int64_t column = 0; column < layout_d.columns; ++column) {
        T sum = 0;
        for (int64_t i = 0; i < inner; ++i)
          sum += at(a + batch * layout_a.step, layout_a, turned_a, row, i) *
                 at(b + batch * layout_b.step, layout_b, turned_b, i, column);
        d[batch * layout_d.step + row + column * layout_d.leading] = sum;
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                      cublasLtMatrixLayout_t layout_a, const void *b, cublasLtMatrixLayout_t layout_b, const void *beta,
                      const void *c, cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t layout_d,
                      const cublasLtMatmulAlgo_t *algorithm, void *, size_t scratch, cudaStream_t) {
  ++record().calls;
  if (algorithm == nullptr || scratch != 1000 || c != d) return CUBLAS_STATUS_INVALID_VALUE;
  const Layout &result = layout_of(layout_d);
  if (result.type == CUDA_R_64F)
    return multiply(operation_of(operation), alpha, static_cast<const double *>(a), layout_of(layout_a),
                    static_cast<const double *>(b), layout_of(layout_b), beta, static_cast<double *>(d), result);
  return multiply(operation_of(operation), alpha, static_cast<const float *>(a), layout_of(layout_a),
                  static_cast<const float *>(b), layout_of(layout_b), beta, static_cast<float *>(d), result);
}
const char *status_text(cublasStatus_t) { return "no"; }

cublasStatus_t create(cublasLtHandle_t *handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
size_t version() { return 10203; }

}  // namespace

HostCublasLt &host_cublaslt() {
  impl::backend::cuda::CublasLt &lt = record().functions;
  lt.cublasLtCreate = create;
  lt.cublasLtDestroy = destroy;
  lt.cublasLtGetVersion = version;
  lt.cublasLtMatrixLayoutCreate = create_layout;
  lt.cublasLtMatrixLayoutDestroy = destroy_layout;
  lt.cublasLtMatrixLayoutSetAttribute = set_layout;
  lt.cublasLtMatmulDescCreate = create_operation;
  lt.cublasLtMatmulDescDestroy = destroy_operation;
  lt.cublasLtMatmulDescSetAttribute = set_operation;
  lt.cublasLtMatmulPreferenceCreate = create_preference;
  lt.cublasLtMatmulPreferenceDestroy = destroy_preference;
  lt.cublasLtMatmulPreferenceSetAttribute = set_preference;
  lt.cublasLtMatmulAlgoGetHeuristic = heuristic;
  lt.cublasLtMatmul = matmul;
  lt.cublasLtGetStatusString = status_text;
  return record();
}

}  // namespace tutti::testing
