// SPDX-License-Identifier: Apache-2.0
//
// Softmax over the last axis of [rows, classes] f32 arrays and the losses made of it, with their gradients. Stable for
// any finite logits. One thread, no scratch; rows are independent of each other.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_LOSS_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_LOSS_H_

#include <cstdint>

namespace tutti::impl::backend::cpu {

struct RowShape {
  int64_t rows = 0;
  int64_t classes = 0;
};

/// Class numbers, as stored: 32 or 64 bits.
struct Labels {
  const void *values = nullptr;
  bool wide = false;  ///< int64

  int64_t operator[](int64_t row) const {
    return wide ? static_cast<const int64_t *>(values)[row] : static_cast<const int32_t *>(values)[row];
  }
  /// Those of row `first` and after it.
  Labels from(int64_t first) const {
    return {static_cast<const char *>(values) + first * (wide ? sizeof(int64_t) : sizeof(int32_t)), wide};
  }
};

void softmax(const RowShape &shape, const float *x, float *y);
void log_softmax(const RowShape &shape, const float *x, float *y);
/// y · (dy − sum(dy · y)).
void softmax_gradient(const RowShape &shape, const float *dy, const float *y, float *dx);
/// dy − exp(y) · sum(dy).
void log_softmax_gradient(const RowShape &shape, const float *dy, const float *y, float *dx);

/// loss[row] = −log softmax(logits)[label], smoothed. Returns the first row whose label is out of range, or −1.
int64_t sparse_cross_entropy(const RowShape &shape, const float *logits, const Labels &labels, float smoothing,
                             float *loss);
/// dlogits = (softmax(logits) − target) · dloss; null dloss = all ones. Rows with a label out of range are reported in
/// the same way. `loss` (optional) gets what sparse_cross_entropy would give, in the same pass.
int64_t sparse_cross_entropy_gradient(const RowShape &shape, const float *dloss, const float *logits,
                                      const Labels &labels, float smoothing, float *loss, float *dlogits);

/// x[row] · factors[row], in place.
void scale_rows(const RowShape &shape, const float *factors, float *x);

void cross_entropy(const RowShape &shape, const float *logits, const float *targets, float smoothing, float *loss);
void cross_entropy_gradient(const RowShape &shape, const float *dloss, const float *logits, const float *targets,
                            float smoothing, float *dlogits);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_LOSS_H_
