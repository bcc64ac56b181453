// SPDX-License-Identifier: Apache-2.0
//
// Batch norm and layer norm: shape and gradient rules.
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

Dims channels(const InferContext &context, size_t x) { return {context.dims(x).back()}; }

base::Status refuse_statistics_gradient(GradientContext &context) {
  if (context.output_gradient(1) == kNoValue && context.output_gradient(2) == kNoValue) return {};
  return context.unimplemented("a gradient flows into its statistics; use stop_gradient on them");
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
  const GraphBuilder::Values made = context.builder().op_n(
      "batch_norm_training_gradient",
      {context.output_gradient(0), context.input(0), context.input(1), context.output(1), context.output(2)},
      context.node().attributes);
  for (size_t i = 0; i < 3; ++i) {
    if (context.needs(i)) context.set(i, made[i]);
  }
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
  const Dims rows(context.dims(0).begin(), context.dims(0).end() - 1);
  context.add_output(context.input(0).dtype, context.dims(0));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(1).dtype, rows);
  return {};
}

base::Status gradient_layer_norm(GradientContext &context) {
  TUTTI_TRY(refuse_statistics_gradient(context));
  if (context.output_gradient(0) == kNoValue) return {};
  const GraphBuilder::Values made = context.builder().op_n(
      "layer_norm_gradient",
      {context.output_gradient(0), context.input(0), context.input(1), context.output(1), context.output(2)});
  for (size_t i = 0; i < 3; ++i) {
    if (context.needs(i)) context.set(i, made[i]);
  }
  return {};
}

base::Status infer_layer_norm_gradient(InferContext &context) {
  TUTTI_TRY(require_channels(context, 1, 1));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  TUTTI_TRY(require_statistics(context, 1, 2, 3));
  const Dims rows(context.dims(1).begin(), context.dims(1).end() - 1);
  for (size_t i : {size_t{3}, size_t{4}}) {
    if (context.dims(i) != rows)
      return context.input_error(i, base::concat("has a wrong shape, expected ", to_string(rows)));
    if (context.input(i).dtype != context.input(2).dtype) return context.inputs_error(2, i, "must have equal dtypes");
  }
  context.add_output(context.input(1).dtype, context.dims(1));
  for (int i = 0; i < 2; ++i)
    context.add_output(context.input(2).dtype, channels(context, 1));
  return {};
}

}  // namespace tutti::impl::graph::ops
