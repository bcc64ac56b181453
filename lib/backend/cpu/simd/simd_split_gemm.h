// SPDX-License-Identifier: Apache-2.0
//
// Products of f32 matrices on a matrix unit for bfloat16 (amx.h): each factor is the sum of three bfloat16, which
// hold its 24 digits exactly, and of the nine products of parts the six that count are added up in f32 (Henry, Tang,
// Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations, 2019). What is
// left out is below 2^-24 of a product, so results are as exact as those of simd_gemm.h, but not the same bits.
//
//   if (split_gemm_suits(shape)) {
//     std::vector<float> scratch(split_gemm_scratch_floats(shape));
//     split_gemm(shape, a, b, c, {.bias = bias, .relu = true}, scratch.data());
//   }
//
// Where factors are infinite, NaN or beyond what bfloat16 holds, the product is one of simd_gemm.h (with `accumulate`
// from the 16 rows with the first of them on), so that results are what they would be. Of factors below 2^-110 the last
// digits are lost, as denormal numbers are.
//
// One thread; the result depends only on the arguments. Each element is the same sum whatever m and n are.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_H_

#include <cstdint>

#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_update.h"

namespace tutti::impl::backend::cpu {

/// A product, and where its matrices lie when they are images in blocks of 16 channels, or several images.
struct SplitShape {
  GemmShape matrix;  ///< of one image
  /// From 16 elements that lie one behind the other to the next 16: 16, unless there are positions of an image between.
  int64_t a_block = 16, b_block = 16, c_block = 16;
  int64_t images = 1;
  /// Distances between images. C of distance 0 is the sum over the images; else B is the same for all.
  int64_t a_image = 0, b_image = 0, c_image = 0;
  int32_t reader = 0;  ///< see split_gemm_beside

  SplitShape() = default;
  SplitShape(const GemmShape &one) : matrix(one) {}  // NOLINT(google-explicit-constructor)
};

/// Is there a matrix unit that can make this product? Both factors have neighbours in memory along one of their sides.
/// With `accumulate` the depth is limited, and the size of B.
constexpr int64_t kSplitAddDepth = 1024, kSplitAddElements = int64_t{256} << 10;
bool split_gemm_is_possible(const SplitShape &shape);

/// And is it large enough to be faster there?
bool split_gemm_suits(const SplitShape &shape);

/// Scratch that split_gemm needs, 64-byte aligned. Call it, as all that follows, only where the product is possible.
int64_t split_gemm_scratch_floats(const GemmShape &shape);
void split_gemm(const GemmShape &shape, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                float *scratch);

/// The same where several threads multiply by one factor at the same time: `reader` 0, 1, ... begin at different places
/// of it, so that they do not wait for the same cache lines.
void split_gemm_beside(int32_t reader, const GemmShape &shape, const float *a, const float *b, float *c,
                       const GemmEpilogue &epilogue, float *scratch);

/// The same for all shapes, but for factors that cannot be split. The result is how many rows of C are done, counted
/// over all images: less than there are when such a factor was met. The rows behind hold what they did with
/// `accumulate`, else nothing of use.
int64_t split_rows_scratch_floats(const SplitShape &shape);
int64_t split_rows(const SplitShape &shape, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                   float *scratch);

/// gemm_update on the matrix unit. Where a factor cannot be split, all of it is done by gemm_update.
bool split_gemm_update_suits(const GemmShape &shape);
int64_t split_gemm_update_scratch_floats(const GemmShape &shape);
void split_gemm_update(const GemmShape &shape, const float *a, const float *b, const UpdateRule &rule,
                       const UpdateArrays &arrays, float *scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_H_
