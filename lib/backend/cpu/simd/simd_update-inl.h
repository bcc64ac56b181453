// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules on vectors, compiled once per instruction set: what simd_update.cc does to whole arrays, and products
// do to gradients that they have just computed. Included inside a target region, hence the guard that toggles.
#if defined(TUTTI_BACKEND_CPU_SIMD_SIMD_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_BACKEND_CPU_SIMD_SIMD_UPDATE_INL_H_
#undef TUTTI_BACKEND_CPU_SIMD_SIMD_UPDATE_INL_H_
#else
#define TUTTI_BACKEND_CPU_SIMD_SIMD_UPDATE_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>

#include "backend/cpu/simd/simd-inl.h"
#include "backend/cpu/simd/simd_update.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

// Full vectors with plain memory operations, the rest with partial ones.
struct WholeVector {
  static HWY_INLINE FloatVec load(const float *from, int64_t) { return hn::LoadU(FloatTag(), from); }
  static HWY_INLINE void store(FloatVec value, float *to, int64_t) { hn::StoreU(value, FloatTag(), to); }
};
struct PartOfVector {
  static HWY_INLINE FloatVec load(const float *from, int64_t n) { return load_first(FloatTag(), from, n); }
  static HWY_INLINE void store(FloatVec value, float *to, int64_t n) { store_first(FloatTag(), value, to, n); }
};

// Brings a cache line nearer, as this core's alone: others that have read it would else be asked for it only when it is
// written, and the stores behind that one would wait. Compilers write the instruction for some targets only; processors
// without it take it for none.
HWY_INLINE void fetch_to_write(const float *at) {
#if HWY_ARCH_X86
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

HWY_INLINE FloatVec broadcast(float value) { return hn::Set(FloatTag(), value); }

// Where the gradient of element i comes from: an array, or the sum of several in their order.
struct OneGradient {
  const float *values;

  template <typename Memory>
  HWY_INLINE FloatVec load(Memory memory, int64_t i, int64_t count) const {
    return memory.load(values + i, count);
  }
};

struct SumOfTwoGradients {
  const float *first, *second;

  template <typename Memory>
  HWY_INLINE FloatVec load(Memory memory, int64_t i, int64_t count) const {
    return hn::Add(memory.load(first + i, count), memory.load(second + i, count));
  }
};

struct SumOfGradients {
  const float *const *values;
  int32_t number;

  template <typename Memory>
  HWY_INLINE FloatVec load(Memory memory, int64_t i, int64_t count) const {
    FloatVec total = memory.load(values[0] + i, count);
    for (int32_t k = 1; k < number; ++k)
      total = hn::Add(total, memory.load(values[k] + i, count));
    return total;
  }
};

// A step of each rule: apply(memory, gradient, arrays, i, count) updates `count` elements from i on.

struct SgdStep {
  static constexpr int kSlots = 0;
  FloatVec rate, decay;

  explicit HWY_INLINE SgdStep(const SgdRule &rule)
      : rate(broadcast(rule.learning_rate)), decay(broadcast(rule.weight_decay)) {}

  template <typename Memory>
  HWY_INLINE void apply(Memory memory, FloatVec g, const UpdateArrays &at, int64_t i, int64_t count) const {
    const FloatVec weight = memory.load(at.weight + i, count);
    const FloatVec gradient = hn::MulAdd(decay, weight, g);
    memory.store(hn::NegMulAdd(rate, gradient, weight), at.weight_out + i, count);
  }
};

struct MomentumStep {
  static constexpr int kSlots = 1;
  FloatVec rate, decay, momentum;
  bool nesterov;

  explicit HWY_INLINE MomentumStep(const MomentumRule &rule)
      : rate(broadcast(rule.learning_rate)),
        decay(broadcast(rule.weight_decay)),
        momentum(broadcast(rule.momentum)),
        nesterov(rule.nesterov) {}

  template <typename Memory>
  HWY_INLINE void apply(Memory memory, FloatVec g, const UpdateArrays &at, int64_t i, int64_t count) const {
    const FloatVec weight = memory.load(at.weight + i, count);
    const FloatVec gradient = hn::MulAdd(decay, weight, g);
    const FloatVec moved = hn::MulAdd(momentum, memory.load(at.slots[0] + i, count), gradient);
    const FloatVec step = nesterov ? hn::MulAdd(momentum, moved, gradient) : moved;
    memory.store(moved, at.slots_out[0] + i, count);
    memory.store(hn::NegMulAdd(rate, step, weight), at.weight_out + i, count);
  }
};

// With c = 1 - beta2^t, rate * first / (sqrt(square / c) + epsilon) is first / (sqrt(square) * scale + epsilon / rate)
// where scale is 1 / (rate * sqrt(c)): few operations on vectors. In parts, for those who do something else meanwhile.
struct AdamStep {
  static constexpr int kSlots = 2;
  FloatVec rest1, rest2, scale, epsilon, decay;
  FloatVec one = broadcast(1.0f), largest = broadcast(std::numeric_limits<float>::max());  // in memory, like the others

  explicit HWY_INLINE AdamStep(const AdamRule &rule)
      : rest1(broadcast(rule.rest1)),
        rest2(broadcast(rule.rest2)),
        decay(broadcast(1.0f - rule.learning_rate * rule.weight_decay)) {
    const float inverse = 1.0f / (rule.learning_rate * rule.first_correction);
    const bool moves = !std::isinf(inverse);  // a rate of 0 makes the denominator infinite
    scale = broadcast(moves ? inverse * std::sqrt(rule.second_correction) : 1.0f);
    epsilon = broadcast(moves ? inverse * rule.epsilon : HUGE_VALF);
  }

  // What the weight needs of the slots.
  struct Moments {
    FloatVec first, square;
  };

  template <typename Memory>
  HWY_INLINE Moments move_slots(Memory memory, FloatVec g, const UpdateArrays &at, int64_t i, int64_t count) const {
    const FloatVec old_first = memory.load(at.slots[0] + i, count);
    const FloatVec first = hn::MulAdd(rest1, hn::Sub(g, old_first), old_first);
    memory.store(first, at.slots_out[0] + i, count);
    const FloatVec old_square = memory.load(at.slots[1] + i, count);
    const FloatVec square = hn::MulAdd(rest2, hn::MulSub(g, g, old_square), old_square);
    memory.store(square, at.slots_out[1] + i, count);
    return {first, square};
  }

  // The reciprocal of a number below 2^126 or an infinite one, to about a unit in the last place, by one of Newton's
  // iterations: the root that comes before keeps the divider busy. That of infinity is 0, which infinity times 0 in the
  // iteration would turn into NaN.
  HWY_INLINE FloatVec reciprocal(FloatVec x) const {
    const FloatVec start = hn::ApproximateReciprocal(x);
    return hn::MulAdd(start, hn::NegMulAdd(hn::Min(x, largest), start, one), start);
  }

  HWY_INLINE FloatVec denominator(FloatVec square) const { return hn::MulAdd(hn::Sqrt(square), scale, epsilon); }

  template <typename Memory>
  HWY_INLINE void move_weight(Memory memory, FloatVec first, FloatVec denominator, const UpdateArrays &at, int64_t i,
                              int64_t count) const {
    const FloatVec step = hn::Mul(first, reciprocal(denominator));
    memory.store(hn::MulSub(memory.load(at.weight + i, count), decay, step), at.weight_out + i, count);
  }

  template <typename Memory>
  HWY_INLINE void apply(Memory memory, FloatVec g, const UpdateArrays &at, int64_t i, int64_t count) const {
    const Moments moments = move_slots(memory, g, at, i, count);
    move_weight(memory, moments.first, denominator(moments.square), at, i, count);
  }
};

/// Updates `n` elements from `first` on; gradients count from 0. The rule and the addresses are copied: what lies in
/// memory a store of a vector may change, so it would be loaded again for each.
template <typename Step, typename Gradient>
HWY_INLINE void apply_step(const Step &step, int64_t n, const Gradient &g, const UpdateArrays &arrays, int64_t first) {
  const Step rule = step;
  const Gradient gradient = g;
  const UpdateArrays at = arrays;
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    rule.apply(WholeVector(), gradient.load(WholeVector(), i, lanes), at, first + i, lanes);
  if (i < n) rule.apply(PartOfVector(), gradient.load(PartOfVector(), i, n - i), at, first + i, n - i);
}

/// Calls function(step) with the step of the rule.
template <typename Function>
HWY_INLINE void with_step(const UpdateRule &rule, const Function &function) {
  if (const auto *adam = std::get_if<AdamRule>(&rule)) return function(AdamStep(*adam));
  if (const auto *momentum = std::get_if<MomentumRule>(&rule)) return function(MomentumStep(*momentum));
  function(SgdStep(std::get<SgdRule>(rule)));
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
