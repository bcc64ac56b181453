// SPDX-License-Identifier: Apache-2.0
//
// The two 16-bit floating-point types as storage: arithmetic happens in float. Conversions round to nearest, ties to
// even; overflow gives infinity; a NaN stays a (quiet) NaN; subnormals are kept. Pure and constexpr.
//
//   Half    IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits; largest 65504
//   BFloat16 the upper half of a float: 1 sign, 8 exponent, 7 fraction bits
#ifndef TUTTI_TENSOR_HALF_H_
#define TUTTI_TENSOR_HALF_H_

#include <bit>
#include <cstdint>

namespace tutti::impl::tensor {

constexpr uint16_t float_to_half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, a multiple of 2^-24
    if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t remainder = fraction & ((1u << shift) - 1), middle = 1u << (shift - 1);
    uint32_t result = fraction >> shift;
    if (remainder > middle || (remainder == middle && (result & 1) != 0)) ++result;
    return static_cast<uint16_t>(sign | result);
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float half_bits_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

constexpr uint16_t float_to_bfloat16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float bfloat16_bits_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// A binary16 number; converts from and to float explicitly.
struct Half {
  uint16_t bits = 0;
  constexpr Half() = default;
  explicit constexpr Half(float value) : bits(float_to_half_bits(value)) {}
  explicit constexpr operator float() const { return half_bits_to_float(bits); }
};

/// A bfloat16 number; converts from and to float explicitly.
struct BFloat16 {
  uint16_t bits = 0;
  constexpr BFloat16() = default;
  explicit constexpr BFloat16(float value) : bits(float_to_bfloat16_bits(value)) {}
  explicit constexpr operator float() const { return bfloat16_bits_to_float(bits); }
};

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_HALF_H_
