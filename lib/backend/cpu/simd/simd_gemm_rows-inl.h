// SPDX-License-Identifier: Apache-2.0
//
// Rows of A for the tiles of a product (simd_gemm.cc): which belong together, and where they are read. Included inside
// a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_ROWS_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_ROWS_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_ROWS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_gemm_tile-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// Rows of A so far apart, or a multiple of it, fall into the same sets of the first-level cache; copied ones do not.
constexpr int64_t kSetDistance = 256, kCopyGap = 16;
constexpr int64_t kCopyStride = kBlockK + kCopyGap;

// Tiles of A that are packed together where neighbours of a row of A belong to several tiles.
constexpr int64_t kPackedTiles = 4;

// Scratch for a packed tile of A, with room for a vector behind it.
constexpr int64_t kTileFloats = kTileRows * kCopyStride + 64;

// A tile of A, k x rows.
HWY_INLINE void pack_tile(const float *HWY_RESTRICT a, int64_t a_row, int64_t a_column, int64_t k, int64_t rows,
                          float *HWY_RESTRICT out) {
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t r = 0; r < rows; ++r)
      out[p * rows + r] = a[r * a_row + p * a_column];
  }
}

// The rows of A as tiles: of a given number of rows but for the last one, or all of about as many.
class RowTiles {
 public:
  explicit RowTiles(int64_t m) : m_(m), count_((m + kTileRows - 1) / kTileRows) {}
  RowTiles(int64_t m, int64_t rows) : m_(m), count_((m + rows - 1) / rows), rows_(rows) {}

  int64_t count() const { return count_; }
  int64_t first(int64_t tile) const { return rows_ > 0 ? HWY_MIN(m_, tile * rows_) : tile * m_ / count_; }
  int64_t rows(int64_t tile) const { return first(tile + 1) - first(tile); }
  int64_t most_rows() const { return rows_ > 0 ? HWY_MIN(m_, rows_) : (m_ + count_ - 1) / count_; }

 private:
  int64_t m_, count_, rows_ = 0;
};

// Columns of a tile whose rows are neighbours, of which `valid` may be read: whole vectors are copied, the next column
// overwrites what is too much.
HWY_INLINE void pack_columns_of_tile(const float *HWY_RESTRICT from, int64_t a_column, int64_t columns, int64_t rows,
                                     int64_t valid, float *HWY_RESTRICT to) {
  const Full d;
  const int64_t lanes = float_lanes();
  if (rows <= lanes && valid >= lanes) {
    for (int64_t p = 0; p < columns; ++p)
      hn::StoreU(hn::LoadU(d, from + p * a_column), d, to + p * rows);
    return;
  }
  for (int64_t p = 0; p < columns; ++p) {
    for (int64_t r = 0; r < rows; r += lanes)
      hn::StoreU(load_first(d, from + p * a_column + r, HWY_MIN(lanes, valid - r)), d, to + p * rows + r);
  }
}

// Tiles `begin` .. `end` of an A whose columns run along memory, each at its place in `out`: columns `k0` .. `k1` of
// it, a few at a time, so that a line of memory that belongs to two tiles is still there for the second one.
HWY_INLINE void pack_tiles(const RowTiles &tiles, int64_t begin, int64_t end, const float *HWY_RESTRICT a,
                           int64_t a_column, int64_t k0, int64_t k1, float *HWY_RESTRICT out) {
  constexpr int64_t kTogether = 8;
  const int64_t last = tiles.first(end);
  for (int64_t p0 = k0; p0 < k1; p0 += kTogether) {
    const int64_t columns = HWY_MIN(k1 - p0, kTogether);
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tiles.first(tile), rows = tiles.rows(tile);
      pack_columns_of_tile(a + p0 * a_column + first, a_column, columns, rows, last - first,
                           out + (tile - begin) * kTileFloats + p0 * rows);
    }
  }
}

// The same for rows that run along memory.
HWY_INLINE void copy_tile(const float *HWY_RESTRICT a, int64_t a_row, int64_t k, int64_t rows,
                          float *HWY_RESTRICT out) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(out + r * kCopyStride, a + r * a_row, static_cast<size_t>(k) * sizeof(float));
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
