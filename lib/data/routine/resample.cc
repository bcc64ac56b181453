// SPDX-License-Identifier: Apache-2.0
#include "data/routine/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace tutti::impl::data {

namespace {

template <typename R>
R rounded(float value) {
  if constexpr (std::is_same_v<R, uint8_t>) {
    return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F) + 0.5F);
  } else {
    return value;
  }
}

// The input indices [first, last] that output `i` takes, and the weight of each before they are made to sum to 1.
struct Cover {
  int64_t first = 0;
  int64_t last = 0;
  double centre = 0;
  double begin = 0, end = 0;
  double half_width = 1;
  ResizeMethod method;

  Cover(ResizeMethod kind, int64_t i, double scale, int64_t input) : method(kind) {
    centre = (static_cast<double>(i) + 0.5) * scale - 0.5;
    begin = static_cast<double>(i) * scale;
    end = static_cast<double>(i + 1) * scale;
    half_width = kind == ResizeMethod::bilinear_antialias ? std::max(scale, 1.0) : 1.0;
    switch (kind) {
      case ResizeMethod::nearest:
        first = last = static_cast<int64_t>(std::floor(centre + 0.5));
        break;
      case ResizeMethod::area:
        first = static_cast<int64_t>(std::floor(begin));
        last = static_cast<int64_t>(std::ceil(end)) - 1;
        break;
      default:
        first = static_cast<int64_t>(std::floor(centre - half_width)) + 1;
        last = static_cast<int64_t>(std::ceil(centre + half_width)) - 1;
        break;
    }
    first = std::clamp<int64_t>(first, 0, input - 1);
    last = std::clamp<int64_t>(last, first, input - 1);
  }

  double weight(int64_t index) const {
    const auto at = static_cast<double>(index);
    switch (method) {
      case ResizeMethod::nearest:
        return 1;
      case ResizeMethod::area:
        return std::max(std::min(at + 1, end) - std::max(at, begin), 0.0);
      default:
        return std::max(1 - std::fabs(at - centre) / half_width, 0.0);
    }
  }
};

// to[x] = sum over taps of weights[t] · rows[t][x].
template <typename T>
void mix_rows(const ImageView<T> &from, int64_t start, const float *weights, int64_t taps, int64_t count, float *to) {
  const T *const first = from.row(start);
  if (taps == 1 || (taps == 2 && weights[1] == 0)) {
    for (int64_t x = 0; x < count; ++x)
      to[x] = static_cast<float>(first[x]);
    return;
  }
  const T *const second = from.row(start + 1);
  const float a = weights[0], b = weights[1];
  for (int64_t x = 0; x < count; ++x)
    to[x] = a * static_cast<float>(first[x]) + b * static_cast<float>(second[x]);
  for (int64_t t = 2; t < taps; ++t) {
    if (weights[t] == 0) continue;
    const T *const row = from.row(start + t);
    const float c = weights[t];
    for (int64_t x = 0; x < count; ++x)
      to[x] += c * static_cast<float>(row[x]);
  }
}

// One row of results out of a mixed row; kChannels 0 = any number of them.
template <int kChannels, typename R>
void mix_columns(const float *line, const ResampleAxis &axis, int64_t channels, bool mirrors, R *to) {
  const int64_t depth = kChannels == 0 ? channels : kChannels;
  const auto width = static_cast<int64_t>(axis.starts.size());
  for (int64_t x = 0; x < width; ++x) {
    const float *const from = line + axis.starts[static_cast<size_t>(x)] * depth;
    const float *const weights = axis.weights.data() + x * axis.taps;
    R *const target = to + (mirrors ? width - 1 - x : x) * depth;
    for (int64_t c = 0; c < depth; ++c) {
      float sum = weights[0] * from[c];
      for (int64_t t = 1; t < axis.taps; ++t)
        sum += weights[t] * from[t * depth + c];
      target[c] = rounded<R>(sum);
    }
  }
}

// The same of three channels, as vectors of four: the fourth is the next pixel's first, which that one puts right. So
// targets are written in ascending order, the last with three only, and the line has an element behind its last.
template <int kTaps, typename R>
void mix_three_channels(const float *line, const ResampleAxis &axis, bool mirrors, R *to) {
  constexpr size_t kLanes = 4, kChannels = 3;
  const int64_t taps = kTaps == 0 ? axis.taps : kTaps;
  const auto width = static_cast<int64_t>(axis.starts.size());
  for (int64_t i = 0; i < width; ++i, to += kChannels) {
    const int64_t x = mirrors ? width - 1 - i : i;
    const float *from = line + axis.starts[static_cast<size_t>(x)] * static_cast<int64_t>(kChannels);
    const float *const weights = axis.weights.data() + x * taps;
    float sums[kLanes];
    R results[kLanes];
    for (size_t c = 0; c < kLanes; ++c)
      sums[c] = weights[0] * from[c];
    for (int64_t t = 1; t < taps; ++t) {
      from += kChannels;
      for (size_t c = 0; c < kLanes; ++c)
        sums[c] += weights[t] * from[c];
    }
    for (size_t c = 0; c < kLanes; ++c)
      results[c] = rounded<R>(sums[c]);
    std::memcpy(to, results, (i + 1 < width ? kLanes : kChannels) * sizeof(R));
  }
}

template <typename R>
void mix_columns(const float *line, const ResampleAxis &axis, int64_t channels, bool mirrors, R *to) {
  if (channels == 1) return mix_columns<1>(line, axis, channels, mirrors, to);
  if (channels != 3) return mix_columns<0>(line, axis, channels, mirrors, to);
  return axis.taps == 2 ? mix_three_channels<2>(line, axis, mirrors, to)
                        : mix_three_channels<0>(line, axis, mirrors, to);
}

template <typename T, typename R>
void pick(const ImageView<T> &from, const ResampleAxis &vertical, const ResampleAxis &horizontal, bool mirrors, R *to) {
  const auto width = static_cast<int64_t>(horizontal.starts.size());
  for (const int32_t y : vertical.starts) {
    const T *const row = from.row(y);
    for (int64_t x = 0; x < width; ++x) {
      const T *const pixel = row + horizontal.starts[static_cast<size_t>(mirrors ? width - 1 - x : x)] * from.channels;
      for (int64_t c = 0; c < from.channels; ++c)
        *to++ = static_cast<R>(pixel[c]);
    }
  }
}

}  // namespace

void ResampleAxis::set(ResizeMethod method, int64_t input, int64_t output) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  starts.resize(static_cast<size_t>(output));
  taps = 1;
  for (int64_t i = 0; i < output; ++i) {
    const Cover cover(method, i, scale, input);
    taps = std::max(taps, cover.last - cover.first + 1);
  }
  weights.assign(static_cast<size_t>(output * taps), 0);
  for (int64_t i = 0; i < output; ++i) {
    const Cover cover(method, i, scale, input);
    // Taps beyond the border have weight 0, but must lie inside.
    const int64_t start = std::min(cover.first, input - taps);
    float *const row = weights.data() + i * taps;
    double sum = 0;
    for (int64_t index = cover.first; index <= cover.last; ++index)
      sum += cover.weight(index);
    for (int64_t index = cover.first; index <= cover.last; ++index)
      row[index - start] = static_cast<float>(cover.weight(index) / sum);
    starts[static_cast<size_t>(i)] = static_cast<int32_t>(start);
  }
}

void Resampler::set_axes(int64_t height, int64_t width, const Resizing &resizing) {
  const bool is_new = resizing.method != last_.method;
  if (is_new || height != last_height_ || resizing.height != last_.height) {
    vertical_.set(resizing.method, height, resizing.height);
  }
  if (is_new || width != last_width_ || resizing.width != last_.width) {
    horizontal_.set(resizing.method, width, resizing.width);
  }
  last_ = resizing;
  last_height_ = height;
  last_width_ = width;
}

template <typename T, typename R>
void Resampler::run(const ImageView<T> &from, const Resizing &resizing, R *to) {
  set_axes(from.height, from.width, resizing);
  if (resizing.method == ResizeMethod::nearest) {
    return pick(from, vertical_, horizontal_, resizing.mirrors, to);
  }
  const int64_t count = from.width * from.channels;
  line_.resize(static_cast<size_t>(count + 1));
  for (int64_t y = 0; y < resizing.height; ++y) {
    mix_rows(from, vertical_.starts[static_cast<size_t>(y)], vertical_.weights.data() + y * vertical_.taps,
             vertical_.taps, count, line_.data());
    mix_columns(line_.data(), horizontal_, from.channels, resizing.mirrors, to + y * resizing.width * from.channels);
  }
}

template void Resampler::run(const ImageView<uint8_t> &, const Resizing &, uint8_t *);
template void Resampler::run(const ImageView<uint8_t> &, const Resizing &, float *);
template void Resampler::run(const ImageView<float> &, const Resizing &, float *);

}  // namespace tutti::impl::data
