// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation between convolutions: its sums are a stage behind the one, its pass over the image a stage before
// the other (image_stage.h).
#include <algorithm>
#include <cstring>

#include "backend/cpu/lower/batch_norm.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

constexpr auto nothing = [](const RunContext &) {};

/// An image in parts.
struct ImageParts {
  Parts parts;
  LoweredValue value;
  std::string_view layout;

  int64_t image_elements() const { return value.elements / value.dims[0]; }
  Lowering::ImageUse use(BufferId buffer) const {
    return {buffer, image_elements() * static_cast<int64_t>(sizeof(float))};
  }
  ChannelShape shape(Range images) const { return channel_shape(value, layout, images.size()); }
  int64_t at(Range images) const { return images.begin * image_elements(); }
  double count() const { return static_cast<double>(channel_shape(value, layout).count()); }
  int64_t channels() const { return value.dims.back(); }
};

/// The parts of the two passes over an image that is normalised.
struct TwoPasses {
  ImageParts sums;   ///< of the chain that made what they are sums of, if it is there
  ImageParts apply;  ///< of the chain in which a convolution follows, if one does
};

/// Of x, when `from` may come from a chain and `to` be read by a convolution: none where there is neither.
std::optional<TwoPasses> passes_between(const Lowering &l, ValueId x, ValueId from, ValueId to) {
  const LoweredValue &value = l.value(x);
  if (value.dims.size() != 4 || value.elements == 0) return std::nullopt;
  std::optional<Parts> before, behind;
  if (from != kNoValue && l.is_in_chain(from)) before = l.open_chain_parts();
  if (to != kNoValue) behind = parts_of_next_convolution(l, to);
  if (!before && !behind) return std::nullopt;
  const std::string_view layout = image_layout(l, x);
  return TwoPasses{{before ? *before : *behind, value, layout}, {behind ? *behind : *before, value, layout}};
}

/// Two sums of each channel, of parts of images: added up in the order of the parts.
class PartSums {
 public:
  static PartSums make(Lowering &l, const ImageParts &image) {
    PartSums sums;
    sums.channels_ = image.channels();
    sums.count_ = image.parts.count();
    sums.buffer_ = l.scratch(sums.count_ * 2 * sums.channels_ * static_cast<int64_t>(sizeof(double)));
    return sums;
  }
  double *first(const RunContext &c, int32_t part) const {
    return static_cast<double *>(c.buffers[buffer_]) + part * 2 * channels_;
  }
  double *second(const RunContext &c, int32_t part) const { return first(c, part) + channels_; }
  void add_up(const RunContext &c, double *first_sum, double *second_sum) const {
    std::memcpy(first_sum, first(c, 0), static_cast<size_t>(channels_) * sizeof(double));
    std::memcpy(second_sum, second(c, 0), static_cast<size_t>(channels_) * sizeof(double));
    for (int32_t part = 1; part < count_; ++part) {
      for (int64_t i = 0; i < channels_; ++i) {
        first_sum[i] += first(c, part)[i];
        second_sum[i] += second(c, part)[i];
      }
    }
  }

 private:
  BufferId buffer_ = -1;
  int64_t channels_ = 0;
  int32_t count_ = 0;
};

/// Emits the sums of x and of its squares; end(context, sum, squares, sums) is told where they are to be added up.
template <typename End>
void emit_moments(Lowering &l, const ImageParts &image, BufferId x, End end) {
  const PartSums sums = PartSums::make(l, image);
  l.emit_stage(
      "simd:batch_norm_moments", image.parts, {image.use(x)}, nothing,
      [=](const RunContext &c, Range images, int32_t part) {
        channel_moments(image.shape(images), c.in(x) + image.at(images), sums.first(c, part), sums.second(c, part));
      },
      [=](const RunContext &c) { end(c, sums); });
}

/// Emits y = x * a + b and its tail; `folded` holds a and b.
void emit_apply(Lowering &l, const Group &group, const ImageParts &image, const ChannelScratch &folded) {
  const Node &node = l.graph().step(group.steps.front());
  const NormalizationTail tail = NormalizationTail::of(l, group);
  const BufferId x = l.read(node.inputs[0], image.layout);
  const BufferId other = tail.other == kNoValue ? -1 : l.read(tail.other, image.layout);
  const ValueId overwrite[] = {node.inputs[0], tail.other};
  const BufferId y = l.write(tail.y, image.layout, overwrite);
  l.use(folded.buffer);
  l.emit_stage(
      tail.name("batch_norm_apply"), image.parts, {image.use(x), image.use(other), image.use(y)}, nothing,
      [=, relu = tail.relu](const RunContext &c, Range images, int32_t) {
        const int64_t at = image.at(images);
        channel_apply(image.shape(images), c.in(x) + at, folded.floats(c, 0), folded.floats(c, 1),
                      other < 0 ? nullptr : c.in(other) + at, relu, c.out(y) + at);
      },
      nothing);
}

}  // namespace

bool feeds_sums(const Lowering &l, ValueId image) {
  const auto &uses = l.fusion().uses(image);
  return std::any_of(uses.begin(), uses.end(), [&](int32_t step) {
    const Node &node = l.graph().step(step);
    const Group *group = l.fusion().group_of(step);
    if (node.inputs[0] != image) return false;
    const bool is_mask = node.op == "relu_gradient" && group->kind == GroupKind::norm_gradient;
    return is_mask || node.op == "batch_norm_training" || node.op == "batch_norm_moments" ||
           node.op == "batch_norm_training_gradient" || node.op == "batch_norm_gradient_moments";
  });
}

bool lower_batch_norm_as_stages(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.front());
  const ValueId y = NormalizationTail::of(l, group).y;
  const std::optional<TwoPasses> passes = passes_between(l, node.inputs[0], node.inputs[0], y);
  if (!passes) return false;
  const BufferId x = l.read(node.inputs[0], passes->sums.layout);
  const BufferId scale = l.read(node.inputs[1]), offset = l.read(node.inputs[2]);
  const BufferId mean = l.write(node.outputs[1]), variance = l.write(node.outputs[2]);
  const ChannelScratch folded = ChannelScratch::make(l, passes->sums.channels());
  const double epsilon = number(node, "epsilon"), count = passes->sums.count();
  emit_moments(l, passes->sums, x, [=](const RunContext &c, const PartSums &sums) {
    double *sum = folded.doubles(c, 0), *squares = folded.doubles(c, 1);
    sums.add_up(c, sum, squares);
    statistics_of(folded.channels, count, sum, squares, c.out(mean), c.out(variance));
    fold_statistics(folded.channels, c.in(scale), c.in(offset), c.in(mean), c.in(variance), epsilon,
                    folded.floats(c, 0), folded.floats(c, 1));
  });
  emit_apply(l, group, passes->apply, folded);
  return true;
}

void emit_normalization_stage(Lowering &l, const std::string &name, ValueId x, const Parts &parts, bool relu,
                              double epsilon, const NormalizationBuffers &at) {
  const ImageParts image{parts, l.value(x), image_layout(l, x)};
  const ChannelScratch folded = ChannelScratch::make(l, image.channels());
  l.emit_stage(
      name, parts, {image.use(at.x), image.use(at.other), image.use(at.y)},
      [=](const RunContext &c) {
        fold_statistics(folded.channels, c.in(at.scale), c.in(at.offset), c.in(at.mean), c.in(at.variance), epsilon,
                        folded.floats(c, 0), folded.floats(c, 1));
      },
      [=](const RunContext &c, Range images, int32_t) {
        const int64_t first = image.at(images);
        channel_apply(image.shape(images), c.in(at.x) + first, folded.floats(c, 0), folded.floats(c, 1),
                      at.other < 0 ? nullptr : c.in(at.other) + first, relu, c.out(at.y) + first);
      },
      nothing);
}

bool lower_moments_as_stage(Lowering &l, const Node &node) {
  const std::optional<TwoPasses> passes = passes_between(l, node.inputs[0], node.inputs[0], kNoValue);
  if (!passes) return false;
  const BufferId x = l.read(node.inputs[0], passes->sums.layout);
  const BufferId sum = l.write(node.outputs[0]), squares = l.write(node.outputs[1]);
  emit_moments(l, passes->sums, x, [=](const RunContext &c, const PartSums &sums) {
    sums.add_up(c, static_cast<double *>(c.buffers[sum]), static_cast<double *>(c.buffers[squares]));
  });
  return true;
}

namespace {

/// What the two passes of a gradient share. `folded` holds a, b (of the mask), slope and shift.
struct GradientParts {
  ImageParts image;
  std::string suffix;  ///< of kernels' names
  bool masked = false;
  ChannelScratch folded;

  /// Makes a, and b for a mask; `norm` is what is differentiated.
  void fold(const RunContext &c, const MaskInputs &mask_of, const MaskInputs &norm) const {
    const MaskInputs &from = masked ? mask_of : norm;
    fold_statistics(folded.channels, c.in(from.scale), c.in_or_null(from.offset), c.in(from.mean), c.in(from.variance),
                    from.epsilon, folded.floats(c, 0), masked ? folded.floats(c, 1) : nullptr);
  }
  ChannelMask mask(const RunContext &c) const {
    return masked ? ChannelMask{folded.floats(c, 0), folded.floats(c, 1)} : ChannelMask{};
  }
};

/// Emits the sums of dy and of dy * (x - mean): begin(context) makes a and b, end(context, sums) adds up.
template <typename Begin, typename End>
void emit_gradient_moments(Lowering &l, const GradientParts &g, BufferId dy, BufferId x, BufferId mean, Begin begin,
                           End end) {
  const PartSums sums = PartSums::make(l, g.image);
  l.emit_stage(
      "simd:batch_norm_gradient_moments" + g.suffix, g.image.parts, {g.image.use(dy), g.image.use(x)}, begin,
      [=](const RunContext &c, Range images, int32_t part) {
        const int64_t at = g.image.at(images);
        channel_gradient_moments(g.image.shape(images), c.in(dy) + at, c.in(x) + at, c.in(mean), g.mask(c),
                                 sums.first(c, part), sums.second(c, part));
      },
      [=](const RunContext &c) { end(c, sums); });
}

/// Emits dx; begin(context) makes what is not made yet of a, b, slope and shift.
template <typename Begin>
void emit_gradient_apply(Lowering &l, const GradientParts &g, const Node &node, ValueId gradient, Begin begin) {
  const BufferId dy = l.read(gradient, g.image.layout), x = l.read(node.inputs[1], g.image.layout);
  const BufferId mean = l.read(node.inputs[3]);
  // What is read in this chain alone takes no memory, if it lies on nothing that others use.
  const bool local = only_stages_read(l, node.outputs[0], g.image.parts);
  const BufferId dx = l.write(node.outputs[0], g.image.layout, {local ? kNoValue : gradient});
  l.emit_stage(
      "simd:batch_norm_gradient_apply" + g.suffix, g.image.parts, {g.image.use(dy), g.image.use(x), g.image.use(dx)},
      begin,
      [=](const RunContext &c, Range images, int32_t) {
        const int64_t at = g.image.at(images);
        channel_gradient_apply(g.image.shape(images), c.in(dy) + at, c.in(x) + at, c.in(mean), g.folded.floats(c, 0),
                               g.folded.floats(c, 2), g.folded.floats(c, 3), g.mask(c), c.out(dx) + at);
      },
      nothing);
}

}  // namespace

bool lower_batch_norm_gradient_as_stages(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.back()), &head = l.graph().step(group.steps.front());
  const ValueId gradient = head.inputs[0];
  const std::optional<TwoPasses> passes = passes_between(l, node.inputs[1], gradient, node.outputs[0]);
  if (!passes) return false;
  const bool masked = group.steps.size() > 1;
  const MaskInputs mask = masked ? MaskInputs::read(l, head) : MaskInputs{};
  const BufferId dy = l.read(gradient, passes->sums.layout), x = l.read(node.inputs[1], passes->sums.layout);
  const BufferId scale = l.read(node.inputs[2]), mean = l.read(node.inputs[3]), variance = l.read(node.inputs[4]);
  const BufferId dscale = l.write(node.outputs[1]), doffset = l.write(node.outputs[2]);
  const ChannelScratch folded = ChannelScratch::make(l, passes->sums.channels());
  GradientParts parts{passes->sums, masked ? "+relu" : "", masked, folded};
  const double epsilon = number(node, "epsilon"), count = passes->sums.count();
  emit_gradient_moments(
      l, parts, dy, x, mean,
      [=](const RunContext &c) {
        parts.fold(c, mask, {scale, -1, mean, variance, epsilon});
      },
      [=](const RunContext &c, const PartSums &sums) {
        double *sum_dy = folded.doubles(c, 0), *sum_dy_xc = folded.doubles(c, 1);
        sums.add_up(c, sum_dy, sum_dy_xc);
        fold_gradient(folded.channels, count, c.in(variance), epsilon, folded.floats(c, 0), sum_dy, sum_dy_xc,
                      folded.floats(c, 2), folded.floats(c, 3));
        gradients_of_parameters(folded.channels, c.in(variance), epsilon, sum_dy, sum_dy_xc, c.out(dscale),
                                c.out(doffset));
      });
  l.use(folded.buffer);
  parts.image = passes->apply;
  emit_gradient_apply(l, parts, node, gradient, nothing);
  return true;
}

bool lower_gradient_moments_as_stage(Lowering &l, const Node &node) {
  const int32_t mask_step = l.fusion().waiting_mask(node.inputs[0]);
  const bool masked = mask_step >= 0;
  const ValueId gradient = masked ? l.graph().step(mask_step).inputs[0] : node.inputs[0];
  const std::optional<TwoPasses> passes = passes_between(l, node.inputs[1], gradient, kNoValue);
  if (!passes) return false;
  const MaskInputs mask = masked ? MaskInputs::read(l, l.graph().step(mask_step)) : MaskInputs{};
  const BufferId dy = l.read(gradient, passes->sums.layout), x = l.read(node.inputs[1], passes->sums.layout);
  const BufferId mean = l.read(node.inputs[2]);
  const BufferId sum_dy = l.write(node.outputs[0]), sum_dy_xc = l.write(node.outputs[1]);
  const ChannelScratch folded = ChannelScratch::make(l, passes->sums.channels());
  emit_gradient_moments(
      l, {passes->sums, masked ? "+relu" : "", masked, folded}, dy, x, mean,
      [=](const RunContext &c) {
        if (masked) mask.fold(c, 0, folded.channels, folded.floats(c, 0), folded.floats(c, 1));
      },
      [=](const RunContext &c, const PartSums &sums) {
        sums.add_up(c, static_cast<double *>(c.buffers[sum_dy]), static_cast<double *>(c.buffers[sum_dy_xc]));
      });
  return true;
}

bool lower_gradient_apply_as_stage(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.back()), &head = l.graph().step(group.steps.front());
  const std::optional<TwoPasses> passes = passes_between(l, node.inputs[1], kNoValue, node.outputs[0]);
  if (!passes) return false;
  const bool masked = group.steps.size() > 1;
  const MaskInputs mask = masked ? MaskInputs::read(l, head) : MaskInputs{};
  const BufferId scale = l.read(node.inputs[2]), mean = l.read(node.inputs[3]), variance = l.read(node.inputs[4]);
  const BufferId sum_dy = l.read(node.inputs[5]), sum_dy_xc = l.read(node.inputs[6]), count = l.read(node.inputs[7]);
  const ChannelScratch folded = ChannelScratch::make(l, passes->apply.channels());
  const double epsilon = number(node, "epsilon");
  const GradientParts parts{passes->apply, masked ? "+relu" : "", masked, folded};
  emit_gradient_apply(l, parts, node, head.inputs[0], [=](const RunContext &c) {
    const auto at = [&](BufferId id) { return static_cast<const double *>(c.buffers[id]); };
    parts.fold(c, mask, {scale, -1, mean, variance, epsilon});
    fold_gradient(folded.channels, *at(count), c.in(variance), epsilon, folded.floats(c, 0), at(sum_dy), at(sum_dy_xc),
                  folded.floats(c, 2), folded.floats(c, 3));
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
