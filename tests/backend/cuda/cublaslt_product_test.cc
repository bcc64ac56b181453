// SPDX-License-Identifier: Apache-2.0
//
// Products of row-major matrices become calls of cuBLASLt that give what they should. In place of the library stand
// functions that do on the host what its header promises: column-major matrices, transpositions, batches, steps.
#include "backend/cuda/cublaslt_product.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "testing.h"

using namespace tutti::impl;
using namespace tutti::impl::backend::cuda;
using tensor::DType;

namespace {

// ---- a cuBLASLt of numbers in host memory ----

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

/// What the library was asked for, and what it answers.
struct Record {
  int descriptors = 0, calls = 0;
  cublasComputeType_t compute{};
  std::map<int, uint64_t> preferences;
  cublasStatus_t heuristic = CUBLAS_STATUS_SUCCESS;
  int algorithms = 1;
} record;

Layout &layout_of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<Layout *>(layout); }
Operation &operation_of(cublasLtMatmulDesc_t operation) { return *reinterpret_cast<Operation *>(operation); }

cublasStatus_t create_layout(cublasLtMatrixLayout_t *layout, cudaDataType_t type, uint64_t rows, uint64_t columns,
                             int64_t leading) {
  ++record.descriptors;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy_layout(cublasLtMatrixLayout_t layout) {
  --record.descriptors;
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
  ++record.descriptors;
  record.compute = compute;
  *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy_operation(cublasLtMatmulDesc_t operation) {
  --record.descriptors;
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
  ++record.descriptors;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(&record);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy_preference(cublasLtMatmulPreference_t) {
  --record.descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_preference(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t name, const void *value,
                              size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, value, size);
  record.preferences[name] = word;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                         cublasLtMatmulHeuristicResult_t *results, int *count) {
  results[0] = {};
  results[0].workspaceSize = 1000;
  *count = record.algorithms;
  return record.heuristic;
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
  ++record.calls;
  if (algorithm == nullptr || scratch != 1000 || c != d) return CUBLAS_STATUS_INVALID_VALUE;
  const Layout &result = layout_of(layout_d);
  if (result.type == CUDA_R_64F)
    return multiply(operation_of(operation), alpha, static_cast<const double *>(a), layout_of(layout_a),
                    static_cast<const double *>(b), layout_of(layout_b), beta, static_cast<double *>(d), result);
  return multiply(operation_of(operation), alpha, static_cast<const float *>(a), layout_of(layout_a),
                  static_cast<const float *>(b), layout_of(layout_b), beta, static_cast<float *>(d), result);
}
const char *status_text(cublasStatus_t) { return "no"; }

CublasLt host_library() {
  CublasLt lt;
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
  return lt;
}

const CublasLt lt = host_library();

// ---- products ----

using Dims = std::vector<int64_t>;

int64_t count_of(const Dims &dims) {
  int64_t count = 1;
  for (const int64_t dim : dims)
    count *= dim;
  return count;
}

/// Small whole numbers, so that sums are exact in any order.
template <typename T>
std::vector<T> numbers(int64_t count, int seed) {
  std::vector<T> made(static_cast<size_t>(count));
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<T>((i * 7 + static_cast<size_t>(seed)) % 11) - 5;
  return made;
}

/// Elements from the beginning of an array to a matrix of the batch, whose dims broadcast.
int64_t matrix_at(const Dims &dims, const Dims &y, int64_t matrix) {
  int64_t offset = 0, stride = dims[dims.size() - 2] * dims[dims.size() - 1];
  for (size_t axis = 3; axis <= y.size(); ++axis) {
    const int64_t index = matrix % y[y.size() - axis];
    matrix /= y[y.size() - axis];
    const int64_t dim = axis <= dims.size() ? dims[dims.size() - axis] : 1;
    if (dim != 1) offset += index * stride;
    stride *= dim;
  }
  return offset;
}

template <typename T>
std::vector<T> expected(const std::vector<T> &a, const Dims &a_dims, const std::vector<T> &b, const Dims &b_dims,
                        const Dims &y, bool transpose_a, bool transpose_b) {
  const int64_t m = y[y.size() - 2], n = y[y.size() - 1], a_width = a_dims.back(), b_width = b_dims.back();
  const int64_t k = a_dims[a_dims.size() - (transpose_a ? 2 : 1)];
  std::vector<T> made;
  for (int64_t matrix = 0; matrix < count_of(y) / (m * n); ++matrix) {
    const T *const first = a.data() + matrix_at(a_dims, y, matrix), *const second =
                                                                        b.data() + matrix_at(b_dims, y, matrix);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += (transpose_a ? first[p * a_width + i] : first[i * a_width + p]) *
                 (transpose_b ? second[j * b_width + p] : second[p * b_width + j]);
        made.push_back(sum);
      }
    }
  }
  return made;
}

/// Runs the plan and compares; how many calls it took.
template <typename T>
int check(const Dims &a_dims, const Dims &b_dims, const Dims &y_dims, bool transpose_a, bool transpose_b) {
  const auto a = numbers<T>(count_of(a_dims), 1), b = numbers<T>(count_of(b_dims), 4);
  std::vector<T> y(static_cast<size_t>(count_of(y_dims)), T(-77));
  const auto plan = plan_product(tensor::dtype_of<T>, a_dims, b_dims, y_dims, transpose_a, transpose_b);
  assert_true(plan.has_value());
  record.calls = 0;
  {
    const auto product = assert_ok_value(CublasLtProduct::make(lt, nullptr, plan->shape, 4096));
    assert_non_null(product.get());
    for (const auto &[at_a, at_b, at_y] : plan->calls)
      assert_ok(product->issue(nullptr, a.data() + at_a, b.data() + at_b, y.data() + at_y, nullptr, nullptr));
  }
  assert_true(y == expected(a, a_dims, b, b_dims, y_dims, transpose_a, transpose_b));
  assert_int_equal(record.descriptors, 0);
  return record.calls;
}

void transpositions_give_the_same_product(void **) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Dims a = transpose_a ? Dims{5, 3} : Dims{3, 5}, b = transpose_b ? Dims{7, 5} : Dims{5, 7};
      assert_int_equal(check<float>(a, b, {3, 7}, transpose_a, transpose_b), 1);
      assert_int_equal(check<double>(a, b, {3, 7}, transpose_a, transpose_b), 1);
    }
  }
}

void batches_are_one_call(void **) {
  assert_int_equal(check<float>({4, 3, 5}, {4, 5, 2}, {4, 3, 2}, false, false), 1);
  assert_int_equal(check<float>({4, 5, 3}, {4, 2, 5}, {4, 3, 2}, true, true), 1);
  // One b for all: more rows. One a for all: the same matrix again.
  assert_int_equal(check<float>({4, 6, 3, 5}, {5, 2}, {4, 6, 3, 2}, false, false), 1);
  assert_int_equal(check<float>({4, 5, 3}, {1, 5, 2}, {4, 3, 2}, true, false), 1);
  assert_int_equal(check<float>({3, 5}, {4, 6, 5, 2}, {4, 6, 3, 2}, false, false), 1);
  assert_int_equal(check<float>({2, 1, 3, 5}, {2, 1, 5, 2}, {2, 1, 3, 2}, false, false), 1);
}

void crossed_batches_are_several_calls(void **) {
  assert_int_equal(check<float>({4, 1, 3, 5}, {1, 6, 5, 2}, {4, 6, 3, 2}, false, false), 4);
  assert_int_equal(check<float>({2, 1, 3, 3, 5}, {1, 2, 3, 5, 2}, {2, 2, 3, 3, 2}, false, false), 4);
  assert_int_equal(check<float>({6, 3, 5}, {4, 1, 5, 2}, {4, 6, 3, 2}, false, false), 4);
  assert_false(plan_product(DType::f32, {100, 1, 3, 5}, {1, 6, 5, 2}, {100, 6, 3, 2}, false, false).has_value());
}

void only_results_that_repeat_are_asked_for(void **) {
  ProductShape shape{DType::f32, 8, 8, 8};
  assert_non_null(assert_ok_value(CublasLtProduct::make(lt, nullptr, shape, 4096)).get());
  assert_int_equal(record.compute, CUBLAS_COMPUTE_32F);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES], 4096);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK],
                   CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES], 16);
  shape.allows_rounding = true;
  assert_non_null(assert_ok_value(CublasLtProduct::make(lt, nullptr, shape, 4096)).get());
  assert_int_equal(record.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  shape.dtype = DType::bf16;
  assert_non_null(assert_ok_value(CublasLtProduct::make(lt, nullptr, shape, 4096)).get());
  assert_int_equal(record.compute, CUBLAS_COMPUTE_32F);
}

void what_cublaslt_has_not_is_null(void **) {
  const auto is_null = [](const ProductShape &shape) {
    return assert_ok_value(CublasLtProduct::make(lt, nullptr, shape, 0)) == nullptr;
  };
  assert_true(is_null({DType::i32, 8, 8, 8}));
  assert_true(is_null({DType::f32, 8, 8, 0}));
  assert_true(is_null({DType::f32, int64_t{1} << 31, 8, 8}));
  const ProductShape shape{DType::f32, 8, 8, 8};
  record.algorithms = 0;
  assert_true(is_null(shape));
  record.algorithms = 1;
  record.heuristic = CUBLAS_STATUS_NOT_SUPPORTED;
  assert_true(is_null(shape));
  record.heuristic = CUBLAS_STATUS_ALLOC_FAILED;
  assert_error_contains(CublasLtProduct::make(lt, nullptr, shape, 0), "cuBLASLt says no");
  record.heuristic = CUBLAS_STATUS_SUCCESS;
  assert_false(is_null(shape));
  assert_int_equal(record.descriptors, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(transpositions_give_the_same_product), cmocka_unit_test(batches_are_one_call),
      cmocka_unit_test(crossed_batches_are_several_calls),    cmocka_unit_test(only_results_that_repeat_are_asked_for),
      cmocka_unit_test(what_cublaslt_has_not_is_null),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
