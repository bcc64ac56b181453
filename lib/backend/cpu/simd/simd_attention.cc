// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_attention.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_attention.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

// exp(scale * x - shift); NaN stays NaN.
HWY_INLINE V shifted_exp(V x, V scale, V shift) {
  const V shifted = hn::MulSub(scale, x, shift);
  return hn::IfThenElse(hn::IsNaN(shifted), shifted, hn::Exp(d, shifted));
}

HWY_INLINE float row_maximum(const float *x, int64_t n) {
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  V maximum = lowest;
  for_vectors(
      n, [&](int64_t i) HWY_ATTR { maximum = hn::Max(maximum, hn::LoadU(d, x + i)); },
      [&](int64_t i, int64_t left) HWY_ATTR {
        const auto is_there = hn::FirstN(d, static_cast<size_t>(left));
        maximum = hn::Max(maximum, hn::IfThenElse(is_there, load_first(d, x + i, left), lowest));
      });
  return hn::GetLane(hn::MaxOfLanes(d, maximum));
}

HWY_INLINE void fill_zeros(float *x, int64_t n) {
  for_vectors(
      n, [&](int64_t i) HWY_ATTR { hn::StoreU(hn::Zero(d), d, x + i); },
      [&](int64_t i, int64_t left) HWY_ATTR { store_first(d, hn::Zero(d), x + i, left); });
}

// x · factor, to `to`.
HWY_INLINE void scale_row(const float *x, float factor, int64_t n, float *to) {
  const V f = hn::Set(d, factor);
  for_vectors(
      n, [&](int64_t i) HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, x + i), f), d, to + i); },
      [&](int64_t i, int64_t left) HWY_ATTR { store_first(d, hn::Mul(load_first(d, x + i, left), f), to + i, left); });
}

// x becomes exp(scale * x - shift); the sum of that.
HWY_INLINE float exponentials(float scale, float shift, int64_t n, float *x) {
  const V s = hn::Set(d, scale), m = hn::Set(d, shift);
  V sum = hn::Zero(d);
  for_vectors(
      n,
      [&](int64_t i) HWY_ATTR {
        const V e = shifted_exp(hn::LoadU(d, x + i), s, m);
        hn::StoreU(e, d, x + i);
        sum = hn::Add(sum, e);
      },
      [&](int64_t i, int64_t left) HWY_ATTR {
        const auto is_there = hn::FirstN(d, static_cast<size_t>(left));
        const V e = hn::IfThenElseZero(is_there, shifted_exp(load_first(d, x + i, left), s, m));
        store_first(d, e, x + i, left);
        sum = hn::Add(sum, e);
      });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void run_weights(const ScoreBlock &block, float scale, float *scores, float *maximum, float *sum, float *result,
                 int64_t channels) {
  for (int64_t r = 0; r < block.rows; ++r, scores += block.columns) {
    const int64_t seen = block.seen(r);
    fill_zeros(scores + seen, block.columns - seen);
    if (seen == 0) continue;
    // As in Milakov, Gimelshein: Online normalizer calculation for softmax (2018), https://arxiv.org/abs/1805.02867.
    const float before = maximum[r];
    const float now = std::fmax(before, scale * row_maximum(scores, seen));
    const float factor = std::exp(before - now);
    maximum[r] = now;
    sum[r] = sum[r] * factor + exponentials(scale, now, seen, scores);
    if (result != nullptr && factor != 1) scale_row(result + r * channels, factor, channels, result + r * channels);
  }
}

void run_results(int64_t rows, int64_t channels, const float *result, const float *maximum, const float *sum, float *y,
                 int64_t y_row, float *statistics) {
  for (int64_t r = 0; r < rows; ++r, y += y_row) {
    if (sum[r] == 0) {
      fill_zeros(y, channels);
      statistics[r] = std::numeric_limits<float>::infinity();
      continue;
    }
    scale_row(result + r * channels, 1 / sum[r], channels, y);
    statistics[r] = maximum[r] + std::log(sum[r]);
  }
}

void run_row_products(int64_t rows, int64_t n, const float *a, const float *b, int64_t distance, float *sums) {
  for (int64_t r = 0; r < rows; ++r, a += distance, b += distance) {
    V sum = hn::Zero(d);
    for_vectors(
        n, [&](int64_t i) HWY_ATTR { sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum); },
        [&](int64_t i, int64_t left)
            HWY_ATTR { sum = hn::MulAdd(load_first(d, a + i, left), load_first(d, b + i, left), sum); });
    sums[r] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

void run_gradient_weights(const ScoreBlock &block, float scale, const float *statistics, const float *averages,
                          float *scores, float *products) {
  const V s = hn::Set(d, scale);
  for (int64_t r = 0; r < block.rows; ++r, scores += block.columns, products += block.columns) {
    const int64_t seen = block.seen(r);
    const V shift = hn::Set(d, statistics[r]), average = hn::Set(d, averages[r]);
    for_vectors(
        seen,
        [&](int64_t i) HWY_ATTR {
          const V p = shifted_exp(hn::LoadU(d, scores + i), s, shift);
          hn::StoreU(p, d, scores + i);
          hn::StoreU(hn::Mul(hn::Mul(s, p), hn::Sub(hn::LoadU(d, products + i), average)), d, products + i);
        },
        [&](int64_t i, int64_t left) HWY_ATTR {
          const V p = shifted_exp(load_first(d, scores + i, left), s, shift);
          store_first(d, p, scores + i, left);
          const V difference = hn::Sub(load_first(d, products + i, left), average);
          store_first(d, hn::Mul(hn::Mul(s, p), difference), products + i, left);
        });
    fill_zeros(scores + seen, block.columns - seen);
    fill_zeros(products + seen, block.columns - seen);
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_weights);
HWY_EXPORT(run_results);
HWY_EXPORT(run_row_products);
HWY_EXPORT(run_gradient_weights);

void attention_weights(const ScoreBlock &block, float scale, float *scores, float *maximum, float *sum, float *result,
                       int64_t channels) {
  HWY_DYNAMIC_DISPATCH(run_weights)(block, scale, scores, maximum, sum, result, channels);
}

void attention_results(int64_t rows, int64_t channels, const float *result, const float *maximum, const float *sum,
                       float *y, int64_t y_row, float *statistics) {
  HWY_DYNAMIC_DISPATCH(run_results)(rows, channels, result, maximum, sum, y, y_row, statistics);
}

void row_products(int64_t rows, int64_t n, const float *a, const float *b, int64_t distance, float *sums) {
  HWY_DYNAMIC_DISPATCH(run_row_products)(rows, n, a, b, distance, sums);
}

void attention_gradient_weights(const ScoreBlock &block, float scale, const float *statistics, const float *averages,
                                float *scores, float *products) {
  HWY_DYNAMIC_DISPATCH(run_gradient_weights)(block, scale, statistics, averages, scores, products);
}

}  // namespace tutti::impl::backend::cpu
#endif
