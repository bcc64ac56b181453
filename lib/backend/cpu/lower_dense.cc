// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cpu/attributes.h"
#include "backend/cpu/lower.h"
#include "backend/cpu/simd_gemm.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

/// A product of matrices, repeated over the leading axes.
struct DenseShape {
  GemmShape gemm;
  std::vector<int64_t> a_offsets, b_offsets;  ///< one for each product; one entry when there is one
};

/// Offsets of the matrices of an operand, in the order of the result's leading axes.
std::vector<int64_t> matrix_offsets(const std::vector<int64_t> &dims, const std::vector<int64_t> &result) {
  const size_t leading = result.size() - 2;
  const size_t own = dims.size() - 2;
  const int64_t matrix = dims[own] * dims[own + 1];
  std::vector<int64_t> offsets = {0};
  int64_t step = matrix;
  for (size_t i = 0; i < leading; ++i) {
    const size_t axis = leading - 1 - i;
    const int64_t n = i < own ? dims[own - 1 - i] : 1;
    std::vector<int64_t> next;
    for (int64_t k = 0; k < result[axis]; ++k) {
      for (int64_t offset : offsets)
        next.push_back(offset + (n == 1 ? 0 : k * step));
    }
    offsets = std::move(next);
    step *= n;
  }
  return offsets;
}

DenseShape shape_of(const Lowering &l, const Node &node) {
  const std::vector<int64_t> &a = l.value(node.inputs[0]).dims;
  const std::vector<int64_t> &b = l.value(node.inputs[1]).dims;
  const std::vector<int64_t> &y = l.value(node.outputs[0]).dims;
  const bool transpose_a = flag(node, "transpose_a");
  const bool transpose_b = flag(node, "transpose_b");
  DenseShape shape;
  GemmShape &g = shape.gemm;
  const int64_t a_columns = a.back();
  const int64_t b_columns = b.back();
  g.m = y[y.size() - 2];
  g.n = y.back();
  g.k = transpose_a ? a[a.size() - 2] : a.back();
  g.a_row = transpose_a ? 1 : a_columns;
  g.a_column = transpose_a ? a_columns : 1;
  g.b_row = transpose_b ? 1 : b_columns;
  g.b_column = transpose_b ? b_columns : 1;
  g.c_row = g.n;
  if (b.size() == 2 && !transpose_a) {
    // Leading axes of A are more rows.
    for (size_t axis = 0; axis + 2 < y.size(); ++axis)
      g.m *= y[axis];
    shape.a_offsets = shape.b_offsets = {0};
    return shape;
  }
  shape.a_offsets = matrix_offsets(a, y);
  shape.b_offsets = matrix_offsets(b, y);
  return shape;
}

/// What follows the product in its group.
struct Following {
  ValueId bias = kNoValue;
  ValueId mask = kNoValue;
  bool relu = false;
};

Following following_nodes(const Lowering &l, const Group &group) {
  Following following;
  ValueId y = l.graph().step(group.steps.front()).outputs[0];
  for (size_t i = 1; i < group.steps.size(); ++i) {
    const Node &node = l.graph().step(group.steps[i]);
    if (node.op == "add") following.bias = node.inputs[0] == y ? node.inputs[1] : node.inputs[0];
    if (node.op == "relu_gradient") following.mask = node.inputs[1];
    if (node.op == "relu") following.relu = true;
    y = node.outputs[0];
  }
  return following;
}

}  // namespace

bool lower_dense(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.front());
  if (!l.is_f32(node.outputs[0])) return false;
  const DenseShape shape = shape_of(l, node);
  const Following following = following_nodes(l, group);
  const ValueId y = l.graph().step(group.steps.back()).outputs[0];
  const BufferId a = l.read(node.inputs[0]);
  const BufferId b = l.read(node.inputs[1]);
  const BufferId bias = l.read(following.bias);
  const BufferId mask = l.read(following.mask);
  const BufferId c = l.write(y);
  const BufferId scratch = l.scratch(gemm_scratch_floats(shape.gemm) * static_cast<int64_t>(sizeof(float)));
  std::string name = "simd:gemm";
  if (bias >= 0) name += "+bias";
  if (following.relu) name += "+relu";
  if (mask >= 0) name += "+relu_gradient";
  l.emit(name, [=](const RunContext &context) {
    const int64_t matrix = shape.gemm.m * shape.gemm.n;
    for (size_t i = 0; i < shape.a_offsets.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) * matrix;
      GemmEpilogue epilogue;
      epilogue.bias = context.in_or_null(bias);
      epilogue.relu = following.relu;
      epilogue.mask = mask < 0 ? nullptr : context.in(mask) + at;
      gemm(shape.gemm, context.in(a) + shape.a_offsets[i], context.in(b) + shape.b_offsets[i], context.out(c) + at,
           epilogue, context.out(scratch));
    }
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
