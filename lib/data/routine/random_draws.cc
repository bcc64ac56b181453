// SPDX-License-Identifier: Apache-2.0
#include "data/routine/random_draws.h"

#include <algorithm>
#include <cmath>

namespace tutti::impl::data {

using base::RandomStream;
using graph::ops::RandomCropAttributes;
using graph::ops::RandomCutoutAttributes;

PixelWindow random_place(const PixelSize &image, const RandomCropAttributes &attributes, RandomStream &random) {
  PixelWindow window{0, 0, attributes.size[0], attributes.size[1]};
  window.top = random.below(image.height + 2 * attributes.padding - window.height + 1);
  window.left = random.below(image.width + 2 * attributes.padding - window.width + 1);
  return window;
}

bool has_random_place(const PixelSize &image, const RandomCropAttributes &attributes) {
  return image.height + 2 * attributes.padding >= attributes.size[0] &&
         image.width + 2 * attributes.padding >= attributes.size[1];
}

bool random_flips(double probability, RandomStream &random) {
  return static_cast<double>(base::uniform_float(random.next())) < probability;
}

PixelWindow random_cutout_part(const PixelSize &image, const RandomCutoutAttributes &attributes, RandomStream &random) {
  const int64_t top = random.below(image.height) - attributes.size[0] / 2;
  const int64_t left = random.below(image.width) - attributes.size[1] / 2;
  const int64_t first_row = std::max<int64_t>(top, 0), first_column = std::max<int64_t>(left, 0);
  return {first_row, first_column, std::max<int64_t>(std::min(top + attributes.size[0], image.height) - first_row, 0),
          std::max<int64_t>(std::min(left + attributes.size[1], image.width) - first_column, 0)};
}

int64_t random_rotation(RandomStream &random, int64_t rows) { return rows < 2 ? 0 : 1 + random.below(rows - 1); }

namespace {

// In (0, 1).
double open_uniform(RandomStream &random) {
  const uint32_t low = random.next();
  return std::max(base::uniform_double(low, random.next()), 0x1.0p-60);
}

// Logarithm of a Gamma(shape, 1) variate, by Marsaglia and Tsang ("A simple method for generating gamma variables",
// 2000); shapes below 1 by way of shape + 1 and a power of a uniform, in logarithms because that may underflow.
double log_gamma_variate(double shape, RandomStream &random) {
  double boost = 0;
  if (shape < 1) {
    boost = std::log(open_uniform(random)) / shape;
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const uint32_t word = random.next();
    const double x = base::normal_pair(word, random.next())[0];
    const double root = 1 + c * x;
    const double u = open_uniform(random);
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost + std::log(d * v);
  }
}

}  // namespace

double beta_variate(double alpha, RandomStream &random) {
  const double a = log_gamma_variate(alpha, random), b = log_gamma_variate(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

PixelWindow random_rectangle(const PixelSize &image, double share, RandomStream &random) {
  const double side = std::sqrt(share);
  const auto height = static_cast<int64_t>(side * static_cast<double>(image.height));
  const auto width = static_cast<int64_t>(side * static_cast<double>(image.width));
  const int64_t top = random.below(image.height) - height / 2, left = random.below(image.width) - width / 2;
  const int64_t first_row = std::max<int64_t>(top, 0), first_column = std::max<int64_t>(left, 0);
  return {first_row, first_column, std::max<int64_t>(std::min(top + height, image.height) - first_row, 0),
          std::max<int64_t>(std::min(left + width, image.width) - first_column, 0)};
}

}  // namespace tutti::impl::data
