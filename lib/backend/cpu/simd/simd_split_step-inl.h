// SPDX-License-Identifier: Apache-2.0
//
// One packed step of a product on a matrix unit (simd_split_gemm-inl.h): what the unit does with the tiles of both
// operands, and what the vectors do meanwhile.
// Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_STEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_STEP_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_STEP_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_STEP_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_split_pack-inl.h"

#include <hwy/highway.h>

#if TUTTI_SPLITS_FLOATS
HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// What the vectors do while the unit multiplies a step: `slot` is called for each of the 16 slots of it.
struct NothingBeside {
  HWY_INLINE void slot(int64_t) {}
};

// The next step of what streams by, packed from `operand` on.
template <bool kAlong, bool kWhole>
struct PackBeside {
  const SplitOperand operand;
  uint16_t *const words;
  FloatVec broken = hn::Zero(FloatTag());

  HWY_INLINE void slot(int64_t row) { pack_row<kAlong>(operand, row, words, broken); }
};

template <bool kAlong>
struct PackBeside<kAlong, true> {
  const float *from;
  const int64_t row_step, pair_step;
  uint16_t *words;
  FloatVec broken = hn::Zero(FloatTag());

  HWY_INLINE PackBeside(const SplitOperand &operand, uint16_t *to)
      : from(operand.data), row_step(operand.row_step()), pair_step(operand.depth_block), words(to) {}
  // Rows follow each other.
  HWY_INLINE void slot(int64_t) {
    pack_whole_row(from, pair_step, words, broken);
    from += row_step;
    words += kTileDepth;
  }
};

// What is fixed for all of a product. `kStreamsLeft`: what streams packs to left operands of the unit. `kByRows`: it is
// rows of C that stream by.
template <typename UnitType, bool kStreamsLeftOperand, bool kStreamsByRows>
struct SplitWay {
  using Unit = UnitType;
  static constexpr bool kStreamsLeft = kStreamsLeftOperand, kByRows = kStreamsByRows;
  static constexpr bool kTurnsResult = kStreamsLeft != kByRows;
};

// One packed step of each operand. The sums of the stationary operand's tiles are in registers 0 .. kTiles - 1. Of what
// streams by all parts stay in registers. Products of parts are added in the same order whichever operand streams:
// those of the first part of A's, of the second one, of the third.
template <typename Way, int kTiles, typename Beside>
struct SplitStep {
  using Unit = typename Way::Unit;

  template <int kTile, int kStream>
  static HWY_INLINE void multiply() {
    if constexpr (Way::kStreamsLeft) {
      Unit::template multiply<kTile, kStream, 4>();
    } else {
      Unit::template multiply<kTile, 4, kStream>();
    }
  }

  template <int kTile, int kPart>
  static HWY_INLINE void load(const uint16_t *stationary) {
    Unit::template load<4, (kTile * kParts + kPart) * kTileBytes>(stationary, kTileRowBytes);
  }

  template <int kTile, int kQuarter>
  static HWY_INLINE void fill(Beside &beside) {
    constexpr int kSlots = kTileSide / (4 * kTiles);
    TUTTI_UNROLL
    for (int i = 0; i < kSlots; ++i)
      beside.slot((kTile * 4 + kQuarter) * kSlots + i);
  }

  // A is stationary.
  template <int kTile>
  static HWY_INLINE void tile_of_rows(const uint16_t *stationary, Beside &beside) {
    load<kTile, 0>(stationary);
    multiply<kTile, 5>();
    fill<kTile, 0>(beside);
    multiply<kTile, 6>();
    multiply<kTile, 7>();
    fill<kTile, 1>(beside);
    load<kTile, 1>(stationary);
    multiply<kTile, 5>();
    fill<kTile, 2>(beside);
    multiply<kTile, 6>();
    load<kTile, 2>(stationary);
    multiply<kTile, 5>();
    fill<kTile, 3>(beside);
  }

  // A streams by.
  template <int kTile>
  static HWY_INLINE void tile_of_columns(const uint16_t *stationary, Beside &beside) {
    load<kTile, 0>(stationary);
    multiply<kTile, 5>();
    fill<kTile, 0>(beside);
    load<kTile, 1>(stationary);
    multiply<kTile, 5>();
    load<kTile, 2>(stationary);
    multiply<kTile, 5>();
    fill<kTile, 1>(beside);
    load<kTile, 0>(stationary);
    multiply<kTile, 6>();
    fill<kTile, 2>(beside);
    load<kTile, 1>(stationary);
    multiply<kTile, 6>();
    load<kTile, 0>(stationary);
    multiply<kTile, 7>();
    fill<kTile, 3>(beside);
  }

  template <int kTile>
  static HWY_INLINE void tile(const uint16_t *stationary, Beside &beside) {
    Way::kByRows ? tile_of_columns<kTile>(stationary, beside) : tile_of_rows<kTile>(stationary, beside);
  }

  static HWY_INLINE void run(const uint16_t *stationary, const uint16_t *stream, Beside &beside) {
    Unit::template load<5>(stream, kTileRowBytes);
    Unit::template load<6, kTileBytes>(stream, kTileRowBytes);
    Unit::template load<7, 2 * kTileBytes>(stream, kTileRowBytes);
    tile<0>(stationary, beside);
    if constexpr (kTiles > 1) tile<1>(stationary, beside);
    if constexpr (kTiles > 2) {
      tile<2>(stationary, beside);
      tile<3>(stationary, beside);
    }
  }
};

template <typename Unit, int kTiles>
HWY_INLINE void clear_sums() {
  Unit::template zero<0>();
  if constexpr (kTiles > 1) Unit::template zero<1>();
  if constexpr (kTiles > 2) {
    Unit::template zero<2>();
    Unit::template zero<3>();
  }
}

// What store_sums() stored.
template <typename Unit, int kTiles>
HWY_INLINE void load_sums(const float *from, int64_t tile_floats, int64_t row_floats) {
  const int64_t row_bytes = row_floats * static_cast<int64_t>(sizeof(float));
  Unit::template load<0>(from, row_bytes);
  if constexpr (kTiles > 1) Unit::template load<1>(from + tile_floats, row_bytes);
  if constexpr (kTiles > 2) {
    Unit::template load<2>(from + 2 * tile_floats, row_bytes);
    Unit::template load<3>(from + 3 * tile_floats, row_bytes);
  }
}

// Tile i goes to `to + i * tile_floats`, its rows `row_floats` apart.
template <typename Unit, int kTiles>
HWY_INLINE void store_sums(float *to, int64_t tile_floats, int64_t row_floats) {
  const int64_t row_bytes = row_floats * static_cast<int64_t>(sizeof(float));
  Unit::template store<0>(to, row_bytes);
  if constexpr (kTiles > 1) Unit::template store<1>(to + tile_floats, row_bytes);
  if constexpr (kTiles > 2) {
    Unit::template store<2>(to + 2 * tile_floats, row_bytes);
    Unit::template store<3>(to + 3 * tile_floats, row_bytes);
  }
}

// Calls function(constant) with 1, 2 or 4.
template <typename Function>
HWY_INLINE void with_tiles(int64_t tiles, const Function &function) {
  if (tiles == 1) return function(std::integral_constant<int, 1>());
  if (tiles == 2) return function(std::integral_constant<int, 2>());
  function(std::integral_constant<int, 4>());
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TUTTI_SPLITS_FLOATS

#endif  // toggled guard
