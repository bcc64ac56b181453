// SPDX-License-Identifier: Apache-2.0
//
// Normalisation of f32 images, row-major or in blocks of 16 channels: sums per channel and what is computed from
// them. Sums run in f32 around a shift over short stretches, which are added up in double in a fixed order.
//
//   ChannelShape shape = ChannelShape::plain(rows, channels);      // or blocked(rows, positions, channels)
//   channel_moments(shape, x, sum, sum_squares);
//   ... a = scale / sqrt(variance + epsilon), b = offset - mean * a ...
//   channel_apply(shape, x, a, b, nullptr, true, y);               // y = relu(x * a + b)
//
// One thread. Results may lie on top of x, dy or `other`.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_NORM_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_NORM_H_

#include <cstdint>

namespace tutti::impl::backend::cpu {

/// Where the elements of each channel lie: `blocks` groups of `width` channels; each has `pieces` pieces of `rows` rows
/// of `width` neighbours.
struct ChannelShape {
  int64_t blocks = 1, width = 0, pieces = 1, rows = 0;
  int64_t block_stride = 0, piece_stride = 0;

  int64_t channels() const { return blocks * width; }
  int64_t count() const { return pieces * rows; }
  static ChannelShape plain(int64_t rows, int64_t channels) { return {1, channels, 1, rows, 0, 0}; }
  static ChannelShape blocked(int64_t images, int64_t positions, int64_t channels) {
    return {channels / 16, 16, images, positions, positions * 16, positions * channels};
  }
};

/// Sum and sum of squares of each channel.
void channel_moments(const ChannelShape &shape, const float *x, double *sum, double *sum_squares);

/// y = x * a + b (+ other), then relu.
void channel_apply(const ChannelShape &shape, const float *x, const float *a, const float *b, const float *other,
                   bool relu, float *y);

/// dy counts as 0 where x * a + b is not positive (the gradient of a fused relu); null = everywhere as it is.
struct ChannelMask {
  const float *a = nullptr;
  const float *b = nullptr;
};

/// Sums of dy and of dy * (x - mean).
void channel_gradient_moments(const ChannelShape &shape, const float *dy, const float *x, const float *mean,
                              const ChannelMask &mask, double *sum_dy, double *sum_dy_xc);

/// dx = dy * a + (x - mean) * slope + shift.
void channel_gradient_apply(const ChannelShape &shape, const float *dy, const float *x, const float *mean,
                            const float *a, const float *slope, const float *shift, const ChannelMask &mask, float *dx);

/// What is normalised over the last axis: rows of `width`.
struct LayerNormRows {
  int64_t rows, width;
  const float *x, *scale;
};

/// Layer normalisation.
void layer_norm(const LayerNormRows &rows, const float *offset, float epsilon, float *y, float *mean, float *rstd);
/// dscale and doffset are sums over the rows.
void layer_norm_gradient(const LayerNormRows &rows, const float *dy, const float *mean, const float *rstd, float *dx,
                         float *dscale, float *doffset);
/// RMS normalisation: the same with 0 for the mean, and no offset.
void rms_norm(const LayerNormRows &rows, float epsilon, float *y, float *rstd);
void rms_norm_gradient(const LayerNormRows &rows, const float *dy, const float *rstd, float *dx, float *dscale);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_NORM_H_
