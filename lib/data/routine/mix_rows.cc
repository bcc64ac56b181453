// SPDX-License-Identifier: Apache-2.0
//
// mixup (Zhang et al., "mixup: Beyond empirical risk minimization", 2018) and cutmix (Yun et al., "CutMix", 2019): rows
// of a batch mixed with other rows of it. Every row draws its own λ; partners are a rotation of the rows, by a random
// number of places that row 0 draws, never by none where there are two rows.
#include <cstring>

#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "data/routine/random_draws.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::RandomStream;
using base::Result;
using base::Status;
using graph::ops::CutmixAttributes;
using graph::ops::MixupAttributes;

namespace {

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
    const int64_t drawn = random_rotation(random, rows);
    if (row == 0) rotation = drawn;
    const int64_t partner = (row + rotation) % rows;
    const auto share = static_cast<float>(beta_variate(attributes.alpha, random));
    blend(x.as<float>() + row * count, x.as<float>() + partner * count, count, share, y + row * count);
    blend(targets.as<float>() + row * classes, targets.as<float>() + partner * classes, classes, share,
          mixed + row * classes);
  }
  return Status();
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
    const int64_t drawn = random_rotation(random, rows.count);
    if (row == 0) rotation = drawn;
    const int64_t partner = (row + rotation) % rows.count;
    const PixelWindow part =
        random_rectangle({rows.height, rows.width}, 1 - beta_variate(attributes.alpha, random), random);
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
