// SPDX-License-Identifier: Apache-2.0
//
// Images of another size: of each axis the elements below and above, and what lies between them.
#include "graph/ops/interpolation.h"
#include "backend/pjrt/emit/op_emitters.h"
#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

/// Elements along axis 1 of [outer, length, inner].
Value picked(ProgramText &text, const Value &x, const std::vector<double> &indices) {
  const auto count = static_cast<int64_t>(indices.size());
  return text.op(
      "gather", {x, text.constant(DType::i64, {count, 1}, indices)},
      base::concat("dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], ",
                   "start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: ", x.dims[0], ", 1, ",
                   x.dims[2], ">"),
      x.dtype, {x.dims[0], count, x.dims[2]});
}

Value interpolated_along(ProgramText &text, const Value &x, int64_t to) {
  std::vector<double> low, high, shares;
  for (const auto &element : graph::ops::interpolated_axis(x.dims[1], to)) {
    low.push_back(static_cast<double>(element.low)), high.push_back(static_cast<double>(element.high));
    shares.push_back(element.share);
  }
  const Value first = picked(text, x, low), second = picked(text, x, high);
  const Value share = text.broadcast(text.constant(x.dtype, {to}, shares), first.dims, {1});
  const Value between = text.add(first, text.mul(share, text.sub(second, first)));
  // What is not needed may be infinite.
  return text.select(text.compare("EQ", share, 0), first, between);
}

}  // namespace

Status emit_interpolate2d(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Dims dims = node.output(0).dims;
  if (node.output(0).elements == 0) {
    node.set_output(0, text.splat(node.output(0).dtype, dims, 0));
    return Status();
  }
  Value x = node.wide_input(0);
  const Dims from = x.dims;
  if (dims[1] != from[1]) x = interpolated_along(text, text.reshape(x, {from[0], from[1], from[2] * from[3]}), dims[1]);
  if (dims[2] != from[2]) x = interpolated_along(text, text.reshape(x, {from[0] * dims[1], from[2], from[3]}), dims[2]);
  node.set_output(0, text.reshape(x, dims));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
