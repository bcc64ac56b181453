// SPDX-License-Identifier: Apache-2.0
//
// Ops that pick by index. An index out of range is the run's fault (NodeEmitter::check_bounds), and the floats picked
// by it are not numbers.
#include "backend/pjrt/emit/op_emitters.h"
#include "base/text.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::concat;
using base::Status;
using tensor::DType;

namespace {

/// params is [outer, length, inner], the picked slices are [outer, picks, inner].
struct GatherShape {
  int64_t outer = 1, length = 0, inner = 1, picks = 0;

  Dims params() const { return {outer, length, inner}; }
  Dims picked() const { return {outer, picks, inner}; }
};

GatherShape gather_shape(const Dims &params, int64_t axis, int64_t picks) {
  GatherShape shape;
  const size_t at = axis_of(axis, params.size());
  for (size_t i = 0; i < at; ++i)
    shape.outer *= params[i];
  for (size_t i = at + 1; i < params.size(); ++i)
    shape.inner *= params[i];
  shape.length = params[at];
  shape.picks = picks;
  return shape;
}

int64_t elements_of(NodeEmitter &node, size_t input) {
  return node.lowered().value(node.node().inputs[input]).elements;
}

/// The indices of a node, whose second input they are, as [picks, 1].
Value flat_indices(NodeEmitter &node, int64_t picks) { return node.text().reshape(node.input(1), {picks, 1}); }

}  // namespace

Status emit_gather(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GatherAttributes::from(node.node()));
  ProgramText &text = node.text();
  const GatherShape shape = gather_shape(node.input(0).dims, attributes.axis, elements_of(node, 1));
  const Value is_good = node.check_bounds(1, shape.length, "index");
  const Dims &dims = node.output(0).dims;
  if (shape.length == 0 || node.output(0).elements == 0) {
    node.set_output(0, text.splat(node.output(0).dtype, dims, 0));
    return Status();
  }
  const Value picked = text.op(
      "gather", {text.reshape(node.input(0), shape.params()), flat_indices(node, shape.picks)},
      concat(
          "dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = ",
          "[1], index_vector_dim = 1>, slice_sizes = array<i64: ", shape.outer, ", 1, ", shape.inner, ">"),
      node.input(0).dtype, shape.picked());
  const Value good = text.broadcast(text.reshape(is_good, {shape.picks}), shape.picked(), {1});
  node.set_output(0, text.reshape(text.poison(good, picked), dims));
  return Status();
}

Status emit_gather_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GatherGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0);
  const Dims &dims = node.output(0).dims;
  const GatherShape shape = gather_shape(dims, attributes.axis, elements_of(node, 1));
  const Value is_good = node.check_bounds(1, shape.length, "index");
  const Value element{"", dy.dtype, {}};
  const std::string add = text.region(
      {element, element}, [&](std::span<const Value> of) -> std::vector<Value> { return {text.add(of[0], of[1])}; });
  const Value sums = text.op(
      "scatter",
      {text.splat(dy.dtype, shape.params(), 0), flat_indices(node, shape.picks), text.reshape(dy, shape.picked())},
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], inserted_window_dims = [1], "
      "scatter_dims_to_operand_dims = [1], index_vector_dim = 1>",
      dy.dtype, shape.params(), add);
  const Value all_good = text.reduce(Reduction::all, is_good, all_axes(is_good.dims.size()));
  node.set_output(0, text.reshape(text.poison(all_good, sums), dims));
  return Status();
}

Status emit_one_hot(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::OneHotAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Dims &dims = node.output(0).dims;
  const Value indices = text.convert(node.input(0), DType::i64);
  const Value spread = text.broadcast(indices, dims, all_axes(dims.size() - 1));
  const Value is_here = text.compare("EQ", spread, text.iota(DType::i64, dims, dims.size() - 1));
  const DType dtype = node.output(0).dtype;
  node.set_output(
      0, text.select(is_here, text.splat(dtype, dims, attributes.on), text.splat(dtype, dims, attributes.off)));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
