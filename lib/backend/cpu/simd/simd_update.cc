// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/simd/simd_update.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd/simd_update.cc"
#include "backend/cpu/simd/simd_targets.h"

// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "backend/cpu/simd/simd_update-inl.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::impl::backend::cpu::HWY_NAMESPACE {

void run_update(const UpdateRule &rule, int64_t n, const float *const *gradients, int32_t gradient_count,
                const UpdateArrays &where) {
  with_step(rule, [&](const auto &given) HWY_ATTR {
    const auto step = given;  // nothing that is stored can change the copies: they stay in registers
    const UpdateArrays arrays = where;
    if (gradient_count == 1) return apply_step(step, n, OneGradient{gradients[0]}, arrays, 0);
    if (gradient_count == 2) return apply_step(step, n, SumOfTwoGradients{gradients[0], gradients[1]}, arrays, 0);
    apply_step(step, n, SumOfGradients{gradients, gradient_count}, arrays, 0);
  });
}

}  // namespace tutti::impl::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::impl::backend::cpu {

HWY_EXPORT(run_update);

namespace {

/// 1 / (1 − beta^t), kept: all variables of a step ask for the same.
class BiasCorrection {
 public:
  float of(double beta, int64_t iteration) {
    if (beta != beta_ || iteration != iteration_) {
      beta_ = beta, iteration_ = iteration;
      value_ = static_cast<float>(1.0 / (1.0 - std::pow(beta, static_cast<double>(iteration))));
    }
    return value_;
  }

 private:
  double beta_ = -1;
  int64_t iteration_ = 0;
  float value_ = 1;
};

struct BiasCorrections {
  BiasCorrection first, second;
};
constinit thread_local BiasCorrections bias_corrections;

}  // namespace

AdamRule AdamRule::at(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                      int64_t iteration) {
  AdamRule rule;
  rule.learning_rate = static_cast<float>(learning_rate);
  rule.beta1 = static_cast<float>(beta1);
  rule.beta2 = static_cast<float>(beta2);
  rule.rest1 = static_cast<float>(1.0 - beta1);
  rule.rest2 = static_cast<float>(1.0 - beta2);
  rule.epsilon = static_cast<float>(epsilon);
  rule.weight_decay = static_cast<float>(weight_decay);
  BiasCorrections &corrections = bias_corrections;
  rule.first_correction = corrections.first.of(beta1, iteration);
  rule.second_correction = corrections.second.of(beta2, iteration);
  return rule;
}

void update(const UpdateRule &rule, int64_t n, std::span<const float *const> gradients, const UpdateArrays &arrays) {
  HWY_DYNAMIC_DISPATCH(run_update)(rule, n, gradients.data(), static_cast<int32_t>(gradients.size()), arrays);
}

}  // namespace tutti::impl::backend::cpu
#endif
