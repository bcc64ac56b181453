// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cpu/kernel/channel_parts.h"
#include "backend/cpu/lower/batch_norm.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/simd/simd_reduce.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

bool lower_batch_norm(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.front());
  const LoweredValue &value = l.value(node.inputs[0]);
  if (!all_f32(l, node, 3) || value.elements == 0) return false;
  if (lower_batch_norm_as_stages(l, group)) return true;
  const NormalizationTail following = NormalizationTail::of(l, group);
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const ChannelShape shape = channel_shape(value, layout);
  const ChannelGroups groups = ChannelGroups::make(shape, l.threads());
  const double epsilon = number(node, "epsilon");
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId scale = l.read(node.inputs[1]), offset = l.read(node.inputs[2]);
  const BufferId other = following.other == kNoValue ? -1 : l.read(following.other, layout);
  const ValueId overwrite[] = {node.inputs[0], following.other};
  const BufferId y = l.write(following.y, layout, overwrite);
  const BufferId mean = l.write(node.outputs[1]), variance = l.write(node.outputs[2]);
  const ChannelScratch scratch = ChannelScratch::make(l, groups.channels());
  const BufferId sums = l.scratch(groups.parts().scratch_bytes());
  l.emit(following.name("batch_norm"), [=, relu = following.relu](const RunContext &c) {
    double *sum = scratch.doubles(c, 0), *squares = scratch.doubles(c, 1);
    float *a = scratch.floats(c, 0), *b = scratch.floats(c, 1);
    groups.for_each([&](int64_t channel, int64_t at) {
      float *means = c.out(mean) + channel, *variances = c.out(variance) + channel;
      groups.parts().moments(c, sums, c.in(x) + at, sum, squares);
      statistics_of(groups.channels(), static_cast<double>(shape.count()), sum, squares, means, variances);
      fold_statistics(groups.channels(), c.in(scale) + channel, c.in(offset) + channel, means, variances, epsilon, a,
                      b);
      groups.parts().apply(c, c.in(x) + at, a, b, other < 0 ? nullptr : c.in(other) + at, relu, c.out(y) + at);
    });
  });
  return true;
}

namespace {

/// Emits a normalisation by statistics that are there.
void emit_normalization(Lowering &l, const std::string &name, const ChannelShape &shape, bool relu, double epsilon,
                        const NormalizationBuffers &at) {
  const ChannelParts parts = ChannelParts::make(shape, l.threads());
  const ChannelScratch scratch = ChannelScratch::make(l, shape.channels());
  l.emit(name, [=](const RunContext &c) {
    float *a = scratch.floats(c, 0), *b = scratch.floats(c, 1);
    fold_statistics(shape.channels(), c.in(at.scale), c.in(at.offset), c.in(at.mean), c.in(at.variance), epsilon, a, b);
    parts.apply(c, c.in(at.x), a, b, c.in_or_null(at.other), relu, c.out(at.y));
  });
}

/// Is the gradient of the normalisation still to come, so that all it was made of is still there?
bool is_gradient_to_come(const Lowering &l, const Node &norm, int32_t now) {
  const StatisticsOf statistics(norm);
  for (int32_t use : l.fusion().uses(norm.inputs[0])) {
    const Node &node = l.graph().step(use);
    const Group *group = l.fusion().group_of(use);
    const bool is_gradient = node.op == "batch_norm_training_gradient" || node.op == "batch_norm_gradient_apply";
    if (is_gradient && group != nullptr && node.inputs[1] == norm.inputs[0] && node.inputs[3] == statistics.mean &&
        node.inputs[4] == statistics.variance) {
      return group->emit_at > now;
    }
  }
  return false;
}

/// Does no other gradient read the image? The mask of a relu is made from what was normalised.
bool only_this_gradient_reads(const Lowering &l, ValueId image, int32_t step) {
  for (int32_t use : l.fusion().uses(image)) {
    const std::string &op = l.graph().step(use).op;
    const Group *group = l.fusion().group_of(use);
    const bool is_mask = op == "relu_gradient" && group != nullptr && group->kind == GroupKind::norm_gradient;
    if (use != step && !is_mask && op.find("gradient") != std::string::npos) return false;
  }
  return true;
}

/// Multiplications of the kernel gradient for each element of its image.
int64_t multiplications_per_element(const Lowering &l, ValueId image, const Node &kernel_gradient) {
  const std::vector<int64_t> &kernel = l.value(kernel_gradient.outputs[0]).dims;
  const int64_t products = l.value(kernel_gradient.inputs[1]).elements * kernel[0] * kernel[1] * kernel[2];
  return products / std::max<int64_t>(l.value(image).elements, 1);
}

}  // namespace

void normalize_again(Lowering &l, ValueId image, int32_t step, const std::optional<Parts> &parts) {
  // Making an element again took 0.8 ns where a thread makes 65 multiplications in one: 3 % of what the three
  // passes of such a convolution take.
  constexpr int64_t kWorth = 512;
  const int32_t producer = l.fusion().producer(image);
  const Group *group = producer < 0 ? nullptr : l.fusion().group_of(producer);
  if (group == nullptr || group->kind != GroupKind::batch_norm || l.value(image).dims.size() != 4) return;
  const Node &node = l.graph().step(group->steps.front());
  const NormalizationTail following = NormalizationTail::of(l, *group);
  const std::string layout = l.layout_of(image);
  const bool is_plain = following.other == kNoValue && following.y == image;
  if (!is_plain || l.layout_of(node.inputs[0]) != layout || !only_this_gradient_reads(l, image, step) ||
      !is_gradient_to_come(l, node, l.fusion().group_of(step)->emit_at) ||
      (!parts && multiplications_per_element(l, image, l.graph().step(step)) < kWorth)) {
    return;
  }
  const ChannelShape shape = channel_shape(l.value(image), layout);
  const BufferId x = l.read(node.inputs[0], layout), scale = l.read(node.inputs[1]), offset = l.read(node.inputs[2]);
  const StatisticsOf statistics(node);
  const BufferId mean = l.read(statistics.mean), variance = l.read(statistics.variance);
  const BufferId y = l.write_again(image, layout);
  const NormalizationBuffers buffers{x, scale, offset, mean, variance, -1, y};
  const std::string name = following.name("batch_norm_again");
  const double epsilon = number(node, "epsilon");
  if (parts) return emit_normalization_stage(l, name, node.inputs[0], *parts, following.relu, epsilon, buffers);
  emit_normalization(l, name, shape, following.relu, epsilon, buffers);
}

bool lower_batch_norm_inference(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.front());
  const LoweredValue &value = l.value(node.inputs[0]);
  if (!all_f32(l, node, 5) || value.elements == 0) return false;
  const NormalizationTail following = NormalizationTail::of(l, group);
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId scale = l.read(node.inputs[1]), offset = l.read(node.inputs[2]);
  const BufferId mean = l.read(node.inputs[3]), variance = l.read(node.inputs[4]);
  const BufferId other = following.other == kNoValue ? -1 : l.read(following.other, layout);
  const ValueId overwrite[] = {node.inputs[0], following.other};
  const BufferId y = l.write(following.y, layout, overwrite);
  const NormalizationBuffers buffers{x, scale, offset, mean, variance, other, y};
  const std::string name = following.name("batch_norm_inference");
  const double epsilon = number(node, "epsilon");
  const auto parts = value.dims.size() == 4 ? parts_of_next_convolution(l, following.y) : std::nullopt;
  if (parts) {
    emit_normalization_stage(l, name, node.inputs[0], *parts, following.relu, epsilon, buffers);
  } else {
    emit_normalization(l, name, channel_shape(value, layout), following.relu, epsilon, buffers);
  }
  return true;
}

bool lower_batch_norm_moments(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  if (lower_moments_as_stage(l, node)) return true;
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const ChannelShape shape = channel_shape(l.value(node.inputs[0]), layout);
  const ChannelParts parts = ChannelParts::make(shape, l.threads());
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId sum = l.write(node.outputs[0]), squares = l.write(node.outputs[1]);
  const BufferId sums = l.scratch(parts.scratch_bytes());
  l.emit("simd:batch_norm_moments", [=](const RunContext &c) {
    parts.moments(c, sums, c.in(x), static_cast<double *>(c.buffers[sum]), static_cast<double *>(c.buffers[squares]));
  });
  return true;
}

bool lower_batch_norm_gradient_moments(Lowering &l, const Node &node) {
  if (!all_f32(l, node, 3)) return false;
  if (lower_gradient_moments_as_stage(l, node)) return true;
  const std::string_view layout = image_layout(l, node.inputs[1]);
  const ChannelShape shape = channel_shape(l.value(node.inputs[1]), layout);
  const ChannelParts parts = ChannelParts::make(shape, l.threads());
  const int32_t mask_step = l.fusion().waiting_mask(node.inputs[0]);
  const bool masked = mask_step >= 0;
  const MaskInputs mask = masked ? MaskInputs::read(l, l.graph().step(mask_step)) : MaskInputs{};
  const BufferId dy = l.read(masked ? l.graph().step(mask_step).inputs[0] : node.inputs[0], layout);
  const BufferId x = l.read(node.inputs[1], layout), mean = l.read(node.inputs[2]);
  const BufferId sum_dy = l.write(node.outputs[0]), sum_dy_xc = l.write(node.outputs[1]);
  const ChannelScratch scratch = ChannelScratch::make(l, shape.channels());
  const BufferId sums = l.scratch(parts.scratch_bytes());
  l.emit(
      masked ? "simd:batch_norm_gradient_moments+relu" : "simd:batch_norm_gradient_moments", [=](const RunContext &c) {
        const ChannelMask folded =
            masked ? mask.fold(c, 0, shape.channels(), scratch.floats(c, 0), scratch.floats(c, 1)) : ChannelMask{};
        parts.gradient_moments(c, sums, c.in(dy), c.in(x), c.in(mean), folded, static_cast<double *>(c.buffers[sum_dy]),
                               static_cast<double *>(c.buffers[sum_dy_xc]));
      });
  return true;
}

bool lower_batch_norm_gradient(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.back());
  const LoweredValue &value = l.value(node.inputs[1]);
  if (!all_f32(l, node, 5) || value.elements == 0) return false;
  if (lower_batch_norm_gradient_as_stages(l, group)) return true;
  const Node &head = l.graph().step(group.steps.front());
  const bool masked = group.steps.size() > 1;
  const std::string_view layout = image_layout(l, node.inputs[1]);
  const ChannelShape shape = channel_shape(value, layout);
  const ChannelGroups groups = ChannelGroups::make(shape, l.threads());
  const double epsilon = number(node, "epsilon");
  const MaskInputs mask = masked ? MaskInputs::read(l, head) : MaskInputs{};
  const ValueId gradient = head.inputs[0];
  const BufferId dy = l.read(gradient, layout), x = l.read(node.inputs[1], layout);
  const BufferId scale = l.read(node.inputs[2]), mean = l.read(node.inputs[3]), variance = l.read(node.inputs[4]);
  const BufferId dx = l.write(node.outputs[0], layout, {gradient});
  const BufferId dscale = l.write(node.outputs[1]), doffset = l.write(node.outputs[2]);
  const ChannelScratch scratch = ChannelScratch::make(l, groups.channels());
  const BufferId sums = l.scratch(groups.parts().scratch_bytes());
  l.emit(masked ? "simd:batch_norm_gradient+relu" : "simd:batch_norm_gradient", [=](const RunContext &c) {
    float *a = scratch.floats(c, 0), *b = scratch.floats(c, 1);
    float *slope = scratch.floats(c, 2), *shift = scratch.floats(c, 3);
    double *sum_dy = scratch.doubles(c, 0), *sum_dy_xc = scratch.doubles(c, 1);
    const int64_t channels = groups.channels();
    const auto count = static_cast<double>(shape.count());
    groups.for_each([&](int64_t channel, int64_t at) {
      const float *means = c.in(mean) + channel, *variances = c.in(variance) + channel;
      const ChannelMask folded = masked ? mask.fold(c, channel, channels, a, b) : ChannelMask{};
      if (!masked) fold_statistics(channels, c.in(scale) + channel, nullptr, means, variances, epsilon, a, nullptr);
      groups.parts().gradient_moments(c, sums, c.in(dy) + at, c.in(x) + at, means, folded, sum_dy, sum_dy_xc);
      fold_gradient(channels, count, variances, epsilon, a, sum_dy, sum_dy_xc, slope, shift);
      groups.parts().gradient_apply(c, c.in(dy) + at, c.in(x) + at, means, a, slope, shift, folded, c.out(dx) + at);
      gradients_of_parameters(channels, variances, epsilon, sum_dy, sum_dy_xc, c.out(dscale) + channel,
                              c.out(doffset) + channel);
    });
  });
  return true;
}

bool lower_batch_norm_gradient_apply(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.back());
  const LoweredValue &value = l.value(node.inputs[1]);
  if (!all_f32(l, node, 5) || value.elements == 0) return false;
  if (lower_gradient_apply_as_stage(l, group)) return true;
  const Node &head = l.graph().step(group.steps.front());
  const bool masked = group.steps.size() > 1;
  const std::string_view layout = image_layout(l, node.inputs[1]);
  const ChannelShape shape = channel_shape(value, layout);
  const ChannelParts parts = ChannelParts::make(shape, l.threads());
  const double epsilon = number(node, "epsilon");
  const MaskInputs mask = masked ? MaskInputs::read(l, head) : MaskInputs{};
  const ValueId gradient = head.inputs[0];
  const BufferId dy = l.read(gradient, layout), x = l.read(node.inputs[1], layout);
  const BufferId scale = l.read(node.inputs[2]), mean = l.read(node.inputs[3]), variance = l.read(node.inputs[4]);
  const BufferId sum_dy = l.read(node.inputs[5]), sum_dy_xc = l.read(node.inputs[6]), count = l.read(node.inputs[7]);
  const BufferId dx = l.write(node.outputs[0], layout, {gradient});
  const ChannelScratch scratch = ChannelScratch::make(l, shape.channels());
  l.emit(masked ? "simd:batch_norm_gradient_apply+relu" : "simd:batch_norm_gradient_apply", [=](const RunContext &c) {
    float *a = scratch.floats(c, 0), *slope = scratch.floats(c, 2), *shift = scratch.floats(c, 3);
    const ChannelMask folded = masked ? mask.fold(c, 0, shape.channels(), a, scratch.floats(c, 1)) : ChannelMask{};
    if (!masked)
      fold_statistics(shape.channels(), c.in(scale), nullptr, c.in(mean), c.in(variance), epsilon, a, nullptr);
    fold_gradient(shape.channels(), *static_cast<const double *>(c.buffers[count]), c.in(variance), epsilon, a,
                  static_cast<const double *>(c.buffers[sum_dy]), static_cast<const double *>(c.buffers[sum_dy_xc]),
                  slope, shift);
    parts.gradient_apply(c, c.in(dy), c.in(x), c.in(mean), a, slope, shift, folded, c.out(dx));
  });
  return true;
}

bool lower_layer_norm(Lowering &l, const Node &node) {
  // RMS normalisation has neither offset nor mean.
  const bool is_centred = node.op == "layer_norm";
  if (!all_f32(l, node, is_centred ? 3 : 2)) return false;
  const LoweredValue &value = l.value(node.inputs[0]);
  const int64_t width = value.dims.back();
  if (width == 0) return false;
  const int64_t rows = value.elements / width;
  const auto epsilon = static_cast<float>(number(node, "epsilon"));
  const BufferId x = l.read(node.inputs[0]), scale = l.read(node.inputs[1]);
  const BufferId offset = is_centred ? l.read(node.inputs[2]) : -1;
  const BufferId y = l.write(node.outputs[0], "", {node.inputs[0]});
  const BufferId mean = is_centred ? l.write(node.outputs[1]) : -1, rstd = l.write(node.outputs.back());
  l.emit_ranges(is_centred ? "simd:layer_norm" : "simd:rms_norm", rows, grain_of(4 * width),
                [=](const RunContext &c, Range r) {
                  const LayerNormRows some{r.size(), width, c.in(x) + r.begin * width, c.in(scale)};
                  float *const to = c.out(y) + r.begin * width, *const rstds = c.out(rstd) + r.begin;
                  if (!is_centred) return rms_norm(some, epsilon, to, rstds);
                  layer_norm(some, c.in(offset), epsilon, to, c.out(mean) + r.begin, rstds);
                });
  return true;
}

bool lower_layer_norm_gradient(Lowering &l, const Node &node) {
  const bool is_centred = node.op == "layer_norm_gradient";
  if (!all_f32(l, node, node.inputs.size())) return false;
  const LoweredValue &value = l.value(node.inputs[1]);
  const int64_t width = value.dims.back();
  if (width == 0) return false;
  const int64_t rows = value.elements / width;
  const BufferId dy = l.read(node.inputs[0]), x = l.read(node.inputs[1]), scale = l.read(node.inputs[2]);
  const BufferId mean = is_centred ? l.read(node.inputs[3]) : -1, rstd = l.read(node.inputs.back());
  const BufferId dx = l.write(node.outputs[0], "", {node.inputs[0]});
  const BufferId dscale = l.write(node.outputs[1]), doffset = is_centred ? l.write(node.outputs[2]) : -1;
  // Stretches of rows by the shape alone: sums do not depend on threads.
  constexpr int32_t kStretches = 16;
  const Parts stretches(rows, grain_of(2 * width), kStretches, 1);
  const int64_t sums_bytes = stretches.count() * width * static_cast<int64_t>(sizeof(float));
  const BufferId dscales = l.scratch(sums_bytes), doffsets = is_centred ? l.scratch(sums_bytes) : -1;
  l.emit(is_centred ? "simd:layer_norm_gradient" : "simd:rms_norm_gradient", [=](const RunContext &c) {
    c.for_each(stretches.count(), [&](int32_t part, int32_t) {
      const Range r = stretches[part];
      const int64_t at = r.begin * width;
      const LayerNormRows some{r.size(), width, c.in(x) + at, c.in(scale)};
      float *const to = c.out(dx) + at, *const sums = c.out(dscales) + part * width;
      if (!is_centred) return rms_norm_gradient(some, c.in(dy) + at, c.in(rstd) + r.begin, to, sums);
      layer_norm_gradient(some, c.in(dy) + at, c.in(mean) + r.begin, c.in(rstd) + r.begin, to, sums,
                          c.out(doffsets) + part * width);
    });
    const ReduceShape sums{1, stretches.count(), width};
    reduce(ReduceKind::sum, sums, c.in(dscales), c.out(dscale));
    if (is_centred) reduce(ReduceKind::sum, sums, c.in(doffsets), c.out(doffset));
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
