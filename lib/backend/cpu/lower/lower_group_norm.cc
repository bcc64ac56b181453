// SPDX-License-Identifier: Apache-2.0
//
// Group normalisation: for each image the passes of a batch normalisation (simd_norm.h) with statistics that the
// channels of a group share. An image is usually small enough for the second pass to find it in a cache.
#include <cmath>

#include "backend/cpu/lower/batch_norm.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"

namespace tutti::impl::backend::cpu {

using graph::Node;

namespace {

struct GroupShape {
  ChannelShape image;
  int64_t images = 0, groups = 1;

  static GroupShape make(const LoweredValue &x, std::string_view layout, int64_t groups) {
    return {channel_shape(x, layout, 1), x.dims[0], groups};
  }
  int64_t channels() const { return image.channels(); }
  int64_t image_elements() const { return image.count() * channels(); }
  int64_t group_channels() const { return channels() / groups; }
  /// Elements of a group of an image.
  double count() const { return static_cast<double>(image.count() * group_channels()); }

  /// Calls function(group, first channel, behind the last) for each group.
  template <typename Function>
  void for_groups(const Function &function) const {
    for (int64_t group = 0; group < groups; ++group)
      function(group, group * group_channels(), (group + 1) * group_channels());
  }
};

double sum_of(const double *values, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i)
    sum += values[i];
  return sum;
}

/// Statistics of an image from the sums of its channels, and what its channels are multiplied by and moved by.
void fold_groups(const GroupShape &s, const double *sum, const double *squares, double epsilon, const float *scale,
                 const float *offset, float *mean, float *rstd, float *a, float *b) {
  s.for_groups([&](int64_t group, int64_t begin, int64_t end) {
    const double average = sum_of(sum, begin, end) / s.count();
    double variance = sum_of(squares, begin, end) / s.count() - average * average;
    if (variance < 0) variance = 0;  // NaN stays NaN
    const double r = 1 / std::sqrt(variance + epsilon);
    mean[group] = static_cast<float>(average);
    rstd[group] = static_cast<float>(r);
    for (int64_t i = begin; i < end; ++i) {
      const double factor = static_cast<double>(scale[i]) * r;
      a[i] = static_cast<float>(factor);
      b[i] = static_cast<float>(static_cast<double>(offset[i]) - average * factor);
    }
  });
}

/// What the gradient's passes over an image want of each channel: dx = dy * a + (x - mean) * slope + shift.
struct ChannelGradient {
  float *mean, *a, *slope, *shift;
};

void spread_means(const GroupShape &s, const float *mean, float *channel_mean) {
  s.for_groups([&](int64_t group, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      channel_mean[i] = mean[group];
  });
}

/// From the sums of dy and of dy * (x - mean) of each channel; the latter become those of dy * n.
void fold_group_gradient(const GroupShape &s, const float *scale, const float *rstd, const double *sum_dy,
                         double *sum_dy_xc, const ChannelGradient &to) {
  s.for_groups([&](int64_t group, int64_t begin, int64_t end) {
    const auto r = static_cast<double>(rstd[group]);
    double slopes = 0, projection = 0;
    for (int64_t i = begin; i < end; ++i) {
      slopes += static_cast<double>(scale[i]) * sum_dy[i];
      projection += static_cast<double>(scale[i]) * sum_dy_xc[i];
      sum_dy_xc[i] *= r;
    }
    for (int64_t i = begin; i < end; ++i) {
      to.a[i] = static_cast<float>(static_cast<double>(scale[i]) * r);
      to.slope[i] = static_cast<float>(-r * r * r * projection / s.count());
      to.shift[i] = static_cast<float>(-r * slopes / s.count());
    }
  });
}

/// to[i] = the sum of sums[image * step + i] over the images, in order.
void add_images(int64_t images, int64_t step, int64_t channels, const double *sums, float *to) {
  for (int64_t i = 0; i < channels; ++i) {
    double sum = 0;
    for (int64_t image = 0; image < images; ++image)
      sum += sums[image * step + i];
    to[i] = static_cast<float>(sum);
  }
}

}  // namespace

bool lower_group_norm(Lowering &l, const Node &node) {
  const LoweredValue &value = l.value(node.inputs[0]);
  if (!all_f32(l, node, 3) || value.elements == 0) return false;
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const GroupShape s = GroupShape::make(value, layout, integer(node, "groups"));
  const double epsilon = number(node, "epsilon");
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId scale = l.read(node.inputs[1]), offset = l.read(node.inputs[2]);
  const BufferId y = l.write(node.outputs[0], layout, {node.inputs[0]});
  const BufferId mean = l.write(node.outputs[1]), rstd = l.write(node.outputs[2]);
  const Parts parts(s.images, grain_of(2 * s.image_elements()), l.threads());
  const int64_t channels = s.channels();
  const BufferId sums = l.scratch(parts.threads() * 2 * channels * static_cast<int64_t>(sizeof(double)));
  const BufferId factors = l.scratch(parts.threads() * 2 * channels * static_cast<int64_t>(sizeof(float)));
  l.emit("simd:group_norm", [=](const RunContext &c) {
    c.for_parts(parts, [&](Range images, int32_t thread) {
      double *const sum = static_cast<double *>(c.buffers[sums]) + thread * 2 * channels, *squares = sum + channels;
      float *const a = c.out(factors) + thread * 2 * channels, *b = a + channels;
      for (int64_t image = images.begin; image < images.end; ++image) {
        const int64_t at = image * s.image_elements();
        channel_moments(s.image, c.in(x) + at, sum, squares);
        fold_groups(s, sum, squares, epsilon, c.in(scale), c.in(offset), c.out(mean) + image * s.groups,
                    c.out(rstd) + image * s.groups, a, b);
        channel_apply(s.image, c.in(x) + at, a, b, nullptr, false, c.out(y) + at);
      }
    });
  });
  return true;
}

bool lower_group_norm_gradient(Lowering &l, const Node &node) {
  const LoweredValue &value = l.value(node.inputs[1]);
  if (!all_f32(l, node, 5) || value.elements == 0) return false;
  const std::string_view layout = image_layout(l, node.inputs[1]);
  const GroupShape s = GroupShape::make(value, layout, l.value(node.inputs[3]).dims.back());
  const BufferId dy = l.read(node.inputs[0], layout), x = l.read(node.inputs[1], layout);
  const BufferId scale = l.read(node.inputs[2]), mean = l.read(node.inputs[3]), rstd = l.read(node.inputs[4]);
  const BufferId dx = l.write(node.outputs[0], layout, {node.inputs[0]});
  const BufferId dscale = l.write(node.outputs[1]), doffset = l.write(node.outputs[2]);
  const Parts parts(s.images, grain_of(2 * s.image_elements()), l.threads());
  const int64_t channels = s.channels();
  // Of each image: so sums over the images do not depend on threads.
  const BufferId sums = l.scratch(s.images * 2 * channels * static_cast<int64_t>(sizeof(double)));
  const BufferId factors = l.scratch(parts.threads() * 4 * channels * static_cast<int64_t>(sizeof(float)));
  l.emit("simd:group_norm_gradient", [=](const RunContext &c) {
    auto *const all_sums = static_cast<double *>(c.buffers[sums]);
    c.for_parts(parts, [&](Range images, int32_t thread) {
      float *const first = c.out(factors) + thread * 4 * channels;
      const ChannelGradient g{first, first + channels, first + 2 * channels, first + 3 * channels};
      for (int64_t image = images.begin; image < images.end; ++image) {
        const int64_t at = image * s.image_elements();
        double *const sum_dy = all_sums + image * 2 * channels, *sum_dy_xc = sum_dy + channels;
        spread_means(s, c.in(mean) + image * s.groups, g.mean);
        channel_gradient_moments(s.image, c.in(dy) + at, c.in(x) + at, g.mean, {}, sum_dy, sum_dy_xc);
        fold_group_gradient(s, c.in(scale), c.in(rstd) + image * s.groups, sum_dy, sum_dy_xc, g);
        channel_gradient_apply(s.image, c.in(dy) + at, c.in(x) + at, g.mean, g.a, g.slope, g.shift, {}, c.out(dx) + at);
      }
    });
    add_images(s.images, 2 * channels, channels, all_sums + channels, c.out(dscale));
    add_images(s.images, 2 * channels, channels, all_sums, c.out(doffset));
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
