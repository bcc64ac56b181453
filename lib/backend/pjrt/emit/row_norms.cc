// SPDX-License-Identifier: Apache-2.0
//
// Layer, RMS and group normalisation: statistics of each row, or of each group of its channels. All are computed as
// [rows, ..., width] with statistics [rows, ..., 1].
#include <algorithm>

#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;

namespace {

/// The axes of x over which statistics run, and how many elements they have.
struct NormAxes {
  Dims axes;
  double count = 1;
};

NormAxes over_last_axis(const Value &x) {
  return {{static_cast<int64_t>(x.dims.size()) - 1}, static_cast<double>(std::max<int64_t>(x.dims.back(), 1))};
}

Value mean_of(ProgramText &text, const Value &x, const NormAxes &over) {
  const Value sum = text.reduce(Reduction::sum, x, over.axes, true);
  return text.div(sum, text.like(sum, over.count));
}

Value inverse_root(ProgramText &text, const Value &square, double epsilon) {
  return text.div(text.like(square, 1), text.unary("sqrt", text.add(square, epsilon)));
}

/// dx = rstd · (g − average(g) − n · average(g · n)); the first average is left out where nothing was centred.
Value gradient_of(ProgramText &text, const Value &g, const Value &n, const Value &rstd, const NormAxes &over,
                  bool is_centred) {
  const auto spread = [&](const Value &statistic) { return text.broadcast_to(statistic, g.dims); };
  const Value projection = text.mul(n, spread(mean_of(text, text.mul(g, n), over)));
  const Value rest = text.sub(is_centred ? text.sub(g, spread(mean_of(text, g, over))) : g, projection);
  return text.mul(rest, spread(rstd));
}

/// x with an axis of 1 for each that statistics of it lack.
Value as_statistic(NodeEmitter &node, size_t input, const Value &x, const Dims &dims) {
  return node.text().reshape(node.text().convert(node.input(input), x.dtype), dims);
}

Dims with_last_one(Dims dims) {
  dims.back() = 1;
  return dims;
}

/// [rows, positions, groups, channels of a group] of [rows, ..., channels], and what is normalised over.
struct Grouped {
  Dims dims;
  NormAxes over;

  Grouped(const Dims &x, int64_t groups) {
    int64_t positions = 1;
    for (size_t i = 1; i + 1 < x.size(); ++i)
      positions *= x[i];
    dims = {x.front(), positions, groups, x.back() / groups};
    over = {{1, 3}, static_cast<double>(std::max<int64_t>(positions * dims[3], 1))};
  }
  Dims statistics() const { return {dims[0], 1, dims[2], 1}; }
  /// A parameter of the channels, for each element.
  Value spread(ProgramText &text, const Value &channels) const {
    return text.broadcast(text.reshape(channels, {dims[2], dims[3]}), dims, {2, 3});
  }
};

}  // namespace

Status emit_layer_norm(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::LayerNormAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const NormAxes over = over_last_axis(x);
  const auto spread = [&](const Value &value) { return text.broadcast_to(text.convert(value, x.dtype), x.dims); };
  const Value mean = mean_of(text, x, over);
  const Value centred = text.sub(x, spread(mean));
  const Value rstd = inverse_root(text, mean_of(text, text.mul(centred, centred), over), attributes.epsilon);
  const Value normal = text.mul(centred, spread(rstd));
  node.set_output(0, text.add(text.mul(normal, spread(node.input(1))), spread(node.input(2))));
  node.set_output(1, text.reshape(mean, node.output(1).dims));
  node.set_output(2, text.reshape(rstd, node.output(2).dims));
  return Status();
}

Status emit_layer_norm_gradient(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0), x = node.wide_input(1);
  const auto spread = [&](const Value &value) { return text.broadcast_to(text.convert(value, x.dtype), x.dims); };
  const Value mean = as_statistic(node, 3, x, with_last_one(x.dims)), rstd = as_statistic(node, 4, x, mean.dims);
  const Value normal = text.mul(text.sub(x, spread(mean)), spread(rstd));
  const Dims rows = all_axes(x.dims.size() - 1);
  node.set_output(0, gradient_of(text, text.mul(dy, spread(node.input(2))), normal, rstd, over_last_axis(x), true));
  node.set_output(1, text.reduce(Reduction::sum, text.mul(dy, normal), rows));
  node.set_output(2, text.reduce(Reduction::sum, dy, rows));
  return Status();
}

Status emit_rms_norm(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RmsNormAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const auto spread = [&](const Value &value) { return text.broadcast_to(text.convert(value, x.dtype), x.dims); };
  const Value rstd = inverse_root(text, mean_of(text, text.mul(x, x), over_last_axis(x)), attributes.epsilon);
  node.set_output(0, text.mul(text.mul(x, spread(rstd)), spread(node.input(1))));
  node.set_output(1, text.reshape(rstd, node.output(1).dims));
  return Status();
}

Status emit_rms_norm_gradient(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0), x = node.wide_input(1);
  const auto spread = [&](const Value &value) { return text.broadcast_to(text.convert(value, x.dtype), x.dims); };
  const Value rstd = as_statistic(node, 3, x, with_last_one(x.dims));
  const Value normal = text.mul(x, spread(rstd));
  node.set_output(0, gradient_of(text, text.mul(dy, spread(node.input(2))), normal, rstd, over_last_axis(x), false));
  node.set_output(1, text.reduce(Reduction::sum, text.mul(dy, normal), all_axes(x.dims.size() - 1)));
  return Status();
}

Status emit_group_norm(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GroupNormAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value whole = node.wide_input(0);
  const Grouped grouped(whole.dims, attributes.groups);
  const Value x = text.reshape(whole, grouped.dims);
  const auto parameter = [&](size_t index) { return grouped.spread(text, text.convert(node.input(index), x.dtype)); };
  const Value mean = mean_of(text, x, grouped.over);
  const Value centred = text.sub(x, text.broadcast_to(mean, x.dims));
  const Value rstd = inverse_root(text, mean_of(text, text.mul(centred, centred), grouped.over), attributes.epsilon);
  const Value normal = text.mul(centred, text.broadcast_to(rstd, x.dims));
  node.set_output(0, text.reshape(text.add(text.mul(normal, parameter(1)), parameter(2)), whole.dims));
  node.set_output(1, text.reshape(mean, node.output(1).dims));
  node.set_output(2, text.reshape(rstd, node.output(2).dims));
  return Status();
}

Status emit_group_norm_gradient(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value whole_dy = node.wide_input(0), whole = node.wide_input(1);
  const Grouped grouped(whole.dims, node.input(3).dims.back());
  const Value x = text.reshape(whole, grouped.dims), dy = text.reshape(whole_dy, grouped.dims);
  const Value mean = as_statistic(node, 3, x, grouped.statistics());
  const Value rstd = as_statistic(node, 4, x, grouped.statistics());
  const Value normal = text.mul(text.sub(x, text.broadcast_to(mean, x.dims)), text.broadcast_to(rstd, x.dims));
  const Value g = text.mul(dy, grouped.spread(text, text.convert(node.input(2), x.dtype)));
  const Dims channels = {whole.dims.back()};
  node.set_output(0, text.reshape(gradient_of(text, g, normal, rstd, grouped.over, true), whole.dims));
  node.set_output(1, text.reshape(text.reduce(Reduction::sum, text.mul(dy, normal), {0, 1}), channels));
  node.set_output(2, text.reshape(text.reduce(Reduction::sum, dy, {0, 1}), channels));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
