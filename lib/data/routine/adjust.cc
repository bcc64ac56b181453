// SPDX-License-Identifier: Apache-2.0
//
// Ops on colours: adjust_*, random_color_jitter, convert_image_dtype, normalize_image.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "data/routine/color.h"
#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::RandomStream;
using base::Result;
using base::Status;
using graph::ops::AdjustBrightnessAttributes;
using graph::ops::AdjustContrastAttributes;
using graph::ops::AdjustHueAttributes;
using graph::ops::AdjustSaturationAttributes;
using graph::ops::ConvertImageDtypeAttributes;
using graph::ops::NormalizeImageAttributes;
using graph::ops::RandomColorJitterAttributes;
using tensor::DType;

namespace {

// An image in f32 and what is to be done with it.
struct FloatImage {
  float *values;
  int64_t pixels;
  int64_t channels;

  int64_t count() const { return pixels * channels; }
};

// Ops that change images of f32 in place: f32 in the memory of the result, u8 by way of a copy.
Status change_images(RoutineFrame &frame, const auto &change) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  TUTTI_ASSIGN(void *const y, frame.output(0, x.shape));
  auto &floats = frame.state<std::vector<float>>();
  const int64_t count = rows.elements();
  for (int64_t row = 0; row < rows.count; ++row) {
    if (x.dtype == DType::f32) {
      float *const to = static_cast<float *>(y) + row * count;
      std::copy_n(x.as<float>() + row * count, count, to);
      change(FloatImage{to, rows.height * rows.width, rows.channels}, row);
    } else {
      floats.resize(static_cast<size_t>(count));
      bytes_to_floats(x.as<uint8_t>() + row * count, count, floats.data());
      change(FloatImage{floats.data(), rows.height * rows.width, rows.channels}, row);
      floats_to_bytes(floats.data(), count, static_cast<uint8_t *>(y) + row * count);
    }
  }
  return Status();
}

Status require_three_channels(const RoutineFrame &frame) {
  const tensor::Shape &shape = frame.input(0).shape;
  if (shape[shape.rank() - 1] == 3) return Status();
  return base::invalid_argument("an image ", shape, " does not have three channels");
}

double even(double middle, double reach, RandomStream &random) {
  return middle + reach * (2 * static_cast<double>(base::uniform_float(random.next())) - 1);
}

// Four words in a fixed order, used or not: leaving out one change leaves the others as they are.
void jitter(const FloatImage &image, const RandomColorJitterAttributes &attributes, RandomStream random) {
  const double brightness = even(0, attributes.brightness, random);
  const double contrast = even(1, attributes.contrast, random);
  const double saturation = even(1, attributes.saturation, random);
  const double hue = even(0, attributes.hue, random);
  if (attributes.brightness > 0) add_brightness(image.values, image.count(), static_cast<float>(brightness));
  if (attributes.contrast > 0) scale_contrast(image.values, image.pixels, image.channels, static_cast<float>(contrast));
  if (attributes.saturation > 0 || attributes.hue > 0) {
    change_saturation_and_hue(image.values, image.pixels, static_cast<float>(saturation), static_cast<float>(hue));
  }
}

// y = x · scale + offset, per channel.
struct ChannelScale {
  std::vector<double> scale, offset;
};

ChannelScale channel_scale(const NormalizeImageAttributes &attributes) {
  ChannelScale result;
  const size_t count = std::max(attributes.mean.size(), attributes.stddev.size());
  for (size_t c = 0; c < count; ++c) {
    const double mean = attributes.mean[attributes.mean.size() == 1 ? 0 : c];
    const double stddev = attributes.stddev[attributes.stddev.size() == 1 ? 0 : c];
    result.scale.push_back(attributes.scale / stddev);
    result.offset.push_back(-mean / stddev);
  }
  return result;
}

Status normalize(RoutineFrame &frame, const ChannelScale &by) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  TUTTI_ASSIGN(float *const y, frame.output_as<float>(0, x.shape));
  const auto channels = static_cast<size_t>(rows.channels);
  auto &factors = frame.state<std::vector<float>>();
  factors.resize(2 * channels);
  for (size_t c = 0; c < channels; ++c) {
    factors[c] = static_cast<float>(by.scale[by.scale.size() == 1 ? 0 : c]);
    factors[channels + c] = static_cast<float>(by.offset[by.offset.size() == 1 ? 0 : c]);
  }
  const int64_t pixels = rows.count * rows.height * rows.width;
  if (x.dtype == DType::u8) {
    scale_channels(x.as<uint8_t>(), pixels, rows.channels, factors.data(), factors.data() + channels, y);
  } else {
    scale_channels(x.as<float>(), pixels, rows.channels, factors.data(), factors.data() + channels, y);
  }
  return Status();
}

}  // namespace

Result<RoutineKernel> make_adjust_brightness(const RoutineNode &node) {
  TUTTI_ASSIGN(const AdjustBrightnessAttributes attributes, AdjustBrightnessAttributes::from(node.node));
  return RoutineKernel([delta = static_cast<float>(attributes.delta)](RoutineFrame &frame) {
    return change_images(
        frame, [delta](const FloatImage &image, int64_t) { add_brightness(image.values, image.count(), delta); });
  });
}

Result<RoutineKernel> make_adjust_contrast(const RoutineNode &node) {
  TUTTI_ASSIGN(const AdjustContrastAttributes attributes, AdjustContrastAttributes::from(node.node));
  return RoutineKernel([factor = static_cast<float>(attributes.factor)](RoutineFrame &frame) {
    return change_images(frame, [factor](const FloatImage &image, int64_t) {
      scale_contrast(image.values, image.pixels, image.channels, factor);
    });
  });
}

Result<RoutineKernel> make_adjust_saturation(const RoutineNode &node) {
  TUTTI_ASSIGN(const AdjustSaturationAttributes attributes, AdjustSaturationAttributes::from(node.node));
  return RoutineKernel([factor = static_cast<float>(attributes.factor)](RoutineFrame &frame) -> Status {
    TUTTI_TRY(require_three_channels(frame));
    return change_images(frame, [factor](const FloatImage &image, int64_t) {
      change_saturation_and_hue(image.values, image.pixels, factor, 0);
    });
  });
}

Result<RoutineKernel> make_adjust_hue(const RoutineNode &node) {
  TUTTI_ASSIGN(const AdjustHueAttributes attributes, AdjustHueAttributes::from(node.node));
  return RoutineKernel([delta = static_cast<float>(attributes.delta)](RoutineFrame &frame) -> Status {
    TUTTI_TRY(require_three_channels(frame));
    return change_images(frame, [delta](const FloatImage &image, int64_t) {
      change_saturation_and_hue(image.values, image.pixels, 1, delta);
    });
  });
}

Result<RoutineKernel> make_random_color_jitter(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomColorJitterAttributes attributes, RandomColorJitterAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) -> Status {
    TUTTI_TRY(require_three_channels(frame));
    return change_images(frame, [&](const FloatImage &image, int64_t row) {
      jitter(image, attributes, frame.random(attributes.key, row));
    });
  });
}

Result<RoutineKernel> make_convert_image_dtype(const RoutineNode &node) {
  TUTTI_ASSIGN(const ConvertImageDtypeAttributes attributes, ConvertImageDtypeAttributes::from(node.node));
  return RoutineKernel([to = attributes.dtype](RoutineFrame &frame) -> Status {
    const RoutineValue &x = frame.input(0);
    if (x.dtype == to) return frame.output_view(0, x.shape, 0);
    TUTTI_ASSIGN(void *const y, frame.output(0, x.shape));
    if (to == DType::f32) {
      bytes_to_floats(x.as<uint8_t>(), x.shape.elements(), static_cast<float *>(y));
    } else {
      floats_to_bytes(x.as<float>(), x.shape.elements(), static_cast<uint8_t *>(y));
    }
    return Status();
  });
}

Result<RoutineKernel> make_normalize_image(const RoutineNode &node) {
  TUTTI_ASSIGN(const NormalizeImageAttributes attributes, NormalizeImageAttributes::from(node.node));
  return RoutineKernel([by = channel_scale(attributes)](RoutineFrame &frame) { return normalize(frame, by); });
}

}  // namespace tutti::impl::data
