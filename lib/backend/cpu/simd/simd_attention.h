// SPDX-License-Identifier: Apache-2.0
//
// What attention does with a block of scores, a row for each query and a column for each key, between the products that
// make the block and those that use it (attention.h). Rows are independent of each other. One thread, no scratch.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_ATTENTION_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_ATTENTION_H_

#include <algorithm>
#include <cstdint>

namespace tutti::impl::backend::cpu {

/// Which keys of a block its queries see: of row r the first seen(r).
struct ScoreBlock {
  int64_t rows = 0;
  int64_t columns = 0;  ///< and the distance of rows
  int64_t first = 0;    ///< what row 0 would see of an endless block; negative: nothing, nor do some rows after it
  int64_t step = 0;     ///< how many more each next row would see

  int64_t seen(int64_t row) const { return std::clamp<int64_t>(first + row * step, 0, columns); }
};

/// The softmax of rows that become known block by block. With the scores s of a block, maximum and sum of what came
/// before: scores become exp(scale · s − new maximum), 0 where the key is not seen, and sum that of all exponentials so
/// far. Of `result`, the weighed sum of values so far, each row is multiplied by exp(old maximum − new maximum). Before
/// the first block maximum is −infinity, sum is 0 and result is null.
void attention_weights(const ScoreBlock &block, float scale, float *scores, float *maximum, float *sum, float *result,
                       int64_t channels);

/// y = result / sum for each row of `channels`, y's rows being `y_row` apart; statistics = maximum + log(sum). Where
/// sum is 0, for no key was seen, y is 0 and statistics are +infinity.
void attention_results(int64_t rows, int64_t channels, const float *result, const float *maximum, const float *sum,
                       float *y, int64_t y_row, float *statistics);

/// sums[r] = a(r) · b(r), of rows of n elements that are `distance` apart.
void row_products(int64_t rows, int64_t n, const float *a, const float *b, int64_t distance, float *sums);

/// Scores s become p = exp(scale · s − statistics), products d become scale · p · (d − averages); both 0 where the key
/// is not seen.
void attention_gradient_weights(const ScoreBlock &block, float scale, const float *statistics, const float *averages,
                                float *scores, float *products);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_ATTENTION_H_
