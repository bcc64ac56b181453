// SPDX-License-Identifier: Apache-2.0
//
// Operands of products on a matrix unit (simd_split_gemm-inl.h), split and packed as the unit reads them. A packed tile
// is 16 rows of 16 pairs of bfloat16; three of them, one for each part, are a packed step. An operand whose sum runs
// along memory packs to tiles with a row for each of its 16 rows or columns, as the unit wants its left operand; one
// whose sum runs across memory packs to tiles with a row for each pair along the sum, as the unit wants its right one.
// Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_PACK_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_PACK_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_PACK_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "backend/cpu/simd/amx.h"
#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_panel-inl.h"

#include <hwy/highway.h>

// Vectors are rows of tiles.
#undef TUTTI_SPLITS_FLOATS
#define TUTTI_SPLITS_FLOATS (TUTTI_TURNS_SQUARES && HWY_MAX_BYTES == 64 && HWY_TARGET <= HWY_AVX3)

#if TUTTI_SPLITS_FLOATS
HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

constexpr int kParts = 3;
constexpr int kTileBytes = kTileWords * sizeof(uint16_t);
constexpr int64_t kPairs = kTileDepth / 2;
constexpr int64_t kStepWords = kParts * kTileWords;
// Tiles of the stationary operand whose sums are in registers together.
constexpr int64_t kGroupTiles = 4;
constexpr int64_t kGroupSide = kGroupTiles * kTileSide;
// One side of a product. Neighbours along the side are side_step apart, from one 16 of them to the next it is
// side_block; along the sum it is depth_step and depth_block. One of the steps is 1.
struct SplitOperand {
  const float *data;
  int64_t side_step, side_block, depth_step, depth_block;
  int64_t side, depth;

  bool along() const { return depth_step == 1; }  // the sum runs along memory
  // Between neighbouring rows of a packed tile.
  int64_t row_step() const { return along() ? side_step : depth_step; }
  bool is_whole() const { return side >= kTileSide && depth >= kTileDepth; }  // in the first packed step
  // From multiples of 16 on.
  SplitOperand part(int64_t first, int64_t first_depth, int64_t count, int64_t depth_count) const {
    SplitOperand part = *this;
    part.data += first / kTileSide * side_block + first_depth / kPairs * depth_block;
    part.side = count;
    part.depth = depth_count;
    return part;
  }
};

HWY_INLINE bool is_broken(FloatVec broken) { return !hn::AllFalse(FloatTag(), hn::IsNaN(broken)); }

constexpr int64_t tiles_of(int64_t side) { return (side + kTileSide - 1) / kTileSide; }
constexpr int64_t steps_of(int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }
// Sums of 1, 2 or 4 tiles.
constexpr int64_t group_tiles(int64_t tiles) { return tiles > 2 ? kGroupTiles : tiles; }
// Tiles with those that make the last group whole.
constexpr int64_t grouped_tiles(int64_t tiles) {
  return tiles / kGroupTiles * kGroupTiles + group_tiles(tiles % kGroupTiles);
}

using Bits = hn::Vec<hn::ScalableTag<uint32_t>>;

// Splits pairs: `words` gets 16 pairs of bfloat16 for each part, kTileWords apart. The first part is rounded to
// nearest, ties away from zero, so that what remains has either sign; the second one is cut off, and what then remains
// has eight digits and is stored whole. Of numbers that cannot be split the remainder is NaN, and then so is `broken`,
// to which the products of remainders are added.
HWY_INLINE void split_pairs(FloatVec first, FloatVec second, uint16_t *HWY_RESTRICT words, FloatVec &broken) {
  const FloatTag d;
  const hn::ScalableTag<uint32_t> bits;
  const Bits half = hn::Set(bits, 0x8000u), upper = hn::Set(bits, 0xFFFF0000u);
  auto *to = reinterpret_cast<uint32_t *>(words);
  TUTTI_UNROLL
  for (int part = 0; part < 2; ++part) {
    Bits one = hn::BitCast(bits, first), two = hn::BitCast(bits, second);
    if (part == 0) one = hn::Add(one, half), two = hn::Add(two, half);
    two = hn::And(two, upper);
    hn::Store(hn::Or(hn::ShiftRight<16>(one), two), bits, to + part * kTileWords / 2);
    first = hn::Sub(first, hn::BitCast(d, hn::And(one, upper)));
    second = hn::Sub(second, hn::BitCast(d, two));
  }
  const Bits last = hn::And(hn::BitCast(bits, second), upper);
  hn::Store(hn::Or(hn::ShiftRight<16>(hn::BitCast(bits, first)), last), bits, to + 2 * kTileWords / 2);
  broken = hn::MulAdd(first, second, broken);
}

// Row `row` of the packed tile that begins at the first element of an operand, of each part. Element p of a step of the
// sum and element p + 16 are a pair, in both operands. What is not there is zero.
template <bool kAlong>
HWY_NOINLINE void pack_row(const SplitOperand &operand, int64_t row, uint16_t *HWY_RESTRICT words, FloatVec &broken) {
  const FloatTag d;
  FloatVec first = hn::Zero(d), second = first;
  if constexpr (kAlong) {
    const float *from = operand.data + row * operand.side_step;
    if (row < operand.side) {
      first = load_first(d, from, HWY_MIN(kPairs, operand.depth));
      second = load_first(d, from + operand.depth_block, HWY_MAX(int64_t{0}, HWY_MIN(kPairs, operand.depth - kPairs)));
    }
  } else {
    const float *from = operand.data + row * operand.depth_step;
    const int64_t count = HWY_MIN(int64_t{kTileSide}, operand.side);
    if (row < operand.depth) first = load_first(d, from, count);
    if (row + kPairs < operand.depth) second = load_first(d, from + operand.depth_block, count);
  }
  split_pairs(first, second, words + row * kTileDepth, broken);
}

// The same of a tile that is all there, whose second halves of pairs are `distance` from the first ones.
HWY_INLINE void pack_whole_row(const float *HWY_RESTRICT from, int64_t distance, uint16_t *HWY_RESTRICT words,
                               FloatVec &broken) {
  const FloatTag d;
  split_pairs(hn::LoadU(d, from), hn::LoadU(d, from + distance), words, broken);
}

// Rows of tiles as squares of 32 bits.
HWY_INLINE void turn_tile(uint16_t *words) {
  HWY_ALIGN float turned[kTileSide * kTileSide];
  turn_square(reinterpret_cast<const float *>(words), kTileSide, turned, kTileSide);
  std::memcpy(words, turned, sizeof(turned));
}

// One packed step of 16 along the side.
template <bool kAlong>
HWY_INLINE void pack_step_by(const SplitOperand &operand, uint16_t *words, FloatVec &broken) {
  FloatVec own = hn::Zero(FloatTag());  // whose place no store may change
  if (operand.is_whole()) {
    for (int64_t row = 0; row < kTileSide; ++row) {
      pack_whole_row(operand.data + row * operand.row_step(), operand.depth_block, words + row * kTileDepth, own);
    }
  } else {
    for (int64_t row = 0; row < kTileSide; ++row)
      pack_row<kAlong>(operand, row, words, own);
  }
  broken = hn::Add(broken, own);
}

inline void pack_step(const SplitOperand &operand, bool turned, uint16_t *words, FloatVec &broken) {
  operand.along() ? pack_step_by<true>(operand, words, broken) : pack_step_by<false>(operand, words, broken);
  for (int64_t part = 0; turned && part < kParts; ++part)
    turn_tile(words + part * kTileWords);
}

// The stationary operand: groups one behind the other; in each its steps, of each step the group's tiles.
inline void pack_stationary(const SplitOperand &operand, bool turned, uint16_t *words, FloatVec &broken) {
  const int64_t tiles = tiles_of(operand.side), steps = steps_of(operand.depth);
  for (int64_t tile = 0; tile < tiles;) {
    const int64_t group = group_tiles(HWY_MIN(kGroupTiles, tiles - tile));
    for (int64_t t = 0; t < group; ++t) {
      const int64_t first = HWY_MIN((tile + t) * kTileSide, operand.side);
      for (int64_t step = 0; step < steps; ++step) {
        const int64_t depth = step * kTileDepth;
        pack_step(operand.part(first, depth, operand.side - first, operand.depth - depth), turned,
                  words + (step * group + t) * kStepWords, broken);
      }
    }
    words += group * steps * kStepWords;
    tile += group;
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TUTTI_SPLITS_FLOATS

#endif  // toggled guard
