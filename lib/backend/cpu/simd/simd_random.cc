// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_random.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

// Blocks of four words that are computed side by side.
constexpr int kBlocks = 16;
constexpr int64_t kWords = 4 * kBlocks;

// Words of blocks first .. first + kBlocks - 1 of a row, in order. Plain loops: the compiler makes vectors of them.
void philox_words(uint64_t key, uint64_t row, uint64_t first, uint32_t *HWY_RESTRICT out) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t block = first + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(block);
    c1[i] = static_cast<uint32_t>(block >> 32);
    c2[i] = static_cast<uint32_t>(row);
    c3[i] = static_cast<uint32_t>(row >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t product0 = uint64_t{0xD2511F53} * c0[i];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * c2[i];
      const uint32_t next0 = static_cast<uint32_t>(product1 >> 32) ^ c1[i] ^ k0;
      const uint32_t next2 = static_cast<uint32_t>(product0 >> 32) ^ c3[i] ^ k1;
      c0[i] = next0;
      c1[i] = static_cast<uint32_t>(product1);
      c2[i] = next2;
      c3[i] = static_cast<uint32_t>(product0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int i = 0; i < kBlocks; ++i) {
    out[4 * i] = c0[i];
    out[4 * i + 1] = c1[i];
    out[4 * i + 2] = c2[i];
    out[4 * i + 3] = c3[i];
  }
}

HWY_INLINE void uniforms(uint64_t key, uint64_t row, uint64_t first, float *HWY_RESTRICT out) {
  uint32_t words[kWords];
  philox_words(key, row, first, words);
  for (int64_t i = 0; i < kWords; ++i)
    out[i] = static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1.0p-24f;
}

void run_uniform(const RandomArray &array, float *out) {
  float values[kWords];
  for (int64_t r = 0; r < array.rows; ++r, out += array.width) {
    const uint64_t row = array.first_row + static_cast<uint64_t>(r) * array.row_step;
    const uint64_t block = array.first_block + static_cast<uint64_t>(r) * array.block_step;
    for (int64_t e = 0; e < array.width; e += kWords) {
      uniforms(array.key, row, block + static_cast<uint64_t>(e / 4), values);
      const int64_t count = HWY_MIN(kWords, array.width - e);
      for (int64_t i = 0; i < count; ++i)
        out[e + i] = values[i];
    }
  }
}

void run_dropout(const RandomArray &array, double rate, const float *x, float *y) {
  HWY_ALIGN float values[kWords];
  const int64_t lanes = float_lanes();
  const V keep = hn::Set(d, static_cast<float>(1.0 / (1.0 - rate)));
  // uniform >= rate in double is uniform >= the smallest float that is not below rate.
  float limit = static_cast<float>(rate);
  if (static_cast<double>(limit) < rate) limit = __builtin_nextafterf(limit, 2.0f);
  const V bound = hn::Set(d, limit);
  for (int64_t r = 0; r < array.rows; ++r, x += array.width, y += array.width) {
    const uint64_t row = array.first_row + static_cast<uint64_t>(r) * array.row_step;
    const uint64_t block = array.first_block + static_cast<uint64_t>(r) * array.block_step;
    for (int64_t e = 0; e < array.width; e += kWords) {
      uniforms(array.key, row, block + static_cast<uint64_t>(e / 4), values);
      const int64_t count = HWY_MIN(kWords, array.width - e);
      for (int64_t i = 0; i < count; i += lanes) {
        const int64_t left = HWY_MIN(lanes, count - i);
        const auto kept = hn::Ge(hn::Load(d, values + i), bound);
        store_first(d, hn::IfThenElseZero(kept, hn::Mul(load_first(d, x + e + i, left), keep)), y + e + i, left);
      }
    }
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_uniform);
HWY_EXPORT(run_dropout);

void random_uniform(const RandomArray &array, float *out) { HWY_DYNAMIC_DISPATCH(run_uniform)(array, out); }

void random_dropout(const RandomArray &array, double rate, const float *x, float *y) {
  HWY_DYNAMIC_DISPATCH(run_dropout)(array, rate, x, y);
}

}  // namespace tutti::impl::backend::cpu
#endif
