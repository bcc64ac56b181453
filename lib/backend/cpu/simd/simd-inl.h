// SPDX-License-Identifier: Apache-2.0
//
// Small helpers of the vector kernels, compiled once per instruction set: included by each simd_*.cc inside its target
// region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_INL_H_
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

/// In place of a count: all lanes. What is done with vectors of a row is then written once, and compiled for whole ones
/// and for the last.
struct AllLanes {};
HWY_INLINE FloatVec load_first(FloatTag d, const float *from, AllLanes) { return hn::LoadU(d, from); }
HWY_INLINE void store_first(FloatTag d, FloatVec value, float *to, AllLanes) { hn::StoreU(value, d, to); }
/// Zeros in the lanes behind.
HWY_INLINE FloatVec keep_first(FloatTag, FloatVec value, AllLanes) { return value; }
HWY_INLINE FloatVec keep_first(FloatTag d, FloatVec value, int64_t count) {
  return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count)), value);
}

/// Calls body(i, count) for the vectors of a row of n. What it stores may be anything to a compiler, so it had better
/// have addresses by value.
template <typename Body>
HWY_INLINE void each_vector(int64_t n, const Body &body) {
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    body(i, AllLanes());
  if (i < n) body(i, n - i);
}

/// total = step(total, i, count) over the vectors of a row of n, from `start` on. Of a long row four totals, as a step
/// waits for the one before it; combine() makes them one.
template <typename Step, typename Combine>
HWY_INLINE FloatVec fold_vectors(int64_t n, FloatVec start, const Step &step, const Combine &combine) {
  const int64_t lanes = float_lanes();
  FloatVec total = start;
  int64_t i = 0;
  if (n >= 8 * lanes) {
    FloatVec t1 = start, t2 = start, t3 = start;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      total = step(total, i, AllLanes());
      t1 = step(t1, i + lanes, AllLanes());
      t2 = step(t2, i + 2 * lanes, AllLanes());
      t3 = step(t3, i + 3 * lanes, AllLanes());
    }
    total = combine(combine(total, t1), combine(t2, t3));
  }
  for (; i + lanes <= n; i += lanes)
    total = step(total, i, AllLanes());
  return i < n ? step(total, i, n - i) : total;
}
template <typename Step>
HWY_INLINE float sum_vectors(int64_t n, const Step &step) {
  const FloatTag d;
  const FloatVec total =
      fold_vectors(n, hn::Zero(d), step, [](FloatVec a, FloatVec b) HWY_ATTR { return hn::Add(a, b); });
  return hn::GetLane(hn::SumOfLanes(d, total));
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
