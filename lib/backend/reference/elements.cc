// SPDX-License-Identifier: Apache-2.0
#include "backend/reference/elements.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tutti::impl::backend::reference {

using tensor::BFloat16;
using tensor::DType;
using tensor::Half;

namespace {

template <typename T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
constexpr bool is_float = is_half<T> || std::is_floating_point_v<T>;

template <typename I>
I saturate(double value) {
  if (std::isnan(value)) return 0;
  // Both bounds are exact in double or round outwards, so the comparison decides rightly.
  constexpr double low = static_cast<double>(std::numeric_limits<I>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<I>::max());
  if (value <= low) return std::numeric_limits<I>::min();
  if (value >= high) return std::numeric_limits<I>::max();
  return static_cast<I>(value);
}

/// Rounds once to the 16-bit type: by way of float, made odd where inexact so that the second rounding is right.
template <typename T>
T to_half(double value) {
  float nearest = static_cast<float>(value);
  if (std::isfinite(nearest) && static_cast<double>(nearest) != value) {
    uint32_t bits = std::bit_cast<uint32_t>(nearest);
    const bool is_away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
    if (is_away) --bits;  // now truncated towards zero
    nearest = std::bit_cast<float>(bits | 1u);
  }
  return T(nearest);
}

}  // namespace

template <typename C, typename T>
C widen(T value) {
  if constexpr (is_half<T>) {
    return widen<C>(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T> && !std::is_same_v<C, double>) {
    return saturate<C>(value);
  } else {
    return static_cast<C>(value);
  }
}

template <typename T, typename C>
T narrow(C value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (is_half<T>) {
    return to_half<T>(static_cast<double>(value));
  } else if constexpr (std::is_floating_point_v<C> && !is_float<T>) {
    return saturate<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

template <typename C>
void load(DType dtype, const void *source, int64_t first, int64_t stride, int64_t count, C *out) {
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    const T *from = static_cast<const T *>(source) + first;
    if (stride == 1) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = widen<C>(from[i]);
    } else {
      for (int64_t i = 0; i < count; ++i)
        out[i] = widen<C>(from[i * stride]);
    }
  });
}

template <typename C>
void store(DType dtype, void *target, int64_t first, int64_t count, const C *in) {
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    T *to = static_cast<T *>(target) + first;
    for (int64_t i = 0; i < count; ++i)
      to[i] = narrow<T>(in[i]);
  });
}

template void load(DType, const void *, int64_t, int64_t, int64_t, double *);
template void load(DType, const void *, int64_t, int64_t, int64_t, int64_t *);
template void load(DType, const void *, int64_t, int64_t, int64_t, uint64_t *);
template void store(DType, void *, int64_t, int64_t, const double *);
template void store(DType, void *, int64_t, int64_t, const int64_t *);
template void store(DType, void *, int64_t, int64_t, const uint64_t *);

}  // namespace tutti::impl::backend::reference
