// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd_update.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd_update.cc"
#include "backend/cpu/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

using D = FloatTag;
using V = FloatVec;
constexpr D d;

// Full vectors with plain memory operations, the rest with partial ones.
struct WholeVector {
  static V load(const float *from, int64_t) { return hn::LoadU(d, from); }
  static void store(V value, float *to, int64_t) { hn::StoreU(value, d, to); }
};
struct PartOfVector {
  static V load(const float *from, int64_t n) { return load_first(d, from, n); }
  static void store(V value, float *to, int64_t n) { store_first(d, value, to, n); }
};

template <typename Step>
HWY_INLINE void over_range(int64_t n, const Step &step) {
  const int64_t lanes = float_lanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    step(WholeVector(), i, lanes);
  if (i < n) step(PartOfVector(), i, n - i);
}

void run_sgd(const SgdRule &rule, int64_t n, const float *w, const float *g, float *w_out) {
  const V rate = hn::Set(d, rule.learning_rate);
  const V decay = hn::Set(d, rule.weight_decay);
  over_range(n, [&](auto memory, int64_t i, int64_t count) HWY_ATTR {
    const V weight = memory.load(w + i, count);
    const V gradient = hn::MulAdd(decay, weight, memory.load(g + i, count));
    memory.store(hn::NegMulAdd(rate, gradient, weight), w_out + i, count);
  });
}

void run_momentum(const MomentumRule &rule, int64_t n, const float *w, const float *g, const float *velocity,
                  float *w_out, float *velocity_out) {
  const V rate = hn::Set(d, rule.learning_rate);
  const V decay = hn::Set(d, rule.weight_decay);
  const V momentum = hn::Set(d, rule.momentum);
  const bool nesterov = rule.nesterov;
  over_range(n, [&](auto memory, int64_t i, int64_t count) HWY_ATTR {
    const V weight = memory.load(w + i, count);
    const V gradient = hn::MulAdd(decay, weight, memory.load(g + i, count));
    const V moved = hn::MulAdd(momentum, memory.load(velocity + i, count), gradient);
    const V step = nesterov ? hn::MulAdd(momentum, moved, gradient) : moved;
    memory.store(moved, velocity_out + i, count);
    memory.store(hn::NegMulAdd(rate, step, weight), w_out + i, count);
  });
}

// A quotient to about a unit in the last place, for a divisor that is infinite or a root of a finite number. A root and
// a quotient together would wait for the divider, which takes one at a time; this one is made by multiplications
// (Newton's iteration) meanwhile.
HWY_INLINE V divide(V a, V divisor) {
  const V start = hn::ApproximateReciprocal(divisor);
  const V reciprocal = hn::MulAdd(start, hn::NegMulAdd(divisor, start, hn::Set(d, 1.0f)), start);
  const V quotient = hn::Mul(a, reciprocal);
  const V better = hn::MulAdd(reciprocal, hn::NegMulAdd(divisor, quotient, a), quotient);
  return hn::IfThenZeroElse(hn::Eq(divisor, hn::Set(d, HUGE_VALF)), better);
}

void run_adam(const AdamRule &rule, int64_t n, const float *w, const float *g, const float *m, const float *v,
              float *w_out, float *m_out, float *v_out) {
  const V beta1 = hn::Set(d, rule.beta1);
  const V beta2 = hn::Set(d, rule.beta2);
  const V rest1 = hn::Set(d, rule.rest1);
  const V rest2 = hn::Set(d, rule.rest2);
  const V epsilon = hn::Set(d, rule.epsilon);
  const V rate = hn::Set(d, rule.learning_rate * rule.first_correction);
  const V second = hn::Set(d, rule.second_correction);
  const V decay = hn::Set(d, 1.0f - rule.learning_rate * rule.weight_decay);
  over_range(n, [&](auto memory, int64_t i, int64_t count) HWY_ATTR {
    const V gradient = memory.load(g + i, count);
    const V first = hn::MulAdd(beta1, memory.load(m + i, count), hn::Mul(rest1, gradient));
    const V square = hn::MulAdd(beta2, memory.load(v + i, count), hn::Mul(rest2, hn::Mul(gradient, gradient)));
    const V root = hn::Add(hn::Sqrt(hn::Mul(square, second)), epsilon);
    const V weight = hn::Mul(memory.load(w + i, count), decay);
    memory.store(first, m_out + i, count);
    memory.store(square, v_out + i, count);
    memory.store(hn::NegMulAdd(rate, divide(first, root), weight), w_out + i, count);
  });
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_sgd);
HWY_EXPORT(run_momentum);
HWY_EXPORT(run_adam);

AdamRule AdamRule::at(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                      int64_t iteration) {
  const auto t = static_cast<double>(iteration);
  AdamRule rule;
  rule.learning_rate = static_cast<float>(learning_rate);
  rule.beta1 = static_cast<float>(beta1);
  rule.beta2 = static_cast<float>(beta2);
  rule.rest1 = static_cast<float>(1.0 - beta1);
  rule.rest2 = static_cast<float>(1.0 - beta2);
  rule.epsilon = static_cast<float>(epsilon);
  rule.weight_decay = static_cast<float>(weight_decay);
  rule.first_correction = static_cast<float>(1.0 / (1.0 - std::pow(beta1, t)));
  rule.second_correction = static_cast<float>(1.0 / (1.0 - std::pow(beta2, t)));
  return rule;
}

void sgd_update(const SgdRule &rule, int64_t n, const float *w, const float *g, float *w_out) {
  HWY_DYNAMIC_DISPATCH(run_sgd)(rule, n, w, g, w_out);
}

void momentum_update(const MomentumRule &rule, int64_t n, const float *w, const float *g, const float *velocity,
                     float *w_out, float *velocity_out) {
  HWY_DYNAMIC_DISPATCH(run_momentum)(rule, n, w, g, velocity, w_out, velocity_out);
}

void adam_update(const AdamRule &rule, int64_t n, const float *w, const float *g, const float *m, const float *v,
                 float *w_out, float *m_out, float *v_out) {
  HWY_DYNAMIC_DISPATCH(run_adam)(rule, n, w, g, m, v, w_out, m_out, v_out);
}

}  // namespace tutti::impl::backend::cpu
#endif
