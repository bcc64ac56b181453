// SPDX-License-Identifier: Apache-2.0
//
// mixup (Zhang et al., "mixup: Beyond empirical risk minimization", 2018) and cutmix (Yun et al., "CutMix", 2019): rows
// of a batch mixed with other rows of it. Every row draws its own λ; partners are a rotation of the rows, by a random
// number of places that row 0 draws, never by none where there are two rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::RandomStream;
using base::Result;
using base::Status;
using graph::ops::CutmixAttributes;
using graph::ops::MixupAttributes;

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

double beta_variate(double alpha, RandomStream &random) {
  const double a = log_gamma_variate(alpha, random), b = log_gamma_variate(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

// The partner of row i is row (i + rotation) % rows.
int64_t rotation_of(RandomStream &random, int64_t rows) { return rows < 2 ? 0 : 1 + random.below(rows - 1); }

void blend(const float *x, const float *partner, int64_t count, float share, float *y) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = share * x[i] + (1 - share) * partner[i];
}

Status mixup_rows(RoutineFrame &frame, const MixupAttributes &attributes) {
  const RoutineValue &x = frame.input(0), &targets = frame.input(1);
  const int64_t rows = x.shape.rows();
  const int64_t count = x.shape.elements_from(1), classes = targets.shape.elements_from(1);
  TUTTI_ASSIGN(float *const y, frame.output_as<float>(0, x.shape));
  TUTTI_ASSIGN(float *const mixed, frame.output_as<float>(1, targets.shape));
  int64_t rotation = 0;
  for (int64_t row = 0; row < rows; ++row) {
    RandomStream random = frame.random(attributes.key, row);
    const int64_t drawn = rotation_of(random, rows);
    if (row == 0) rotation = drawn;
    const int64_t partner = (row + rotation) % rows;
    const auto share = static_cast<float>(beta_variate(attributes.alpha, random));
    blend(x.as<float>() + row * count, x.as<float>() + partner * count, count, share, y + row * count);
    blend(targets.as<float>() + row * classes, targets.as<float>() + partner * classes, classes, share,
          mixed + row * classes);
  }
  return Status();
}

// A rectangle with a share of the image's area and its aspect ratio; what lies outside of the image is cut off.
PixelWindow random_rectangle(const ImageRows &rows, double share, RandomStream &random) {
  const double side = std::sqrt(share);
  const auto height = static_cast<int64_t>(side * static_cast<double>(rows.height));
  const auto width = static_cast<int64_t>(side * static_cast<double>(rows.width));
  const int64_t top = random.below(rows.height) - height / 2, left = random.below(rows.width) - width / 2;
  const int64_t first_row = std::max<int64_t>(top, 0), first_column = std::max<int64_t>(left, 0);
  return {first_row, first_column, std::max<int64_t>(std::min(top + height, rows.height) - first_row, 0),
          std::max<int64_t>(std::min(left + width, rows.width) - first_column, 0)};
}

Status cutmix_rows(RoutineFrame &frame, const CutmixAttributes &attributes) {
  const RoutineValue &x = frame.input(0), &targets = frame.input(1);
  const ImageRows rows = ImageRows::of(x.shape);
  const auto value_bytes = static_cast<int64_t>(tensor::size_bytes(x.dtype));
  const int64_t row_bytes = rows.elements() * value_bytes, classes = targets.shape.elements_from(1);
  if (rows.height == 0 || rows.width == 0) return base::invalid_argument("images without pixels: ", x.shape);
  TUTTI_ASSIGN(void *const y, frame.output(0, x.shape));
  TUTTI_ASSIGN(float *const mixed, frame.output_as<float>(1, targets.shape));
  int64_t rotation = 0;
  for (int64_t row = 0; row < rows.count; ++row) {
    RandomStream random = frame.random(attributes.key, row);
    const int64_t drawn = rotation_of(random, rows.count);
    if (row == 0) rotation = drawn;
    const int64_t partner = (row + rotation) % rows.count;
    const PixelWindow part = random_rectangle(rows, 1 - beta_variate(attributes.alpha, random), random);
    char *const to = static_cast<char *>(y) + row * row_bytes;
    std::memcpy(to, x.as<char>() + row * row_bytes, static_cast<size_t>(row_bytes));
    for (int64_t line = part.top; line < part.top + part.height; ++line) {
      const int64_t offset = (line * rows.width + part.left) * rows.channels * value_bytes;
      std::memcpy(to + offset, x.as<char>() + partner * row_bytes + offset,
                  static_cast<size_t>(part.width * rows.channels * value_bytes));
    }
    const auto share = 1 - static_cast<float>(part.height * part.width) / static_cast<float>(rows.height * rows.width);
    blend(targets.as<float>() + row * classes, targets.as<float>() + partner * classes, classes, share,
          mixed + row * classes);
  }
  return Status();
}

}  // namespace

Result<RoutineKernel> make_mixup(const RoutineNode &node) {
  TUTTI_ASSIGN(const MixupAttributes attributes, MixupAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) { return mixup_rows(frame, attributes); });
}

Result<RoutineKernel> make_cutmix(const RoutineNode &node) {
  TUTTI_ASSIGN(const CutmixAttributes attributes, CutmixAttributes::from(node.node));
  return RoutineKernel([attributes](RoutineFrame &frame) { return cutmix_rows(frame, attributes); });
}

}  // namespace tutti::impl::data
