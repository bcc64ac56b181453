// SPDX-License-Identifier: Apache-2.0
#include "data/routine/random_window.h"

#include <algorithm>
#include <cmath>

#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::RandomStream;
using base::Result;
using base::Status;
using graph::ops::RandomCropWindowAttributes;
using graph::ops::RandomResizedCropAttributes;
using tensor::DType;

namespace {

constexpr int kMostTrials = 10;

double between(double low, double high, RandomStream &random) {
  return low + (high - low) * static_cast<double>(base::uniform_float(random.next()));
}

PixelWindow middle_window(const PixelSize &size, const WindowBounds &bounds) {
  PixelWindow window{0, 0, size.height, size.width};
  const double aspect = static_cast<double>(size.width) / static_cast<double>(size.height);
  if (aspect < bounds.least_aspect) {
    window.height = std::llround(static_cast<double>(size.width) / bounds.least_aspect);
  } else if (aspect > bounds.most_aspect) {
    window.width = std::llround(static_cast<double>(size.height) * bounds.most_aspect);
  }
  window.height = std::clamp<int64_t>(window.height, 1, size.height);
  window.width = std::clamp<int64_t>(window.width, 1, size.width);
  window.top = (size.height - window.height) / 2;
  window.left = (size.width - window.width) / 2;
  return window;
}

template <typename Attributes>
WindowBounds bounds_of(const Attributes &attributes) {
  return {attributes.area[0], attributes.area[1], attributes.aspect[0], attributes.aspect[1]};
}

template <typename T, typename R>
Status crop_and_resize(RoutineFrame &frame, const RandomResizedCropAttributes &attributes) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  if (rows.height == 0 || rows.width == 0) return base::invalid_argument("an image without pixels: ", x.shape);
  Resizing resizing{attributes.antialias ? ResizeMethod::bilinear_antialias : ResizeMethod::bilinear,
                    attributes.size[0], attributes.size[1], false};
  TUTTI_ASSIGN(R *const y, frame.output_as<R>(0, with_image(x.shape, resizing.height, resizing.width, rows.channels)));
  auto &resampler = frame.state<Resampler>();
  const WindowBounds bounds = bounds_of(attributes);
  for (int64_t i = 0; i < rows.count; ++i) {
    RandomStream random = frame.random(attributes.key, i);
    const PixelWindow window = random_window({rows.height, rows.width}, bounds, random);
    resizing.mirrors = static_cast<double>(base::uniform_float(random.next())) < attributes.flip_probability;
    ImageView<T> part = rows.view<T>(x, i);
    part.pixels = part.row(window.top) + window.left * rows.channels;
    part.height = window.height;
    part.width = window.width;
    resampler.run(part, resizing, y + i * resizing.height * resizing.width * rows.channels);
  }
  return Status();
}

}  // namespace

PixelWindow random_window(const PixelSize &size, const WindowBounds &bounds, RandomStream &random) {
  const double area = static_cast<double>(size.height) * static_cast<double>(size.width);
  for (int trial = 0; trial < kMostTrials; ++trial) {
    const double wanted = area * between(bounds.least_area, bounds.most_area, random);
    const double aspect = std::exp(between(std::log(bounds.least_aspect), std::log(bounds.most_aspect), random));
    const double width = std::round(std::sqrt(wanted * aspect)), height = std::round(std::sqrt(wanted / aspect));
    if (!(width >= 1 && height >= 1 && width <= static_cast<double>(size.width) &&
          height <= static_cast<double>(size.height))) {
      continue;
    }
    PixelWindow window{0, 0, static_cast<int64_t>(height), static_cast<int64_t>(width)};
    window.top = random.below(size.height - window.height + 1);
    window.left = random.below(size.width - window.width + 1);
    return window;
  }
  return middle_window(size, bounds);
}

Result<RoutineKernel> make_random_resized_crop(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomResizedCropAttributes attributes, RandomResizedCropAttributes::from(node.node));
  if (node.input(0).dtype == DType::f32) {
    return RoutineKernel(
        [attributes](RoutineFrame &frame) { return crop_and_resize<float, float>(frame, attributes); });
  }
  if (node.output(0).dtype == DType::f32) {
    return RoutineKernel(
        [attributes](RoutineFrame &frame) { return crop_and_resize<uint8_t, float>(frame, attributes); });
  }
  return RoutineKernel(
      [attributes](RoutineFrame &frame) { return crop_and_resize<uint8_t, uint8_t>(frame, attributes); });
}

Result<RoutineWindow> make_random_resized_crop_window(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomResizedCropAttributes attributes, RandomResizedCropAttributes::from(node.node));
  return RoutineWindow([bounds = bounds_of(attributes), key = attributes.key](const RoutineFrame &frame,
                                                                              const PixelSize &size, int64_t row) {
    RandomStream random = frame.random(key, row);
    return random_window(size, bounds, random);
  });
}

Result<RoutineKernel> make_random_crop_window(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomCropWindowAttributes attributes, RandomCropWindowAttributes::from(node.node));
  return RoutineKernel([bounds = bounds_of(attributes), key = attributes.key](RoutineFrame &frame) -> Status {
    const RoutineValue &sizes = frame.input(0);
    TUTTI_ASSIGN(const tensor::Shape shape, append_axis(leading_axes(sizes.shape, 1), 4));
    TUTTI_ASSIGN(int64_t *const windows, frame.output_as<int64_t>(0, shape));
    for (int64_t i = 0; i < sizes.shape.elements() / 2; ++i) {
      const PixelSize size{index_at(sizes, 2 * i), index_at(sizes, 2 * i + 1)};
      if (size.height < 1 || size.width < 1) {
        return base::invalid_argument("an image of ", size.height, " x ", size.width, " pixels has no windows");
      }
      RandomStream random = frame.random(key, i);
      const PixelWindow window = random_window(size, bounds, random);
      windows[4 * i] = window.top;
      windows[4 * i + 1] = window.left;
      windows[4 * i + 2] = window.height;
      windows[4 * i + 3] = window.width;
    }
    return Status();
  });
}

}  // namespace tutti::impl::data
