// SPDX-License-Identifier: Apache-2.0
//
// Updates of some rows: sum_rows, rows_at, row_update. None reports a place that is out of range: StableHLO's gather
// moves it into range, and its scatter leaves it out.
#include <algorithm>

#include "backend/pjrt/emit/op_emitters.h"
#include "base/text.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::concat;
using base::Status;
using tensor::DType;

namespace {

/// [n, ...] as [n, width].
Value as_matrix(NodeEmitter &node, const Value &x, int64_t width) { return node.text().reshape(x, {x.dims[0], width}); }

int64_t width_of(NodeEmitter &node, size_t input) {
  return node.lowered().value(node.node().inputs[input]).row_elements();
}

/// Rows [n, width] of x [count, width], at places [n].
Value rows_of(ProgramText &text, const Value &x, const Value &places) {
  const int64_t n = places.dims[0], width = x.dims[1];
  return text.op("gather", {x, text.reshape(places, {n, 1})},
                 concat("dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], ",
                        "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, ", width, ">"),
                 x.dtype, {n, width});
}

/// x [count, width] with rows [n, width] put, or added, at places [n].
Value with_rows(ProgramText &text, const Value &x, const Value &places, const Value &rows, bool adds) {
  const Value element{"", x.dtype, {}};
  const std::string merge = text.region({element, element}, [&](std::span<const Value> of) -> std::vector<Value> {
    return {adds ? text.add(of[0], of[1]) : of[1]};
  });
  return text.op("scatter", {x, text.reshape(places, {places.dims[0], 1}), rows},
                 "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
                 "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
                 x.dtype, x.dims, merge);
}

/// The largest element up to each, of a vector without negative ones: in doubling steps (Hillis and Steele, Data
/// parallel algorithms, 1986).
Value running_maximum(ProgramText &text, Value x) {
  const int64_t n = x.dims[0];
  for (int64_t distance = 1; distance < n; distance *= 2) {
    const Value before = text.pad(text.slice_axis(x, 0, 0, n - distance), 0, {distance}, {0});
    x = text.binary("maximum", x, before);
  }
  return x;
}

struct SortedIndices {
  Value keys, order, is_first;  ///< is_first: of those that are equal, and below the limit
  Value heads;                  ///< where the first that is equal stands
};

/// Indices outside of [0, limit) are sorted as `limit`.
SortedIndices sort_indices(ProgramText &text, const Value &indices, int64_t limit) {
  const int64_t n = indices.dims[0];
  const Value none = text.like(indices, static_cast<double>(limit));
  const Value known = text.select(text.compare("GE", indices, 0), indices, none);
  const Value element{"", DType::i64, {}};
  const std::string order =
      text.region({element, element, element, element},
                  [&](std::span<const Value> of) -> std::vector<Value> { return {text.compare("LT", of[0], of[1])}; });
  std::vector<Value> sorted = {{"", DType::i64, {n}}, {"", DType::i64, {n}}};
  const Value positions = text.iota(DType::i64, {n}, 0);
  text.op("sort", {text.binary("minimum", known, none), positions}, "dimension = 0 : i64, is_stable = true", sorted,
          order);
  const Value before = text.pad(text.slice_axis(sorted[0], 0, 0, n - 1), -1, {1}, {0});
  const Value differs = text.compare("NE", sorted[0], before);
  const Value heads = running_maximum(text, text.select(differs, positions, text.like(positions, 0)));
  return {sorted[0], sorted[1], text.binary("and", differs, text.compare("LT", sorted[0], none)), heads};
}

}  // namespace

Status emit_sum_rows(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SumRowsAttributes::from(node.node()));
  TUTTI_ASSIGN(const Dims first, node.lowered().evaluate(attributes.first));
  TUTTI_ASSIGN(const Dims limit, node.lowered().evaluate(attributes.count));
  ProgramText &text = node.text();
  const Value rows = node.wide_input(0);
  const Dims &dims = node.output(0).dims;
  const int64_t width = width_of(node, 0);
  if (dims[0] == 0) {
    node.set_output(0, text.splat(rows.dtype, dims, 0));
    node.set_output(1, text.splat(DType::i64, {0}, -1));
    return Status();
  }
  const Value indices = text.add(text.convert(node.input(1), DType::i64), -static_cast<double>(first[0]));
  const SortedIndices sorted = sort_indices(text, indices, limit[0]);
  node.set_output(1, text.select(sorted.is_first, sorted.keys, text.like(sorted.keys, -1)));
  if (width == 0) {
    node.set_output(0, text.splat(rows.dtype, dims, 0));
    return Status();
  }
  const Value ordered = rows_of(text, as_matrix(node, rows, width), sorted.order);
  const Value zeros = text.like(ordered, 0);
  const Value is_index = text.compare("LT", sorted.keys, static_cast<double>(limit[0]));
  const Value kept = text.select(text.broadcast(is_index, ordered.dims, {0}), ordered, zeros);
  node.set_output(0, text.reshape(with_rows(text, zeros, sorted.heads, kept, true), dims));
  return Status();
}

Status emit_rows_at(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Dims &dims = node.output(0).dims;
  const Value &x = node.input(0), &places = node.input(1);
  if (x.dims[0] == 0 || node.output(0).elements == 0) {
    node.set_output(0, text.splat(x.dtype, dims, 0));
    return Status();
  }
  const Value found = rows_of(text, as_matrix(node, x, width_of(node, 0)), places);
  const Value is_place =
      text.binary("and", text.compare("GE", places, 0), text.compare("LT", places, static_cast<double>(x.dims[0])));
  const Value there = text.broadcast(is_place, found.dims, {0});
  node.set_output(0, text.reshape(text.select(there, found, text.like(found, 0)), dims));
  return Status();
}

Status emit_row_update(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value &x = node.input(0), &places = node.input(2);
  const int64_t width = width_of(node, 0);
  if (places.dims[0] == 0 || is_empty(x.dims)) {
    node.set_output(0, x);
    return Status();
  }
  const Value rows = as_matrix(node, node.input(1), width);
  node.set_output(0, text.reshape(with_rows(text, as_matrix(node, x, width), places, rows, false), x.dims));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
