// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/contact_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "tool/console/tensor_values.h"
#include "tool/dataset/png_file.h"

namespace tutti::tool {

namespace {

constexpr int64_t kSide = 96, kGap = 4;

/// Height, width and channels of numbers that are an image; where they lie.
struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;
  bool channels_first = false;

  size_t at(int64_t y, int64_t x, int64_t channel) const {
    return static_cast<size_t>(channels_first ? (channel * height + y) * width + x
                                              : (y * width + x) * channels + channel);
  }
};

bool is_channels(int64_t count) { return count == 1 || count == 3; }

bool image_shape(const Tensor &tensor, ImageShape &shape) {
  const auto dim = [&](int64_t axis) { return tensor.dim(axis); };
  if (is_bytes(tensor) || tensor.element_count() < 4) return false;
  if (tensor.rank() == 2) {
    shape = {dim(0), dim(1), 1, false};
  } else if (tensor.rank() == 3 && is_channels(dim(2))) {
    shape = {dim(0), dim(1), dim(2), false};
  } else if (tensor.rank() == 3 && is_channels(dim(0))) {
    shape = {dim(1), dim(2), dim(0), true};
  } else {
    return false;
  }
  return shape.height > 1 && shape.width > 1;
}

/// Where brightness 0 and 255 are.
std::pair<double, double> range_of(const Tensor &tensor, const std::vector<double> &numbers) {
  if (tensor.dtype() == TUTTI_DTYPE_U8) return {0, 255};
  double least = INFINITY, most = -INFINITY;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    least = std::min(least, number);
    most = std::max(most, number);
  }
  return least < most ? std::pair(least, most) : std::pair(least, least + 1);
}

/// Pixels of all images, RGB.
class Sheet {
 public:
  explicit Sheet(int64_t count)
      : columns_(std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count)))))),
        width_(columns_ * (kSide + kGap) + kGap) {}

  void add(const Tensor &image) {
    ImageShape shape;
    if (!image_shape(image, shape)) throw std::runtime_error("an image has the shape " + shape_text(image));
    read_numbers(image, numbers_);
    const auto [black, white] = range_of(image, numbers_);
    const int64_t left = kGap + count_ % columns_ * (kSide + kGap), top = kGap + count_ / columns_ * (kSide + kGap);
    pixels_.resize(static_cast<size_t>((top + kSide + kGap) * width_ * 3), 255);
    // Longer sides fill the square.
    const double ratio = static_cast<double>(std::max(shape.height, shape.width)) / kSide;
    for (int64_t y = 0; y < kSide && covered(y, ratio) < shape.height; ++y) {
      for (int64_t x = 0; x < kSide && covered(x, ratio) < shape.width; ++x) {
        for (int64_t c = 0; c < 3; ++c) {
          const double level = (mean_of(shape, y, x, std::min(c, shape.channels - 1), ratio) - black) / (white - black);
          pixels_[static_cast<size_t>(((top + y) * width_ + left + x) * 3 + c)] =
              static_cast<uint8_t>(std::clamp(level, 0.0, 1.0) * 255 + 0.5);
        }
      }
    }
    ++count_;
  }
  int64_t count() const { return count_; }
  void write(const std::string &path) const {
    write_png(path, pixels_.data(), width_, static_cast<int64_t>(pixels_.size()) / (width_ * 3));
  }

 private:
  /// The first row or column of an image that a pixel of the sheet covers.
  static int64_t covered(int64_t pixel, double ratio) {
    return static_cast<int64_t>(static_cast<double>(pixel) * ratio);
  }
  /// Of the finite numbers that a pixel of the sheet covers.
  double mean_of(const ImageShape &shape, int64_t y, int64_t x, int64_t channel, double ratio) const {
    const int64_t bottom = std::min(shape.height, std::max(covered(y, ratio) + 1, covered(y + 1, ratio)));
    const int64_t right = std::min(shape.width, std::max(covered(x, ratio) + 1, covered(x + 1, ratio)));
    double sum = 0, count = 0;
    for (int64_t row = covered(y, ratio); row < bottom; ++row) {
      for (int64_t column = covered(x, ratio); column < right; ++column) {
        const double number = numbers_[shape.at(row, column, channel)];
        if (!std::isfinite(number)) continue;
        sum += number;
        ++count;
      }
    }
    return count > 0 ? sum / count : 0;
  }

  const int64_t columns_, width_;
  int64_t count_ = 0;
  std::vector<uint8_t> pixels_;
  std::vector<double> numbers_;
};

/// Image files become pixels.
Dataset decoded(const Dataset &dataset, const std::string &name, const Context &context) {
  Pipeline pipeline(context);
  pipeline.dataset(dataset);
  pipeline.map([&](const Graph &graph) {
    graph.output(name.c_str(), tutti_decode_image(graph, graph.feature(name.c_str()), nullptr));
  });
  return pipeline.build();
}

}  // namespace

int64_t find_images(const Dataset &dataset, int64_t seed) {
  Iterator iterator(dataset, seed);
  if (!iterator.next()) return -1;
  for (int64_t i = 0; i < dataset.component_count(); ++i) {
    const Tensor component = iterator.component(i);
    ImageShape shape;
    if (image_shape(component, shape)) return i;
    if (is_bytes(component) && component.rank() == 0 && *image_kind(bytes_at(component, 0)) != '\0') return i;
  }
  return -1;
}

int64_t write_contact_sheet(const Dataset &dataset, int64_t seed, int64_t component, int64_t count,
                            const std::string &path, const Context &context) {
  Iterator first(dataset, seed);
  const bool is_file = first.next() && is_bytes(first.component(component));
  const Dataset images = is_file ? decoded(dataset, dataset.component_name(component), context) : dataset;
  int64_t at = component;
  for (int64_t i = 0; i < images.component_count(); ++i) {
    if (images.component_name(i) == dataset.component_name(component)) at = i;
  }
  Sheet sheet(count);
  Iterator iterator(images, seed);
  while (sheet.count() < count && iterator.next())
    sheet.add(iterator.component(at));
  sheet.write(path);
  return sheet.count();
}

}  // namespace tutti::tool
