// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements without computing.
#include <algorithm>

#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

Dims steps_of(const std::vector<int64_t> &strides, size_t rank) { return strides.empty() ? Dims(rank, 1) : strides; }

/// A block taken out of, or put into, an array of `dims`: begins that depend on symbols may lie outside.
Status check_block(const Dims &dims, const Dims &begin, const Dims &size, const Dims &steps) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (begin[i] >= 0 && (size[i] == 0 || begin[i] + (size[i] - 1) * steps[i] < dims[i])) continue;
    return base::invalid_argument(size[i], " elements from ", begin[i], " on, every ", steps[i], ", of axis ", i,
                                  " of ", dims);
  }
  return Status();
}

}  // namespace

Status emit_reshape(NodeEmitter &node) {
  node.set_output(0, node.text().reshape(node.input(0), node.output(0).dims));
  return Status();
}

Status emit_transpose(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::TransposeAttributes::from(node.node()));
  const size_t rank = node.input(0).dims.size();
  Dims permutation = all_axes(rank);
  std::ranges::reverse(permutation);
  for (size_t i = 0; i < attributes.permutation.size(); ++i)
    permutation[i] = static_cast<int64_t>(axis_of(attributes.permutation[i], rank));
  node.set_output(0, node.text().transpose(node.input(0), permutation));
  return Status();
}

Status emit_broadcast_to(NodeEmitter &node) {
  node.set_output(0, node.text().broadcast_to(node.input(0), node.output(0).dims));
  return Status();
}

Status emit_reverse_axes(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ReverseAxesAttributes::from(node.node()));
  Dims axes;
  for (const int64_t axis : attributes.axes)
    axes.push_back(static_cast<int64_t>(axis_of(axis, node.input(0).dims.size())));
  node.set_output(0, axes.empty() ? node.input(0) : node.text().reverse(node.input(0), axes));
  return Status();
}

Status emit_concat(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ConcatAttributes::from(node.node()));
  std::vector<Value> parts;
  for (size_t i = 0; i < node.input_count(); ++i)
    parts.push_back(node.input(i));
  node.set_output(0, node.text().concat_parts(parts, axis_of(attributes.axis, parts.front().dims.size())));
  return Status();
}

Status emit_slice(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SliceAttributes::from(node.node()));
  TUTTI_ASSIGN(const Dims begin, node.lowered().evaluate(attributes.begin));
  const Value &x = node.input(0);
  const Dims &size = node.output(0).dims;
  const Dims steps = steps_of(attributes.strides, size.size());
  TUTTI_TRY(check_block(x.dims, begin, size, steps));
  Dims limit;
  for (size_t i = 0; i < size.size(); ++i)
    limit.push_back(size[i] == 0 ? begin[i] : begin[i] + (size[i] - 1) * steps[i] + 1);
  node.set_output(0, node.text().slice(x, begin, limit, steps));
  return Status();
}

Status emit_slice_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SliceGradientAttributes::from(node.node()));
  TUTTI_ASSIGN(const Dims begin, node.lowered().evaluate(attributes.begin));
  const Value &dy = node.input(0);
  const Dims &dims = node.output(0).dims;
  const Dims steps = steps_of(attributes.strides, dims.size());
  TUTTI_TRY(check_block(dims, begin, dy.dims, steps));
  if (node.lowered().value(node.node().inputs[0]).elements == 0) {
    node.set_output(0, node.text().splat(dy.dtype, dims, 0));
    return Status();
  }
  Dims high, interior;
  for (size_t i = 0; i < dims.size(); ++i) {
    high.push_back(dims[i] - begin[i] - (dy.dims[i] - 1) * steps[i] - 1);
    interior.push_back(steps[i] - 1);
  }
  node.set_output(0, node.text().pad(dy, 0, begin, high, interior));
  return Status();
}

Status emit_pad(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::PadAttributes::from(node.node()));
  node.set_output(0, node.text().pad(node.input(0), attributes.value, attributes.low, attributes.high));
  return Status();
}

Status emit_iota(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::IotaAttributes::from(node.node()));
  const Dims &dims = node.output(0).dims;
  node.set_output(0, node.text().iota(DType::i64, dims, axis_of(attributes.axis, dims.size())));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
