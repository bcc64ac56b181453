// SPDX-License-Identifier: Apache-2.0
//
// Products of row-major matrices become calls of cuBLASLt that give what they should.
#include "backend/cuda/cublaslt_product.h"

#include <vector>

#include "backend/cuda/host_cublaslt.h"
#include "testing.h"

namespace cublaslt_product_test {

using namespace tutti::impl;
using namespace tutti::impl::backend::cuda;
using tensor::DType;
using tutti::testing::host_cublaslt;
using tutti::testing::HostCublasLt;

namespace {

HostCublasLt &record = host_cublaslt();
const CublasLt &lt = record.functions;

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
  const auto plan =
      backend::gpu::plan_library_calls(tensor::dtype_of<T>, a_dims, b_dims, y_dims, transpose_a, transpose_b);
  assert_true(plan.has_value());
  record.calls = 0;
  {
    const auto product = assert_ok_value(CublasLtProduct::make(lt, nullptr, plan->shape, 4096));
    assert_non_null(product.get());
    for (const auto &[at_a, at_b, at_y] : plan->calls)
      assert_ok(product->issue(nullptr, {a.data() + at_a, b.data() + at_b, y.data() + at_y}, nullptr, nullptr));
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
  assert_false(backend::gpu::plan_library_calls(DType::f32, {100, 1, 3, 5}, {1, 6, 5, 2}, {100, 6, 3, 2}, false, false)
                   .has_value());
}

/// The stand-in refuses a matrix that is not aligned as its algorithm was told.
void matrices_are_aligned_as_algorithms_are_told(void **) {
  assert_int_equal(check<float>({4, 3, 5}, {4, 5, 2}, {4, 3, 2}, false, false), 1);  // a 60, b 40, y 24 bytes apart
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], 8);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES], 4);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES], 8);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES], 8);
  assert_int_equal(check<double>({4, 1, 1, 5}, {1, 6, 5, 1}, {4, 6, 1, 1}, false, false), 4);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES], 8);
  assert_int_equal(check<float>({4, 4, 4}, {4, 4, 4}, {4, 4, 4}, false, false), 1);
  assert_int_equal(record.preferences[CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES], 16);
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

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(transpositions_give_the_same_product),
      cmocka_unit_test(batches_are_one_call),
      cmocka_unit_test(crossed_batches_are_several_calls),
      cmocka_unit_test(only_results_that_repeat_are_asked_for),
      cmocka_unit_test(matrices_are_aligned_as_algorithms_are_told),
      cmocka_unit_test(what_cublaslt_has_not_is_null),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace cublaslt_product_test
