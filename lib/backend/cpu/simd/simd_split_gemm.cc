// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_split_gemm.h"

#include <algorithm>

#include "backend/cpu/simd/amx.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_split_gemm.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd_split_gemm-inl.h"
#include "backend/cpu/simd/simd_split_gemm_update-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

#if TUTTI_SPLITS_FLOATS && TUTTI_HAS_TILE_UNIT

bool splits_floats() { return has_amx(); }

int64_t split_scratch_floats(const SplitShape &s) { return SplitPlan::of(s, nullptr, nullptr).floats(); }

int64_t split_update_scratch_floats(const GemmShape &s) { return SplitUpdatePlan::of(s).floats(); }

int64_t split_product(const SplitShape &s, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                      float *scratch) {
  return multiply_split<AmxUnit>(s, a, b, c, epilogue, scratch);
}

bool split_update(const GemmShape &s, const float *a, const float *b, const UpdateRule &rule,
                  const UpdateArrays &arrays, float *scratch) {
  return update_split<AmxUnit>(s, a, b, rule, arrays, scratch);
}

#else

bool splits_floats() { return false; }
int64_t split_scratch_floats(const SplitShape &) { return 0; }
int64_t split_update_scratch_floats(const GemmShape &) { return 0; }
int64_t split_product(const SplitShape &, const float *, const float *, float *, const GemmEpilogue &, float *) {
  return 0;
}
bool split_update(const GemmShape &, const float *, const float *, const UpdateRule &, const UpdateArrays &, float *) {
  return false;
}

#endif

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(splits_floats);
HWY_EXPORT(split_scratch_floats);
HWY_EXPORT(split_update_scratch_floats);
HWY_EXPORT(split_product);
HWY_EXPORT(split_update);

namespace {

// Below these the vectors are as fast.
constexpr int64_t kLeastSide = 16, kLeastDepth = 32, kLeastResults = 2048;
constexpr int64_t kLeastUpdateSide = 32;

bool can_split(const GemmShape &s) {
  const bool rows_lie = s.a_row == 1 || s.a_column == 1, columns_lie = s.b_row == 1 || s.b_column == 1;
  return rows_lie && columns_lie && HWY_DYNAMIC_DISPATCH(splits_floats)();
}

}  // namespace

bool split_gemm_is_possible(const SplitShape &shape) {
  const GemmShape &s = shape.matrix;
  return can_split(s) && (!s.accumulate || (s.k <= kSplitAddDepth && s.k * s.n <= kSplitAddElements));
}

bool split_gemm_suits(const SplitShape &shape) {
  const GemmShape &s = shape.matrix;
  return std::min(s.m, s.n) >= kLeastSide && s.k >= kLeastDepth && s.m * s.n >= kLeastResults &&
         split_gemm_is_possible(shape);
}

bool split_gemm_update_suits(const GemmShape &shape) {
  return std::min(shape.m, shape.n) >= kLeastUpdateSide && shape.k >= kLeastDepth && shape.k <= kGemmUpdateDepth &&
         shape.b_column == 1 && !shape.accumulate && can_split(shape);
}

int64_t split_gemm_scratch_floats(const GemmShape &shape) {
  int64_t floats = std::max(HWY_DYNAMIC_DISPATCH(split_scratch_floats)(shape), gemm_scratch_floats(shape));
  if (!shape.accumulate) return floats;
  // Some of the rows may be left to vectors, which have other ways for up to 128 rows, and for 128 itself.
  for (const int64_t rows : {int64_t{127}, int64_t{128}}) {
    GemmShape rest = shape;
    rest.m = std::min(shape.m, rows);
    floats = std::max(floats, gemm_scratch_floats(rest));
  }
  return floats;
}

int64_t split_gemm_update_scratch_floats(const GemmShape &shape) {
  return std::max(HWY_DYNAMIC_DISPATCH(split_update_scratch_floats)(shape), gemm_update_scratch_floats(shape));
}

int64_t split_rows_scratch_floats(const SplitShape &shape) { return HWY_DYNAMIC_DISPATCH(split_scratch_floats)(shape); }

int64_t split_rows(const SplitShape &shape, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                   float *scratch) {
  return HWY_DYNAMIC_DISPATCH(split_product)(shape, a, b, c, epilogue, scratch);
}

void split_gemm(const GemmShape &shape, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                float *scratch) {
  split_gemm_beside(0, shape, a, b, c, epilogue, scratch);
}

void split_gemm_beside(int32_t reader, const GemmShape &shape, const float *a, const float *b, float *c,
                       const GemmEpilogue &epilogue, float *scratch) {
  if (shape.m <= 0 || shape.n <= 0) return;
  SplitShape split(shape);
  split.reader = reader;
  const int64_t done = split_rows(split, a, b, c, epilogue, scratch);
  if (done == shape.m) return;
  GemmShape rest = shape;
  rest.m -= done;
  GemmEpilogue after = epilogue;
  if (after.mask != nullptr) after.mask += done * shape.c_row;
  gemm(rest, a + done * shape.a_row, b, c + done * shape.c_row, after, scratch);
}

void split_gemm_update(const GemmShape &shape, const float *a, const float *b, const UpdateRule &rule,
                       const UpdateArrays &arrays, float *scratch) {
  if (shape.m <= 0 || shape.n <= 0) return;
  if (HWY_DYNAMIC_DISPATCH(split_update)(shape, a, b, rule, arrays, scratch)) return;
  gemm_update(shape, a, b, rule, arrays, scratch);
}

}  // namespace tutti::impl::backend::cpu
#endif
