// SPDX-License-Identifier: Apache-2.0
//
// Tangents and angles of vectors. Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_ANGLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_ANGLES_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_ANGLES_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_ANGLES_INL_H_
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

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
