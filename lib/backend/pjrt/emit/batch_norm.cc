// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation over all axes but the last. Channels are the last axis; a statistic is one number for each.
#include <algorithm>
#include <cmath>

#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

/// All axes but the last.
Dims position_axes(const Value &x) { return all_axes(x.dims.size() - 1); }

int64_t positions_of(const Value &x) {
  int64_t count = 1;
  for (size_t i = 0; i + 1 < x.dims.size(); ++i)
    count *= x.dims[i];
  return count;
}

double divisor_of(const Value &x) { return static_cast<double>(std::max<int64_t>(positions_of(x), 1)); }

Value sum_positions(ProgramText &text, const Value &x) { return text.reduce(Reduction::sum, x, position_axes(x)); }

/// A statistic or parameter in the type of x, one for each of its elements.
Value spread_channels(ProgramText &text, const Value &channels, const Value &x) {
  return text.broadcast_to(text.convert(channels, x.dtype), x.dims);
}

/// 1 / sqrt(variance + epsilon).
Value inverse_deviation(ProgramText &text, const Value &variance, double epsilon) {
  return text.div(text.like(variance, 1), text.unary("sqrt", text.add(variance, epsilon)));
}

struct Normalization {
  Value scale, offset, mean, variance;
  double epsilon;
};

Value normalize(ProgramText &text, const Value &x, const Normalization &by) {
  const Value centred = text.sub(x, spread_channels(text, by.mean, x));
  const Value factor = text.mul(inverse_deviation(text, by.variance, by.epsilon), by.scale);
  return text.add(text.mul(centred, spread_channels(text, factor, x)), spread_channels(text, by.offset, x));
}

/// dx = scale · r · (dy − sum_dy / count − (x − mean) · r² · sum_dy_xc / count); sums are divided already.
Value apply_gradient(ProgramText &text, const Value &dy, const Value &x, const Normalization &by, const Value &mean_dy,
                     const Value &mean_dy_xc) {
  const Value r = inverse_deviation(text, by.variance, by.epsilon);
  const Value centred = text.sub(x, spread_channels(text, by.mean, x));
  const Value share = text.mul(text.mul(r, r), text.convert(mean_dy_xc, r.dtype));
  const Value rest =
      text.sub(text.sub(dy, spread_channels(text, mean_dy, x)), text.mul(centred, spread_channels(text, share, x)));
  return text.mul(rest, spread_channels(text, text.mul(by.scale, r), x));
}

}  // namespace

Status emit_batch_norm_training(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormTrainingAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const double count = divisor_of(x);
  const Value mean = text.div(sum_positions(text, x), text.splat(x.dtype, {x.dims.back()}, count));
  const Value centred = text.sub(x, spread_channels(text, mean, x));
  const Value variance = text.div(sum_positions(text, text.mul(centred, centred)), text.like(mean, count));
  const Value scale = text.convert(node.input(1), x.dtype), offset = text.convert(node.input(2), x.dtype);
  node.set_output(0, normalize(text, x, {scale, offset, mean, variance, attributes.epsilon}));
  node.set_output(1, mean);
  node.set_output(2, variance);
  return Status();
}

Status emit_batch_norm_training_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormTrainingGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0), x = node.wide_input(1);
  const Normalization by{text.convert(node.input(2), x.dtype),
                         {},
                         text.convert(node.input(3), x.dtype),
                         text.convert(node.input(4), x.dtype),
                         attributes.epsilon};
  const Value centred = text.sub(x, spread_channels(text, by.mean, x));
  const Value sum_dy = sum_positions(text, dy), sum_dy_xc = sum_positions(text, text.mul(dy, centred));
  const double share = 1 / divisor_of(x);
  node.set_output(0, apply_gradient(text, dy, x, by, text.mul(sum_dy, share), text.mul(sum_dy_xc, share)));
  node.set_output(1, text.mul(sum_dy_xc, inverse_deviation(text, by.variance, by.epsilon)));
  node.set_output(2, sum_dy);
  return Status();
}

Status emit_batch_norm_inference(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormInferenceAttributes::from(node.node()));
  const Value x = node.wide_input(0);
  const auto parameter = [&](size_t index) { return node.text().convert(node.input(index), x.dtype); };
  const Normalization by{parameter(1), parameter(2), parameter(3), parameter(4), attributes.epsilon};
  node.set_output(0, normalize(node.text(), x, by));
  return Status();
}

Status emit_batch_norm_moments(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value x = text.convert(node.input(0), DType::f64);
  node.set_output(0, sum_positions(text, x));
  node.set_output(1, sum_positions(text, text.mul(x, x)));
  return Status();
}

Status emit_batch_norm_gradient_moments(NodeEmitter &node) {
  ProgramText &text = node.text();
  const Value dy = text.convert(node.input(0), DType::f64), x = text.convert(node.input(1), DType::f64);
  const Value centred = text.sub(x, spread_channels(text, node.input(2), x));
  node.set_output(0, sum_positions(text, dy));
  node.set_output(1, sum_positions(text, text.mul(dy, centred)));
  return Status();
}

Status emit_batch_norm_gradient_apply(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormGradientApplyAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0), x = node.wide_input(1);
  const auto parameter = [&](size_t index) { return text.convert(node.input(index), x.dtype); };
  const Normalization by{parameter(2), {}, parameter(3), parameter(4), attributes.epsilon};
  const Value count = text.broadcast(node.input(7), node.input(5).dims, {});
  const Value mean_dy = text.div(node.input(5), count), mean_dy_xc = text.div(node.input(6), count);
  node.set_output(0, apply_gradient(text, dy, x, by, mean_dy, mean_dy_xc));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
