// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_gemm.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_gemm.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_gemm_deep-inl.h"
#include "backend/cpu/simd/simd_gemm_rows-inl.h"
#include "backend/cpu/simd/simd_gemm_tile-inl.h"
#include "backend/cpu/simd/simd_gemm_update-inl.h"
#include "backend/cpu/simd/simd_panel-inl.h"
#include "backend/cpu/simd/simd_update-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// Up to so many rows B is read where it lies.
constexpr int64_t kDirectRows = 128;
// Up to so many rows of a B whose columns run along memory, panels are turned when they are wanted.
constexpr int64_t kTurnedDepth = 1024;

// A B so small stays in the first-level cache as it is.
constexpr int64_t kNearFloats = 8192;
// One of more is not in the second-level cache when it is wanted again.
constexpr int64_t kFarFloats = 256 << 10;

// Columns of C from which copying rows of A costs little beside the product.
constexpr int64_t kCopyColumns = 128;

bool has_epilogue(const GemmEpilogue &epilogue) {
  return epilogue.bias != nullptr || epilogue.relu || epilogue.mask != nullptr;
}

struct Block {
  int64_t k0, depth, n0, width;
};

// One block of B times all rows of A.
struct BlockRun {
  const GemmShape &s;
  const Block &block;
  const float *a;  // its columns that meet the block
  float *c;
  const GemmEpilogue &epilogue;
  const float *b;
  bool direct;          // whole panels of B are read where they lie
  const float *panels;  // the others
  float *a_tiles;       // scratch
  RowTiles tiles;
  float *panel = nullptr;  // where the first tile puts the panel that it reads, for those behind it

  int64_t vectors_at(int64_t column, int64_t rows) const {
    const int64_t lanes = float_lanes();
    const int64_t left = block.width - column;
    if (direct && left >= wide_vectors(rows) * lanes) return wide_vectors(rows);
    return left > lanes ? 2 : 1;
  }

  // What all tiles have in common. Made once: to clear so much memory takes as long as many multiplications.
  Tile blank_tile() const {
    Tile tile{};
    tile.c_row = s.c_row;
    tile.k = block.depth;
    tile.load = block.k0 > 0 || s.accumulate;
    tile.last = block.k0 + block.depth == s.k;
    tile.relu = epilogue.relu;
    return tile;
  }

  // Rows of A where they lie.
  void place_rows_as_they_are(int64_t row, Tile &tile) const {
    tile.a = a + row * s.a_row;
    tile.a_row = s.a_row;
    tile.a_column = s.a_column;
  }

  // Rows of A where the tile had better read them: in place, packed or copied.
  void place_rows(int64_t index, Tile &tile) const {
    const int64_t rows = tiles.rows(index);
    place_rows_as_they_are(tiles.first(index), tile);
    if (s.a_column != 1 && block.width > 2 * float_lanes()) {
      float *own = a_tiles;
      if (s.a_row != 1) {
        pack_tile(tile.a, s.a_row, s.a_column, block.depth, rows, own);
      } else {
        const int64_t slot = index % kPackedTiles, end = HWY_MIN(index + kPackedTiles, tiles.count());
        if (slot == 0) pack_tiles(tiles, index, end, a, s.a_column, 0, block.depth, a_tiles);
        own += slot * kTileFloats;
      }
      tile.a = own;
      tile.a_row = 1;
      tile.a_column = rows;
    } else if (s.a_row % kSetDistance == 0 && rows > 6 && block.width >= kCopyColumns) {
      copy_tile(tile.a, s.a_row, block.depth, rows, a_tiles);
      tile.a = a_tiles;
      tile.a_row = kCopyStride;
    }
  }

  // Where the tile reads B, and how many columns it has.
  void place_columns(int64_t column, int64_t vectors, Tile &tile) const {
    const int64_t width = vectors * float_lanes();
    const int64_t left = block.width - column;
    const bool in_place = (direct || tile.panel != nullptr) && left >= width;
    tile.columns = HWY_MIN(left, width);
    tile.b = in_place ? b + block.k0 * s.b_row + block.n0 + column : panels + block.depth * column;
    tile.b_row = in_place ? s.b_row : width;
  }

  void run_tile_at(int64_t row, int64_t rows, int64_t column, int64_t vectors, Tile &tile) const {
    place_columns(column, vectors, tile);
    const int64_t at = row * s.c_row + block.n0 + column;
    tile.c = c + at;
    tile.bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + block.n0 + column;
    tile.mask = epilogue.mask == nullptr ? nullptr : epilogue.mask + at;
    tile.plain = tile.columns == vectors * float_lanes() && !(tile.last && has_epilogue(epilogue));
    if (vectors > 2) return run_few_rows(rows, vectors, tile);
    if (kCopiesPanels && tile.panel != nullptr) return run_first_tile(rows, tile);
    run_rows_of(rows, vectors, tile);
  }

  // The block of B stays in the second-level cache.
  void run_rows_first() const {
    Tile tile = blank_tile();
    for (int64_t index = 0; index < tiles.count(); ++index) {
      const int64_t row = tiles.first(index), rows = tiles.rows(index);
      place_rows(index, tile);
      for (int64_t column = 0; column < block.width;) {
        const int64_t vectors = vectors_at(column, rows);
        run_tile_at(row, rows, column, vectors, tile);
        column += vectors * float_lanes();
      }
    }
  }

  // A stays in the second-level cache, a panel of B in the first; the next panel is fetched meanwhile, so that B comes
  // from far away as evenly as it is used.
  void run_panels_first() const {
    for (int64_t column = 0; column < block.width;) {
      const int64_t next = column + vectors_at(column, tiles.most_rows()) * float_lanes();
      run_panel(column, b + block.k0 * s.b_row + block.n0 + next, next < block.width ? block.depth : 0);
      column = next;
    }
  }

  // All rows times the panel at this column; `ahead` is the next one, of so many rows of B.
  void run_panel(int64_t column, const float *ahead, int64_t ahead_rows) const {
    const int64_t share = (ahead_rows + tiles.count() - 1) / tiles.count();
    const int64_t vectors = vectors_at(column, tiles.most_rows());
    Tile tile = blank_tile();
    for (int64_t index = 0; index < tiles.count(); ++index) {
      const int64_t row = tiles.first(index), first = index * share;
      place_rows_as_they_are(row, tile);
      tile.panel = index == 0 ? panel : nullptr;
      tile.ahead[0] = {ahead + first * s.b_row, HWY_MAX(int64_t{0}, HWY_MIN(share, ahead_rows - first)), s.b_row};
      run_tile_at(row, tiles.rows(index), column, vectors, tile);
    }
  }
};

// One block of columns of a gradient, a tile of rows at a time: each tile updates its part of the variable, or all of
// them together do.
template <typename Step>
void update_block(const BlockRun &run, const Step &step, const UpdateArrays &arrays) {
  HWY_ALIGN float
      gradients[kUpdatesBesideProducts ? 4 * kTileRows * HWY_MAX_BYTES / sizeof(float) : kTileRows * kBlockN];
  GradientTiles<Step> tiles(step, arrays, run.s.c_row, gradients, gradients + sizeof gradients / sizeof(float) / 2);
  const GradientRows<Step> rows_of(step, arrays, run.s.c_row, gradients);
  Tile tile = run.blank_tile();
  for (int64_t index = 0; index < run.tiles.count(); ++index) {
    const int64_t row = run.tiles.first(index), rows = run.tiles.rows(index), at = row * run.s.c_row + run.block.n0;
    run.place_rows(index, tile);
    for (int64_t column = 0; column < run.block.width;) {
      const int64_t vectors = run.vectors_at(column, rows);
      run.place_columns(column, vectors, tile);
      if constexpr (kUpdatesBesideProducts) {
        tiles.add(tile, rows, vectors, at + column);
      } else {
        rows_of.multiply(tile, rows, vectors, at, column);
      }
      column += vectors * float_lanes();
    }
    if constexpr (!kUpdatesBesideProducts) rows_of.update(rows, run.block.width, at);
  }
  tiles.finish();
}

void run_block(const GemmShape &s, const Block &block, const float *a, float *c, const GemmEpilogue &epilogue,
               const float *b, bool direct, const float *panels, float *a_tiles) {
  const float *columns = a + block.k0 * s.a_column;
  const BlockRun run{s, block, columns, c, epilogue, b, direct, panels, a_tiles, RowTiles(s.m)};
  if (direct && s.a_column == 1) return run.run_panels_first();
  run.run_rows_first();
}

void pack_block(const GemmShape &s, const Block &block, const float *b, bool direct, float *panels) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < block.width;) {
    const int64_t left = block.width - j;
    const int64_t width = (left > lanes ? 2 : 1) * lanes;
    const float *from = b + block.k0 * s.b_row + (block.n0 + j) * s.b_column;
    if (direct && left >= width) {
      // read where it lies
    } else if (s.b_column == 1) {
      pack_rows(from, s.b_row, block.depth, HWY_MIN(left, width), width, panels);
    } else {
      s.b_row == 1 ? pack_columns(from, s.b_column, block.depth, HWY_MIN(left, width), width, panels)
                   : pack_elements(from, s.b_row, s.b_column, block.depth, HWY_MIN(left, width), width, panels);
    }
    panels += block.depth * width;
    j += width;
  }
}

// Few rows that run along memory, times columns that do: each panel of B is turned when it is wanted, used by all rows
// while it is in the first-level cache, and not kept.
bool turns_panels(const GemmShape &s) {
  return s.m <= kDirectRows && s.k <= kTurnedDepth && s.a_column == 1 && s.b_row == 1 && s.b_column != 1;
}

void multiply_turned(const GemmShape &s, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                     float *scratch) {
  GemmShape shape = s;
  float *panel = scratch + kPackedTiles * kTileFloats;
  float *copies = panel + kBlockK * 2 * float_lanes();
  if (s.a_row % kSetDistance == 0 && s.m > kTileRows / 2) {
    shape.a_row = s.k + kCopyGap;
    for (int64_t i = 0; i < s.m; ++i)
      std::memcpy(copies + i * shape.a_row, a + i * s.a_row, static_cast<size_t>(s.k) * sizeof(float));
    a = copies;
  }
  const int64_t depth = block_depth(s.k);
  for (int64_t n0 = 0; n0 < s.n; n0 += 2 * float_lanes()) {
    for (int64_t k0 = 0; k0 < s.k || k0 == 0; k0 += depth) {
      const Block block{k0, HWY_MIN(depth, s.k - k0), n0, HWY_MIN(2 * float_lanes(), s.n - n0)};
      pack_block(shape, block, b, false, panel);
      run_block(shape, block, a, c, epilogue, b, false, panel, scratch);
    }
  }
}

// Few rows times a large B, on vectors of which a panel is half a cache line or one: each panel of a block of B is
// copied out of rows that fall into the same sets of the first-level cache, used by all rows, and not kept. The next
// one is brought nearer meanwhile. Twice as many rows are done in halves, which reads such a B twice and writes no
// panels of it for later.
bool streams_panels(const GemmShape &s) {
  if (!kCopiesPanels || s.a_column != 1 || s.b_column != 1 || s.m <= 2 * kTileRows) return false;
  return s.m <= kDirectRows ? s.k * s.n > kNearFloats : s.m <= 2 * kDirectRows && s.k * s.n > kFarFloats;
}

inline void multiply_streamed(const GemmShape &s, const float *a, const float *b, float *c,
                              const GemmEpilogue &epilogue, float *scratch) {
  const int64_t width = 2 * float_lanes(), most = block_depth(s.k);
  float *panel = scratch, *copies = panel + kBlockK * width;
  GemmShape shape = s;
  const bool copied = s.a_row % kSetDistance == 0;
  if (copied) shape.a_row = kCopyStride;
  for (int64_t k0 = 0; k0 < s.k; k0 += most) {
    const int64_t depth = HWY_MIN(most, s.k - k0);
    if (copied) copy_tile(a + k0, s.a_row, depth, s.m, copies);
    for (int64_t n0 = 0; n0 < s.n; n0 += width) {
      const Block block{k0, depth, n0, HWY_MIN(width, s.n - n0)};
      BlockRun run{shape, block, copied ? copies : a + k0, c, epilogue, b, false, panel, nullptr, RowTiles(s.m)};
      if (block.width == width) {
        run.panel = panel;
      } else {
        pack_block(s, block, b, false, panel);
      }
      const bool is_last = n0 + width >= s.n;
      const int64_t next_k = is_last ? k0 + depth : k0, next_n = is_last ? 0 : n0 + width;
      run.run_panel(0, b + next_k * s.b_row + next_n, HWY_MIN(most, s.k - next_k));
    }
  }
}

inline void multiply_in_halves(const GemmShape &s, const float *a, const float *b, float *c,
                               const GemmEpilogue &epilogue, float *scratch) {
  if (s.m <= kDirectRows) return multiply_streamed(s, a, b, c, epilogue, scratch);
  GemmShape half = s;
  GemmEpilogue its = epilogue;
  half.m = (s.m + 1) / 2;
  multiply_streamed(half, a, b, c, its, scratch);
  if (its.mask != nullptr) its.mask += half.m * s.c_row;
  a += half.m * s.a_row;
  c += half.m * s.c_row;
  half.m = s.m - half.m;
  multiply_streamed(half, a, b, c, its, scratch);
}

#if TUTTI_TURNS_SQUARES
// Columns of C that are made together as rows of the turned product: whole tiles and whole squares.
constexpr int64_t kTurnedColumns = 96;

// Where there is less to turn then, such a product with whole panels of rows is computed as the turned one, columns of
// B times rows of A: A is turned instead of B, and the result. Each element is the same sum.
bool turns_result(const GemmShape &s) {
  return turns_panels(s) && s.m % (2 * float_lanes()) == 0 && s.m * (s.k + s.n) < s.k * s.n;
}

// Rows i0 .. of C, as wide as a panel, from the rows j0 .. of the turned product.
void finish_turned(const GemmShape &s, const float *turned, const Block &block, int64_t i0, float *c,
                   const GemmEpilogue &epilogue) {
  const int64_t lanes = float_lanes(), width = 2 * lanes;
  HWY_ALIGN float rows[kSquare * kSquare * 2];
  for (int64_t i = 0; i < width; i += lanes) {
    for (int64_t j = 0; j < block.width; j += width) {
      turn_square(turned + j * width + i, width, rows, width);
      turn_square(turned + (j + lanes) * width + i, width, rows + lanes, width);
      const int64_t at = (i0 + i) * s.c_row + block.n0 + j;
      Tile tile{};
      tile.c = c + at;
      tile.c_row = s.c_row;
      tile.columns = HWY_MIN(width, block.width - j);
      tile.last = block.k0 + block.depth == s.k;
      tile.bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + block.n0 + j;
      tile.relu = epilogue.relu;
      tile.mask = epilogue.mask == nullptr ? nullptr : epilogue.mask + at;
      finish_tile(tile, rows, static_cast<int>(lanes), 2, block.k0 > 0 || s.accumulate);
    }
  }
}

void multiply_turned_result(const GemmShape &s, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                            float *scratch) {
  const int64_t width = 2 * float_lanes();
  float *turned = scratch, *panels = scratch + kTurnedColumns * width;
  std::memset(turned, 0, static_cast<size_t>(kTurnedColumns * width) * sizeof(float));
  Tile tile{};
  tile.a_row = s.b_column;
  tile.a_column = 1;
  tile.b_row = tile.c_row = tile.columns = width;
  tile.plain = true;
  const int64_t depth = block_depth(s.k);
  for (int64_t k0 = 0; k0 < s.k || k0 == 0; k0 += depth) {
    tile.k = HWY_MIN(depth, s.k - k0);
    for (int64_t i = 0; i < s.m; i += width)
      pack_columns(a + i * s.a_row + k0, s.a_row, tile.k, width, width, panels + i * tile.k);
    for (int64_t j0 = 0; j0 < s.n; j0 += kTurnedColumns) {
      const Block block{k0, tile.k, j0, HWY_MIN(kTurnedColumns, s.n - j0)};
      for (int64_t i = 0; i < s.m; i += width) {
        tile.b = panels + i * tile.k;
        for (int64_t j = 0; j < block.width; j += kTileRows) {
          tile.a = b + (j0 + j) * s.b_column + k0;
          // The next columns of B, where they lie one behind the other.
          const int64_t next = HWY_MAX(int64_t{0}, HWY_MIN(int64_t{kTileRows}, s.n - j0 - j - kTileRows));
          if (s.b_column == tile.k) tile.ahead[0] = {tile.a + kTileRows * tile.k, next * tile.k / width, width};
          tile.c = turned + j * width;
          run_rows<2>(HWY_MIN(int64_t{kTileRows}, block.width - j), tile);
        }
        finish_turned(s, turned, block, i, c, epilogue);
      }
    }
  }
}
#endif

void multiply(const GemmShape &s, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
              float *scratch) {
#if TUTTI_TURNS_SQUARES
  if (turns_result(s)) return multiply_turned_result(s, a, b, c, epilogue, scratch);
#endif
  if (turns_panels(s)) return multiply_turned(s, a, b, c, epilogue, scratch);
  if (is_deep(s) && !has_epilogue(epilogue)) return multiply_deep(s, a, b, c, scratch);
  if (streams_panels(s)) return multiply_in_halves(s, a, b, c, epilogue, scratch);
  float *a_tile = scratch;
  float *panels = scratch + kPackedTiles * kTileFloats;
  // Packing pays once there are enough rows to use it.
  const bool direct = s.b_column == 1 && s.m <= kDirectRows;
  const int64_t depth = block_depth(s.k);
  for (int64_t n0 = 0; n0 < s.n; n0 += kBlockN) {
    const int64_t width = HWY_MIN(kBlockN, s.n - n0);
    for (int64_t k0 = 0; k0 < s.k || k0 == 0; k0 += depth) {
      const Block block{k0, HWY_MIN(depth, s.k - k0), n0, width};
      pack_block(s, block, b, direct, panels);
      run_block(s, block, a, c, epilogue, b, direct, panels, a_tile);
    }
  }
}

void multiply_and_update(const GemmShape &s, const float *a, const float *b, const UpdateRule &rule,
                         const UpdateArrays &arrays, float *scratch) {
  float *panels = scratch + kPackedTiles * kTileFloats;
  // Only whole tiles are updated beside products, so there are as many of these as can be.
  const RowTiles tiles = kUpdatesBesideProducts ? RowTiles(s.m, kTileRows) : RowTiles(s.m);
  const GemmEpilogue nothing;
  for (int64_t n0 = 0; n0 < s.n; n0 += kBlockN) {
    const Block block{0, s.k, n0, HWY_MIN(kBlockN, s.n - n0)};
    pack_block(s, block, b, false, panels);
    const BlockRun run{s, block, a, nullptr, nothing, b, false, panels, scratch, tiles};
    with_step(rule, [&](const auto &step) HWY_ATTR { update_block(run, step, arrays); });
  }
}

int64_t lanes() { return float_lanes(); }

// Packed tiles of A and a block of B in panels.
int64_t packed_floats(const GemmShape &s, int64_t tiles) {
  const int64_t panel = 2 * float_lanes();
  const int64_t width = (HWY_MIN(s.n, kBlockN) + panel - 1) / panel * panel;
  return tiles * kTileFloats + HWY_MIN(s.k, kBlockK) * width;
}

int64_t update_scratch_floats(const GemmShape &s) { return packed_floats(s, kPackedTiles); }

int64_t scratch_floats(const GemmShape &s) {
  const int64_t lanes = float_lanes();
#if TUTTI_TURNS_SQUARES
  if (turns_result(s)) return kTurnedColumns * 2 * lanes + s.m * HWY_MIN(s.k, kBlockK);
#endif
  if (turns_panels(s)) return kPackedTiles * kTileFloats + kBlockK * 2 * lanes + s.m * (s.k + kCopyGap);
  if (streams_panels(s)) return kBlockK * 2 * lanes + s.m * kCopyStride;
  return packed_floats(s, is_deep(s) ? kDeepTiles : kPackedTiles);
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(multiply);
HWY_EXPORT(multiply_and_update);
HWY_EXPORT(lanes);
HWY_EXPORT(scratch_floats);
HWY_EXPORT(update_scratch_floats);

int64_t gemm_lanes() { return HWY_DYNAMIC_DISPATCH(lanes)(); }

int64_t gemm_scratch_floats(const GemmShape &shape) { return HWY_DYNAMIC_DISPATCH(scratch_floats)(shape); }

int64_t gemm_update_scratch_floats(const GemmShape &shape) {
  return HWY_DYNAMIC_DISPATCH(update_scratch_floats)(shape);
}

void gemm(const GemmShape &shape, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
          float *scratch) {
  if (shape.m <= 0 || shape.n <= 0) return;
  HWY_DYNAMIC_DISPATCH(multiply)(shape, a, b, c, epilogue, scratch);
}

void gemm_update(const GemmShape &shape, const float *a, const float *b, const UpdateRule &rule,
                 const UpdateArrays &arrays, float *scratch) {
  if (shape.m <= 0 || shape.n <= 0) return;
  HWY_DYNAMIC_DISPATCH(multiply_and_update)(shape, a, b, rule, arrays, scratch);
}

}  // namespace tutti::impl::backend::cpu
#endif
