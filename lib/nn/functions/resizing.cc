// SPDX-License-Identifier: Apache-2.0
//
// Images of another size, one axis after the other: element i of the result covers (i + 0.5) * from / to - 0.5.
#include <algorithm>
#include <cmath>
#include <span>

#include "nn/constant_list.h"
#include "nn/functions/function_parts.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {
namespace {

ValueId picked(GraphBuilder &b, ValueId x, int64_t axis, const std::vector<int64_t> &indices) {
  auto list = tensor::Tensor::from_values({static_cast<int64_t>(indices.size())}, std::span<const int64_t>(indices));
  if (!list.ok()) return b.fail(list.status());
  return b.op("gather", {x, b.constant(list.take())}, {{"axis", axis}});
}

/// Weights along an axis of images.
ValueId weights_along(GraphBuilder &b, ValueId x, int64_t axis, const std::vector<double> &weights) {
  Dims dims(4, 1);
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(weights.size());
  return b.reshape(constant_list(b, weights, x), dims);
}

ValueId nearest(GraphBuilder &b, ValueId x, int64_t axis, int64_t from, int64_t to) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < to; ++i)
    indices.push_back(std::min(from - 1, ((2 * i + 1) * from) / (2 * to)));
  return picked(b, x, axis, indices);
}

ValueId bilinear(GraphBuilder &b, ValueId x, int64_t axis, int64_t from, int64_t to) {
  std::vector<int64_t> low, high;
  std::vector<double> share;
  for (int64_t i = 0; i < to; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double below = std::floor(at);
    low.push_back(std::clamp(static_cast<int64_t>(below), int64_t{0}, from - 1));
    high.push_back(std::clamp(static_cast<int64_t>(below) + 1, int64_t{0}, from - 1));
    share.push_back(at - below);
  }
  const ValueId first = picked(b, x, axis, low), second = picked(b, x, axis, high);
  return b.add(first, b.mul(b.sub(second, first), weights_along(b, x, axis, share)));
}

}  // namespace

ValueId expand_function_resize2d(Expansion &e) {
  GraphBuilder &b = e.builder();
  ValueId x = e.input(0);
  if (b.rank(x) != 4) {
    return e.fail(base::concat("expected images [rows, height, width, channels], got ", graph::to_string(b.dims(x))));
  }
  for (const int64_t axis : {1, 2}) {
    const auto from = known_length(e, x, axis);
    if (!from) return kNoValue;
    const int64_t to = e.ints("size")[static_cast<size_t>(axis - 1)];
    if (*from < 1) return e.fail("an image without pixels cannot be resized");
    if (*from == to) continue;
    x = e.text("method") == "nearest" ? nearest(b, x, axis, *from, to) : bilinear(b, x, axis, *from, to);
  }
  return x;
}

}  // namespace tutti::impl::nn
