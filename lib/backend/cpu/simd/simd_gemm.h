// SPDX-License-Identifier: Apache-2.0
//
// Matrix product of f32 matrices with any strides, as one call without objects: C = A·B or C += A·B, with what usually
// follows a dense layer done while the results are in registers. Made for the small and middle sizes of dense layers,
// where a library call costs more than the product.
//
//   GemmShape shape{.m = 64, .n = 16, .k = 10, .a_row = 10, .a_column = 1, .b_row = 16, .b_column = 1, .c_row = 16};
//   std::vector<float> scratch(gemm_scratch_floats(shape));
//   gemm(shape, a, b, c, {.bias = bias, .relu = true}, scratch.data());
//
// One thread; the result depends only on the arguments and the instruction set. Rows of C are independent of each other
// and of m.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_H_

#include <cstdint>

#include "backend/cpu/simd/simd_update.h"

namespace tutti::impl::backend::cpu {

/// Sizes and element strides: A(i, p) is a[i * a_row + p * a_column], i < m, p < k, and so on. C is contiguous in j.
struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t a_row = 0;
  int64_t a_column = 1;
  int64_t b_row = 0;
  int64_t b_column = 1;
  int64_t c_row = 0;
  bool accumulate = false;  ///< C += A·B, then the epilogue
};

/// Applied to each element in this order; null and false mean nothing.
struct GemmEpilogue {
  const float *bias = nullptr;  ///< n values added to every row
  bool relu = false;
  const float *mask = nullptr;  ///< same place as C: the element becomes 0 unless mask > 0 (gradient of ReLU)
};

/// Floats in a vector of the instruction set in use.
int64_t gemm_lanes();

/// Scratch that gemm needs, 64-byte aligned.
int64_t gemm_scratch_floats(const GemmShape &shape);

void gemm(const GemmShape &shape, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
          float *scratch);

/// Scratch that gemm_update needs, 64-byte aligned.
int64_t gemm_update_scratch_floats(const GemmShape &shape);

/// Deepest product that gemm_update takes.
constexpr int64_t kGemmUpdateDepth = 256;

/// A·B is the gradient of a variable, which is updated by `rule` with each piece of it while that is in the first-level
/// cache; the gradient itself is stored nowhere. Element (i, j) is element i * c_row + j of the arrays. For k up to
/// kGemmUpdateDepth; `accumulate` must be false.
void gemm_update(const GemmShape &shape, const float *a, const float *b, const UpdateRule &rule,
                 const UpdateArrays &arrays, float *scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_H_
