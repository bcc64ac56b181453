// SPDX-License-Identifier: Apache-2.0
//
// Tiles of products (simd_gemm.cc): as many rows as registers hold sums of, times one or two vectors of columns, or
// fewer rows times more. Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_TILE_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_TILE_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_GEMM_TILE_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_update.h"

#include <hwy/highway.h>

// Before a loop of which two turns are to be one, so that less is counted: with long vectors each turn is long anyway.
#undef TUTTI_IN_PAIRS
#if HWY_TARGET != HWY_AVX2
#define TUTTI_IN_PAIRS
#elif defined(__clang__)
#define TUTTI_IN_PAIRS _Pragma("clang loop unroll_count(2)")
#else
#define TUTTI_IN_PAIRS _Pragma("GCC unroll 2")
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {
using Full = FloatTag;
using Vec = FloatVec;

// Panels of B are two vectors wide. A block of B (at most kBlockK x kBlockN) stays in the second-level cache, the tile
// of A in the first.
constexpr int64_t kBlockK = HWY_TARGET <= HWY_AVX3 ? 256 : 272;
constexpr int64_t kBlockN = 512;
// Rows of C that stay in registers with two vectors of columns each.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
// Whether B is copied into panels for few rows, and for deep products: where a panel is no longer than a cache line.
constexpr bool kCopiesPanels = HWY_TARGET > HWY_AVX3;

// Memory that will be wanted soon, a panel wide: brought nearer while the sums of a tile are made, a row of it for each
// column of A.
struct Ahead {
  const float *from = nullptr;
  int64_t rows = 0;
  int64_t row = 0;  // distance
};
constexpr int kAheads = 1 + kUpdateSlots;

// What one tile works on; `a` is addressed by strides so that it may be packed or not.
struct Tile {
  const float *HWY_RESTRICT a;
  int64_t a_row;
  int64_t a_column;
  const float *HWY_RESTRICT b;  // k rows of `vectors` vectors, packed or not
  int64_t b_row;
  float *c;
  int64_t c_row;
  int64_t k;
  int64_t columns;  // valid columns of the panel
  bool load;        // add to what C holds
  bool last;        // apply the epilogue
  bool plain;       // whole vectors, nothing to apply
  Ahead ahead[kAheads];
  float *panel;  // where run_first_tile puts a copy of B, packed
  const float *bias;
  bool relu;
  const float *mask;
};

// What follows the product, on the tile's sums, which lie row by row; `adds` them to what C holds.
inline HWY_NOINLINE void finish_tile(const Tile &tile, const float *sums, int rows, int vectors, bool adds) {
  const Full d;
  const int64_t lanes = float_lanes();
  for (int64_t column = 0; column < tile.columns; column += lanes) {
    const int64_t count = HWY_MIN(lanes, tile.columns - column);
    const bool biased = tile.last && tile.bias != nullptr;
    const Vec bias = biased ? load_first(d, tile.bias + column, count) : hn::Zero(d);
    for (int r = 0; r < rows; ++r) {
      const int64_t at = r * tile.c_row + column;
      Vec sum = hn::Load(d, sums + r * vectors * lanes + column);
      if (adds) sum = hn::Add(sum, load_first(d, tile.c + at, count));
      if (biased) sum = hn::Add(sum, bias);
      // max(x, 0) would turn NaN into 0 or not depending on the operands' order.
      if (tile.last && tile.relu) sum = hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(d)), sum);
      if (tile.last && tile.mask != nullptr)
        sum = hn::IfThenElseZero(hn::Gt(load_first(d, tile.mask + at, count), hn::Zero(d)), sum);
      if (count == lanes) {
        hn::StoreU(sum, d, tile.c + at);
      } else {
        store_first(d, sum, tile.c + at, count);
      }
    }
  }
}

// The same on the sums of a tile of whole vectors. What does not follow is done so that it changes nothing.
template <int kVectors>
HWY_NOINLINE void finish_whole_tile(const Tile &whole, const float *HWY_RESTRICT sums, int64_t rows) {
  const Full d;
  const Tile tile = whole;  // no stored vector may change it
  const int64_t lanes = float_lanes();
  const Vec floor = tile.relu ? hn::Zero(d) : hn::Set(d, -std::numeric_limits<float>::infinity());
  Vec bias[kVectors];
  TUTTI_UNROLL
  for (int v = 0; v < kVectors; ++v)
    bias[v] = tile.bias == nullptr ? hn::Set(d, -0.0F) : hn::LoadU(d, tile.bias + v * lanes);
  for (int64_t r = 0; r < rows; ++r, sums += kVectors * lanes) {
    const int64_t at = r * tile.c_row;
    TUTTI_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      Vec sum = hn::Add(hn::Load(d, sums + v * lanes), bias[v]);
      sum = hn::IfThenZeroElse(hn::Lt(sum, floor), sum);
      if (tile.mask != nullptr)
        sum = hn::IfThenElseZero(hn::Gt(hn::LoadU(d, tile.mask + at + v * lanes), hn::Zero(d)), sum);
      hn::StoreU(sum, d, tile.c + at + v * lanes);
    }
  }
}

// Rows of A by four pointers: few enough for registers, and the rows between are one or two distances away.
template <bool kPacked>
struct TileRows {
  static constexpr int kNear = 3;
  const float *HWY_RESTRICT starts[4];
  int64_t distance;
  int64_t step;

  explicit HWY_INLINE TileRows(const Tile &tile) : distance(tile.a_row), step(tile.a_column) {
    for (int i = 0; i < 4; ++i)
      starts[i] = tile.a + i * kNear * distance;
  }
  HWY_INLINE float operator[](int r) const { return starts[r / kNear][r % kNear * distance]; }
  HWY_INLINE void advance() {
    for (int i = 0; i < 4; ++i)
      starts[i] += step;
  }
};

// Packed rows are neighbours.
template <>
struct TileRows<true> {
  const float *HWY_RESTRICT start;
  int64_t step;

  explicit HWY_INLINE TileRows(const Tile &tile) : start(tile.a), step(tile.a_column) {}
  HWY_INLINE float operator[](int r) const { return start[r]; }
  HWY_INLINE void advance() { start += step; }
};

// Nothing is kept of a row of B.
struct NoCopy {
  HWY_INLINE void keep(Vec, int) const {}
  HWY_INLINE void advance(int) const {}
};

// Rows of B, one behind the other.
struct PanelCopy {
  float *HWY_RESTRICT to;
  HWY_INLINE void keep(Vec value, int vector) const { hn::Store(value, Full(), to + vector * float_lanes()); }
  HWY_INLINE void advance(int vectors) { to += vectors * float_lanes(); }
};

// One column of A times one row of the panel of B.
template <int kRows, int kVectors, typename Rows, typename Copy>
HWY_INLINE void add_product(const Rows &rows, const float *HWY_RESTRICT b, Vec (&sums)[kRows][kVectors],
                            const Copy &copy) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec columns[kVectors];
  TUTTI_UNROLL
  for (int v = 0; v < kVectors; ++v)
    columns[v] = hn::LoadU(d, b + v * lanes);
  for (int v = 0; v < kVectors; ++v)
    copy.keep(columns[v], v);
  TUTTI_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const Vec value = hn::Set(d, rows[r]);
    TUTTI_UNROLL
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = hn::MulAdd(value, columns[v], sums[r][v]);
  }
}

// One nest of loops, so that the sums stay in registers: what there is nothing to bring nearer for brings nearer what
// is near. Few instructions beside the multiplications, since another program on the same core takes half of what the
// processor begins.
template <int kRows, int kVectors, bool kPacked, typename Copy>
HWY_INLINE void add_products(const Tile &tile, Vec (&sums)[kRows][kVectors], Copy copy) {
  constexpr int kLine = HWY_MAX_BYTES > 64 ? 1 : 64 / HWY_MAX_BYTES;
  const int64_t lanes = float_lanes();
  TileRows<kPacked> rows(tile);
  const float *HWY_RESTRICT b = tile.b;
  const int64_t b_row = tile.b_row;
  int64_t left = tile.k;
  for (int i = 0; left > 0; ++i) {
    const Ahead part = i < kAheads ? tile.ahead[i] : Ahead{tile.b, left, 0};
    const float *ahead = part.from;
    const int64_t count = HWY_MIN(left, part.rows);
    left -= count;
    TUTTI_IN_PAIRS
    for (int64_t p = 0; p < count; ++p) {
      TUTTI_UNROLL
      for (int v = 0; v < kVectors; v += kLine)
        __builtin_prefetch(ahead + v * lanes);
      ahead += part.row;
      add_product<kRows, kVectors>(rows, b, sums, copy);
      copy.advance(kVectors);
      rows.advance();
      b += b_row;
    }
  }
}

// The part of C that the tile covers, in rows of whole vectors.
inline HWY_NOINLINE void copy_columns(const Tile &tile, int rows, int64_t width, float *to) {
  for (int r = 0; r < rows; ++r)
    std::memcpy(to + r * width, tile.c + r * tile.c_row, static_cast<size_t>(tile.columns) * sizeof(float));
}

// Adds what C holds, in rows `row` apart.
template <int kRows, int kVectors>
HWY_INLINE void add_rows(const float *HWY_RESTRICT c, int64_t row, Vec (&sums)[kRows][kVectors]) {
  const Full d;
  TUTTI_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TUTTI_UNROLL
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = hn::Add(sums[r][v], hn::LoadU(d, c + r * row + v * static_cast<int64_t>(hn::Lanes(d))));
  }
}

template <int kRows, int kVectors, bool kPacked = false, typename Copy = NoCopy>
HWY_NOINLINE void run_tile(const Tile &tile) {
  const Full d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = kVectors * lanes;
  if (tile.load) {
    for (int r = 0; r < kRows; ++r)
      __builtin_prefetch(tile.c + r * tile.c_row);
  }
  Vec sums[kRows][kVectors];
  TUTTI_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TUTTI_UNROLL
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = hn::Zero(d);
  }
  if constexpr (std::is_same_v<Copy, PanelCopy>) {
    add_products<kRows, kVectors, kPacked>(tile, sums, PanelCopy{tile.panel});
  } else {
    add_products<kRows, kVectors, kPacked>(tile, sums, NoCopy());
  }
  HWY_ALIGN float unfinished[kRows * kVectors * HWY_MAX_BYTES / sizeof(float)];
  const bool whole = tile.columns == width;
  if (tile.load) {
    if (!whole) copy_columns(tile, kRows, width, unfinished);
    add_rows(whole ? tile.c : unfinished, whole ? tile.c_row : width, sums);
  }
  float *to = tile.plain ? tile.c : unfinished;
  const int64_t row = tile.plain ? tile.c_row : width;
  TUTTI_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TUTTI_UNROLL
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(sums[r][v], d, to + r * row + v * lanes);
  }
  if (tile.plain) return;
  if (whole) return finish_whole_tile<kVectors>(tile, unfinished, kRows);
  finish_tile(tile, unfinished, kRows, kVectors, false);
}

// Vectors of columns for so many rows when B needs no packing.
HWY_INLINE int64_t wide_vectors(int64_t rows) {
  constexpr int64_t kRegisters = kTileRows * 2;
  return rows * 8 <= kRegisters ? 8 : rows * 4 <= kRegisters ? 4 : 2;
}

inline void run_few_rows(int64_t rows, int64_t vectors, const Tile &tile) {
  if (vectors == 8) {
    if (rows == 1) return run_tile<1, 8>(tile);
    if constexpr (kTileRows > 6) {
      return rows == 2 ? run_tile<2, 8>(tile) : run_tile<3, 8>(tile);
    }
  }
  if (rows == 2) return run_tile<2, 4>(tile);
  if (rows == 3) return run_tile<3, 4>(tile);
  if constexpr (kTileRows > 6) {
    return rows == 4 ? run_tile<4, 4>(tile) : rows == 5 ? run_tile<5, 4>(tile) : run_tile<6, 4>(tile);
  }
}

template <int kVectors, bool kPacked = false>
void run_rows(int64_t rows, const Tile &tile) {
  switch (rows) {
    case 1:
      return run_tile<1, kVectors, kPacked>(tile);
    case 2:
      return run_tile<2, kVectors, kPacked>(tile);
    case 3:
      return run_tile<3, kVectors, kPacked>(tile);
    case 4:
      return run_tile<4, kVectors, kPacked>(tile);
    case 5:
      return run_tile<5, kVectors, kPacked>(tile);
    case 6:
      return run_tile<6, kVectors, kPacked>(tile);
    default:
      break;
  }
  if constexpr (kTileRows > 6) {
    switch (rows) {
      case 7:
        return run_tile<7, kVectors, kPacked>(tile);
      case 8:
        return run_tile<8, kVectors, kPacked>(tile);
      case 9:
        return run_tile<9, kVectors, kPacked>(tile);
      case 10:
        return run_tile<10, kVectors, kPacked>(tile);
      case 11:
        return run_tile<11, kVectors, kPacked>(tile);
      case 12:
        return run_tile<12, kVectors, kPacked>(tile);
      default:
        break;
    }
  }
}

// A tile of at least 4 rows that copies what it reads of B, whole vectors, for the tiles behind it: stores cost next to
// nothing beside so many multiplications.
inline void run_first_tile(int64_t rows, const Tile &tile) {
  if (rows == 4) return run_tile<4, 2, false, PanelCopy>(tile);
  if (rows == 5) return run_tile<5, 2, false, PanelCopy>(tile);
  run_tile<6, 2, false, PanelCopy>(tile);
}

HWY_INLINE void run_rows_of(int64_t rows, int64_t vectors, const Tile &tile) {
  if (vectors == 1) return run_rows<1>(rows, tile);
  tile.a_row == 1 ? run_rows<2, true>(rows, tile) : run_rows<2>(rows, tile);
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
