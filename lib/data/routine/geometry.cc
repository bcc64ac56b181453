// SPDX-License-Identifier: Apache-2.0
//
// Image ops that move pixels: crop, pad_image, flip, rotate90, and the random ones of crop, flip and cutout.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "data/routine/random_draws.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::RandomStream;
using base::Result;
using base::Status;
using graph::ops::CropAttributes;
using graph::ops::FlipAttributes;
using graph::ops::PadImageAttributes;
using graph::ops::RandomCropAttributes;
using graph::ops::RandomCutoutAttributes;
using graph::ops::RandomFlipAttributes;
using graph::ops::Rotate90Attributes;
using tensor::DType;
using tensor::Shape;

namespace {

// Calls function(T{}) with the element type of an image.
Status visit_image(DType dtype, const auto &function) {
  return dtype == DType::u8 ? function(uint8_t{}) : function(float{});
}

template <typename T>
T pixel_value(double value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0) + 0.5);
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
void copy_window(const ImageView<T> &from, const PixelWindow &window, T *to) {
  const auto row_bytes = static_cast<size_t>(window.width * from.channels) * sizeof(T);
  for (int64_t y = 0; y < window.height; ++y) {
    std::memcpy(to, from.row(window.top + y) + window.left * from.channels, row_bytes);
    to += window.width * from.channels;
  }
}

// Eight bytes at a time, from both ends.
void copy_mirrored(const uint8_t *from, int64_t width, uint8_t *to) {
  int64_t x = 0;
  for (; x + 8 <= width; x += 8) {
    uint64_t eight;
    std::memcpy(&eight, from + width - 8 - x, 8);
    eight = __builtin_bswap64(eight);
    std::memcpy(to + x, &eight, 8);
  }
  for (; x < width; ++x)
    to[x] = from[width - 1 - x];
}

template <int kChannels, typename T>
void copy_mirrored_pixels(const T *from, int64_t width, T *to) {
  for (int64_t x = 0; x < width; ++x) {
    for (int64_t c = 0; c < kChannels; ++c)
      to[x * kChannels + c] = from[(width - 1 - x) * kChannels + c];
  }
}

template <typename T>
void copy_mirrored_row(const T *from, int64_t width, int64_t channels, T *to) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (channels == 1) return copy_mirrored(from, width, to);
  }
  if (channels == 3) return copy_mirrored_pixels<3>(from, width, to);
  for (int64_t x = 0; x < width; ++x)
    std::copy_n(from + (width - 1 - x) * channels, channels, to + x * channels);
}

template <typename T>
void copy_flipped(const ImageView<T> &from, bool is_vertical, T *to) {
  const int64_t row = from.width * from.channels;
  for (int64_t y = 0; y < from.height; ++y, to += row) {
    if (is_vertical) {
      std::copy_n(from.row(from.height - 1 - y), row, to);
    } else {
      copy_mirrored_row(from.row(y), from.width, from.channels, to);
    }
  }
}

// The window of an image that lies `padding` pixels inside a border of `value`.
template <typename T>
void copy_padded_window(const ImageView<T> &from, const PixelWindow &window, int64_t padding, T value, T *to) {
  for (int64_t y = 0; y < window.height; ++y) {
    const int64_t row = window.top + y - padding;
    T *const target = to + y * window.width * from.channels;
    if (row < 0 || row >= from.height) {
      std::fill_n(target, window.width * from.channels, value);
      continue;
    }
    const int64_t first = window.left - padding;  // column of the image at the window's left
    const int64_t begin = std::clamp<int64_t>(-first, 0, window.width);
    const int64_t end = std::clamp<int64_t>(from.width - first, begin, window.width);
    std::fill_n(target, begin * from.channels, value);
    std::copy_n(from.row(row) + (first + begin) * from.channels, (end - begin) * from.channels,
                target + begin * from.channels);
    std::fill_n(target + end * from.channels, (window.width - end) * from.channels, value);
  }
}

// The window of a crop that is given none.
PixelWindow fixed_window(const PixelSize &image, const CropAttributes &attributes) {
  const int64_t height = attributes.size[0], width = attributes.size[1];
  if (!attributes.centered) return {attributes.offset[0], attributes.offset[1], height, width};
  return {(image.height - height) / 2, (image.width - width) / 2, height, width};
}

Status crop_rows(RoutineFrame &frame, const CropAttributes &attributes) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  PixelSize size{attributes.size[0], attributes.size[1]};
  if (size.height == 0 && rows.count > 0) {
    const PixelWindow first = window_at(frame.input(1), 0);
    size = {first.height, first.width};
  }
  const auto window_of = [&](int64_t row) -> PixelWindow {
    if (frame.has_input(1)) return window_at(frame.input(1), row);
    return fixed_window({rows.height, rows.width}, attributes);
  };
  for (int64_t row = 0; row < rows.count; ++row) {
    const PixelWindow window = window_of(row);
    TUTTI_TRY(check_window(window, {rows.height, rows.width}));
    if (window.height == size.height && window.width == size.width) continue;
    return base::invalid_argument("the window of image ", row, " has ", window.height, " x ", window.width,
                                  " pixels, expected ", size.height, " x ", size.width);
  }
  TUTTI_ASSIGN(void *const y, frame.output(0, with_image(x.shape, size.height, size.width, rows.channels)));
  return visit_image(x.dtype, [&]<typename T>(T) {
    for (int64_t row = 0; row < rows.count; ++row)
      copy_window(rows.view<T>(x, row), window_of(row),
                  static_cast<T *>(y) + row * size.height * size.width * rows.channels);
    return Status();
  });
}

// The index of an image that position `at` before or behind it stands for.
int64_t border_index(int64_t at, int64_t length, bool reflects) {
  if (!reflects) return std::clamp<int64_t>(at, 0, length - 1);
  if (at < 0) return -at;
  return at < length ? at : 2 * (length - 1) - at;
}

template <typename T>
void pad_by_copies(const ImageView<T> &from, const std::vector<int64_t> &pads, bool reflects, T *to) {
  for (int64_t y = -pads[0]; y < from.height + pads[1]; ++y) {
    const T *const row = from.row(border_index(y, from.height, reflects));
    for (int64_t x = -pads[2]; x < from.width + pads[3]; ++x) {
      to = std::copy_n(row + border_index(x, from.width, reflects) * from.channels, from.channels, to);
    }
  }
}

template <typename T>
void pad_by_value(const ImageView<T> &from, const std::vector<int64_t> &pads, T value, T *to) {
  const int64_t row = (from.width + pads[2] + pads[3]) * from.channels;
  to = std::fill_n(to, pads[0] * row, value);
  for (int64_t y = 0; y < from.height; ++y) {
    to = std::fill_n(to, pads[2] * from.channels, value);
    to = std::copy_n(from.row(y), from.width * from.channels, to);
    to = std::fill_n(to, pads[3] * from.channels, value);
  }
  std::fill_n(to, pads[1] * row, value);
}

Status pad_images(RoutineFrame &frame, const PadImageAttributes &attributes) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  const std::vector<int64_t> &pads = attributes.pads;
  const bool reflects = attributes.mode == PadImageAttributes::Mode::reflect;
  const bool has_value = attributes.mode == PadImageAttributes::Mode::constant;
  const int64_t needed_height = reflects ? std::max(pads[0], pads[1]) + 1 : 1;
  const int64_t needed_width = reflects ? std::max(pads[2], pads[3]) + 1 : 1;
  if (!has_value && (rows.height < needed_height || rows.width < needed_width)) {
    return base::invalid_argument("an image of ", rows.height, " x ", rows.width, " pixels cannot be padded by ", pads,
                                  " of its own");
  }
  const Shape shape =
      with_image(x.shape, rows.height + pads[0] + pads[1], rows.width + pads[2] + pads[3], rows.channels);
  const int64_t elements = ImageRows::of(shape).elements();
  TUTTI_ASSIGN(void *const y, frame.output(0, shape));
  return visit_image(x.dtype, [&]<typename T>(T) {
    for (int64_t row = 0; row < rows.count; ++row) {
      T *const to = static_cast<T *>(y) + row * elements;
      if (has_value) {
        pad_by_value(rows.view<T>(x, row), pads, pixel_value<T>(attributes.value), to);
      } else {
        pad_by_copies(rows.view<T>(x, row), pads, reflects, to);
      }
    }
    return Status();
  });
}

template <typename T>
void copy_turned(const ImageView<T> &from, int64_t turns, T *to) {
  const bool swaps = turns % 2 != 0;
  const int64_t height = swaps ? from.width : from.height, width = swaps ? from.height : from.width;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t row = turns == 1 ? x : turns == 2 ? height - 1 - y : turns == 3 ? width - 1 - x : y;
      const int64_t column = turns == 1 ? height - 1 - y : turns == 2 ? width - 1 - x : turns == 3 ? y : x;
      to = std::copy_n(from.row(row) + column * from.channels, from.channels, to);
    }
  }
}

// Ops that give images of some height and width: one(view, row, to) writes one.
Status each_image(RoutineFrame &frame, int64_t height, int64_t width, const auto &one) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  TUTTI_ASSIGN(void *const y, frame.output(0, with_image(x.shape, height, width, rows.channels)));
  return visit_image(x.dtype, [&]<typename T>(T) {
    for (int64_t row = 0; row < rows.count; ++row)
      one(rows.view<T>(x, row), row, static_cast<T *>(y) + row * height * width * rows.channels);
    return Status();
  });
}

}  // namespace

Result<RoutineKernel> make_crop(const RoutineNode &node) {
  TUTTI_ASSIGN(const CropAttributes attributes, CropAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) { return crop_rows(frame, attributes); });
}

Result<RoutineWindow> make_crop_window(const RoutineNode &node) {
  TUTTI_ASSIGN(const CropAttributes attributes, CropAttributes::from(node.node));
  if (node.node.inputs.size() > 1 && node.node.inputs[1] != graph::kNoValue) return RoutineWindow();
  return RoutineWindow(
      [attributes](const RoutineFrame &, const PixelSize &size, int64_t) { return fixed_window(size, attributes); });
}

Result<RoutineKernel> make_pad_image(const RoutineNode &node) {
  TUTTI_ASSIGN(const PadImageAttributes attributes, PadImageAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) { return pad_images(frame, attributes); });
}

Result<RoutineKernel> make_flip(const RoutineNode &node) {
  TUTTI_ASSIGN(const FlipAttributes attributes, FlipAttributes::from(node.node));
  const bool is_vertical = attributes.direction == FlipAttributes::Direction::vertical;
  return RoutineKernel([is_vertical](RoutineFrame &frame) {
    const ImageRows rows = ImageRows::of(frame.input(0).shape);
    return each_image(frame, rows.height, rows.width,
                      [&](const auto &image, int64_t, auto *to) { copy_flipped(image, is_vertical, to); });
  });
}

Result<RoutineKernel> make_rotate90(const RoutineNode &node) {
  TUTTI_ASSIGN(const Rotate90Attributes attributes, Rotate90Attributes::from(node.node));
  return RoutineKernel([turns = attributes.turns](RoutineFrame &frame) {
    const ImageRows rows = ImageRows::of(frame.input(0).shape);
    const bool swaps = turns % 2 != 0;
    return each_image(frame, swaps ? rows.width : rows.height, swaps ? rows.height : rows.width,
                      [&](const auto &image, int64_t, auto *to) { copy_turned(image, turns, to); });
  });
}

Result<RoutineKernel> make_random_crop(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomCropAttributes attributes, RandomCropAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) -> Status {
    const ImageRows rows = ImageRows::of(frame.input(0).shape);
    const PixelSize whole{rows.height, rows.width};
    const int64_t height = attributes.size[0], width = attributes.size[1];
    if (!has_random_place(whole, attributes)) {
      return base::invalid_argument("an image of ", rows.height, " x ", rows.width, " pixels with a padding of ",
                                    attributes.padding, " has no part of ", height, " x ", width);
    }
    return each_image(frame, height, width, [&](const auto &image, int64_t row, auto *to) {
      RandomStream random = frame.random(attributes.key, row);
      const PixelWindow window = random_place(whole, attributes, random);
      using T = std::remove_pointer_t<decltype(to)>;
      copy_padded_window(image, window, attributes.padding, pixel_value<T>(attributes.value), to);
    });
  });
}

Result<RoutineWindow> make_random_crop_part(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomCropAttributes attributes, RandomCropAttributes::from(node.node));
  return RoutineWindow([attributes](const RoutineFrame &frame, const PixelSize &size, int64_t row) -> PixelWindow {
    if (!has_random_place(size, attributes)) return {};
    RandomStream random = frame.random(attributes.key, row);
    const PixelWindow window = random_place(size, attributes, random);
    const int64_t top = std::max<int64_t>(window.top - attributes.padding, 0);
    const int64_t left = std::max<int64_t>(window.left - attributes.padding, 0);
    const int64_t bottom = std::min(window.top - attributes.padding + window.height, size.height);
    const int64_t right = std::min(window.left - attributes.padding + window.width, size.width);
    return {top, left, bottom - top, right - left};
  });
}

Result<RoutineKernel> make_random_flip(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomFlipAttributes attributes, RandomFlipAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) {
    const bool is_vertical = attributes.direction == RandomFlipAttributes::Direction::vertical;
    const ImageRows rows = ImageRows::of(frame.input(0).shape);
    return each_image(frame, rows.height, rows.width, [&](const auto &image, int64_t row, auto *to) {
      RandomStream random = frame.random(attributes.key, row);
      if (random_flips(attributes.probability, random)) {
        copy_flipped(image, is_vertical, to);
      } else {
        std::copy_n(image.pixels, rows.elements(), to);
      }
    });
  });
}

Result<RoutineKernel> make_random_cutout(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomCutoutAttributes attributes, RandomCutoutAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) {
    const ImageRows rows = ImageRows::of(frame.input(0).shape);
    return each_image(frame, rows.height, rows.width, [&](const auto &image, int64_t row, auto *to) {
      std::copy_n(image.pixels, rows.elements(), to);
      if (rows.height == 0 || rows.width == 0) return;
      RandomStream random = frame.random(attributes.key, row);
      const PixelWindow part = random_cutout_part({rows.height, rows.width}, attributes, random);
      using T = std::remove_pointer_t<decltype(to)>;
      for (int64_t y = part.top; y < part.top + part.height; ++y) {
        std::fill_n(to + (y * rows.width + part.left) * rows.channels, part.width * rows.channels,
                    pixel_value<T>(attributes.value));
      }
    });
  });
}

}  // namespace tutti::impl::data
