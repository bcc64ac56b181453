// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules over flat f32 ranges, one pass each. Elements whose weight, gradient and slots are zero stay zero
// (padding of blocked layouts).
//
//   update(AdamRule::at(rate, 0.9, 0.999, 1e-8, 0, iteration), n, gradient, {w, {m, v}, w, {m, v}});
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_UPDATE_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_UPDATE_H_

#include <cstdint>
#include <span>
#include <variant>

namespace tutti::impl::backend::cpu {

/// No slots.
struct SgdRule {
  float learning_rate = 0;
  float weight_decay = 0;
};

/// One slot: velocity.
struct MomentumRule {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
};

/// Two slots: first and second moment. With the bias corrections of the iteration already in it.
struct AdamRule {
  float learning_rate = 0;
  float beta1 = 0;
  float beta2 = 0;
  float rest1 = 1;  ///< 1 − beta1, not rounded twice
  float rest2 = 1;
  float epsilon = 0;
  float weight_decay = 0;
  float first_correction = 1;   ///< 1 / (1 − beta1^t)
  float second_correction = 1;  ///< 1 / (1 − beta2^t)

  static AdamRule at(double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                     int64_t iteration);
};

using UpdateRule = std::variant<SgdRule, MomentumRule, AdamRule>;

constexpr int kUpdateSlots = 2;

/// A variable with as many slots as the rule has. The results may lie on top of what they replace; all other arrays are
/// separate.
struct UpdateArrays {
  const float *weight = nullptr;
  const float *slots[kUpdateSlots] = {};
  float *weight_out = nullptr;
  float *slots_out[kUpdateSlots] = {};
};

/// The gradient is the sum of `gradients`, at least one, added in their order.
void update(const UpdateRule &rule, int64_t n, std::span<const float *const> gradients, const UpdateArrays &arrays);

inline void update(const UpdateRule &rule, int64_t n, const float *gradient, const UpdateArrays &arrays) {
  update(rule, n, std::span(&gradient, 1), arrays);
}

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_UPDATE_H_
