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
  // An index out of range adds nothing.
  const Value is_good = attributes.ignores_others ? Value() : node.check_bounds(1, shape.length, "index");
  const Value element{"", dy.dtype, {}};
  const std::string add = text.region(
      {element, element}, [&](std::span<const Value> of) -> std::vector<Value> { return {text.add(of[0], of[1])}; });
  const Value sums = text.op(
      "scatter",
      {text.splat(dy.dtype, shape.params(), 0), flat_indices(node, shape.picks), text.reshape(dy, shape.picked())},
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], inserted_window_dims = [1], "
      "scatter_dims_to_operand_dims = [1], index_vector_dim = 1>",
      dy.dtype, shape.params(), add);
  if (attributes.ignores_others) {
    node.set_output(0, text.reshape(sums, dims));
    return Status();
  }
  const Value all_good = text.reduce(Reduction::all, is_good, all_axes(is_good.dims.size()));
  node.set_output(0, text.reshape(text.poison(all_good, sums), dims));
  return Status();
}

namespace {

/// The larger of each two elements, among which not-a-number wins; or their sum.
std::string merging_region(ProgramText &text, DType dtype, bool is_sum) {
  const Value element{"", dtype, {}};
  return text.region({element, element}, [&](std::span<const Value> of) -> std::vector<Value> {
    if (is_sum) return {text.add(of[0], of[1])};
    const Value larger = text.select(text.compare("GE", of[0], of[1]), of[0], of[1]);
    return {tensor::is_floating(dtype) ? text.select(text.is_nan(of[0]), of[0], larger) : larger};
  });
}

/// Updates [count, inner] merged into the rows of a table [rows, inner]; those of other rows are left out.
Value merged_rows(ProgramText &text, const Value &table, const Value &indices, const Value &updates, bool is_sum) {
  return text.op("scatter", {table, indices, updates},
                 "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
                 "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
                 table.dtype, table.dims, merging_region(text, table.dtype, is_sum));
}

/// The last update for each row in its place: of each row the highest number of an update for it is found first, as
/// updates of one place have no order.
Value replaced_rows(ProgramText &text, const Value &table, const Value &indices, const Value &updates) {
  const int64_t rows = table.dims[0], count = updates.dims[0], inner = table.dims[1];
  const Value none = text.splat(DType::i64, {rows, 1}, -1);
  const Value last = merged_rows(text, none, indices, text.iota(DType::i64, {count, 1}, 0), false);
  const Value picked = text.op(
      "gather", {updates, text.binary("maximum", last, text.like(last, 0))},
      concat("dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = ",
             "[0], index_vector_dim = 1>, slice_sizes = array<i64: 1, ", inner, ">"),
      updates.dtype, table.dims);
  return text.select(text.broadcast(text.compare("GE", last, 0), table.dims, {0, 1}), picked, table);
}

}  // namespace

Status emit_merge_rows(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MergeRowsAttributes::from(node.node()));
  using Mode = graph::ops::MergeRowsAttributes::Mode;
  ProgramText &text = node.text();
  const Dims dims = node.output(0).dims;
  const GatherShape shape = gather_shape(dims, 0, elements_of(node, 1));
  const Value is_good = node.check_bounds(1, shape.length, "index");
  if (node.output(0).elements == 0 || shape.picks == 0) {
    node.set_output(0, node.input(0));
    return Status();
  }
  const bool is_replaced = attributes.mode == Mode::replace;
  const Value table = text.reshape(is_replaced ? node.input(0) : node.wide_input(0), {shape.length, shape.inner});
  const Value updates = text.reshape(is_replaced ? node.input(2) : node.wide_input(2), {shape.picks, shape.inner});
  const Value indices = flat_indices(node, shape.picks);
  const Value made = is_replaced ? replaced_rows(text, table, indices, updates)
                                 : merged_rows(text, table, indices, updates, attributes.mode == Mode::add);
  const Value all_good = text.reduce(Reduction::all, is_good, all_axes(is_good.dims.size()));
  node.set_output(0, text.reshape(text.poison(all_good, made), dims));
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
