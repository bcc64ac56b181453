// SPDX-License-Identifier: Apache-2.0
//
// rotate and random_rotate: images turned about their middle by any angle. What lies under the centre of each pixel of
// the result is found in the image, as Pillow's Image.rotate does without `expand`.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::RandomStream;
using base::Result;
using base::Status;
using graph::ops::RandomRotateAttributes;
using graph::ops::RotateAttributes;
using tensor::DType;

namespace {

// Counter-clockwise.
struct Turn {
  double cosine = 1, sine = 0;

  explicit Turn(double degrees) {
    const double quarters = std::fmod(degrees, 360) / 90;
    if (quarters == std::trunc(quarters)) {
      // Exactly, so that pixels stay pixels.
      constexpr std::array<double, 4> kCosines{1, 0, -1, 0};
      const auto number = static_cast<size_t>(static_cast<int>(quarters) + 4) % 4;
      cosine = kCosines[number];
      sine = kCosines[(number + 3) % 4];
      return;
    }
    const double radians = degrees * (M_PI / 180);
    cosine = std::cos(radians);
    sine = std::sin(radians);
  }
};

// What lies outside of an image, and how what lies between its pixels is found.
struct Sampling {
  bool is_nearest = false;
  double value = 0;
};

template <typename T>
T rounded(float value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F) + 0.5F);
  } else {
    return value;
  }
}

template <typename T>
void copy_nearest(const ImageView<T> &from, double x, double y, T *to) {
  std::copy_n(from.row(static_cast<int64_t>(y)) + static_cast<int64_t>(x) * from.channels, from.channels, to);
}

// Pixels beyond the border are those at the border.
template <typename T>
void copy_between(const ImageView<T> &from, double x, double y, T *to) {
  const double left = std::floor(x - 0.5), top = std::floor(y - 0.5);
  const auto right_share = static_cast<float>(x - 0.5 - left), lower_share = static_cast<float>(y - 0.5 - top);
  const auto column = [&](double at) {
    return std::clamp<int64_t>(static_cast<int64_t>(at), 0, from.width - 1) * from.channels;
  };
  const auto row = [&](double at) {
    return from.row(std::clamp<int64_t>(static_cast<int64_t>(at), 0, from.height - 1));
  };
  const int64_t first = column(left), second = column(left + 1);
  const T *const upper = row(top), *const lower = row(top + 1);
  for (int64_t c = 0; c < from.channels; ++c) {
    const auto mixed = [&](const T *line) {
      const auto a = static_cast<float>(line[first + c]), b = static_cast<float>(line[second + c]);
      return a + (b - a) * right_share;
    };
    const float above = mixed(upper), below = mixed(lower);
    to[c] = rounded<T>(above + (below - above) * lower_share);
  }
}

template <typename T>
void copy_rotated(const ImageView<T> &from, const Turn &turn, const Sampling &sampling, T *to) {
  const auto width = static_cast<double>(from.width), height = static_cast<double>(from.height);
  const T outside = rounded<T>(static_cast<float>(sampling.value));
  for (int64_t row = 0; row < from.height; ++row) {
    const double down = static_cast<double>(row) + 0.5 - height / 2;
    for (int64_t column = 0; column < from.width; ++column, to += from.channels) {
      const double across = static_cast<double>(column) + 0.5 - width / 2;
      const double x = turn.cosine * across - turn.sine * down + width / 2;
      const double y = turn.sine * across + turn.cosine * down + height / 2;
      if (!(x >= 0 && x < width && y >= 0 && y < height)) {
        std::fill_n(to, from.channels, outside);
      } else if (sampling.is_nearest) {
        copy_nearest(from, x, y, to);
      } else {
        copy_between(from, x, y, to);
      }
    }
  }
}

// Each image by the angle that degrees_of(row) gives.
template <typename Degrees>
Status rotate_rows(RoutineFrame &frame, const Sampling &sampling, const Degrees &degrees_of) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  TUTTI_ASSIGN(void *const y, frame.output(0, x.shape));
  const auto rotate = [&]<typename T>(T) {
    for (int64_t row = 0; row < rows.count; ++row)
      copy_rotated(rows.view<T>(x, row), Turn(degrees_of(row)), sampling, static_cast<T *>(y) + row * rows.elements());
  };
  x.dtype == DType::u8 ? rotate(uint8_t{}) : rotate(float{});
  return Status();
}

template <typename Attributes>
Sampling sampling_of(const Attributes &attributes) {
  return {attributes.method == Attributes::Method::nearest, attributes.value};
}

}  // namespace

Result<RoutineKernel> make_rotate(const RoutineNode &node) {
  TUTTI_ASSIGN(const RotateAttributes attributes, RotateAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) {
    return rotate_rows(frame, sampling_of(attributes), [&](int64_t) { return attributes.degrees; });
  });
}

Result<RoutineKernel> make_random_rotate(const RoutineNode &node) {
  TUTTI_ASSIGN(const RandomRotateAttributes attributes, RandomRotateAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) {
    return rotate_rows(frame, sampling_of(attributes), [&](int64_t row) {
      RandomStream random = frame.random(attributes.key, row);
      return attributes.degrees * (2 * static_cast<double>(base::uniform_float(random.next())) - 1);
    });
  });
}

}  // namespace tutti::impl::data
