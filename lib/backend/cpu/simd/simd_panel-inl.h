// SPDX-License-Identifier: Apache-2.0
//
// Panels of a matrix as products read them (simd_gemm.cc): k rows of `width` columns one behind the other, those beyond
// `columns` zero. `b` is where the panel begins. Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_PANEL_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_PANEL_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_PANEL_INL_H_
#endif

#include <cstdint>

#include "backend/cpu/simd/simd-inl.h"

#include <hwy/highway.h>

// Vectors whose width is known when they are compiled.
#undef TUTTI_TURNS_SQUARES
#define TUTTI_TURNS_SQUARES (!HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR && HWY_MAX_BYTES <= 64)

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// Rows run along memory.
HWY_INLINE void pack_rows(const float *HWY_RESTRICT b, int64_t b_row, int64_t k, int64_t columns, int64_t width,
                          float *HWY_RESTRICT out) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < width; j += lanes) {
      const int64_t count = HWY_MAX(int64_t{0}, HWY_MIN(lanes, columns - j));
      hn::Store(load_first(d, b + p * b_row + j, count), d, out + p * width + j);
    }
  }
}

#if TUTTI_TURNS_SQUARES
constexpr int kSquare = HWY_MAX_BYTES / sizeof(float);

// Turns squares of four lanes: lane i of row r of each group of four becomes lane r of row i, within blocks.
HWY_INLINE void turn_within_blocks(FloatVec (&rows)[kSquare]) {
  const FloatTag d;
  const hn::Repartition<double, FloatTag> pairs;
  TUTTI_UNROLL
  for (int r = 0; r < kSquare; r += 4) {
    const auto lower01 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[r], rows[r + 1]));
    const auto upper01 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[r], rows[r + 1]));
    const auto lower23 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[r + 2], rows[r + 3]));
    const auto upper23 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[r + 2], rows[r + 3]));
    rows[r] = hn::BitCast(d, hn::InterleaveLower(pairs, lower01, lower23));
    rows[r + 1] = hn::BitCast(d, hn::InterleaveUpper(pairs, lower01, lower23));
    rows[r + 2] = hn::BitCast(d, hn::InterleaveLower(pairs, upper01, upper23));
    rows[r + 3] = hn::BitCast(d, hn::InterleaveUpper(pairs, upper01, upper23));
  }
}

// The same for the blocks of four lanes: block i of row 4 r + j and block r of row 4 i + j change places.
HWY_INLINE void turn_blocks(FloatVec (&rows)[kSquare]) {
#if HWY_MAX_BYTES == 32
  const FloatTag d;
  TUTTI_UNROLL
  for (int j = 0; j < 4; ++j) {
    const FloatVec lower = hn::ConcatLowerLower(d, rows[4 + j], rows[j]);
    rows[4 + j] = hn::ConcatUpperUpper(d, rows[4 + j], rows[j]);
    rows[j] = lower;
  }
#elif HWY_MAX_BYTES == 64
  const FloatTag d;
  TUTTI_UNROLL
  for (int j = 0; j < 4; ++j) {
    const FloatVec even01 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(rows[4 + j]), rows[j]);
    const FloatVec odd01 = hn::OddEvenBlocks(rows[4 + j], hn::SwapAdjacentBlocks(rows[j]));
    const FloatVec even23 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(rows[12 + j]), rows[8 + j]);
    const FloatVec odd23 = hn::OddEvenBlocks(rows[12 + j], hn::SwapAdjacentBlocks(rows[8 + j]));
    rows[j] = hn::ConcatLowerLower(d, even23, even01);
    rows[4 + j] = hn::ConcatLowerLower(d, odd23, odd01);
    rows[8 + j] = hn::ConcatUpperUpper(d, even23, even01);
    rows[12 + j] = hn::ConcatUpperUpper(d, odd23, odd01);
  }
#else
  (void)rows;
#endif
}

// A square of as many rows as a vector has lanes, turned: rows become columns.
HWY_INLINE void turn_square(const float *HWY_RESTRICT from, int64_t from_row, float *HWY_RESTRICT to, int64_t to_row) {
  const FloatTag d;
  FloatVec rows[kSquare];
  TUTTI_UNROLL
  for (int r = 0; r < kSquare; ++r)
    rows[r] = hn::LoadU(d, from + r * from_row);
  turn_within_blocks(rows);
  turn_blocks(rows);
  TUTTI_UNROLL
  for (int r = 0; r < kSquare; ++r)
    hn::StoreU(rows[r], d, to + r * to_row);
}
#endif

// Packs a panel whose columns are far apart, each of which runs along memory.
HWY_INLINE void pack_columns(const float *HWY_RESTRICT b, int64_t b_column, int64_t k, int64_t columns, int64_t width,
                             float *HWY_RESTRICT out) {
  int64_t turned_columns = 0, turned_rows = 0;
#if TUTTI_TURNS_SQUARES
  turned_columns = columns / kSquare * kSquare;
  turned_rows = k / kSquare * kSquare;
  for (int64_t j = 0; j < turned_columns; j += kSquare) {
    for (int64_t p = 0; p < turned_rows; p += kSquare)
      turn_square(b + j * b_column + p, b_column, out + p * width + j, width);
  }
#endif
  for (int64_t p = 0; p < k; ++p) {
    const int64_t begin = p < turned_rows ? turned_columns : 0;
    for (int64_t j = begin; j < width; ++j)
      out[p * width + j] = j < columns ? b[j * b_column + p] : 0.0f;
  }
}

// The same for any strides.
HWY_INLINE void pack_elements(const float *HWY_RESTRICT b, int64_t b_row, int64_t b_column, int64_t k, int64_t columns,
                              int64_t width, float *HWY_RESTRICT out) {
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < width; ++j)
      out[p * width + j] = j < columns ? b[p * b_row + j * b_column] : 0.0f;
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
