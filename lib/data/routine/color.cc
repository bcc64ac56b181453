// SPDX-License-Identifier: Apache-2.0
#include "data/routine/color.h"

#include <algorithm>
#include <cmath>

namespace tutti::impl::data {

namespace {

template <int kChannels, typename T>
void scale_fixed(const T *x, int64_t pixels, const float *scale, const float *offset, float *y) {
  float a[kChannels], b[kChannels];
  std::copy_n(scale, kChannels, a);
  std::copy_n(offset, kChannels, b);
  for (int64_t i = 0; i < pixels; ++i) {
    for (int c = 0; c < kChannels; ++c)
      y[i * kChannels + c] = static_cast<float>(x[i * kChannels + c]) * a[c] + b[c];
  }
}

template <typename T>
void scale_any(const T *x, int64_t pixels, int64_t channels, const float *scale, const float *offset, float *y) {
  if (channels == 1) return scale_fixed<1>(x, pixels, scale, offset, y);
  if (channels == 3) return scale_fixed<3>(x, pixels, scale, offset, y);
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t c = 0; c < channels; ++c)
      y[i * channels + c] = static_cast<float>(x[i * channels + c]) * scale[c] + offset[c];
  }
}

// Hue in sixths of the circle, [0, 6); the others as usual (Smith, "Color gamut transform pairs", SIGGRAPH 1978).
struct Hsv {
  float hue, saturation, value;
};

Hsv to_hsv(const float *rgb) {
  const float r = rgb[0], g = rgb[1], b = rgb[2];
  const float most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
  Hsv hsv{0, most > 0 ? range / most : 0, most};
  if (range <= 0) return hsv;
  if (r == most) {
    hsv.hue = (g - b) / range;
  } else if (g == most) {
    hsv.hue = 2 + (b - r) / range;
  } else {
    hsv.hue = 4 + (r - g) / range;
  }
  if (hsv.hue < 0) hsv.hue += 6;
  return hsv;
}

void to_rgb(const Hsv &hsv, float *rgb) {
  const float low = hsv.value * (1 - hsv.saturation);
  const float span = hsv.value - low;
  const auto channel = [&](float centre) {
    // A trapezoid round the circle: 1 within a sixth of the channel's own hue, 0 beyond two.
    float distance = std::fabs(hsv.hue - centre);
    distance = std::min(distance, 6 - distance);
    return low + span * std::clamp(2 - distance, 0.0F, 1.0F);
  };
  rgb[0] = channel(0);
  rgb[1] = channel(2);
  rgb[2] = channel(4);
}

}  // namespace

void bytes_to_floats(const uint8_t *x, int64_t count, float *y) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<float>(x[i]) * (1.0F / 255.0F);
}

void floats_to_bytes(const float *x, int64_t count, uint8_t *y) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i] * 255.5F;
    y[i] = static_cast<uint8_t>(value > 0 ? std::min(value, 255.0F) : 0.0F);
  }
}

void add_brightness(float *x, int64_t count, float delta) {
  for (int64_t i = 0; i < count; ++i)
    x[i] += delta;
}

void scale_contrast(float *x, int64_t pixels, int64_t channels, float factor) {
  for (int64_t c = 0; c < channels && pixels > 0; ++c) {
    double sum = 0;
    for (int64_t i = 0; i < pixels; ++i)
      sum += x[i * channels + c];
    const auto mean = static_cast<float>(sum / static_cast<double>(pixels));
    for (int64_t i = 0; i < pixels; ++i)
      x[i * channels + c] = (x[i * channels + c] - mean) * factor + mean;
  }
}

void change_saturation_and_hue(float *x, int64_t pixels, float factor, float delta) {
  for (int64_t i = 0; i < pixels; ++i, x += 3) {
    Hsv hsv = to_hsv(x);
    hsv.saturation = std::clamp(hsv.saturation * factor, 0.0F, 1.0F);
    hsv.hue += 6 * delta;
    if (hsv.hue < 0) hsv.hue += 6;
    if (hsv.hue >= 6) hsv.hue -= 6;
    to_rgb(hsv, x);
  }
}

void scale_channels(const uint8_t *x, int64_t pixels, int64_t channels, const float *scale, const float *offset,
                    float *y) {
  scale_any(x, pixels, channels, scale, offset, y);
}

void scale_channels(const float *x, int64_t pixels, int64_t channels, const float *scale, const float *offset,
                    float *y) {
  scale_any(x, pixels, channels, scale, offset, y);
}

}  // namespace tutti::impl::data
