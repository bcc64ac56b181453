// SPDX-License-Identifier: Apache-2.0
//
// Batch, layer, RMS and group norm: shape and gradient rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

// x has at least one axis besides the channels for batch norm, at least one for layer norm.
base::Status require_channels(const InferContext &context, size_t x, size_t minimum_rank) {
  if (context.rank(x) >= minimum_rank) return {};
  return context.input_error(x, base::concat("has rank ", context.rank(x), ", expected at least ", minimum_rank));
}

// Inputs [first, last) are vectors of one element per channel in the statistics' dtype.
base::Status require_statistics(const InferContext &context, size_t x, size_t first, size_t last) {
  const tensor::DType expected = statistics_dtype(context.input(x).dtype);
  for (size_t i = first; i < last; ++i) {
    TUTTI_TRY(require_vector(context, i, context.dims(x).back()));
    if (context.input(i).dtype != expected) {
      return context.input_error(
          i, base::concat("has dtype ", tensor::name(context.input(i).dtype), ", expected ", tensor::name(expected),
                          " for an input of ", tensor::name(context.input(x).dtype)));
    }
  }
  return {};
}

base::Status require_groups(const InferContext &context, size_t x, int64_t groups) {
  if (context.dims(x).back().divide_exactly(groups)) return {};
  return context.input_error(
      x, base::concat("has ", context.dims(x).back(), " channels, expected a multiple of ", groups, " (groups)"));
}

Dims channels(const InferContext &context, size_t x) { return {context.dims(x).back()}; }

Dims but_last(const Dims &dims) { return {dims.begin(), dims.end() - 1}; }

// Inputs [first, last), statistics of x that come from the forward pass, have these dims and one dtype, that of `like`.
base::Status require_given_statistics(const InferContext &context, size_t like, size_t first, size_t last,
                                      const Dims &dims) {
  for (size_t i = first; i < last; ++i) {
    if (context.dims(i) != dims)
      return context.input_error(i, base::concat("has a wrong shape, expected ", to_string(dims)));
    if (context.input(i).dtype != context.input(like).dtype)
      return context.inputs_error(like, i, "must have equal dtypes");
  }
  return {};
}

base::Status refuse_statistics_gradient(GradientContext &context) {
  for (size_t i = 1; i < context.node().outputs.size(); ++i) {
    if (context.output_gradient(i) != kNoValue)
      return context.unimplemented("a gradient flows into its statistics; use stop_gradient on them");
  }
  return {};
}

// Sets the gradients that an op of the name gives for the first inputs.
void set_gradients(GradientContext &context, std::string_view op, const GraphBuilder::Values &inputs,
                   const Attributes &attributes = {}) {
  const GraphBuilder::Values made = context.builder().op_n(std::string(op), inputs, attributes);
  for (size_t i = 0; i < made.size(); ++i) {
    if (context.needs(i)) context.set(i, made[i]);
  }
}

}  // namespace

base::Status infer_batch_norm_training(InferContext &context) {
  TUTTI_TRY(require_channels(context, 0, 2));
  TUTTI_TRY(require_statistics(context, 0, 1, 3));
  context.add_output(context.input(0).dtype, context.dims(0));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(1).dtype, channels(context, 0));
  return {};
}

base::Status gradient_batch_norm_training(GradientContext &context) {
  TUTTI_TRY(refuse_statistics_gradient(context));
  if (context.output_gradient(0) == kNoValue) return {};
  set_gradients(context, "batch_norm_training_gradient",
                {context.output_gradient(0), context.input(0), context.input(1), context.output(1), context.output(2)},
                context.node().attributes);
  return {};
}

base::Status infer_batch_norm_training_gradient(InferContext &context) {
  TUTTI_TRY(require_channels(context, 1, 2));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 1, 2, 5));
  context.add_output(context.input(1).dtype, context.dims(1));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(2).dtype, channels(context, 1));
  return {};
}

base::Status infer_batch_norm_inference(InferContext &context) {
  TUTTI_TRY(require_channels(context, 0, 2));
  TUTTI_TRY(require_statistics(context, 0, 1, 5));
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

// y = (x − mean) · r · scale + offset, r = (variance + epsilon)^−½; all vectors are in the statistics' dtype.
base::Status gradient_batch_norm_inference(GradientContext &context) {
  TUTTI_ASSIGN(const BatchNormInferenceAttributes attributes, BatchNormInferenceAttributes::from(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId scale = context.input(1), mean = context.input(3), variance = context.input(4);
  const tensor::DType own = b.dtype(context.input(0)), wide = b.dtype(scale);
  const ValueId x = b.cast(context.input(0), wide), dy = b.cast(context.output_gradient(0), wide);
  const ValueId r = b.unary("rsqrt", b.add_scalar(variance, attributes.epsilon));
  const ValueId slope = b.mul(scale, r);
  std::vector<int64_t> rows;
  for (size_t i = 0; i + 1 < b.rank(x); ++i)
    rows.push_back(static_cast<int64_t>(i));
  if (context.needs(0)) context.set(0, b.cast(b.mul(dy, slope), own));
  ValueId sum = kNoValue, sum_centred = kNoValue;
  if (context.needs(2) || context.needs(3)) sum = b.reduce_sum(dy, rows);
  if (context.needs(1) || context.needs(4)) sum_centred = b.reduce_sum(b.mul(dy, b.sub(x, mean)), rows);
  if (context.needs(1)) context.set(1, b.mul(sum_centred, r));
  if (context.needs(2)) context.set(2, sum);
  if (context.needs(3)) context.set(3, b.neg(b.mul(sum, slope)));
  if (context.needs(4)) context.set(4, b.mul(b.scale(sum_centred, -0.5), b.mul(slope, b.unary("square", r))));
  return {};
}

base::Status infer_batch_norm_moments(InferContext &context) {
  TUTTI_TRY(require_channels(context, 0, 2));
  for (int i = 0; i < 2; ++i)
    context.add_output(tensor::DType::f64, channels(context, 0));
  return {};
}

base::Status infer_batch_norm_gradient_moments(InferContext &context) {
  TUTTI_TRY(require_channels(context, 1, 2));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 1, 2, 3));
  for (int i = 0; i < 2; ++i)
    context.add_output(tensor::DType::f64, channels(context, 1));
  return {};
}

base::Status infer_batch_norm_gradient_apply(InferContext &context) {
  TUTTI_TRY(require_channels(context, 1, 2));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 1, 2, 5));
  for (size_t i : {size_t{5}, size_t{6}})
    TUTTI_TRY(require_vector(context, i, context.dims(1).back()));
  TUTTI_TRY(require_scalar(context, 7));
  context.add_output(context.input(1).dtype, context.dims(1));
  return {};
}

base::Status infer_layer_norm(InferContext &context) {
  TUTTI_TRY(require_channels(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 0, 1, 3));
  context.add_output(context.input(0).dtype, context.dims(0));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(1).dtype, but_last(context.dims(0)));
  return {};
}

base::Status gradient_layer_norm(GradientContext &context) {
  TUTTI_TRY(refuse_statistics_gradient(context));
  if (context.output_gradient(0) == kNoValue) return {};
  set_gradients(context, "layer_norm_gradient",
                {context.output_gradient(0), context.input(0), context.input(1), context.output(1), context.output(2)});
  return {};
}

base::Status infer_layer_norm_gradient(InferContext &context) {
  TUTTI_TRY(require_channels(context, 1, 1));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 1, 2, 3));
  TUTTI_TRY(require_given_statistics(context, 2, 3, 5, but_last(context.dims(1))));
  context.add_output(context.input(1).dtype, context.dims(1));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(2).dtype, channels(context, 1));
  return {};
}

base::Status infer_rms_norm(InferContext &context) {
  TUTTI_TRY(require_channels(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 0, 1, 2));
  context.add_output(context.input(0).dtype, context.dims(0));
  context.add_output(context.input(1).dtype, but_last(context.dims(0)));
  return {};
}

base::Status gradient_rms_norm(GradientContext &context) {
  TUTTI_TRY(refuse_statistics_gradient(context));
  if (context.output_gradient(0) == kNoValue) return {};
  set_gradients(context, "rms_norm_gradient",
                {context.output_gradient(0), context.input(0), context.input(1), context.output(1)});
  return {};
}

base::Status infer_rms_norm_gradient(InferContext &context) {
  TUTTI_TRY(require_channels(context, 1, 1));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 1, 2, 3));
  TUTTI_TRY(require_given_statistics(context, 2, 3, 4, but_last(context.dims(1))));
  context.add_output(context.input(1).dtype, context.dims(1));
  context.add_output(context.input(2).dtype, channels(context, 1));
  return {};
}

base::Status infer_group_norm(InferContext &context) {
  TUTTI_ASSIGN(const GroupNormAttributes attributes, GroupNormAttributes::from(context.node()));
  TUTTI_TRY(require_channels(context, 0, 2));
  TUTTI_TRY(require_groups(context, 0, attributes.groups));
  TUTTI_TRY(require_statistics(context, 0, 1, 3));
  context.add_output(context.input(0).dtype, context.dims(0));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(1).dtype, {context.dims(0).front(), Dim(attributes.groups)});
  return {};
}

base::Status gradient_group_norm(GradientContext &context) {
  TUTTI_TRY(refuse_statistics_gradient(context));
  if (context.output_gradient(0) == kNoValue) return {};
  set_gradients(context, "group_norm_gradient",
                {context.output_gradient(0), context.input(0), context.input(1), context.output(1), context.output(2)});
  return {};
}

base::Status infer_group_norm_gradient(InferContext &context) {
  TUTTI_TRY(require_channels(context, 1, 2));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 1, 2, 3));
  if (context.rank(3) != 2 || !context.dims(3)[1].is_constant() || context.dims(3)[1].constant() < 1)
    return context.input_error(3, "has a wrong shape, expected [rows, groups]");
  const Dim groups = context.dims(3)[1];
  TUTTI_TRY(require_groups(context, 1, groups.constant()));
  TUTTI_TRY(require_given_statistics(context, 2, 3, 5, {context.dims(1).front(), groups}));
  context.add_output(context.input(1).dtype, context.dims(1));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(2).dtype, channels(context, 1));
  return {};
}

}  // namespace tutti::impl::graph::ops
