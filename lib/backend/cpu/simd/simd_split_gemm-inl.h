// SPDX-License-Identifier: Apache-2.0
//
// Products on a matrix unit of factors that are split into three (simd_split_gemm.h), for any unit with the functions
// of AmxUnit. Of the two operands one is stationary: all of it, or a block that fits the second-level cache, is split
// and packed beforehand. The other one streams by: 16 of its rows or columns at a time, one step of 32 along the sum
// after the other, and while the unit multiplies one step the vectors split the next one. That keeps both busy, and the
// unit from slowing down, which it does when it rests for some microseconds.
//
// What streams is packed as it lies (simd_split_pack-inl.h), so it is never turned; of the stationary operand tiles
// are, where the sum runs the same way in both. Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_INL_H_
#endif

#include <cstdint>
#include <utility>

#include "backend/cpu/simd/amx.h"
#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_gemm_tile-inl.h"
#include "backend/cpu/simd/simd_split_gemm.h"
#include "backend/cpu/simd/simd_split_pack-inl.h"
#include "backend/cpu/simd/simd_split_step-inl.h"
#include "backend/cpu/simd/simd_update-inl.h"

#include <hwy/highway.h>

#if TUTTI_SPLITS_FLOATS
HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// The sum is cut into blocks of at most so many steps, and the stationary operand into what fits beside other things in
// a second-level cache of 2 MiB, which all processors with such a unit have.
constexpr int64_t kMostSteps = 32;
constexpr int64_t kStationaryWords = int64_t{192} << 10;

// An operand that streams by across memory is a cache line in each of many rows: one behind the other they are far
// apart, and caches fetch ahead what is near. So only so many steps of a sum are done for all of that operand, and then
// the next ones for all of it, if the sums so far have room in so many tiles.
constexpr int64_t kStretchSteps = 3;
constexpr int64_t kMostKeptTiles = 256;
// Of a wide operand all of that is done for one half, then for the other. Threads that read the same operand begin with
// different halves: the second one to read a cache line has to get it from the other core, which takes longer, so that
// one who comes late would fall behind more and more.
constexpr int64_t kLeastSpanTiles = 16;

// Which of the tiles that stream by a reader begins with: the first one, that in the middle, those at the quarters, ...
inline int64_t first_tile(int64_t tiles, int32_t reader) {
  int64_t place = 0;  // of 2^16
  for (int bit = 0; bit < 16; ++bit)
    place |= static_cast<int64_t>(reader >> bit & 1) << (15 - bit);
  return place * tiles >> 16;
}

// Steps of the operand that streams by, packed by the group of the stationary operand that comes first and used by all.
// While one 16 of its side is used, the first step of the next one is packed.
struct StreamPanel {
  uint16_t *words;
  int64_t steps;
  bool once;  // there is one group: a step is not kept

  // `number`: of all steps before it, in the order of their use.
  uint16_t *step_at(int64_t side_tile, int64_t step, int64_t number) const {
    return words + (once ? number % 2 : side_tile % 2 * steps + step) * kStepWords;
  }
  static int64_t word_count(int64_t steps, bool once) { return (once ? 2 : 2 * steps) * kStepWords; }
};

// One block of the stationary operand and of the sum, times all of an image that streams by.
template <typename Way>
struct SplitBlock {
  using Unit = typename Way::Unit;

  const SplitShape &shape;
  const GemmShape &s;
  const GemmEpilogue &epilogue;
  SplitOperand stream;  // this block of the sum
  float *c;
  const float *mask;    // null, or the same place as c
  int64_t side0, side;  // of the stationary operand
  bool first, last;     // of the blocks of the sum
  const uint16_t *stationary;
  StreamPanel panel;
  int64_t stretch_steps;  // all, or there is room for sums
  int64_t spans;          // 2 or 1
  float *kept;            // sums of stretches before the last one, by tiles
  int64_t first_tile;     // of what streams by
  FloatVec &broken;

  // Steps begin .. end - 1 of tiles first .. last - 1, in the order in which they stream by.
  struct Stretch {
    int64_t begin, end;
    int64_t first, last;
    int64_t steps() const { return end - begin; }
  };

  // Rows or columns of C that are done: all, unless what is to be added to C cannot be split.
  int64_t run() const {
    const int64_t tiles = tiles_of(stream.side);
    pack_step(stream_from({0, 0}), false, panel.step_at(0, 0, 0), broken);
    for (int64_t span = 0; span < spans; ++span) {
      for (int64_t begin = 0; begin < panel.steps; begin += stretch_steps) {
        const Stretch stretch{begin, HWY_MIN(begin + stretch_steps, panel.steps), span * tiles / spans,
                              (span + 1) * tiles / spans};
        for (int64_t j = stretch.first; j < stretch.last; ++j) {
          if (!run_stretch(stretch, j)) return j * kTileSide;
        }
      }
    }
    return stream.side;
  }

  // Of what streams by, in the order in which it is read; behind the last one there is nothing.
  int64_t stream_tile(int64_t j) const {
    const int64_t tiles = tiles_of(stream.side);
    if (j >= tiles) return tiles;
    return first_tile + j < tiles ? first_tile + j : first_tile + j - tiles;
  }

  // 16 of what streams by; false where they cannot be added to C.
  bool run_stretch(const Stretch &stretch, int64_t j) const {
    const int64_t tiles = tiles_of(side);
    const uint16_t *from = stationary;
    for (int64_t tile = 0; tile < tiles;) {
      const int64_t group = group_tiles(HWY_MIN(kGroupTiles, tiles - tile));
      const uint16_t *begin = from + stretch.begin * group * kStepWords;
      with_tiles(group, [&](auto count) HWY_ATTR { run_group<decltype(count)::value>(stretch, begin, tile, j); });
      // All of these 16 was packed by the first group.
      if (s.accumulate && is_broken(broken)) return false;
      with_tiles(group, [&](auto count) HWY_ATTR {
        constexpr int kTiles = decltype(count)::value;
        stretch.end < panel.steps ? keep_sums<kTiles>(tile, j) : finish<kTiles>(tile, stream_tile(j));
      });
      from += group * panel.steps * kStepWords;
      tile += group;
    }
    return true;
  }

  bool adds() const { return !first || s.accumulate; }

  float *kept_at(int64_t tile, int64_t j) const {
    return kept + (j * grouped_tiles(tiles_of(side)) + tile) * kTileSide * kTileSide;
  }
  template <int kTiles>
  HWY_INLINE void keep_sums(int64_t tile, int64_t j) const {
    store_sums<Unit, kTiles>(kept_at(tile, j), kTileSide * kTileSide, kTileSide);
  }

  // Where what streams by is read.
  struct Place {
    int64_t j, step;
  };
  // Behind a step of a stretch: the next one, the first one of the next 16, or that of the next stretch or span.
  Place behind(const Stretch &stretch, Place place) const {
    if (++place.step < stretch.end) return place;
    if (place.j + 1 < stretch.last) return {place.j + 1, stretch.begin};
    return stretch.end < panel.steps ? Place{stretch.first, stretch.end} : Place{place.j + 1, 0};
  }
  SplitOperand stream_from(const Place &place) const {
    const int64_t at = HWY_MIN(stream_tile(place.j) * kTileSide, stream.side),
                  depth = HWY_MIN(place.step * kTileDepth, stream.depth);
    return stream.part(at, depth, stream.side - at, stream.depth - depth);
  }

  template <int kTiles, bool kWhole>
  HWY_INLINE void run_step(const uint16_t *from, const uint16_t *current, const SplitOperand &next,
                           uint16_t *to) const {
    using Beside = PackBeside<Way::kStreamsLeft, kWhole>;
    Beside beside{next, to};
    SplitStep<Way, kTiles, Beside>::run(from, current, beside);
    broken = hn::Add(broken, beside.broken);
  }

  template <int kTiles>
  HWY_INLINE void run_group(const Stretch &stretch, const uint16_t *from, int64_t tile, int64_t j) const {
    if (stretch.begin > 0) {
      load_sums<Unit, kTiles>(kept_at(tile, j), kTileSide * kTileSide, kTileSide);
    } else {
      clear_sums<Unit, kTiles>();
    }
    int64_t number = stretch.first * panel.steps + stretch.begin * (stretch.last - stretch.first) +
                     (j - stretch.first) * stretch.steps();
    for (int64_t step = stretch.begin; step < stretch.end; ++step, ++number, from += kTiles * kStepWords) {
      const uint16_t *current = panel.step_at(j, step, number);
      if (tile > 0) {
        NothingBeside beside;
        SplitStep<Way, kTiles, NothingBeside>::run(from, current, beside);
        continue;
      }
      const Place place = behind(stretch, {j, step});
      uint16_t *to = panel.step_at(place.j, place.step, number + 1);
      const SplitOperand next = stream_from(place);
      next.is_whole() ? run_step<kTiles, true>(from, current, next, to)
                      : run_step<kTiles, false>(from, current, next, to);
    }
  }

  // Tiles one behind the other, as they are in C.
  template <int kTiles>
  HWY_INLINE void take_sums(float *sums) const {
    store_sums<Unit, kTiles>(sums, kTileSide * kTileSide, kTileSide);
    for (int i = 0; Way::kTurnsResult && i < kTiles; ++i)
      turn_tile(reinterpret_cast<uint16_t *>(sums + i * kTileSide * kTileSide));
  }

  template <int kTiles>
  HWY_INLINE void finish(int64_t of_stationary, int64_t of_stream) const {
    const int64_t row = Way::kByRows ? of_stream * kTileSide : side0 + of_stationary * kTileSide;
    const int64_t column = Way::kByRows ? side0 + of_stationary * kTileSide : of_stream * kTileSide;
    const int64_t next = Way::kByRows ? shape.c_block : kTileSide * s.c_row;  // from tile to tile
    const int64_t at = row * s.c_row + column / kTileSide * shape.c_block;
    const bool is_plain = !adds() && !(last && (epilogue.bias != nullptr || epilogue.relu || mask != nullptr));
    const int64_t rows_left = s.m - row, columns_left = s.n - column;
    if (!Way::kTurnsResult && is_plain && rows_left >= (Way::kByRows ? 1 : kTiles) * kTileSide &&
        columns_left >= (Way::kByRows ? kTiles : 1) * kTileSide) {
      return store_sums<Unit, kTiles>(c + at, next, s.c_row);
    }
    HWY_ALIGN float sums[kGroupSide * kTileSide];
    take_sums<kTiles>(sums);
    for (int64_t i = 0; i < kTiles; ++i)
      finish_tile_of(i, at + i * next, rows_left, columns_left, column, sums + i * kTileSide * kTileSide);
  }

  HWY_INLINE void finish_tile_of(int64_t i, int64_t at, int64_t rows_left, int64_t columns_left, int64_t column,
                                 const float *sums) const {
    (Way::kByRows ? columns_left : rows_left) -= i * kTileSide;
    if (rows_left <= 0 || columns_left <= 0) return;
    if (Way::kByRows) column += i * kTileSide;
    Tile tile{};
    tile.c = c + at;
    tile.c_row = s.c_row;
    tile.columns = HWY_MIN(int64_t{kTileSide}, columns_left);
    tile.load = adds();
    tile.last = last;
    tile.bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + column;
    tile.relu = epilogue.relu;
    tile.mask = mask == nullptr ? nullptr : mask + at;
    finish_tile(tile, sums, static_cast<int>(HWY_MIN(int64_t{kTileSide}, rows_left)), 1, tile.load);
  }
};

// How a product is cut. The smaller operand is the stationary one; what streams along memory may be somewhat smaller,
// as that is read faster.
constexpr int64_t kAlongIsWorth = 2;

struct SplitPlan {
  bool by_rows;
  SplitOperand stationary, stream;  // of the first image
  int64_t stationary_image, stream_image;
  int64_t block_steps;  // along the sum
  int64_t block_side;   // of the stationary operand
  bool may_keep;        // sums of a part of the steps

  static SplitPlan of(const SplitShape &shape, const float *a, const float *b) {
    const GemmShape &s = shape.matrix;
    const SplitOperand rows = operand(a, s.a_row, s.a_column, shape.a_block, s.m, s.k);
    const SplitOperand columns = operand(b, s.b_column, s.b_row, shape.b_block, s.n, s.k);
    SplitPlan plan{streams_rows(shape, rows, columns), rows, columns, shape.a_image, shape.b_image, 0, 0,
                   !s.accumulate && shape.c_image == 0};
    if (plan.by_rows) {
      std::swap(plan.stationary, plan.stream);
      std::swap(plan.stationary_image, plan.stream_image);
    }
    const int64_t steps = steps_of(s.k), blocks = (steps + kMostSteps - 1) / kMostSteps;
    plan.block_steps = (steps + blocks - 1) / blocks;
    const int64_t all = tiles_of(plan.stationary.side) * kTileSide;
    const int64_t groups = kStationaryWords / (kGroupTiles * plan.block_steps * kStepWords);
    plan.block_side = s.accumulate ? all : HWY_MIN(HWY_MAX(int64_t{1}, groups) * kGroupSide, all);
    return plan;
  }
  static SplitOperand operand(const float *data, int64_t side_step, int64_t depth_step, int64_t block, int64_t side,
                              int64_t depth) {
    return depth_step == 1 ? SplitOperand{data, side_step, kTileSide * side_step, 1, block, side, depth}
                           : SplitOperand{data, 1, block, depth_step, kPairs * depth_step, side, depth};
  }
  // What adds to C is one block of columns: of each 16 rows it knows before it writes them whether they can be split.
  // Rows of images stream by.
  static bool streams_rows(const SplitShape &shape, const SplitOperand &rows, const SplitOperand &columns) {
    if (shape.matrix.accumulate || shape.c_image != 0) return true;
    if (rows.along() == columns.along()) return rows.side > columns.side;
    return rows.along() ? kAlongIsWorth * rows.side >= columns.side : rows.side > kAlongIsWorth * columns.side;
  }
  bool turns() const { return stationary.along() == stream.along(); }
  bool streams_once() const { return block_side <= kGroupSide; }
  int64_t stationary_words() const { return grouped_tiles(tiles_of(block_side)) * block_steps * kStepWords; }
  int64_t panel_words() const { return StreamPanel::word_count(block_steps, streams_once()); }
  int64_t kept_tiles() const { return tiles_of(stream.side) * grouped_tiles(tiles_of(block_side)); }
  bool has_stretches() const { return !stream.along() && may_keep && kept_tiles() <= kMostKeptTiles; }
  int64_t kept_floats() const {
    return has_stretches() && block_steps > kStretchSteps ? kept_tiles() * kTileSide * kTileSide : 0;
  }
  int64_t stretch_steps() const { return has_stretches() ? kStretchSteps : block_steps; }
  int64_t spans() const { return has_stretches() && tiles_of(stream.side) >= 2 * kLeastSpanTiles ? 2 : 1; }
  int64_t floats() const { return kept_floats() + (stationary_words() + panel_words()) / 2; }
};

// One way through a product.
template <typename Way>
struct SplitProduct {
  const SplitPlan &plan;
  const SplitShape &shape;
  float *c;
  const GemmEpilogue &epilogue;
  uint16_t *packed;
  mutable FloatVec broken = hn::Zero(FloatTag());

  // Rows of all images that are done: all, or those above a factor that cannot be split. Unless it is added to, the
  // rest of C then holds nothing of use.
  int64_t run() const {
    const TileScope<typename Way::Unit> scope;
    const int64_t all = shape.c_image == 0 ? shape.matrix.m : shape.images * shape.matrix.m;
    const int64_t block_depth = plan.block_steps * kTileDepth;
    for (int64_t side0 = 0; side0 < plan.stationary.side; side0 += plan.block_side) {
      for (int64_t k0 = 0; k0 < shape.matrix.k; k0 += block_depth) {
        const int64_t done = shape.c_image == 0 ? add_images(side0, k0) : each_image(side0, k0);
        if (done < all) return done;
      }
    }
    return is_broken(broken) ? 0 : all;
  }

 private:
  int64_t depth_at(int64_t k0) const { return HWY_MIN(plan.block_steps * kTileDepth, shape.matrix.k - k0); }
  int64_t side_at(int64_t side0) const { return HWY_MIN(plan.block_side, plan.stationary.side - side0); }

  void pack(int64_t image, int64_t side0, int64_t k0) const {
    SplitOperand operand = plan.stationary.part(side0, k0, side_at(side0), depth_at(k0));
    operand.data += image * plan.stationary_image;
    pack_stationary(operand, plan.turns(), packed, broken);
  }

  int64_t multiply(int64_t image, int64_t side0, int64_t k0, bool first, bool last) const {
    SplitOperand stream = plan.stream.part(0, k0, plan.stream.side, depth_at(k0));
    stream.data += image * plan.stream_image;
    const int64_t side = side_at(side0), at = image * shape.c_image;
    const float *mask = epilogue.mask == nullptr ? nullptr : epilogue.mask + at;
    const StreamPanel panel{packed + plan.stationary_words(), steps_of(depth_at(k0)), side <= kGroupSide};
    auto *const kept = reinterpret_cast<float *>(packed + plan.stationary_words() + plan.panel_words());
    // Rows that are added to C are done in their order.
    const int64_t begin = shape.matrix.accumulate ? 0 : first_tile(tiles_of(stream.side), shape.reader);
    return SplitBlock<Way>{
        shape, shape.matrix,         epilogue,     stream, c + at, mask,  side0, side, first, last, packed,
        panel, plan.stretch_steps(), plan.spans(), kept,   begin,  broken}
        .run();
  }

  // Images one after the other, with the same stationary operand.
  int64_t each_image(int64_t side0, int64_t k0) const {
    const bool last = k0 + depth_at(k0) == shape.matrix.k;
    pack(0, side0, k0);
    for (int64_t image = 0; image < shape.images; ++image) {
      const int64_t done = multiply(image, side0, k0, k0 == 0, last);
      if (done < plan.stream.side) return image * shape.matrix.m + done;
    }
    return shape.images * shape.matrix.m;
  }

  // C is the sum over images.
  int64_t add_images(int64_t side0, int64_t k0) const {
    const bool last = k0 + depth_at(k0) == shape.matrix.k;
    for (int64_t image = 0; image < shape.images; ++image) {
      pack(image, side0, k0);
      const int64_t done = multiply(image, side0, k0, k0 == 0 && image == 0, last && image + 1 == shape.images);
      if (done < plan.stream.side) return done;
    }
    return shape.matrix.m;
  }
};

template <typename Unit>
int64_t multiply_split(const SplitShape &shape, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                       float *scratch) {
  const SplitPlan plan = SplitPlan::of(shape, a, b);
  const auto run = [&](auto way) HWY_ATTR {
    return SplitProduct<decltype(way)>{plan, shape, c, epilogue, reinterpret_cast<uint16_t *>(scratch)}.run();
  };
  if (plan.by_rows) return plan.stream.along() ? run(SplitWay<Unit, true, true>()) : run(SplitWay<Unit, false, true>());
  return plan.stream.along() ? run(SplitWay<Unit, true, false>()) : run(SplitWay<Unit, false, false>());
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TUTTI_SPLITS_FLOATS

#endif  // toggled guard
