// SPDX-License-Identifier: Apache-2.0
//
// Products that are much deeper than they are wide, columns of A and rows of B along memory: gradients of kernels,
// which sum over all positions of all images (simd_gemm.cc). Both factors are packed, so that tiles read memory in
// order.
// Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_DEEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_DEEP_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_DEEP_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_DEEP_INL_H_
#endif

#include <cstdint>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_gemm_rows-inl.h"
#include "backend/cpu/simd/simd_gemm_tile-inl.h"
#include "backend/cpu/simd/simd_panel-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// Products are cut into blocks of about the same depth, the same whichever way they are computed: so are their results.
// An empty sum is one block.
HWY_INLINE int64_t block_depth(int64_t k) {
  const int64_t blocks = HWY_MAX(int64_t{1}, (k + kBlockK - 1) / kBlockK);
  return HWY_MAX(int64_t{1}, (k + blocks - 1) / blocks);
}

// Tiles of A that are multiplied by the same panels: with a block of B they stay in the second-level cache.
constexpr int64_t kDeepTiles = 42;

// Where vectors are long, the first-level cache has no room for a panel.
inline bool is_deep(const GemmShape &s) {
  return kCopiesPanels && s.a_row == 1 && s.a_column != 1 && s.b_column == 1 && s.k > kBlockK && s.m > kTileRows &&
         s.n > float_lanes();
}

// Rows k0 .. of both factors, `depth` of them: tiles of A and panels of B, some rows at a time, in the order of memory.
inline void pack_deep(const GemmShape &s, const RowTiles &tiles, const float *a, const float *b, int64_t depth,
                      int64_t width, float *a_tiles, float *panels) {
  constexpr int64_t kTogether = 8;
  const int64_t lanes = float_lanes();
  for (int64_t p0 = 0; p0 < depth; p0 += kTogether) {
    const int64_t p1 = HWY_MIN(depth, p0 + kTogether);
    pack_tiles(tiles, 0, tiles.count(), a, s.a_column, p0, p1, a_tiles);
    for (int64_t j = 0; j < width; j += 2 * lanes) {
      const int64_t left = width - j, columns = (left > lanes ? 2 : 1) * lanes;
      pack_rows(b + p0 * s.b_row + j, s.b_row, p1 - p0, HWY_MIN(left, columns), columns,
                panels + depth * j + p0 * columns);
    }
  }
}

// A block of C, of which `c` is the first element: adds the product of what was packed.
inline void multiply_packed(const GemmShape &s, const RowTiles &tiles, const float *a_tiles, const float *panels,
                            int64_t depth, int64_t width, bool adds, float *c) {
  const int64_t lanes = float_lanes();
  for (int64_t j = 0; j < width; j += 2 * lanes) {
    Tile tile{};
    tile.columns = HWY_MIN(width - j, 2 * lanes);
    const int64_t vectors = tile.columns > lanes ? 2 : 1;
    tile.plain = tile.columns == vectors * lanes;
    tile.a_row = 1;
    tile.b = panels + depth * j;
    tile.b_row = vectors * lanes;
    tile.c_row = s.c_row;
    tile.k = depth;
    tile.load = adds;
    for (int64_t index = 0; index < tiles.count(); ++index) {
      const int64_t rows = tiles.rows(index);
      tile.a = a_tiles + index * kTileFloats;
      tile.a_column = rows;
      tile.c = c + tiles.first(index) * s.c_row + j;
      run_rows_of(rows, vectors, tile);
    }
  }
}

inline void multiply_deep(const GemmShape &s, const float *a, const float *b, float *c, float *scratch) {
  constexpr int64_t kDeepRows = kDeepTiles * kTileRows;
  float *panels = scratch + kDeepTiles * kTileFloats;
  const int64_t most = block_depth(s.k);
  for (int64_t n0 = 0; n0 < s.n; n0 += kBlockN) {
    const int64_t width = HWY_MIN(kBlockN, s.n - n0);
    for (int64_t m0 = 0; m0 < s.m; m0 += kDeepRows) {
      const RowTiles tiles(HWY_MIN(kDeepRows, s.m - m0));
      for (int64_t k0 = 0; k0 < s.k; k0 += most) {
        const int64_t depth = HWY_MIN(most, s.k - k0);
        pack_deep(s, tiles, a + m0 + k0 * s.a_column, b + k0 * s.b_row + n0, depth, width, scratch, panels);
        multiply_packed(s, tiles, scratch, panels, depth, width, k0 > 0 || s.accumulate, c + m0 * s.c_row + n0);
      }
    }
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
