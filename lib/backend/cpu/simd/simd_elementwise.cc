// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/simd/simd_cast.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_elementwise.cc"
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

struct Operands {
  const float *a;
  const float *b;
  const float *c;
  float *out;
  int64_t n;
  bool repeats_a = false;  // one number, of sums, differences, products and quotients
  bool repeats_b = false;
};

// Operands by value here: a stored vector may change what lies in memory, so addresses would be loaded again for each.

template <typename Function>
HWY_INLINE void map1(const Operands o, const Function &function) {
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  for (; i + lanes <= o.n; i += lanes)
    hn::StoreU(function(hn::LoadU(d, o.a + i)), d, o.out + i);
  if (i < o.n) store_first(d, function(load_first(d, o.a + i, o.n - i)), o.out + i, o.n - i);
}

template <typename Function>
HWY_INLINE void map2(const Operands o, const Function &function) {
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  for (; i + lanes <= o.n; i += lanes) {
    hn::StoreU(function(hn::LoadU(d, o.a + i), hn::LoadU(d, o.b + i)), d, o.out + i);
  }
  if (i < o.n) {
    const int64_t left = o.n - i;
    store_first(d, function(load_first(d, o.a + i, left), load_first(d, o.b + i, left)), o.out + i, left);
  }
}

template <typename Function>
HWY_INLINE void arithmetic(const Operands o, const Function &function) {
  if (o.repeats_a) {
    const V a = hn::Set(d, *o.a);
    return map1({o.b, nullptr, nullptr, o.out, o.n}, [=](V b) HWY_ATTR { return function(a, b); });
  }
  if (o.repeats_b) {
    const V b = hn::Set(d, *o.b);
    return map1(o, [=](V a) HWY_ATTR { return function(a, b); });
  }
  map2(o, function);
}

template <typename Function>
HWY_INLINE void map3(const Operands o, const Function &function) {
  each_vector(o.n, [=](int64_t i, auto count) HWY_ATTR {
    const V result =
        function(load_first(d, o.a + i, count), load_first(d, o.b + i, count), load_first(d, o.c + i, count));
    store_first(d, result, o.out + i, count);
  });
}

template <typename Function>
HWY_INLINE void scalar2(const Operands o, const Function &function) {
  for (int64_t i = 0; i < o.n; ++i)
    o.out[i] = function(o.a[i], o.b[i]);
}

HWY_INLINE V one() { return hn::Set(d, 1.0f); }
// Of either sign; NaN and numbers too small for the floating point mode are not.
HWY_INLINE auto is_zero_bits(V x) {
  const hn::RebindToUnsigned<D> du;
  return hn::MaskFromVec(
      hn::BitCast(d, hn::VecFromMask(du, hn::Eq(hn::ShiftLeft<1>(hn::BitCast(du, x)), hn::Zero(du)))));
}
template <typename Mask>
HWY_INLINE V as_number(Mask mask) {
  return hn::IfThenElseZero(mask, one());
}
HWY_INLINE V keep_nan(V x, V result) { return hn::IfThenElse(hn::IsNaN(x), x, result); }

// exp for any x: the library's is exact to an ulp up to 104 and maps NaN to 0.
HWY_INLINE V exponential(V x) { return keep_nan(x, hn::Exp(d, hn::Min(x, hn::Set(d, 89.0f)))); }

HWY_INLINE V logarithm(V x) {
  const V regular = hn::Log(d, x);
  const V infinity = hn::Set(d, INFINITY);
  V result = hn::IfThenElse(hn::Eq(x, infinity), infinity, regular);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), result, hn::Set(d, NAN));
}

HWY_INLINE V logarithm_of_one_more(V x) {
  const V infinity = hn::Set(d, INFINITY), least = hn::Neg(one());
  V result = hn::IfThenElse(hn::Eq(x, infinity), infinity, hn::Log1p(d, x));
  result = hn::IfThenElse(hn::Eq(x, least), hn::Neg(infinity), result);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, result);
  return hn::IfThenElse(hn::Ge(x, least), result, hn::Set(d, NAN));
}

// The library's goes wrong far from 0: there, number by number.
template <typename Vector, typename Scalar>
HWY_INLINE V periodic(V x, const Vector &vector, const Scalar &scalar, float limit = 30000.0f) {
  if (hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, limit)))) return vector(x);
  HWY_ALIGN float values[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, values);
  for (float &value : values)
    value = scalar(value);
  return hn::Load(d, values);
}

HWY_INLINE V logistic(V x) {
  const V inverse = hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0f)));
  return keep_nan(x, hn::Div(one(), hn::Add(one(), inverse)));
}

HWY_INLINE V hyperbolic_tangent(V x) { return keep_nan(x, hn::Tanh(d, x)); }

// log(1 + exp(-|x|))
HWY_INLINE V log1p_exp_minus_abs(V x) { return hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x)))); }

HWY_INLINE V softplus(V x) { return keep_nan(x, hn::Add(hn::Max(x, hn::Zero(d)), log1p_exp_minus_abs(x))); }

HWY_INLINE V inner_of_gelu(V x) {
  const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x);
  return hn::Mul(hn::Set(d, 0.7978845608028654f), cubic);
}

HWY_INLINE V gelu_tanh(V x) {
  const V half = hn::Mul(hn::Set(d, 0.5f), x);
  return hn::MulAdd(half, hyperbolic_tangent(inner_of_gelu(x)), half);
}

HWY_INLINE V gelu_tanh_gradient(V dy, V x) {
  const V t = hyperbolic_tangent(inner_of_gelu(x));
  // Where 1 - t * t is 0, x is large enough; squares of more overflow.
  const V near = hn::Max(hn::Min(x, hn::Set(d, 64.0f)), hn::Set(d, -64.0f));
  const V inner =
      hn::Mul(hn::Set(d, 0.7978845608028654f), hn::MulAdd(hn::Mul(near, near), hn::Set(d, 3.0f * 0.044715f), one()));
  const V half = hn::Set(d, 0.5f);
  const V slope = hn::Mul(hn::Mul(half, near), hn::Mul(hn::NegMulAdd(t, t, one()), inner));
  return hn::Mul(dy, hn::MulAdd(half, hn::Add(one(), t), slope));
}

HWY_INLINE V error_function(V x) {
  // erf(x) / x by x * x below 1, to 1.2e-9.
  static constexpr float kNear[] = {1.1283792f,    -0.37612626f,    0.11283585f,   -0.026853812f,
                                    0.0051883273f, -0.00080101890f, 7.8538462e-05f};
  const V magnitude = hn::Abs(x);
  const NormalTail tail = normal_tail(hn::Mul(magnitude, hn::Set(d, 1.41421356f)));
  const V far = hn::NegMulAdd(hn::Add(tail.bell, tail.bell), tail.ratio, one());
  const V near = hn::Mul(x, polynomial(hn::Mul(x, x), kNear));
  return keep_nan(x, hn::IfThenElse(hn::Lt(magnitude, one()), near, hn::CopySign(far, x)));
}

// x times the normal distribution below x.
HWY_INLINE V gelu(V x) {
  const NormalTail tail = normal_tail(hn::Abs(x));
  const V positive = hn::Max(x, hn::Zero(d));
  return keep_nan(x, hn::NegMulAdd(hn::Mul(tail.a, tail.bell), tail.ratio, positive));
}

HWY_INLINE V gelu_gradient(V dy, V x) {
  const NormalTail tail = normal_tail(hn::Abs(x));
  const V below = hn::Mul(tail.bell, hn::NegMulAdd(tail.a, hn::Set(d, 0.39894228f), tail.ratio));
  const V slope = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, hn::Sub(one(), below));
  return hn::Mul(dy, keep_nan(x, slope));
}

HWY_INLINE V sign_of(V x) {
  const V zero = hn::Zero(d);
  const V sign = hn::Sub(as_number(hn::Gt(x, zero)), as_number(hn::Lt(x, zero)));
  return keep_nan(x, sign);
}

void run_transcendental(const ElementInstruction &instruction, const Operands &o) {
  const V alpha = hn::Set(d, instruction.constant);
  switch (instruction.op) {
    case ElementOp::exp:
      return map1(o, [](V x) HWY_ATTR { return exponential(x); });
    case ElementOp::log:
      return map1(o, [](V x) HWY_ATTR { return logarithm(x); });
    case ElementOp::log1p:
      return map1(o, [](V x) HWY_ATTR { return logarithm_of_one_more(x); });
    case ElementOp::expm1:
      return map1(o, [](V x) HWY_ATTR { return keep_nan(x, hn::Expm1(d, hn::Min(x, hn::Set(d, 89.0f)))); });
    case ElementOp::sin:
      return map1(o, [](V x) HWY_ATTR {
        return periodic(
            x, [](V y) HWY_ATTR { return hn::Sin(d, y); }, [](float y) { return std::sin(y); });
      });
    case ElementOp::cos:
      return map1(o, [](V x) HWY_ATTR {
        return periodic(
            x, [](V y) HWY_ATTR { return hn::Cos(d, y); }, [](float y) { return std::cos(y); });
      });
    case ElementOp::tangent:
      return map1(o, [](V x) HWY_ATTR {
        return periodic(
            x, [](V y) HWY_ATTR { return tangent(y); }, [](float y) { return std::tan(y); }, 2000.0f);
      });
    case ElementOp::arc_tangent:
      return map1(o, [](V x) HWY_ATTR { return hn::Atan(d, x); });
    case ElementOp::arc_sine:
      return map1(o, [](V x) HWY_ATTR { return hn::Asin(d, x); });
    case ElementOp::arc_cosine:
      return map1(o, [](V x) HWY_ATTR { return hn::Acos(d, x); });
    case ElementOp::arc_tangent2:
      return map2(o, [](V y, V x) HWY_ATTR { return arc_tangent2(y, x); });
    case ElementOp::log_scaled:
      return map1(o, [alpha](V x) HWY_ATTR { return hn::Mul(logarithm(x), alpha); });
    case ElementOp::erf:
      return map1(o, [](V x) HWY_ATTR { return error_function(x); });
    case ElementOp::tanh:
      return map1(o, [](V x) HWY_ATTR { return hyperbolic_tangent(x); });
    case ElementOp::sigmoid:
      return map1(o, [](V x) HWY_ATTR { return logistic(x); });
    case ElementOp::silu:
      return map1(o, [](V x) HWY_ATTR { return hn::Mul(x, logistic(x)); });
    case ElementOp::softplus:
      return map1(o, [](V x) HWY_ATTR { return softplus(x); });
    case ElementOp::gelu:
      return map1(o, [](V x) HWY_ATTR { return gelu(x); });
    case ElementOp::gelu_tanh:
      return map1(o, [](V x) HWY_ATTR { return gelu_tanh(x); });
    case ElementOp::gelu_gradient:
      return map2(o, [](V dy, V x) HWY_ATTR { return gelu_gradient(dy, x); });
    case ElementOp::gelu_tanh_gradient:
      return map2(o, [](V dy, V x) HWY_ATTR { return gelu_tanh_gradient(dy, x); });
    case ElementOp::elu:
      return map1(o, [alpha](V x) HWY_ATTR {
        const V below = hn::Mul(alpha, hn::Expm1(d, hn::Min(x, hn::Zero(d))));
        return keep_nan(x, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, below));
      });
    case ElementOp::pow:
      return map2(o, [](V a, V b) HWY_ATTR { return power(a, b); });
    case ElementOp::sigmoid_cross_entropy:
      return map2(o, [](V x, V t) HWY_ATTR {
        const V linear = hn::NegMulAdd(x, t, hn::Max(x, hn::Zero(d)));
        return keep_nan(x, hn::Add(linear, log1p_exp_minus_abs(x)));
      });
    default:
      break;
  }
}

// What is equal to a limit becomes the limit, whose zero may have another sign; relu leaves such zeros as they are.
void run_limits(const ElementInstruction &instruction, const Operands &o) {
  const V low = hn::Set(d, instruction.low), high = hn::Set(d, instruction.high), zero = hn::Zero(d);
  const V summand = hn::Set(d, instruction.constant);
  const auto at_most = [high](V x) HWY_ATTR { return hn::IfThenElse(hn::Ge(x, high), high, x); };
  const auto limited_relu = [=](V x) HWY_ATTR { return at_most(hn::IfThenZeroElse(hn::Lt(x, zero), x)); };
  switch (instruction.op) {
    case ElementOp::clamp:
      return map1(o, [=](V x) HWY_ATTR { return at_most(hn::IfThenElse(hn::Le(x, low), low, x)); });
    case ElementOp::limited_sum:
      return map1(o, [=](V x) HWY_ATTR { return limited_relu(hn::Add(x, summand)); });
    default:
      return map1(o, limited_relu);
  }
}

void run_unary(const ElementInstruction &instruction, const Operands &o) {
  const V alpha = hn::Set(d, instruction.constant);
  switch (instruction.op) {
    case ElementOp::identity:
      return map1(o, [](V x) HWY_ATTR { return x; });
    case ElementOp::neg:
      return map1(o, [](V x) HWY_ATTR { return hn::Neg(x); });
    case ElementOp::abs:
      return map1(o, [](V x) HWY_ATTR { return hn::Abs(x); });
    case ElementOp::sign:
      return map1(o, [](V x) HWY_ATTR { return sign_of(x); });
    case ElementOp::sqrt:
      return map1(o, [](V x) HWY_ATTR { return hn::Sqrt(x); });
    case ElementOp::rsqrt:
      return map1(o, [](V x) HWY_ATTR { return hn::Div(one(), hn::Sqrt(x)); });
    case ElementOp::square:
      return map1(o, [](V x) HWY_ATTR { return hn::Mul(x, x); });
    case ElementOp::reciprocal:
      return map1(o, [](V x) HWY_ATTR { return hn::Div(one(), x); });
    case ElementOp::relu:
      return map1(o, [](V x) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x); });
    case ElementOp::leaky_relu:
      return map1(o, [alpha](V x) HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(alpha, x)); });
    case ElementOp::floor:
      return map1(o, [](V x) HWY_ATTR { return hn::Floor(x); });
    case ElementOp::ceil:
      return map1(o, [](V x) HWY_ATTR { return hn::Ceil(x); });
    case ElementOp::round:
      return map1(o, [](V x) HWY_ATTR { return hn::Round(x); });
    case ElementOp::logical_not:
      return map1(o, [](V x) HWY_ATTR { return as_number(hn::Eq(x, hn::Zero(d))); });
    case ElementOp::to_boolean:
      return map1(o, [](V x) HWY_ATTR { return hn::IfThenElse(is_zero_bits(x), hn::Zero(d), one()); });
    case ElementOp::is_finite:
      return map1(o, [](V x) HWY_ATTR { return as_number(hn::IsFinite(x)); });
    case ElementOp::mul_scaled:
      return map2(o, [alpha](V a, V b) HWY_ATTR { return hn::Mul(a, hn::Mul(b, alpha)); });
    case ElementOp::prelu:
      return map2(o,
                  [](V x, V slope) HWY_ATTR { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(slope, x)); });
    case ElementOp::clamp:
    case ElementOp::limited_relu:
    case ElementOp::limited_sum:
      return run_limits(instruction, o);
    default:
      return run_transcendental(instruction, o);
  }
}

void run_comparison(const ElementInstruction &instruction, const Operands &o) {
  const V zero = hn::Zero(d);
  switch (instruction.op) {
    case ElementOp::equal:
      return map2(o, [](V a, V b) HWY_ATTR { return as_number(hn::Eq(a, b)); });
    case ElementOp::not_equal:
      return map2(o, [](V a, V b) HWY_ATTR { return hn::IfThenZeroElse(hn::Eq(a, b), one()); });
    case ElementOp::less:
      return map2(o, [](V a, V b) HWY_ATTR { return as_number(hn::Lt(a, b)); });
    case ElementOp::less_equal:
      return map2(o, [](V a, V b) HWY_ATTR { return as_number(hn::Le(a, b)); });
    case ElementOp::greater:
      return map2(o, [](V a, V b) HWY_ATTR { return as_number(hn::Gt(a, b)); });
    case ElementOp::greater_equal:
      return map2(o, [](V a, V b) HWY_ATTR { return as_number(hn::Ge(a, b)); });
    case ElementOp::logical_and:
      return map2(o, [zero](V a, V b) HWY_ATTR { return as_number(hn::And(hn::Ne(a, zero), hn::Ne(b, zero))); });
    case ElementOp::logical_or:
      return map2(o, [zero](V a, V b) HWY_ATTR { return as_number(hn::Or(hn::Ne(a, zero), hn::Ne(b, zero))); });
    case ElementOp::logical_xor:
      return map2(o, [zero](V a, V b) HWY_ATTR { return as_number(hn::Xor(hn::Ne(a, zero), hn::Ne(b, zero))); });
    default:
      break;
  }
}

// What is left of a, with the sign of b.
float floor_rest(float a, float b) {
  const float rest = std::fmod(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

// Exact where products are rounded with the sum: a quotient below 2^23 that was rounded up to a whole number is one too
// large, and what is left of either fits in a float. Others, and divisors near 0, number by number.
HWY_INLINE V floor_rests(V a, V b) {
  const V zero = hn::Zero(d), dividend = hn::Abs(a), divisor = hn::Abs(b);
  const V quotient = hn::Div(dividend, divisor);
  const auto is_exact = hn::And(hn::Lt(quotient, hn::Set(d, 0x1.0p23f)), hn::Gt(divisor, hn::Set(d, 0x1.0p-100f)));
  if (HWY_UNLIKELY(!hn::AllTrue(d, is_exact))) {
    HWY_ALIGN float first[HWY_MAX_BYTES / sizeof(float)], second[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(a, d, first), hn::Store(b, d, second);
    for (int64_t i = 0; i < float_lanes(); ++i)
      first[i] = floor_rest(first[i], second[i]);
    return hn::Load(d, first);
  }
  V rest = hn::NegMulAdd(hn::Trunc(quotient), divisor, dividend);
  rest = hn::IfThenElse(hn::Lt(rest, zero), hn::Add(rest, divisor), rest);
  rest = hn::CopySign(hn::IfThenElse(hn::Lt(dividend, divisor), dividend, rest), a);
  const auto differs = hn::Xor(hn::Lt(rest, zero), hn::Lt(b, zero));
  const auto is_moved = hn::And(hn::Ne(rest, zero), differs);
  return hn::IfThenElse(is_moved, hn::Add(rest, b), rest);
}

HWY_INLINE V floor_quotient(V a, V b) { return hn::Floor(hn::Div(a, b)); }

void run_binary(const ElementInstruction &instruction, const Operands &o) {
  switch (instruction.op) {
    case ElementOp::add:
      return arithmetic(o, [](V a, V b) HWY_ATTR { return hn::Add(a, b); });
    case ElementOp::sub:
      return arithmetic(o, [](V a, V b) HWY_ATTR { return hn::Sub(a, b); });
    case ElementOp::mul:
      return arithmetic(o, [](V a, V b) HWY_ATTR { return hn::Mul(a, b); });
    case ElementOp::div:
      return arithmetic(o, [](V a, V b) HWY_ATTR { return hn::Div(a, b); });
    case ElementOp::maximum:
      return map2(o, [](V a, V b) HWY_ATTR { return keep_nan(a, hn::IfThenElse(hn::Ge(a, b), a, b)); });
    case ElementOp::minimum:
      return map2(o, [](V a, V b) HWY_ATTR { return keep_nan(a, hn::IfThenElse(hn::Le(a, b), a, b)); });
    case ElementOp::mod:
      if constexpr (HWY_TARGET > HWY_AVX2) return scalar2(o, floor_rest);
      return map2(o, [](V a, V b) HWY_ATTR { return floor_rests(a, b); });
    case ElementOp::floor_divide:
      return map2(o, [](V a, V b) HWY_ATTR { return floor_quotient(a, b); });
    case ElementOp::relu_gradient:
      return map2(o, [](V dy, V y) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy); });
    case ElementOp::sigmoid_gradient:
      return map2(o, [](V dy, V y) HWY_ATTR { return hn::Mul(dy, hn::Mul(y, hn::Sub(one(), y))); });
    case ElementOp::tanh_gradient:
      return map2(o, [](V dy, V y) HWY_ATTR { return hn::Mul(dy, hn::NegMulAdd(y, y, one())); });
    default:
      return run_comparison(instruction, o);
  }
}

void run_instruction(const ElementInstruction &instruction, const Operands &o) {
  if (instruction.op == ElementOp::select) {
    return map3(o, [](V condition, V a, V b) HWY_ATTR { return hn::IfThenElse(hn::Ne(condition, hn::Zero(d)), a, b); });
  }
  const bool binary = instruction.op >= ElementOp::add ||
                      (instruction.op >= ElementOp::relu_gradient && instruction.op <= ElementOp::tanh_gradient);
  const bool in_other_list = instruction.op == ElementOp::pow || instruction.op == ElementOp::arc_tangent2 ||
                             instruction.op == ElementOp::sigmoid_cross_entropy;
  binary && !in_other_list ? run_binary(instruction, o) : run_unary(instruction, o);
}

HWY_INLINE void fill(float *out, int64_t n, float value) {
  const V v = hn::Set(d, value);
  const int64_t lanes = float_lanes();
  for (int64_t i = 0; i < n; i += lanes)
    hn::StoreU(v, d, out + i);  // buffers end with room for a vector
}

float read_as_float(const void *from, tensor::DType dtype, int64_t i) {
  switch (dtype) {
    case tensor::DType::f32:
      return static_cast<const float *>(from)[i];
    case tensor::DType::f64:
      return static_cast<float>(static_cast<const double *>(from)[i]);
    case tensor::DType::i32:
      return static_cast<float>(static_cast<const int32_t *>(from)[i]);
    case tensor::DType::i64:
      return static_cast<float>(static_cast<const int64_t *>(from)[i]);
    case tensor::DType::i8:
      return static_cast<const int8_t *>(from)[i];
    default:
      return static_cast<const uint8_t *>(from)[i];  // u8 and boolean
  }
}

void convert(const void *from, tensor::DType dtype, int64_t begin, int64_t n, float *out) {
  if (dtype == tensor::DType::f32) {
    std::memcpy(out, static_cast<const float *>(from) + begin, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  if (has_fast_cast(dtype, tensor::DType::f32)) {
    const auto size = static_cast<int64_t>(tensor::size_bytes(dtype));
    return cast_numbers(dtype, tensor::DType::f32, static_cast<const char *>(from) + begin * size, out, n);
  }
  for (int64_t i = 0; i < n; ++i)
    out[i] = read_as_float(from, dtype, begin + i);
}

// One run over one set of pointers; register pointers are moved from tile to tile.
struct Run {
  const ElementProgram &program;
  const void *const *inputs;
  void *output;
  float *scratch;

  static constexpr int kMaximumRegisters = 64;
  const float *registers[kMaximumRegisters];

  float *buffer(size_t index) const { return scratch + program.buffers[index] * (program.tile + 64); }

  void start() {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const ElementInput &input = program.inputs[i];
      if (program.buffers[i] == ElementProgram::kUnused) continue;
      if (program.buffers[i] >= 0) registers[i] = buffer(i);
      if (input.access == ElementAccess::scalar) {
        fill(buffer(i), program.tile, read_as_float(inputs[i], input.dtype, 0));
      } else if (input.access == ElementAccess::column && program.buffers[i] >= 0 && program.tile >= program.columns) {
        convert(inputs[i], input.dtype, 0, program.columns, buffer(i));
        for (int64_t at = program.columns; at < program.tile; at += program.columns) {
          std::memcpy(buffer(i) + at, buffer(i), static_cast<size_t>(program.columns) * sizeof(float));
        }
      }
    }
  }

  void load_inputs(int64_t begin, int64_t n) {
    const int64_t columns = program.columns;
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const ElementInput &input = program.inputs[i];
      if (program.buffers[i] == ElementProgram::kUnused) continue;
      switch (input.access) {
        case ElementAccess::scalar:
          break;
        case ElementAccess::dense:
          if (program.buffers[i] < 0) {
            registers[i] = static_cast<const float *>(inputs[i]) + begin;
          } else {
            convert(inputs[i], input.dtype, begin, n, buffer(i));
          }
          break;
        case ElementAccess::part:
          registers[i] = part_of(i, begin, n);
          break;
        case ElementAccess::column:
          if (program.buffers[i] < 0) {
            registers[i] = static_cast<const float *>(inputs[i]) + begin % columns;
          } else if (program.tile < columns) {
            convert(inputs[i], input.dtype, begin % columns, n, buffer(i));
          }
          break;
        case ElementAccess::row: {
          if (program.buffers[i] < 0) {
            registers[i] = static_cast<const float *>(inputs[i]) + begin / columns;
            break;
          }
          float *out = buffer(i);
          for (int64_t at = 0; at < n; at += columns) {
            fill(out + at, HWY_MIN(columns, n - at), read_as_float(inputs[i], input.dtype, (begin + at) / columns));
          }
          break;
        }
      }
    }
  }

  // Elements of a part of a matrix: where they lie if the tile is within a row, else copied.
  const float *part_of(size_t index, int64_t begin, int64_t n) const {
    const ElementInput &input = program.inputs[index];
    const int64_t columns = program.columns;
    const float *const from = static_cast<const float *>(inputs[index]) + input.first + begin / columns * input.pitch;
    if (program.buffers[index] < 0) return from + begin % columns;
    float *const out = buffer(index);
    for (int64_t at = 0; at < n; at += columns)
      std::memcpy(out + at, from + at / columns * input.pitch, static_cast<size_t>(columns) * sizeof(float));
    return out;
  }

  void run_tile(int64_t begin, int64_t n) {
    load_inputs(begin, n);
    const size_t count = program.instructions.size();
    for (size_t i = 0; i < count; ++i) {
      const ElementInstruction &instruction = program.instructions[i];
      const size_t result = program.inputs.size() + i;
      float *out = program.buffers[result] < 0 ? static_cast<float *>(output) + begin : buffer(result);
      run_instruction(instruction, {registers[instruction.a], registers[instruction.b], registers[instruction.c], out,
                                    n, instruction.a == program.row_input, instruction.b == program.row_input});
      registers[result] = out;
    }
    if (program.boolean_result) {
      const float *value = registers[program.inputs.size() + count - 1];
      uint8_t *out = static_cast<uint8_t *>(output) + begin;
      for (int64_t i = 0; i < n; ++i)
        out[i] = value[i] != 0.0f ? 1 : 0;
    }
  }
};

void run_program(const ElementProgram &program, int64_t first, int64_t end, const void *const *inputs, void *output,
                 float *scratch) {
  if (first >= end) return;
  Run run{program, inputs, output, scratch, {}};
  run.start();
  const int64_t step = program.step_elements();
  const int64_t stop = HWY_MIN(end * step, program.rows * program.columns);
  // A step is a tile or several of them, the last of which may be shorter.
  for (int64_t begin = first * step; begin < stop; begin += step) {
    const int64_t step_end = HWY_MIN(begin + step, stop);
    for (int64_t at = begin; at < step_end; at += program.tile)
      run.run_tile(at, HWY_MIN(program.tile, step_end - at));
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_program);

void run_elementwise(const ElementProgram &program, int64_t first, int64_t end, const void *const *inputs, void *output,
                     float *scratch) {
  HWY_DYNAMIC_DISPATCH(run_program)(program, first, end, inputs, output, scratch);
}

}  // namespace tutti::impl::backend::cpu
#endif
