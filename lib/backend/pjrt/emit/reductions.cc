// SPDX-License-Identifier: Apache-2.0
//
// Reductions along axes, and the largest elements of a row. Sums of f16 and bf16 run in f32.
#include <algorithm>

#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

struct ReduceHow {
  Reduction kind;
  std::vector<int64_t> axes;
  bool keep_dims;
};

template <typename Attributes>
Result<ReduceHow> read_how(const graph::Node &node, Reduction kind) {
  TUTTI_ASSIGN(const Attributes attributes, Attributes::from(node));
  return ReduceHow{kind, attributes.axes, attributes.keep_dims};
}

Result<ReduceHow> how_of(const graph::Node &node) {
  if (node.op == "reduce_mean") return read_how<graph::ops::ReduceMeanAttributes>(node, Reduction::sum);
  if (node.op == "reduce_max") return read_how<graph::ops::ReduceMaxAttributes>(node, Reduction::max);
  if (node.op == "reduce_min") return read_how<graph::ops::ReduceMinAttributes>(node, Reduction::min);
  if (node.op == "reduce_prod") return read_how<graph::ops::ReduceProdAttributes>(node, Reduction::product);
  return read_how<graph::ops::ReduceSumAttributes>(node, Reduction::sum);
}

/// Sorted axes; an empty list is all of them.
Dims axes_of(const std::vector<int64_t> &axes, size_t rank) {
  if (axes.empty()) return all_axes(rank);
  Dims found;
  for (const int64_t axis : axes)
    found.push_back(static_cast<int64_t>(axis_of(axis, rank)));
  std::ranges::sort(found);
  return found;
}

DType wide_type(DType dtype) { return tensor::is_floating(dtype) ? DType::f64 : dtype; }

/// Whether x comes before y where the largest (or smallest) is looked for: not-a-number before all.
Value comes_before(ProgramText &text, const Value &x, const Value &y, bool is_max) {
  const Value is_better = text.compare(is_max ? "GT" : "LT", x, y);
  if (!tensor::is_floating(x.dtype)) return is_better;
  const Value is_first_nan = text.binary("and", text.is_nan(x), text.unary("not", text.is_nan(y)));
  return text.binary("or", is_better, is_first_nan);
}

/// Of two (element, index): the better one; of equals that with the lower index.
std::vector<Value> better_of(ProgramText &text, std::span<const Value> of, bool is_max) {
  const Value &x = of[0], &i = of[1], &y = of[2], &j = of[3];
  const Value x_first = comes_before(text, x, y, is_max), y_first = comes_before(text, y, x, is_max);
  const Value is_tie = text.unary("not", text.binary("or", x_first, y_first));
  const Value takes_x = text.binary("or", x_first, text.binary("and", is_tie, text.compare("LT", i, j)));
  return {text.select(takes_x, x, y), text.select(takes_x, i, j)};
}

}  // namespace

Status emit_reduce(NodeEmitter &node) {
  TUTTI_ASSIGN(const ReduceHow how, how_of(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const Dims axes = axes_of(how.axes, x.dims.size());
  Value y;
  if (how.kind == Reduction::product) {  // roundings add up over many factors
    y = text.convert(text.reduce(how.kind, text.convert(x, wide_type(x.dtype)), axes, how.keep_dims), x.dtype);
  } else {
    y = text.reduce(how.kind, x, axes, how.keep_dims);
  }
  const bool is_extreme = how.kind == Reduction::max || how.kind == Reduction::min;
  if (is_extreme && tensor::is_floating(x.dtype)) {  // devices may lose what is not a number
    const Value has_nan = text.reduce(Reduction::any, text.is_nan(x), axes, how.keep_dims);
    y = text.poison(text.unary("not", has_nan), y);
  }
  if (node.node().op == "reduce_mean") {
    double count = 1;
    for (const int64_t axis : axes)
      count *= static_cast<double>(x.dims[static_cast<size_t>(axis)]);
    y = text.div(y, text.like(y, count));
  }
  node.set_output(0, y);
  return Status();
}

Status emit_arg_reduce(NodeEmitter &node) {
  const bool is_max = node.node().op == "argmax";
  int64_t axis = 0;
  if (is_max) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::ArgmaxAttributes::from(node.node()));
    axis = attributes.axis;
  } else {
    TUTTI_ASSIGN(const auto attributes, graph::ops::ArgminAttributes::from(node.node()));
    axis = attributes.axis;
  }
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const size_t at = axis_of(axis, x.dims.size());
  if (x.dims[at] == 0 && node.output(0).elements != 0)
    return base::invalid_argument("axis ", axis, " of ", x.dims, " has no elements to choose from");
  const Value indices = text.iota(DType::i64, x.dims, at);
  const Value start = is_max ? text.lowest(x.dtype) : text.highest(x.dtype);
  const Value element{"", x.dtype, {}}, index{"", DType::i64, {}};
  const std::string best = text.region({element, index, element, index},
                                       [&](std::span<const Value> of) { return better_of(text, of, is_max); });
  const Dims &dims = node.output(0).dims;
  std::vector<Value> results = {{"", x.dtype, dims}, {"", DType::i64, dims}};
  text.op("reduce", {x, indices, start, text.highest(DType::i64)}, base::concat("dimensions = array<i64: ", at, ">"),
          results, best);
  node.set_output(0, results[1]);
  return Status();
}

Status emit_all_finite(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const Value finite = text.op("is_finite", {x}, "", DType::boolean, x.dims);
  node.set_output(0, text.reduce(Reduction::all, finite, all_axes(x.dims.size())));
  return Status();
}

Status emit_top_k(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value &x = node.input(0);
  const size_t axis = x.dims.size() - 1;
  const int64_t k = node.output(0).dims.back();
  const Value element{"", x.dtype, {}}, index{"", DType::i64, {}};
  const std::string order =
      text.region({element, element, index, index}, [&](std::span<const Value> of) -> std::vector<Value> {
        return {comes_before(text, text.widen(of[0]), text.widen(of[1]), true)};
      });
  std::vector<Value> sorted = {{"", x.dtype, x.dims}, {"", DType::i64, x.dims}};
  text.op("sort", {x, text.iota(DType::i64, x.dims, axis)},
          base::concat("dimension = ", axis, " : i64, is_stable = true"), sorted, order);
  node.set_output(0, text.slice_axis(sorted[0], axis, 0, k));
  node.set_output(1, text.slice_axis(sorted[1], axis, 0, k));
  return Status();
}

Status emit_top_k_gradient(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0);
  // dx[..., n] = sum over k of dy[..., k] where its index is n: there is one at most.
  const Dims &dims = node.output(0).dims;
  Dims spread = dy.dims;
  spread.push_back(dims.back());
  const Dims axes = all_axes(dy.dims.size());
  const Value places = text.iota(DType::i64, spread, spread.size() - 1);
  const Value is_here = text.compare("EQ", text.broadcast(node.input(1), spread, axes), places);
  const Value spread_dy = text.broadcast(dy, spread, axes);
  const Value there = text.select(is_here, spread_dy, text.like(spread_dy, 0));
  node.set_output(0, text.reduce(Reduction::sum, there, {static_cast<int64_t>(axes.size()) - 1}));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
