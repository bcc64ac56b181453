// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/split_gemm_emulated.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/split_gemm_emulated.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd_split_gemm-inl.h"
#include "backend/cpu/simd/simd_split_gemm_update-inl.h"

#include <hwy/highway.h>

#ifndef TUTTI_TESTS_EMULATED_UNIT
#define TUTTI_TESTS_EMULATED_UNIT
namespace tutti::testing {

/// Eight registers of 16 rows of 64 bytes; sums as the manual defines them for TDPBF16PS. Between scopes they hold what
/// no test expects.
struct EmulatedUnit {
  static constexpr int kSide = impl::backend::cpu::kTileSide;
  static inline uint32_t registers[8][kSide][kSide];

  static void begin() { std::memset(registers, 0x7F, sizeof(registers)); }
  static void end() { std::memset(registers, 0x7F, sizeof(registers)); }

  template <int kRegister>
  static void zero() {
    std::memset(registers[kRegister], 0, sizeof(registers[kRegister]));
  }
  template <int kRegister, int kOffset = 0>
  static void load(const void *from, int64_t row_bytes) {
    for (int row = 0; row < kSide; ++row)
      std::memcpy(registers[kRegister][row], static_cast<const char *>(from) + kOffset + row * row_bytes, 4 * kSide);
  }
  template <int kRegister>
  static void store(void *to, int64_t row_bytes) {
    for (int row = 0; row < kSide; ++row)
      std::memcpy(static_cast<char *>(to) + row * row_bytes, registers[kRegister][row], 4 * kSide);
  }
  template <int kSum, int kLeft, int kRight>
  static void multiply() {
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        float first = 0, second = 0;
        for (int pair = 0; pair < kSide; ++pair) {
          const uint32_t left = registers[kLeft][i][pair], right = registers[kRight][pair][j];
          first += as_float(left << 16) * as_float(right << 16);
          second += as_float(left & 0xFFFF0000u) * as_float(right & 0xFFFF0000u);
        }
        const float sum = as_float(registers[kSum][i][j]) + (first + second);
        std::memcpy(&registers[kSum][i][j], &sum, sizeof(sum));
      }
    }
  }

 private:
  static float as_float(uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
};

}  // namespace tutti::testing
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

#if TUTTI_SPLITS_FLOATS
using testing::EmulatedUnit;

bool emulates_split() { return true; }
int64_t scratch_of_product(const SplitShape &s) { return SplitPlan::of(s, nullptr, nullptr).floats(); }
int64_t scratch_of_update(const GemmShape &s) { return SplitUpdatePlan::of(s).floats(); }
int64_t run_product(const SplitShape &s, const float *a, const float *b, float *c, const GemmEpilogue &epilogue,
                    float *scratch) {
  return multiply_split<EmulatedUnit>(s, a, b, c, epilogue, scratch);
}
bool run_update(const GemmShape &s, const float *a, const float *b, const UpdateRule &rule, const UpdateArrays &arrays,
                float *scratch) {
  return update_split<EmulatedUnit>(s, a, b, rule, arrays, scratch);
}
#else
bool emulates_split() { return false; }
int64_t scratch_of_product(const SplitShape &) { return 0; }
int64_t scratch_of_update(const GemmShape &) { return 0; }
int64_t run_product(const SplitShape &, const float *, const float *, float *, const GemmEpilogue &, float *) {
  return 0;
}
bool run_update(const GemmShape &, const float *, const float *, const UpdateRule &, const UpdateArrays &, float *) {
  return false;
}
#endif

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(emulates_split);
HWY_EXPORT(scratch_of_product);
HWY_EXPORT(scratch_of_update);
HWY_EXPORT(run_product);
HWY_EXPORT(run_update);

bool has_emulated_split() { return HWY_DYNAMIC_DISPATCH(emulates_split)(); }

int64_t emulated_split_scratch_floats(const SplitShape &shape) {
  return HWY_DYNAMIC_DISPATCH(scratch_of_product)(shape);
}

int64_t emulated_split_rows(const SplitShape &shape, const float *a, const float *b, float *c,
                            const GemmEpilogue &epilogue, float *scratch) {
  return HWY_DYNAMIC_DISPATCH(run_product)(shape, a, b, c, epilogue, scratch);
}

int64_t emulated_split_update_scratch_floats(const GemmShape &shape) {
  return HWY_DYNAMIC_DISPATCH(scratch_of_update)(shape);
}

bool emulated_split_gemm_update(const GemmShape &shape, const float *a, const float *b, const UpdateRule &rule,
                                const UpdateArrays &arrays, float *scratch) {
  return HWY_DYNAMIC_DISPATCH(run_update)(shape, a, b, rule, arrays, scratch);
}

}  // namespace tutti::impl::backend::cpu
#endif
