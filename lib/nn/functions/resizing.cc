// SPDX-License-Identifier: Apache-2.0
//
// Images of another size: element i of an axis lies at (i + 0.5) * from / to - 0.5.
#include <algorithm>
#include <span>

#include "nn/functions/function_parts.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {
namespace {

ValueId picked(GraphBuilder &b, ValueId x, int64_t axis, const std::vector<int64_t> &indices) {
  auto list = tensor::Tensor::from_values({static_cast<int64_t>(indices.size())}, std::span<const int64_t>(indices));
  if (!list.ok()) return b.fail(list.status());
  return b.op("gather", {x, b.constant(list.take())}, {{"axis", axis}});
}

ValueId nearest(GraphBuilder &b, ValueId x, int64_t axis, int64_t from, int64_t to) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < to; ++i)
    indices.push_back(std::min(from - 1, ((2 * i + 1) * from) / (2 * to)));
  return picked(b, x, axis, indices);
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
    if (*from != to && e.text("method") == "nearest") x = nearest(b, x, axis, *from, to);
  }
  return e.text("method") == "nearest" ? x : b.op("interpolate2d", {x}, {{"size", e.ints("size")}});
}

}  // namespace tutti::impl::nn
