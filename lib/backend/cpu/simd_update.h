// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules over flat f32 ranges, one pass each. The results may lie on top of what they replace; all other
// ranges are separate. Elements whose weight, gradient and slots are zero stay zero (padding of blocked layouts).
#ifndef TUTTI_BACKEND_CPU_SIMD_UPDATE_H_
#define TUTTI_BACKEND_CPU_SIMD_UPDATE_H_

#include <cstdint>

namespace tutti::impl::backend::cpu {

struct SgdRule {
  float learning_rate = 0;
  float weight_decay = 0;
};
void sgd_update(const SgdRule &rule, int64_t n, const float *w, const float *g, float *w_out);

struct MomentumRule {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
};
void momentum_update(const MomentumRule &rule, int64_t n, const float *w, const float *g, const float *velocity,
                     float *w_out, float *velocity_out);

/// With the bias corrections of the iteration already in it.
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
void adam_update(const AdamRule &rule, int64_t n, const float *w, const float *g, const float *m, const float *v,
                 float *w_out, float *m_out, float *v_out);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_UPDATE_H_
