// SPDX-License-Identifier: Apache-2.0
//
// Small helpers of the vector kernels, compiled once per instruction set: included by each simd_*.cc inside its target
// region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

// Before a loop whose variables are to lie in registers: it is unrolled before they are given a place.
#ifndef TUTTI_UNROLL
#if defined(__clang__)
#define TUTTI_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TUTTI_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

HWY_INLINE int64_t float_lanes() { return static_cast<int64_t>(hn::Lanes(FloatTag())); }

/// The first `count` (0 .. lanes) floats, zeros behind; touches no byte beyond them. AVX2 has masked loads of this
/// width that do not fault, though not of all widths.
HWY_INLINE FloatVec load_first(FloatTag d, const float *from, int64_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  if (count == float_lanes()) return hn::LoadU(d, from);
#endif
#if HWY_MEM_OPS_MIGHT_FAULT && HWY_TARGET != HWY_AVX2
  HWY_ALIGN float copy[HWY_MAX_BYTES / sizeof(float)] = {};
  for (int64_t i = 0; i < count; ++i)
    copy[i] = from[i];
  return hn::Load(d, copy);
#else
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#endif
}

/// Stores the first `count` (0 .. lanes) floats and nothing else.
HWY_INLINE void store_first(FloatTag d, FloatVec value, float *to, int64_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  if (count == float_lanes()) return hn::StoreU(value, d, to);
  HWY_ALIGN float copy[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(value, d, copy);
  for (int64_t i = 0; i < count; ++i)
    to[i] = copy[i];
#else
  hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, to);
#endif
}

/// Calls body(i, lanes) for whole vectors of 0 .. n and tail(i, count) for what is left.
template <typename Body, typename Tail>
HWY_INLINE void for_vectors(int64_t n, const Body &body, const Tail &tail) {
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    body(i);
  if (i < n) tail(i, n - i);
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
