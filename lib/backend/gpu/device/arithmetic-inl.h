// SPDX-License-Identifier: Apache-2.0
//
// What each elementwise op computes, for C = float, double, int64_t and uint64_t: the one definition that all kernels
// use. Integer arithmetic wraps; ops that integers do not have give 0 for them.
#ifndef TUTTI_BACKEND_GPU_DEVICE_ARITHMETIC_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_ARITHMETIC_INL_H_

#include <tutti_gpu.h>

#include <cmath>
#include <cstdint>

#include "backend/gpu/device/element_program.h"
#include "backend/gpu/device/elements-inl.h"

namespace tutti::impl::backend::gpu {

template <typename C>
inline constexpr bool is_integer_v = C(0.5) == C(0);
template <typename C>
inline constexpr bool is_signed_v = C(-1) < C(0);

template <typename C>
__device__ inline C sigmoid_of(C x) {
  const C e = std::exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

template <typename C>
__device__ inline C gelu_of(C x) {
  return C(0.5) * x * (1 + std::erf(x * C(0.70710678118654752440)));
}

template <typename C>
__device__ inline C gelu_tanh_of(C x) {
  const C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
  return C(0.5) * x * (1 + std::tanh(inner));
}

template <typename C>
__device__ inline C gelu_gradient_of(C dy, C x) {
  const C density = std::exp(C(-0.5) * x * x) * C(0.39894228040143267794);
  return dy * (C(0.5) * (1 + std::erf(x * C(0.70710678118654752440))) + x * density);
}

template <typename C>
__device__ inline C gelu_tanh_gradient_of(C dy, C x) {
  const C factor = C(0.79788456080286535588);
  const C t = std::tanh(factor * (x + C(0.044715) * x * x * x));
  // Where 1 - t * t is 0, x is large enough; squares of more overflow.
  const C near = x > 64 ? C(64) : x < -64 ? C(-64) : x;
  const C slope = factor * (1 + C(3 * 0.044715) * near * near);
  return dy * (C(0.5) * (1 + t) + C(0.5) * near * (1 - t * t) * slope);
}

/// Unary ops of floats.
template <ElementOp op, typename C>
__device__ inline C float_unary(C x, C number) {
  if constexpr (op == ElementOp::exp) {
    return std::exp(x);
  } else if constexpr (op == ElementOp::log) {
    return std::log(x);
  } else if constexpr (op == ElementOp::log1p) {
    return std::log1p(x);
  } else if constexpr (op == ElementOp::expm1) {
    return std::expm1(x);
  } else if constexpr (op == ElementOp::sqrt) {
    return std::sqrt(x);
  } else if constexpr (op == ElementOp::rsqrt) {
    return 1 / std::sqrt(x);
  } else if constexpr (op == ElementOp::reciprocal) {
    return 1 / x;
  } else if constexpr (op == ElementOp::sin) {
    return std::sin(x);
  } else if constexpr (op == ElementOp::cos) {
    return std::cos(x);
  } else if constexpr (op == ElementOp::tangent) {
    return std::tan(x);
  } else if constexpr (op == ElementOp::arc_tangent) {
    return std::atan(x);
  } else if constexpr (op == ElementOp::arc_sine) {
    return std::asin(x);
  } else if constexpr (op == ElementOp::arc_cosine) {
    return std::acos(x);
  } else if constexpr (op == ElementOp::tanh) {
    return std::tanh(x);
  } else if constexpr (op == ElementOp::sigmoid) {
    return sigmoid_of(x);
  } else if constexpr (op == ElementOp::gelu) {
    return gelu_of(x);
  } else if constexpr (op == ElementOp::gelu_tanh) {
    return gelu_tanh_of(x);
  } else if constexpr (op == ElementOp::silu) {
    return x * sigmoid_of(x);
  } else if constexpr (op == ElementOp::softplus) {
    return (x > 0 ? x : C(0)) + std::log1p(std::exp(-std::fabs(x)));
  } else if constexpr (op == ElementOp::elu) {
    return x > 0 ? x : number * std::expm1(x);
  } else if constexpr (op == ElementOp::leaky_relu) {
    return x < 0 ? number * x : x;
  } else if constexpr (op == ElementOp::floor) {
    return std::floor(x);
  } else if constexpr (op == ElementOp::ceil) {
    return std::ceil(x);
  } else if constexpr (op == ElementOp::round) {
    return std::rint(x);
  } else if constexpr (op == ElementOp::erf) {
    return std::erf(x);
  } else if constexpr (op == ElementOp::is_finite) {
    return C(x - x == 0);
  } else if constexpr (op == ElementOp::to_f16) {
    return static_cast<C>(gpu_half_to_float(gpu_float_to_half(static_cast<float>(x))));
  } else if constexpr (op == ElementOp::to_bf16) {
    return static_cast<C>(bfloat16_to_float(float_to_bfloat16(static_cast<float>(x))));
  } else {
    return C(0);
  }
}

/// Ops of two floats that integers do not have.
template <ElementOp op, typename C>
__device__ inline C float_binary(C a, C b) {
  if constexpr (op == ElementOp::div) {
    return a / b;
  } else if constexpr (op == ElementOp::arc_tangent2) {
    return std::atan2(a, b);
  } else if constexpr (op == ElementOp::sigmoid_gradient) {
    return a * b * (1 - b);
  } else if constexpr (op == ElementOp::tanh_gradient) {
    return a * (1 - b * b);
  } else if constexpr (op == ElementOp::gelu_gradient) {
    return gelu_gradient_of(a, b);
  } else if constexpr (op == ElementOp::gelu_tanh_gradient) {
    return gelu_tanh_gradient_of(a, b);
  } else if constexpr (op == ElementOp::sigmoid_cross_entropy) {  // of logit a and label b
    return (a > 0 ? a : C(0)) - a * b + std::log1p(std::exp(-std::fabs(a)));
  } else {
    return C(0);
  }
}

template <typename C>
__device__ inline C add_of(C a, C b) {
  if constexpr (is_integer_v<C>) return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return a + b;
}
template <typename C>
__device__ inline C sub_of(C a, C b) {
  if constexpr (is_integer_v<C>) return static_cast<C>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  return a - b;
}
template <typename C>
__device__ inline C mul_of(C a, C b) {
  if constexpr (is_integer_v<C>) return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return a * b;
}

template <typename C>
__device__ inline C floor_divide_of(C a, C b) {
  if constexpr (!is_integer_v<C>) {
    return std::floor(a / b);
  } else {
    if (b == 0) return 0;
    if constexpr (is_signed_v<C>) {
      if (b == -1) return static_cast<C>(0 - static_cast<uint64_t>(a));
    }
    const C quotient = a / b;
    return quotient - static_cast<C>(a % b != 0 && (a < 0) != (b < 0));
  }
}

template <typename C>
__device__ inline C mod_of(C a, C b) {
  if constexpr (!is_integer_v<C>) {
    const C rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    if (b == 0) return 0;
    if constexpr (is_signed_v<C>) {
      if (b == -1) return 0;
    }
    const C rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<C>(rest + b) : rest;
  }
}

template <typename C>
__device__ inline C maximum_of(C a, C b) {
  if (a != a) return a;
  return b != b || b > a ? b : a;
}
template <typename C>
__device__ inline C minimum_of(C a, C b) {
  if (a != a) return a;
  return b != b || b < a ? b : a;
}

template <typename C>
__device__ inline C power_of(C a, C b) {
  if constexpr (is_integer_v<C>) {
    return static_cast<C>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  } else {
    return std::pow(a, b);
  }
}

/// `op` of a, b, c.
template <ElementOp op, typename C>
__device__ __forceinline__ C apply(C a, C b, C c, C number) {
  if constexpr (op == ElementOp::identity) {
    return a;
  } else if constexpr (op == ElementOp::neg) {
    return sub_of(is_integer_v<C> ? C(0) : C(-0.0), a);
  } else if constexpr (op == ElementOp::abs) {
    return a < 0 ? sub_of(C(0), a) : (a == 0 ? C(0) : a);
  } else if constexpr (op == ElementOp::sign) {
    return static_cast<C>(a > 0) - static_cast<C>(a < 0);
  } else if constexpr (op == ElementOp::square) {
    return mul_of(a, a);
  } else if constexpr (op == ElementOp::relu) {
    return a < 0 ? C(0) : a;
  } else if constexpr (op == ElementOp::logical_not) {
    return C(a == 0);
  } else if constexpr (op == ElementOp::to_boolean) {
    return C(a != 0);
  } else if constexpr (op == ElementOp::add) {
    return add_of(a, b);
  } else if constexpr (op == ElementOp::sub) {
    return sub_of(a, b);
  } else if constexpr (op == ElementOp::mul) {
    return mul_of(a, b);
  } else if constexpr (op == ElementOp::pow) {
    return power_of(a, b);
  } else if constexpr (op == ElementOp::maximum) {
    return maximum_of(a, b);
  } else if constexpr (op == ElementOp::minimum) {
    return minimum_of(a, b);
  } else if constexpr (op == ElementOp::mod) {
    return mod_of(a, b);
  } else if constexpr (op == ElementOp::floor_divide) {
    return floor_divide_of(a, b);
  } else if constexpr (op == ElementOp::equal) {
    return C(a == b);
  } else if constexpr (op == ElementOp::not_equal) {
    return C(a != b);
  } else if constexpr (op == ElementOp::less) {
    return C(a < b);
  } else if constexpr (op == ElementOp::less_equal) {
    return C(a <= b);
  } else if constexpr (op == ElementOp::greater) {
    return C(a > b);
  } else if constexpr (op == ElementOp::greater_equal) {
    return C(a >= b);
  } else if constexpr (op == ElementOp::logical_and) {
    return C(a != 0 && b != 0);
  } else if constexpr (op == ElementOp::logical_or) {
    return C(a != 0 || b != 0);
  } else if constexpr (op == ElementOp::logical_xor) {
    return C((a != 0) != (b != 0));
  } else if constexpr (op == ElementOp::relu_gradient) {
    return b > 0 ? a : C(0);
  } else if constexpr (op == ElementOp::select) {
    return a != 0 ? b : c;
  } else if constexpr (is_integer_v<C>) {
    return op == ElementOp::is_finite ? C(1) : C(0);
  } else if constexpr (op < ElementOp::add) {
    return float_unary<op>(a, number);
  } else {
    return float_binary<op>(a, b);
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ARITHMETIC_INL_H_
