// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/host_cublaslt.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/half.h"

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
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr, *auxiliary = nullptr;
  int64_t auxiliary_leading = 0;
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
  Operation &self = operation_of(operation);
  const auto set = [&](auto &to) {
    if (size != sizeof(to)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, size);
    return CUBLAS_STATUS_SUCCESS;
  };
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) return set(self.epilogue);
  if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return set(self.bias);
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER) return set(self.auxiliary);
  if (name == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD) return set(self.auxiliary_leading);
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) return set(self.a);
  return name == CUBLASLT_MATMUL_DESC_TRANSB ? set(self.b) : CUBLAS_STATUS_INVALID_VALUE;
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
/// What an algorithm may rely on: a byte each for A, B, C and D.
uint64_t wanted_alignments() {
  uint64_t all = 0;
  for (const int name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES})
    all = all << 8 | (record().preferences[name] & 0xff);
  return all;
}
/// What a pointer is aligned to, 16 at most; one that is not set says nothing.
uint64_t alignment_of(const void *pointer) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(pointer) | 16;
  return pointer == nullptr ? 1 : bits & (~bits + 1);
}
cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatmulPreference_t, int most, cublasLtMatmulHeuristicResult_t *results, int *count) {
  *count = std::min(record().algorithms, most);
  if (record().refused_epilogues.count(operation_of(operation).epilogue) != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].workspaceSize = 1000;
    results[i].algo.data[0] = static_cast<uint64_t>(i);
    results[i].algo.data[1] = wanted_alignments();
    results[i].algo.data[2] = alignment_of(operation_of(operation).auxiliary);
  }
  return record().heuristic;
}

double load(cudaDataType_t type, const void *array, int64_t index) {
  if (type == CUDA_R_64F) return static_cast<const double *>(array)[index];
  if (type == CUDA_R_32F) return static_cast<double>(static_cast<const float *>(array)[index]);
  return static_cast<double>(impl::tensor::bfloat16_bits_to_float(static_cast<const uint16_t *>(array)[index]));
}
void store(cudaDataType_t type, void *array, int64_t index, double value) {
  if (type == CUDA_R_64F) {
    static_cast<double *>(array)[index] = value;
  } else if (type == CUDA_R_32F) {
    static_cast<float *>(array)[index] = static_cast<float>(value);
  } else {
    static_cast<uint16_t *>(array)[index] = impl::tensor::float_to_bfloat16_bits(static_cast<float>(value));
  }
}

struct Matrix {
  const void *data;
  const Layout &layout;
  bool is_turned = false;

  int64_t rows() const { return is_turned ? layout.columns : layout.rows; }
  int64_t columns() const { return is_turned ? layout.rows : layout.columns; }
  double at(int64_t batch, int64_t row, int64_t column) const {
    const int64_t place = is_turned ? column + row * layout.leading : row + column * layout.leading;
    return load(layout.type, data, batch * layout.step + place);
  }
};

/// The derivative of the approximate gelu.
double gelu_slope(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

bool stores_auxiliary(int epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool has_auxiliary(int epilogue) { return epilogue == CUBLASLT_EPILOGUE_DGELU || stores_auxiliary(epilogue); }

/// What the header says of the epilogue: bias, one for each row of D and of D's type, then gelu, whose operand may be
/// stored, or relu; or the gradient of gelu. Its operand lies as D does but for the distance of its columns.
double finish(const Operation &operation, const Layout &d, int64_t row, int64_t column, double value, bool drops_nan) {
  const int epilogue = operation.epilogue;
  if (epilogue == CUBLASLT_EPILOGUE_DGELU) {
    const double x = load(d.type, operation.auxiliary, row + column * operation.auxiliary_leading);
    return drops_nan && std::isnan(value) ? 0 : value * gelu_slope(x);
  }
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += load(d.type, operation.bias, row);
  if (stores_auxiliary(epilogue)) store(d.type, operation.auxiliary, row + column * operation.auxiliary_leading, value);
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0 && drops_nan && std::isnan(value)) return 0;
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0)
    value = 0.5 * value * (1 + std::tanh(0.7978845608028654 * (value + 0.044715 * value * value * value)));
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return drops_nan ? (value > 0 ? value : 0) : (value < 0 ? 0 : value);
  return value;
}

/// Sums over k into the bias gradient, which is of D's type: of A one for each row of D, of B for each column.
void store_sums(const Operation &operation, const Matrix &a, const Matrix &b, const Layout &d) {
  const bool is_of_a = operation.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  if (!is_of_a && operation.epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  for (int64_t i = 0; i < (is_of_a ? d.rows : d.columns); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < a.columns(); ++k)
      sum += is_of_a ? a.at(0, i, k) : b.at(0, k, i);
    store(d.type, operation.bias, i, sum);
  }
}

/// D = epilogue(alpha op(A) op(B) + beta C).
cublasStatus_t multiply(const Operation &operation, double alpha, const Matrix &a, const Matrix &b, double beta,
                        const Matrix &c, void *d, const Layout &layout, bool drops_nan) {
  if (a.rows() != layout.rows || b.columns() != layout.columns || a.columns() != b.rows() || alpha != 1 ||
      a.layout.type != b.layout.type || c.layout.type != layout.type || c.rows() != layout.rows ||
      c.columns() != layout.columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (has_auxiliary(operation.epilogue) && (operation.auxiliary == nullptr || operation.auxiliary_leading % 8 != 0 ||
                                            operation.auxiliary_leading < layout.rows || layout.batches != 1))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (a.layout.batches != layout.batches || b.layout.batches != layout.batches) return CUBLAS_STATUS_INVALID_VALUE;
  store_sums(operation, a, b, layout);
  for (int64_t batch = 0; batch < layout.batches; ++batch) {
    for (int64_t row = 0; row < layout.rows; ++row) {
      for (int64_t column = 0; column < layout.columns; ++column) {
        double sum = beta == 0 ? 0 : beta * c.at(batch, row, column);
        for (int64_t i = 0; i < a.columns(); ++i)
          sum += a.at(batch, row, i) * b.at(batch, i, column);
        store(layout.type, d, batch * layout.step + row + column * layout.leading,
              finish(operation, layout, row, column, sum, drops_nan));
      }
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

int64_t bytes_of(cudaDataType_t type) { return type == CUDA_R_64F ? 8 : (type == CUDA_R_32F ? 4 : 2); }

/// Are all matrices of a batch?
bool is_aligned(const void *data, const Layout &layout, uint64_t alignment) {
  const uint64_t step = layout.batches > 1 ? static_cast<uint64_t>(layout.step * bytes_of(layout.type)) : 0;
  return alignment != 0 && ((reinterpret_cast<uintptr_t>(data) | step) & (alignment - 1)) == 0;
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                      cublasLtMatrixLayout_t layout_a, const void *b, cublasLtMatrixLayout_t layout_b, const void *beta,
                      const void *c, cublasLtMatrixLayout_t layout_c, void *d, cublasLtMatrixLayout_t layout_d,
                      const cublasLtMatmulAlgo_t *algorithm, void *, size_t scratch, cudaStream_t) {
  ++record().calls;
  const Operation &self = operation_of(operation);
  record().epilogue = self.epilogue;
  record().auxiliary = self.auxiliary;
  record().auxiliary_leading = self.auxiliary_leading;
  const double factor = load(self.scale, beta, 0);
  if (algorithm == nullptr || scratch != 1000 || (factor == 0 && c != d)) return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t alignments = algorithm->data[1];
  if (!is_aligned(a, layout_of(layout_a), alignments & 0xff) ||
      !is_aligned(b, layout_of(layout_b), alignments >> 8 & 0xff) ||
      !is_aligned(c, layout_of(layout_c), alignments >> 16 & 0xff) ||
      !is_aligned(d, layout_of(layout_d), alignments >> 24 & 0xff) || alignment_of(self.auxiliary) < algorithm->data[2])
    return CUBLAS_STATUS_INVALID_VALUE;
  if (self.epilogue == CUBLASLT_EPILOGUE_BGRADA || self.epilogue == CUBLASLT_EPILOGUE_BGRADB)
    record().milliseconds += record().sums_milliseconds;
  const auto time = record().algorithm_milliseconds.find(algorithm->data[0]);
  record().milliseconds += time == record().algorithm_milliseconds.end() ? 0 : time->second;
  return multiply(self, load(self.scale, alpha, 0), {a, layout_of(layout_a), self.a == CUBLAS_OP_T},
                  {b, layout_of(layout_b), self.b == CUBLAS_OP_T}, factor, {c, layout_of(layout_c)}, d,
                  layout_of(layout_d), record().nan_droppers.count(algorithm->data[0]) != 0);
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
