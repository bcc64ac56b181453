// SPDX-License-Identifier: Apache-2.0
//
// Random numbers by counting, many at a time: the same bits as base/random/philox.h gives one by one. Element e of row
// r takes word e % 4 of block e / 4 of that row.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_RANDOM_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_RANDOM_H_

#include <cstdint>

namespace tutti::impl::backend::cpu {

/// Rows of `width` elements, one after the other; row i of the array is row first_row + i * row_step of the sequence.
struct RandomArray {
  uint64_t key = 0;
  uint64_t first_row = 0;
  uint64_t row_step = 1;  ///< 0: a value without rows
  int64_t rows = 0;
  int64_t width = 0;
  uint64_t first_block = 0;  ///< row i of the array begins at block first_block + i * block_step of its row
  uint64_t block_step = 0;
};

/// Uniform in [0, 1).
void random_uniform(const RandomArray &array, float *out);

/// Of base::normal_pair() or, within two deviations of the mean, base::truncated_normal(): the same numbers but for
/// rounding, 1e-6 of a deviation.
void random_normal(const RandomArray &array, bool is_truncated, double mean, double deviation, float *out);

/// y = x / (1 - rate) where the uniform is at least `rate`, else 0. y may lie on top of x.
void random_dropout(const RandomArray &array, double rate, const float *x, float *y);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_RANDOM_H_
