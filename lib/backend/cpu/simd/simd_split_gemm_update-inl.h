// SPDX-License-Identifier: Apache-2.0
//
// Gradients on a matrix unit that update their variable (simd_split_gemm.cc): a group of rows is multiplied, then its
// rows are updated one after the other, as they lie in memory. While they are multiplied most of what the update will
// read is brought nearer; bringing all of it holds up the unit more than it saves.
// Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_UPDATE_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_UPDATE_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_SPLIT_GEMM_UPDATE_INL_H_
#endif

#include <cstdint>

#include "backend/cpu/simd/simd_split_gemm-inl.h"
#include "backend/cpu/simd/simd_update-inl.h"

#include <hwy/highway.h>

#if TUTTI_SPLITS_FLOATS
HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// Brings rows of the arrays of a variable nearer, a few cache lines of each in every slot of a step.
template <int kArrays>
struct FetchBeside {
  static constexpr int64_t kLine = 16;   // floats
  static constexpr int64_t kParts = 64;  // of a line in a slot
  const float *arrays[kArrays];
  int64_t columns, rows, row_distance;
  int64_t rate;  // parts of a line in each slot
  int64_t due = 0, column = 0;

  HWY_INLINE void slot(int64_t) {
    due += rate;
    for (; due >= kParts && rows > 0; due -= kParts)
      fetch();
  }

 private:
  HWY_INLINE void fetch() {
    for (const float *array : arrays)
      fetch_to_write(array + column);
    column += kLine;
    if (column < columns) return;
    column = 0;
    --rows;
    for (const float *&array : arrays)
      array += row_distance;
  }
};

// The variable's gradient, all of both operands packed.
template <typename Unit, typename Step>
struct SplitGradient {
  const GemmShape &s;
  const Step &step;
  const UpdateArrays &arrays;
  const uint16_t *rows, *columns;
  int64_t steps;
  float *gradient;  // rows of a group
  int64_t gradient_row;

  static constexpr int64_t kFetchedQuarters = 3;  // of four

  void run() const {
    const int64_t tiles = tiles_of(s.m);
    const uint16_t *from = rows;
    for (int64_t tile = 0; tile < tiles;) {
      const int64_t group = group_tiles(HWY_MIN(kGroupTiles, tiles - tile));
      const int64_t row = tile * kTileSide, count = HWY_MIN(group * kTileSide, s.m - row);
      with_tiles(group, [&](auto size) HWY_ATTR { multiply<decltype(size)::value>(from, row, count); });
      for (int64_t i = 0; i < count; ++i)
        apply_step(step, s.n, OneGradient{gradient + i * gradient_row}, arrays, (row + i) * s.c_row);
      from += group * steps * kStepWords;
      tile += group;
    }
  }

  template <int kTiles>
  HWY_INLINE void multiply(const uint16_t *from, int64_t row, int64_t count) const {
    using Fetch = FetchBeside<1 + Step::kSlots>;
    Fetch fetch{{}, s.n, count, s.c_row, 0};
    fetch.arrays[0] = arrays.weight + row * s.c_row;
    for (int slot = 0; slot < Step::kSlots; ++slot)
      fetch.arrays[slot + 1] = arrays.slots[slot] + row * s.c_row;
    fetch.rate = Fetch::kParts * count * kFetchedQuarters / (4 * steps * kTileSide);
    for (int64_t j = 0; j < tiles_of(s.n); ++j) {
      clear_sums<Unit, kTiles>();
      for (int64_t i = 0; i < steps; ++i) {
        SplitStep<SplitWay<Unit, false, false>, kTiles, Fetch>::run(from + i * kTiles * kStepWords,
                                                                    columns + (j * steps + i) * kStepWords, fetch);
      }
      store_sums<Unit, kTiles>(gradient + j * kTileSide, kTileSide * gradient_row, gradient_row);
    }
  }
};

// What it needs: both operands packed, and a group of rows of the gradient, a line apart from powers of two.
struct SplitUpdatePlan {
  int64_t steps, row_words, column_words, gradient_row;

  static SplitUpdatePlan of(const GemmShape &s) {
    const int64_t steps = steps_of(s.k), columns = tiles_of(s.n);
    return {steps, grouped_tiles(tiles_of(s.m)) * steps * kStepWords, columns * steps * kStepWords,
            (columns + 1) * kTileSide};
  }
  int64_t floats() const { return (row_words + column_words) / 2 + kGroupSide * gradient_row; }
};

// False, and nothing is changed, where a factor cannot be split.
template <typename Unit>
bool update_split(const GemmShape &s, const float *a, const float *b, const UpdateRule &rule,
                  const UpdateArrays &arrays, float *scratch) {
  const SplitUpdatePlan plan = SplitUpdatePlan::of(s);
  const SplitOperand rows = SplitPlan::operand(a, s.a_row, s.a_column, kTileSide, s.m, s.k);
  const SplitOperand columns = SplitPlan::operand(b, s.b_column, s.b_row, kTileSide, s.n, s.k);
  auto *packed_rows = reinterpret_cast<uint16_t *>(scratch);
  uint16_t *packed_columns = packed_rows + plan.row_words;
  FloatVec broken = hn::Zero(FloatTag());
  pack_stationary(rows, rows.along() == columns.along(), packed_rows, broken);
  for (int64_t j = 0; j < tiles_of(s.n); ++j) {
    for (int64_t i = 0; i < plan.steps; ++i) {
      const int64_t first = j * kTileSide, depth = i * kTileDepth;
      pack_step(columns.part(first, depth, s.n - first, s.k - depth), false,
                packed_columns + (j * plan.steps + i) * kStepWords, broken);
    }
  }
  if (is_broken(broken)) return false;
  float *gradient = scratch + (plan.row_words + plan.column_words) / 2;
  const TileScope<Unit> scope;
  with_step(rule, [&](const auto &step) HWY_ATTR {
    SplitGradient<Unit, std::decay_t<decltype(step)>>{
        s, step, arrays, packed_rows, packed_columns, plan.steps, gradient, plan.gradient_row}
        .run();
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TUTTI_SPLITS_FLOATS

#endif  // toggled guard
