// SPDX-License-Identifier: Apache-2.0
//
// Exponentials, the normal distribution, tangents, angles and powers of vectors. Included inside a target region, hence
// the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_FUNCTIONS_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_FUNCTIONS_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_FUNCTIONS_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "backend/cpu/simd/simd-inl.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

template <size_t count>
HWY_INLINE FloatVec polynomial(FloatVec x, const float (&coefficients)[count]) {
  const FloatTag d;
  FloatVec sum = hn::Set(d, coefficients[count - 1]);
  for (size_t i = count - 1; i-- > 0;)
    sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

/// exp(x + rest) for x from -88 to 0 and a rest below an ulp of it, to 3e-9 and roundings; 0 below 2^-126.
HWY_INLINE FloatVec exponential_below_zero(FloatVec x, FloatVec rest) {
  static constexpr float kTerms[] = {0.499999934f, 0.166665205f, 0.0416683899f, 0.00836873564f, 0.00138145591f};
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  // The power of two, as the exponent of a float has it, lies in the last bits of a sum with this.
  const FloatVec shift = hn::Set(d, 0x1.8p23f + 127.0f);
  const FloatVec shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), shift);
  const FloatVec power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const FloatVec turns = hn::Sub(shifted, shift);
  FloatVec r = hn::MulAdd(turns, hn::Set(d, -0.693145751953125f), x);
  r = hn::Add(hn::MulAdd(turns, hn::Set(d, -1.428606765330187e-6f), rest), r);
  const FloatVec above_one = hn::MulAdd(polynomial(r, kTerms), hn::Mul(r, r), r);
  return hn::MulAdd(power, above_one, power);
}

/// What rounding took from a * a: with halves of a, whose products are exact, where nothing multiplies and adds at once
/// (Dekker, A Floating-Point Technique for Extending the Available Precision, 1971).
HWY_INLINE FloatVec rounded_off(FloatVec a, FloatVec square) {
  if constexpr (HWY_TARGET <= HWY_AVX2) return hn::MulSub(a, a, square);
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const FloatVec high = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xfffff000u)));
  const FloatVec low = hn::Sub(a, high);
  const FloatVec mixed = hn::Mul(hn::Add(high, high), low);
  return hn::Add(hn::Add(hn::Sub(hn::Mul(high, high), square), mixed), hn::Mul(low, low));
}

/// The normal distribution below -a: bell * ratio. Its bell goes to zero fast, what is left of it only as 1 / a does;
/// so that is a polynomial of 1 / (1 + 0.35 a), fitted for the least relative error, 3.2e-8. With roundings 5e-7 at
/// most.
struct NormalTail {
  FloatVec a;      // where; not beyond 13.26, where the bell is 0
  FloatVec bell;   // exp(-a * a / 2)
  FloatVec ratio;  // 1 / 2 at 0
};

HWY_INLINE NormalTail normal_tail(FloatVec distance) {
  static constexpr float kRatio[] = {0.13962168f, 0.13985723f,  0.11986542f, 0.10538323f,  -0.022822974f,
                                     0.15876764f, -0.25536629f, 0.14380671f, -0.029112658f};
  const FloatTag d;
  const FloatVec a = hn::Min(distance, hn::Set(d, 13.26f)), one = hn::Set(d, 1.0f);
  const FloatVec half = hn::Set(d, -0.5f);
  const FloatVec square = hn::Mul(a, a);
  const FloatVec bell = exponential_below_zero(hn::Mul(half, square), hn::Mul(half, rounded_off(a, square)));
  const FloatVec t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.35f), one));
  return {a, bell, hn::Mul(t, polynomial(t, kRatio))};
}

// As the functions of Cephes (Moshier): what is left of the nearest multiple of pi / 2 gives the tangent, or what the
// reciprocal of it is with its sign changed.
HWY_INLINE FloatVec tangent(FloatVec x) {
  const FloatTag d;
  static constexpr float kFactors[] = {3.33331568548e-1f, 1.33387994085e-1f, 5.34112807005e-2f,
                                       2.44301354525e-2f, 3.11992232697e-3f, 9.38540185543e-3f};
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec turns = hn::Round(hn::Mul(x, hn::Set(d, 0.636619772367581343f)));
  FloatVec r = hn::NegMulAdd(turns, hn::Set(d, 1.5703125f), x);
  r = hn::NegMulAdd(turns, hn::Set(d, 4.837512969970703125e-4f), r);
  r = hn::NegMulAdd(turns, hn::Set(d, 7.54978995489188216e-8f), r);
  const FloatVec square = hn::Mul(r, r);
  const FloatVec near = hn::MulAdd(hn::Mul(polynomial(square, kFactors), square), r, r);
  const auto odd = hn::Ne(hn::And(hn::ConvertTo(di, turns), hn::Set(di, 1)), hn::Zero(di));
  const FloatVec result = hn::IfThenElse(hn::RebindMask(d, odd), hn::Neg(hn::Div(hn::Set(d, 1.0f), near)), near);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, result);
}

// Angles up to pi / 4 of the smaller side over the larger, put into their place.
HWY_INLINE FloatVec arc_tangent2(FloatVec y, FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec height = hn::Abs(y), width = hn::Abs(x), zero = hn::Zero(d), half = hn::Set(d, 1.57079632679489662f);
  const FloatVec large = hn::Max(height, width), small = hn::Min(height, width);
  FloatVec ratio = hn::IfThenZeroElse(hn::Eq(large, zero), hn::Div(small, large));
  ratio = hn::IfThenElse(hn::Eq(small, hn::Set(d, INFINITY)), hn::Set(d, 1.0f), ratio);
  FloatVec angle = hn::Atan(d, ratio);
  angle = hn::IfThenElse(hn::Gt(height, width), hn::Sub(half, angle), angle);
  // Also of a zero with that sign.
  const auto is_left = hn::RebindMask(d, hn::Lt(hn::BitCast(di, x), hn::Zero(di)));
  angle = hn::IfThenElse(is_left, hn::Sub(hn::Set(d, 3.14159265358979324f), angle), angle);
  angle = hn::CopySign(angle, y);
  return hn::IfThenElse(hn::IsNaN(y), y, hn::IfThenElse(hn::IsNaN(x), x, angle));
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE FloatVec power(FloatVec x, FloatVec y) {
  return hn::Set(FloatTag(), std::pow(hn::GetLane(x), hn::GetLane(y)));
}
#else
using WideTag = hn::ScalableTag<double>;
using WideVec = hn::Vec<WideTag>;

template <size_t count>
HWY_INLINE WideVec wide_polynomial(WideVec x, const double (&coefficients)[count]) {
  const WideTag d;
  WideVec sum = hn::Set(d, coefficients[count - 1]);
  for (size_t i = count - 1; i-- > 0;)
    sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

// 2^(y (exponent + log2 mantissa)), mantissas from sqrt(1 / 2) to sqrt(2): the series of the inverse hyperbolic
// tangent, to 3e-10, and of the exponential function, to 2e-10.
HWY_INLINE WideVec wide_power(WideVec mantissa, WideVec exponent, WideVec y) {
  static constexpr double kLogarithm[] = {2.8853900817779268,  0.96179669392597560, 0.57707801635558536,
                                          0.41219858311113240, 0.32059889797532520, 0.26230818925253880};
  static constexpr double kExponential[] = {1.0,
                                            0.69314718055994531,
                                            0.24022650695910071,
                                            0.055504108664821580,
                                            0.0096181291076284772,
                                            0.0013333558146428443,
                                            0.00015403530393381609,
                                            0.000015252733804059840,
                                            0.0000013215486790144309};
  const WideTag d;
  const hn::RebindToSigned<WideTag> di;
  const WideVec one = hn::Set(d, 1.0), limit = hn::Set(d, 300.0), shift = hn::Set(d, 0x1.8p52);
  const WideVec s = hn::Div(hn::Sub(mantissa, one), hn::Add(mantissa, one));
  const WideVec log = hn::MulAdd(s, wide_polynomial(hn::Mul(s, s), kLogarithm), exponent);
  const WideVec t = hn::Max(hn::Min(hn::Mul(y, log), limit), hn::Neg(limit));
  const WideVec shifted = hn::Add(t, shift);  // the whole number lies in its last bits
  const WideVec part = wide_polynomial(hn::Sub(t, hn::Sub(shifted, shift)), kExponential);
  return hn::BitCast(d, hn::Add(hn::BitCast(di, part), hn::ShiftLeft<52>(hn::BitCast(di, shifted))));
}

/// As std::pow() but for rounding; x that is 0, or too small or large for this, and y beyond floats number by number.
HWY_INLINE FloatVec power(FloatVec x, FloatVec y) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Half<FloatTag> half;
  const hn::Half<decltype(di)> half_integers;
  const WideTag wide;
  const FloatVec size = hn::Abs(x), infinity = hn::Set(d, INFINITY), zero = hn::Zero(d);
  const auto is_usual =
      hn::And(hn::And(hn::Ge(size, hn::Set(d, 0x1.0p-126f)), hn::Lt(size, infinity)), hn::Lt(hn::Abs(y), infinity));
  if (HWY_UNLIKELY(!hn::AllTrue(d, is_usual))) {
    HWY_ALIGN float first[HWY_MAX_BYTES / sizeof(float)], second[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(x, d, first);
    hn::Store(y, d, second);
    for (int64_t i = 0; i < float_lanes(); ++i)
      first[i] = std::pow(first[i], second[i]);
    return hn::Load(d, first);
  }
  const auto bits = hn::BitCast(di, size);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const FloatVec mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const WideVec low = wide_power(hn::PromoteTo(wide, hn::LowerHalf(half, mantissa)),
                                 hn::PromoteTo(wide, hn::LowerHalf(half_integers, exponent)),
                                 hn::PromoteTo(wide, hn::LowerHalf(half, y)));
  const WideVec high = wide_power(hn::PromoteTo(wide, hn::UpperHalf(half, mantissa)),
                                  hn::PromoteTo(wide, hn::UpperHalf(half_integers, exponent)),
                                  hn::PromoteTo(wide, hn::UpperHalf(half, y)));
  const FloatVec result = hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Gt(x, zero)))) return result;
  // Below 0 there are whole powers, whose sign the odd ones change.
  const FloatVec y_half = hn::Mul(y, hn::Set(d, 0.5f));
  const auto is_whole = hn::Eq(hn::Trunc(y), y), is_odd = hn::Ne(hn::Trunc(y_half), y_half);
  const FloatVec signed_result = hn::IfThenElse(is_odd, hn::Neg(result), result);
  const FloatVec below = hn::IfThenElse(is_whole, signed_result, hn::Set(d, NAN));
  return hn::IfThenElse(hn::Lt(x, zero), below, result);
}
#endif

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
