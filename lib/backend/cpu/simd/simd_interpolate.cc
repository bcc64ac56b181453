// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_interpolate.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_interpolate.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

constexpr FloatTag d;

// Copies where the share is 0: what is not read may be infinite.
HWY_INLINE void between(const float *HWY_RESTRICT low, const float *HWY_RESTRICT high, float share, int64_t n,
                        float *HWY_RESTRICT out) {
  if (share == 0) {
    std::memcpy(out, low, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  const FloatVec factor = hn::Set(d, share);
  each_vector(n, [=](int64_t i, auto count) HWY_ATTR {
    const FloatVec first = load_first(d, low + i, count), second = load_first(d, high + i, count);
    store_first(d, hn::MulAdd(factor, hn::Sub(second, first), first), out + i, count);
  });
}

void run_interpolate_row(const InterpolatedRow &row, const float *low, const float *high, float share, float *scratch,
                         float *out) {
  const int64_t channels = row.channels;
  const bool keeps_width = row.width == static_cast<int64_t>(row.pixels.size());
  if (keeps_width) return between(low, high, share, row.width * channels, out);
  const float *from = low;
  if (share != 0) {
    between(low, high, share, row.width * channels, scratch);
    from = scratch;
  }
  for (const graph::ops::InterpolatedElement &pixel : row.pixels) {
    between(from + pixel.low * channels, from + pixel.high * channels, static_cast<float>(pixel.share), channels, out);
    out += channels;
  }
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_interpolate_row);

void interpolate_row(const InterpolatedRow &row, const float *low, const float *high, float share, float *scratch,
                     float *out) {
  HWY_DYNAMIC_DISPATCH(run_interpolate_row)(row, low, high, share, scratch, out);
}

}  // namespace tutti::impl::backend::cpu
#endif
