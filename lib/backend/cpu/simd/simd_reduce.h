// SPDX-License-Identifier: Apache-2.0
//
// Reductions of f32 arrays seen as [outer, middle, inner], over the middle: sums, means, extremes. Sums run in f32 over
// short stretches that are added up in double, in an order that depends only on the sizes.
//
// One thread; no scratch. Sums over nothing are 0, extremes over nothing the lowest or highest float.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_REDUCE_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_REDUCE_H_

#include <cstdint>

namespace tutti::impl::backend::cpu {

enum class ReduceKind : uint8_t { sum, maximum, minimum, product, squares };  // squares: their sum

struct ReduceShape {
  int64_t outer = 1;
  int64_t middle = 1;
  int64_t inner = 1;
};

/// out[o, i] = scale · (reduction over m of x[o, m, i]); scale only for sums (1/count makes a mean).
void reduce(ReduceKind kind, const ReduceShape &shape, const float *x, float *out, float scale = 1.0f);

/// Sum of (factor · x[i])², one after the other as in reduce(), before it is rounded to f32.
double sum_of_squares(const float *x, int64_t n, float factor);

/// Is every element neither infinite nor NaN?
bool all_finite(const float *x, int64_t n);

/// The first element that is not <= limit (a NaN never is), n if there is none.
int64_t first_above(const float *x, int64_t n, float limit);

/// out[i] += x[i].
void add_to(const float *x, float *out, int64_t n);
/// out[i] = x[i] where that is larger or NaN, and out[i] is not NaN.
void raise_to(const float *x, float *out, int64_t n);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_REDUCE_H_
