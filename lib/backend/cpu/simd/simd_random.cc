// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_random.h"

#include "base/random/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_random.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_functions-inl.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

constexpr hn::RebindToSigned<FloatTag> di;
constexpr hn::RebindToUnsigned<FloatTag> du;
constexpr hn::ScalableTag<uint64_t> du64;
using U = hn::Vec<decltype(du)>;
using U64 = hn::Vec<decltype(du64)>;

// Words 0, 1, 2 and 3 of as many blocks as there are lanes.
struct Words {
  U word0, word1, word2, word3;
};

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE Words philox_words(uint64_t key, uint64_t row, uint64_t first) {
  const base::PhiloxWords words = base::philox4x32(key, row, first);
  return {hn::Set(du, words[0]), hn::Set(du, words[1]), hn::Set(du, words[2]), hn::Set(du, words[3])};
}
#else
// A block's words in the lower halves of 64 bits each, where products find them; what lies above is of no meaning.
struct Blocks {
  U64 c0, c1, c2, c3;

  HWY_INLINE Blocks(uint64_t row, uint64_t first) {
    const U64 block = hn::Iota(du64, first);
    c0 = block;
    c1 = hn::ShiftRight<32>(block);
    c2 = hn::Set(du64, row);
    c3 = hn::Set(du64, row >> 32);
  }
  HWY_INLINE void round(U64 k0, U64 k1) {
    const U64 product0 = hn::MulEven(hn::BitCast(du, c0), hn::Set(du, base::kPhiloxMultipliers[0]));
    const U64 product1 = hn::MulEven(hn::BitCast(du, c2), hn::Set(du, base::kPhiloxMultipliers[1]));
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), k0);
    c1 = product1;
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), k1);
    c3 = product0;
  }
};

HWY_INLINE U lower_halves(U64 low, U64 high) { return hn::ConcatEven(du, hn::BitCast(du, high), hn::BitCast(du, low)); }

HWY_INLINE Words philox_words(uint64_t key, uint64_t row, uint64_t first) {
  Blocks low(row, first), high(row, first + hn::Lanes(du64));
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int i = 0; i < base::kPhiloxRounds; ++i) {
    const U64 first_key = hn::Set(du64, k0), second_key = hn::Set(du64, k1);
    low.round(first_key, second_key);
    high.round(first_key, second_key);
    k0 += base::kPhiloxWeyl[0];
    k1 += base::kPhiloxWeyl[1];
  }
  return {lower_halves(low.c0, high.c0), lower_halves(low.c1, high.c1), lower_halves(low.c2, high.c2),
          lower_halves(low.c3, high.c3)};
}
#endif

HWY_INLINE V uniform(U word) {
  return hn::Mul(hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<8>(word))), hn::Set(d, 0x1.0p-24f));
}

/// One number of each word.
template <typename Number>
HWY_INLINE void store_each(const Words &words, const Number &number, float *out) {
  hn::StoreInterleaved4(number(words.word0), number(words.word1), number(words.word2), number(words.word3), d, out);
}

struct Uniform {
  HWY_INLINE void operator()(const Words &words, float *out) const {
    store_each(
        words, [](U word) HWY_ATTR { return uniform(word); }, out);
  }
};

// -log((a + 1) / 2^32) as the logarithm of Cephes (Moshier), near 1 of what is left to it: that has all its digits.
HWY_INLINE V minus_log(U a) {
  static constexpr float kFactors[] = {3.3333331174e-1f,  -2.4999993993e-1f, 2.0000714765e-1f,
                                       -1.6668057665e-1f, 1.4249322787e-1f,  -1.2420140846e-1f,
                                       1.1676998740e-1f,  -1.1514610310e-1f, 7.0376836292e-2f};
  const U more = hn::Add(a, hn::Set(du, 1u));
  const V high = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<16>(more)));
  const V low = hn::ConvertTo(d, hn::BitCast(di, hn::And(more, hn::Set(du, 0xffffu))));
  const auto bits = hn::BitCast(di, hn::MulAdd(high, hn::Set(d, 65536.0f), low));
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));  // mantissas around 1
  const V mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const auto rest = hn::BitCast(di, hn::Not(a));
  const auto is_near = hn::RebindMask(d, hn::And(hn::Gt(rest, hn::Set(di, -1)), hn::Lt(rest, hn::Set(di, 0x4afb0ccc))));
  const V scale = hn::IfThenZeroElse(is_near, hn::ConvertTo(d, hn::Sub(exponent, hn::Set(di, 32))));
  const V x = hn::IfThenElse(is_near, hn::Mul(hn::ConvertTo(d, rest), hn::Set(d, -0x1.0p-32f)),
                             hn::Sub(mantissa, hn::Set(d, 1.0f)));
  const V square = hn::Mul(x, x);
  V sum = hn::Mul(hn::Mul(polynomial(x, kFactors), x), square);
  sum = hn::MulAdd(scale, hn::Set(d, -2.12194440e-4f), sum);
  sum = hn::Add(x, hn::NegMulAdd(square, hn::Set(d, 0.5f), sum));
  return hn::Neg(hn::MulAdd(scale, hn::Set(d, 0.693359375f), sum));
}

struct Pair {
  V first, second;
};

// base::normal_pair(): turns of b / 2^32, from the nearest quarter on.
HWY_INLINE Pair normal_pair(U a, U b) {
  static constexpr float kSine[] = {-1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f};
  static constexpr float kCosine[] = {4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f};
  const V one = hn::Set(d, 1.0f);
  const V radius = hn::Sqrt(hn::Mul(hn::Set(d, 2.0f), hn::Max(minus_log(a), hn::Zero(d))));
  const U quarter = hn::ShiftRight<30>(hn::Add(b, hn::Set(du, 1u << 29)));
  const V x = hn::Mul(hn::ConvertTo(d, hn::BitCast(di, hn::Sub(b, hn::ShiftLeft<30>(quarter)))),
                      hn::Set(d, 1.46291807926715968e-9f));  // 2 pi / 2^32
  const V square = hn::Mul(x, x);
  const V sine = hn::MulAdd(hn::Mul(polynomial(square, kSine), square), x, x);
  const V cosine =
      hn::MulAdd(hn::Mul(polynomial(square, kCosine), square), square, hn::NegMulAdd(square, hn::Set(d, 0.5f), one));
  const U unit = hn::Set(du, 1u), two = hn::Set(du, 2u);
  const auto is_odd = hn::RebindMask(d, hn::Eq(hn::And(quarter, unit), unit));
  // The cosine is below 0 in quarters 1 and 2, the sine in 2 and 3.
  const V cosine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(hn::Add(quarter, unit), two)));
  const V sine_sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(quarter, two)));
  return {hn::Mul(radius, hn::Xor(hn::IfThenElse(is_odd, sine, cosine), cosine_sign)),
          hn::Mul(radius, hn::Xor(hn::IfThenElse(is_odd, cosine, sine), sine_sign))};
}

struct Normal {
  V mean, deviation;
  HWY_INLINE void operator()(const Words &words, float *out) const {
    const Pair low = normal_pair(words.word0, words.word1), high = normal_pair(words.word2, words.word3);
    const auto scaled = [&](V z) HWY_ATTR { return hn::MulAdd(z, deviation, mean); };
    hn::StoreInterleaved4(scaled(low.first), scaled(low.second), scaled(high.first), scaled(high.second), d, out);
  }
};

// Within two deviations: M. Giles, Approximating the erfinv function, 2012, whose first branch reaches to 2.6.
HWY_INLINE V truncated_normal(U word) {
  static constexpr float kFactors[] = {1.50140941f,     0.246640727f,   -0.00417768164f,
                                       -0.00125372503f, 0.00021858087f, -4.39150654e-6f,
                                       -3.5233877e-6f,  3.43273939e-7f, 2.81022636e-8f};
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  // What lies within, 0.9545, times the place between -1 and 1.
  const auto place = hn::BitCast(di, hn::Xor(word, hn::Set(du, 0x80000000u)));
  const V x =
      hn::Mul(hn::Add(hn::ConvertTo(d, place), hn::Set(d, 0.5f)), hn::Set(d, 0.954499736103641586f * 0x1.0p-31f));
  const V w = hn::Neg(hn::Log(d, hn::Mul(hn::Sub(one, x), hn::Add(one, x))));
  const V z = hn::Mul(hn::Mul(polynomial(hn::Sub(w, hn::Set(d, 2.5f)), kFactors), x), hn::Set(d, 1.41421356237309505f));
  return hn::Max(hn::Min(z, two), hn::Neg(two));
}

struct TruncatedNormal {
  V mean, deviation;
  HWY_INLINE void operator()(const Words &words, float *out) const {
    store_each(
        words, [this](U word) HWY_ATTR { return hn::MulAdd(truncated_normal(word), deviation, mean); }, out);
  }
};

// Numbers of the blocks at once, and room for them.
HWY_INLINE int64_t step_numbers() { return 4 * float_lanes(); }
constexpr size_t kMostNumbers = 4 * HWY_MAX_BYTES / sizeof(float);

/// Calls make(words, to) for all numbers of an array: `to` is their place, or memory of its own where they are fewer.
template <typename Make>
HWY_INLINE void fill_numbers(const RandomArray &array, const Make &make, float *out) {
  HWY_ALIGN float values[kMostNumbers];
  const int64_t step = step_numbers();
  for (int64_t r = 0; r < array.rows; ++r, out += array.width) {
    const uint64_t row = array.first_row + static_cast<uint64_t>(r) * array.row_step;
    const uint64_t block = array.first_block + static_cast<uint64_t>(r) * array.block_step;
    for (int64_t e = 0; e < array.width; e += step) {
      const Words words = philox_words(array.key, row, block + static_cast<uint64_t>(e / 4));
      const int64_t count = HWY_MIN(step, array.width - e);
      make(words, count == step ? out + e : values);
      for (int64_t i = 0; count < step && i < count; ++i)
        out[e + i] = values[i];
    }
  }
}

void run_uniform(const RandomArray &array, float *out) { fill_numbers(array, Uniform(), out); }

void run_normal(const RandomArray &array, bool is_truncated, double mean, double deviation, float *out) {
  const V middle = hn::Set(d, static_cast<float>(mean)), spread = hn::Set(d, static_cast<float>(deviation));
  is_truncated ? fill_numbers(array, TruncatedNormal{middle, spread}, out)
               : fill_numbers(array, Normal{middle, spread}, out);
}

void run_dropout(const RandomArray &array, double rate, const float *x, float *y) {
  HWY_ALIGN float values[kMostNumbers];
  const int64_t lanes = float_lanes(), step = step_numbers();
  const V keep = hn::Set(d, static_cast<float>(1.0 / (1.0 - rate)));
  // uniform >= rate in double is uniform >= the smallest float that is not below rate.
  float limit = static_cast<float>(rate);
  if (static_cast<double>(limit) < rate) limit = __builtin_nextafterf(limit, 2.0f);
  const V bound = hn::Set(d, limit);
  for (int64_t r = 0; r < array.rows; ++r, x += array.width, y += array.width) {
    const uint64_t row = array.first_row + static_cast<uint64_t>(r) * array.row_step;
    const uint64_t block = array.first_block + static_cast<uint64_t>(r) * array.block_step;
    for (int64_t e = 0; e < array.width; e += step) {
      Uniform()(philox_words(array.key, row, block + static_cast<uint64_t>(e / 4)), values);
      const int64_t count = HWY_MIN(step, array.width - e);
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
HWY_EXPORT(run_normal);
HWY_EXPORT(run_dropout);

void random_uniform(const RandomArray &array, float *out) { HWY_DYNAMIC_DISPATCH(run_uniform)(array, out); }

void random_normal(const RandomArray &array, bool is_truncated, double mean, double deviation, float *out) {
  HWY_DYNAMIC_DISPATCH(run_normal)(array, is_truncated, mean, deviation, out);
}

void random_dropout(const RandomArray &array, double rate, const float *x, float *y) {
  HWY_DYNAMIC_DISPATCH(run_dropout)(array, rate, x, y);
}

}  // namespace tutti::impl::backend::cpu
#endif
