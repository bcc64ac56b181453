// SPDX-License-Identifier: Apache-2.0
//
// interpolate2d: where elements lie, shape and gradient rules.
#include "graph/ops/interpolation.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "graph/ops/rules.h"
#include "tensor/tensor.h"

namespace tutti::impl::graph::ops {

InterpolatedElement interpolated(int64_t i, int64_t from, int64_t to) {
  const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
  const auto below = static_cast<int64_t>(std::floor(at));
  InterpolatedElement element;
  element.low = std::clamp(below, int64_t{0}, from - 1);
  element.high = std::clamp(below + 1, int64_t{0}, from - 1);
  // At the borders both are the same element.
  element.share = element.low == element.high ? 0 : at - static_cast<double>(below);
  return element;
}

std::vector<InterpolatedElement> interpolated_axis(int64_t from, int64_t to) {
  std::vector<InterpolatedElement> elements;
  for (int64_t i = 0; i < to; ++i)
    elements.push_back(interpolated(i, from, to));
  return elements;
}

namespace {

ValueId constant_indices(GraphBuilder &b, const std::vector<int64_t> &indices) {
  auto made = tensor::Tensor::from_values({static_cast<int64_t>(indices.size())}, std::span<const int64_t>(indices));
  return made.ok() ? b.constant(made.take()) : b.fail(made.status());
}

/// Numbers along an axis of images, of the dtype of `like`.
ValueId constant_along(GraphBuilder &b, const std::vector<double> &numbers, size_t axis, ValueId like) {
  Dims dims(4, 1);
  dims[axis] = static_cast<int64_t>(numbers.size());
  auto made = tensor::Tensor::from_values({static_cast<int64_t>(numbers.size())}, std::span<const double>(numbers));
  if (!made.ok()) return b.fail(made.status());
  return b.reshape(b.cast(b.constant(made.take()), b.dtype(like)), dims);
}

/// What the elements along an axis, of `from` before, get from those that were interpolated between them.
ValueId spread_back(GraphBuilder &b, ValueId dy, size_t axis, int64_t from) {
  Dims dims = b.dims(dy);
  std::vector<int64_t> low, high;
  std::vector<double> rest, share;
  for (const InterpolatedElement &element : interpolated_axis(from, dims[axis].constant())) {
    low.push_back(element.low), high.push_back(element.high);
    rest.push_back(1 - element.share), share.push_back(element.share);
  }
  dims[axis] = from;
  const auto spread = [&](const std::vector<double> &shares, const std::vector<int64_t> &indices) {
    return b.op("gather_gradient", {b.mul(dy, constant_along(b, shares, axis, dy)), constant_indices(b, indices)},
                {{"axis", static_cast<int64_t>(axis)}, {"dims", dims}});
  };
  return b.add(spread(rest, low), spread(share, high));
}

}  // namespace

base::Status infer_interpolate2d(InferContext &context) {
  TUTTI_ASSIGN(const Interpolate2dAttributes attributes, Interpolate2dAttributes::from(context.node()));
  TUTTI_TRY(context.require_rank(0, 4));
  Dims dims = context.dims(0);
  for (const size_t axis : {size_t{1}, size_t{2}}) {
    if (!dims[axis].is_constant() || dims[axis].constant() < 1)
      return context.input_error(0, "is no image of known height and width that has pixels");
    dims[axis] = attributes.size[axis - 1];
  }
  context.add_output(context.input(0).dtype, std::move(dims));
  return {};
}

base::Status gradient_interpolate2d(GradientContext &context) {
  GraphBuilder &b = context.builder();
  const Dims x = b.dims(context.input(0));
  ValueId dy = context.output_gradient(0);
  for (const size_t axis : {size_t{2}, size_t{1}}) {
    const Dim length = b.dims(dy)[axis];
    if (length != x[axis]) dy = spread_back(b, dy, axis, x[axis].constant());
  }
  context.set(0, dy);
  return {};
}

}  // namespace tutti::impl::graph::ops
