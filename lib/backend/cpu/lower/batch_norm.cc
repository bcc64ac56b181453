// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/batch_norm.h"

#include <cmath>

#include "backend/cpu/shapes/attributes.h"
#include "base/text.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

bool all_f32(const Lowering &l, const Node &node, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!l.is_f32(node.inputs[i])) return false;
  }
  return true;
}

std::string_view image_layout(const Lowering &l, ValueId x) {
  return l.layout_of(x) == kBlocked16 ? kBlocked16 : std::string_view();
}

ChannelShape channel_shape(const LoweredValue &x, std::string_view layout, int64_t images) {
  const int64_t channels = x.dims.back();
  if (layout == kBlocked16) return ChannelShape::blocked(images, x.dims[1] * x.dims[2], channels);
  const int64_t elements = x.dims[0] == 0 ? 0 : x.elements / x.dims[0] * images;
  return ChannelShape::plain(channels > 0 ? elements / channels : 0, channels);
}

ChannelShape channel_shape(const LoweredValue &x, std::string_view layout) {
  return channel_shape(x, layout, x.dims[0]);
}

ChannelScratch ChannelScratch::make(Lowering &l, int64_t channels) {
  return {l.scratch(channels * (2 * static_cast<int64_t>(sizeof(double)) + 5 * static_cast<int64_t>(sizeof(float)))),
          channels};
}

void statistics_of(int64_t channels, double count, const double *sum, const double *squares, float *mean,
                   float *variance) {
  for (int64_t i = 0; i < channels; ++i) {
    const double average = sum[i] / count;
    mean[i] = static_cast<float>(average);
    const double squared_deviation = squares[i] / count - average * average;
    variance[i] = squared_deviation < 0 ? 0.0f : static_cast<float>(squared_deviation);  // NaN stays NaN
  }
}

void fold_statistics(int64_t channels, const float *scale, const float *offset, const float *mean,
                     const float *variance, double epsilon, float *a, float *b) {
  for (int64_t i = 0; i < channels; ++i) {
    const double factor = static_cast<double>(scale[i]) / std::sqrt(static_cast<double>(variance[i]) + epsilon);
    a[i] = static_cast<float>(factor);
    if (b != nullptr) {
      b[i] = static_cast<float>(static_cast<double>(offset[i]) - static_cast<double>(mean[i]) * factor);
    }
  }
}

void fold_gradient(int64_t channels, double count, const float *variance, double epsilon, const float *a,
                   const double *sum_dy, const double *sum_dy_xc, float *slope, float *shift) {
  for (int64_t i = 0; i < channels; ++i) {
    const double factor = static_cast<double>(a[i]);
    const double r2 = 1.0 / (static_cast<double>(variance[i]) + epsilon);
    slope[i] = static_cast<float>(-factor * r2 * sum_dy_xc[i] / count);
    shift[i] = static_cast<float>(-factor * sum_dy[i] / count);
  }
}

void gradients_of_parameters(int64_t channels, const float *variance, double epsilon, const double *sum_dy,
                             const double *sum_dy_xc, float *dscale, float *doffset) {
  for (int64_t i = 0; i < channels; ++i) {
    const double r = 1.0 / std::sqrt(static_cast<double>(variance[i]) + epsilon);
    dscale[i] = static_cast<float>(sum_dy_xc[i] * r);
    doffset[i] = static_cast<float>(sum_dy[i]);
  }
}

NormalizationTail NormalizationTail::of(const Lowering &l, const Group &group) {
  NormalizationTail tail;
  tail.y = l.graph().step(group.steps.front()).outputs[0];
  for (size_t i = 1; i < group.steps.size(); ++i) {
    const Node &node = l.graph().step(group.steps[i]);
    if (node.op == "add") tail.other = node.inputs[0] == tail.y ? node.inputs[1] : node.inputs[0];
    tail.relu |= node.op == "relu";
    tail.y = node.outputs[0];
  }
  return tail;
}

std::string NormalizationTail::name(std::string_view what) const {
  return base::concat("simd:", what, other != kNoValue ? "+add" : "", relu ? "+relu" : "");
}

MaskInputs MaskInputs::read(Lowering &l, const Node &relu_gradient) {
  const Node &relu = l.graph().step(l.fusion().producer(relu_gradient.inputs[1]));
  const Node &norm = l.graph().step(l.fusion().producer(relu.inputs[0]));
  const StatisticsOf statistics(norm);
  return {l.read(norm.inputs[1]), l.read(norm.inputs[2]), l.read(statistics.mean), l.read(statistics.variance),
          number(norm, "epsilon")};
}

ChannelMask MaskInputs::fold(const RunContext &c, int64_t first, int64_t channels, float *a, float *b) const {
  fold_statistics(channels, c.in(scale) + first, c.in(offset) + first, c.in(mean) + first, c.in(variance) + first,
                  epsilon, a, b);
  return {a, b};
}

}  // namespace tutti::impl::backend::cpu
