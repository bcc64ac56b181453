// SPDX-License-Identifier: Apache-2.0
//
// Ways through an image whose channels are normalised (simd_norm.cc): in tiles of rows and channels, each of which is
// walked in strips or in the order of memory. Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_NORM_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_NORM_TILES_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_NORM_TILES_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_NORM_TILES_INL_H_
#endif

#include <cstdint>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_norm.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

constexpr int kStripVectors = 4;
constexpr int64_t kMaximumLanes = HWY_MAX_BYTES / sizeof(float);
// Rows whose sums are kept in f32.
constexpr int64_t kNormTileRows = 128;
// Channels that are walked together, in whole strips.
constexpr int64_t kNormTileColumns = 512;

// Some rows of neighbouring channels.
struct NormTile {
  int64_t at;       // offset of the first element
  int64_t channel;  // number of the first channel
  int64_t columns;
  int64_t rows;
};

// Up to four vectors of channels of a tile.
using Strip = NormTile;

// Calls body(tile) for all parts of the array.
template <typename Body>
HWY_INLINE void for_norm_tiles(const ChannelShape &s, const Body &body) {
  for (int64_t block = 0; block < s.blocks; ++block) {
    for (int64_t piece = 0; piece < s.pieces; ++piece) {
      const int64_t base = block * s.block_stride + piece * s.piece_stride;
      for (int64_t row = 0; row < s.rows; row += kNormTileRows) {
        for (int64_t column = 0; column < s.width; column += kNormTileColumns) {
          body(NormTile{base + row * s.width + column, block * s.width + column,
                        HWY_MIN(kNormTileColumns, s.width - column), HWY_MIN(kNormTileRows, s.rows - row)});
        }
      }
    }
  }
}

// Are there more channels than a strip takes, in whole vectors? Then rows are walked one after the other, in the order
// of memory: a strip down many rows touches a line or two in each of many pages, which no processor fetches ahead.
HWY_INLINE bool walks_rows(const NormTile &tile) {
  return tile.columns > kStripVectors * float_lanes() && tile.columns % float_lanes() == 0;
}

// Rows between those that are done and those that are brought nearer meanwhile.
constexpr int kRowsAhead = 8;

// Calls body.run<rows>(offset of the first of its elements, number of its first channel) for all vectors of a tile,
// Body::kRows rows at a time, and body.fetch(offset) for what will be read. Sums are loaded and stored less often with
// more rows, but more places of memory are read at once than processors follow, if there are other images to be read.
template <typename Body>
HWY_INLINE void for_vectors(const ChannelShape &s, const NormTile tile, const Body body) {
  const int64_t width = s.width;
  int64_t row = 0;
  for (; row + Body::kRows <= tile.rows; row += Body::kRows) {
    for (int64_t column = 0; column < tile.columns; column += float_lanes()) {
      const int64_t at = tile.at + row * width + column;
      body.template run<Body::kRows>(at, tile.channel + column);
      for (int r = 0; r < Body::kRows; ++r)
        body.fetch(at + (kRowsAhead + r) * width);
    }
  }
  for (; row < tile.rows; ++row) {
    for (int64_t column = 0; column < tile.columns; column += float_lanes())
      body.template run<1>(tile.at + row * width + column, tile.channel + column);
  }
}

// Calls body(strip) for all strips of a tile.
template <typename Body>
HWY_INLINE void for_strips(const NormTile tile, const Body &body) {
  const int64_t step = kStripVectors * float_lanes();
  for (int64_t column = 0; column < tile.columns; column += step)
    body(Strip{tile.at + column, tile.channel + column, HWY_MIN(step, tile.columns - column), tile.rows});
}

// Two sums of each channel of a tile.
class NormTileSums {
 public:
  explicit HWY_INLINE NormTileSums(const NormTile &tile) : tile_(tile) {
    for (int64_t i = 0; i < tile.columns; i += float_lanes()) {
      hn::Store(hn::Zero(FloatTag()), FloatTag(), first_ + i);
      hn::Store(hn::Zero(FloatTag()), FloatTag(), second_ + i);
    }
  }
  // The sums of a vector of channels.
  HWY_INLINE float *first(int64_t channel) { return first_ + (channel - tile_.channel); }
  HWY_INLINE float *second(int64_t channel) { return second_ + (channel - tile_.channel); }
  // Adds them to sums of all channels.
  HWY_INLINE void add_to(double *first, double *second) const {
    for (int64_t i = 0; i < tile_.columns; ++i) {
      first[tile_.channel + i] += static_cast<double>(first_[i]);
      second[tile_.channel + i] += static_cast<double>(second_[i]);
    }
  }

 private:
  const NormTile &tile_;
  HWY_ALIGN float first_[kNormTileColumns + kMaximumLanes], second_[kNormTileColumns + kMaximumLanes];
};

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
