// SPDX-License-Identifier: Apache-2.0
//
// What the lowerings of batch normalisation share: from sums of each channel to the numbers that its passes
// (simd_norm.h) want, and what belongs to a normalisation in the graph.
//
//   y = x * a + b, a = scale / sqrt(variance + epsilon), b = offset - mean * a
//   dx = dy * a + (x - mean) * slope + shift
#ifndef TUTTI_BACKEND_CPU_LOWER_BATCH_NORM_H_
#define TUTTI_BACKEND_CPU_LOWER_BATCH_NORM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/lower/fusion.h"
#include "backend/cpu/lower/lowering.h"
#include "backend/cpu/simd/simd_norm.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

/// Are the first `count` inputs f32?
bool all_f32(const Lowering &l, const graph::Node &node, size_t count);
/// The layout an image is taken in: the one it lies in, if channels can be walked there.
std::string_view image_layout(const Lowering &l, graph::ValueId x);
/// Of `images` of the images of x.
ChannelShape channel_shape(const LoweredValue &x, std::string_view layout, int64_t images);
ChannelShape channel_shape(const LoweredValue &x, std::string_view layout);

/// Places for numbers of each channel in one piece of scratch.
struct ChannelScratch {
  BufferId buffer = -1;
  int64_t channels = 0;

  static ChannelScratch make(Lowering &l, int64_t channels);
  /// Index 0 or 1.
  double *doubles(const RunContext &c, int64_t index) const {
    return static_cast<double *>(c.buffers[buffer]) + index * channels;
  }
  /// Index 0 to 4.
  float *floats(const RunContext &c, int64_t index) const {
    return reinterpret_cast<float *>(doubles(c, 2)) + index * channels;
  }
};

void statistics_of(int64_t channels, double count, const double *sum, const double *squares, float *mean,
                   float *variance);
/// a and b (null: not wanted): the same numbers wherever they are computed, so that a mask made again is the same mask.
void fold_statistics(int64_t channels, const float *scale, const float *offset, const float *mean,
                     const float *variance, double epsilon, float *a, float *b);
/// slope and shift, from the sums of dy and of dy * (x - mean).
void fold_gradient(int64_t channels, double count, const float *variance, double epsilon, const float *a,
                   const double *sum_dy, const double *sum_dy_xc, float *slope, float *shift);
void gradients_of_parameters(int64_t channels, const float *variance, double epsilon, const double *sum_dy,
                             const double *sum_dy_xc, float *dscale, float *doffset);

/// The statistics by which a batch_norm_training makes its result, or a batch_norm_inference.
struct StatisticsOf {
  graph::ValueId mean, variance;

  explicit StatisticsOf(const graph::Node &norm)
      : mean(norm.op == "batch_norm_inference" ? norm.inputs[3] : norm.outputs[1]),
        variance(norm.op == "batch_norm_inference" ? norm.inputs[4] : norm.outputs[2]) {}
};

/// What follows a normalisation in its group.
struct NormalizationTail {
  graph::ValueId other = graph::kNoValue;  ///< is added
  bool relu = false;
  graph::ValueId y = graph::kNoValue;

  static NormalizationTail of(const Lowering &l, const Group &group);
  /// "simd:batch_norm+add+relu".
  std::string name(std::string_view what) const;
};

/// What the mask of a fused relu_gradient is made of: y = x * a + b of the normalisation before the relu.
struct MaskInputs {
  BufferId scale = -1, offset = -1, mean = -1, variance = -1;
  double epsilon = 0;

  /// The next emit reads them.
  static MaskInputs read(Lowering &l, const graph::Node &relu_gradient);
  /// For so many channels from a first one; a and b are where the mask shall lie.
  ChannelMask fold(const RunContext &c, int64_t first, int64_t channels, float *a, float *b) const;
};

struct NormalizationBuffers {
  BufferId x, scale, offset, mean, variance;
  BufferId other;  ///< added behind it, -1 = nothing
  BufferId y;
};

// lower_batch_norm_stages.cc: as stages (image_stage.h), in place of what lower_normalization.cc does with the image as
// a whole. False where nothing is there to be a stage with.
bool lower_batch_norm_as_stages(Lowering &l, const Group &group);
bool lower_batch_norm_gradient_as_stages(Lowering &l, const Group &group);
bool lower_moments_as_stage(Lowering &l, const graph::Node &node);
bool lower_gradient_moments_as_stage(Lowering &l, const graph::Node &node);
bool lower_gradient_apply_as_stage(Lowering &l, const Group &group);
/// A normalisation of x by statistics that are there.
void emit_normalization_stage(Lowering &l, const std::string &name, graph::ValueId x, const Parts &parts, bool relu,
                              double epsilon, const NormalizationBuffers &at);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_BATCH_NORM_H_
