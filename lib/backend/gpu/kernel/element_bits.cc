// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernel/element_bits.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tutti::impl::backend::gpu {

using tensor::DType;

namespace {

template <typename T>
uint64_t bits_of(T element) {
  uint64_t bits = 0;
  std::memcpy(&bits, &element, sizeof(element));
  return bits;
}

template <typename I>
I saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  if (value >= static_cast<double>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
  return static_cast<I>(value);
}

/// Calls to_integer(T{}) for the value as an integer or boolean.
template <typename Function>
uint64_t element_bits(DType dtype, double value, Function to_integer) {
  uint64_t bits = 0;
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      bits = bits_of(to_integer(T{}));
    } else if constexpr (std::is_same_v<T, double>) {
      bits = bits_of(value);
    } else {
      bits = bits_of(static_cast<T>(static_cast<float>(value)));
    }
  });
  return bits;
}

}  // namespace

uint64_t converted_bits(DType dtype, double value) {
  return element_bits(dtype, value, [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      return saturated<int64_t>(value) != 0;
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return saturated<uint64_t>(value);
    } else {
      return static_cast<T>(saturated<int64_t>(value));
    }
  });
}

uint64_t saturated_bits(DType dtype, double value) {
  return element_bits(dtype, value, [&]<typename T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      return value != 0;
    } else {
      return saturated<T>(value);
    }
  });
}

uint64_t missing_bits(DType dtype) {
  return tensor::is_floating(dtype) ? saturated_bits(dtype, std::numeric_limits<double>::quiet_NaN()) : 0;
}

}  // namespace tutti::impl::backend::gpu
