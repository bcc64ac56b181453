// SPDX-License-Identifier: Apache-2.0
//
// slice, pad, gather, one_hot, iota and their gradients: shape and gradient rules.
#include <algorithm>

#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

// Whether [begin, begin + (size − 1) · stride] lies in [0, length), as far as constants tell.
bool fits(const Dim &begin, const Dim &size, int64_t stride, const Dim &length) {
  const Dim room = length - begin - (size - 1) * stride - 1;
  if (size == 0) return !(length - begin).is_constant() || (length - begin).constant() >= 0;
  return room.is_representable() && !(room.is_constant() && room.constant() < 0);
}

}  // namespace

base::Status infer_slice(InferContext &context) {
  TUTTI_ASSIGN(SliceAttributes attributes, SliceAttributes::from(context.node()));
  const Dims &dims = context.dims(0);
  if (attributes.strides.empty()) attributes.strides.assign(dims.size(), 1);
  if (attributes.begin.size() != dims.size() || attributes.size.size() != dims.size() ||
      attributes.strides.size() != dims.size()) {
    return context.input_error(
        0, base::concat("needs ", dims.size(), " elements in begin ", to_string(attributes.begin), ", size ",
                        to_string(attributes.size), " and strides ", attributes.strides));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    Dim &begin = attributes.begin[i], &size = attributes.size[i];
    if (begin.is_constant() && begin.constant() < 0) begin = dims[i] + begin;
    if (size == -1) size = ceil_divide(dims[i] - begin, attributes.strides[i]);
    const bool negative = (begin.is_constant() && begin.constant() < 0) || (size.is_constant() && size.constant() < 0);
    if (negative || !fits(begin, size, attributes.strides[i], dims[i])) {
      return context.input_error(0, base::concat("has no block that begins at ", begin, " with ", size,
                                                 " elements and stride ", attributes.strides[i], " along axis ", i));
    }
  }
  context.normalize("begin", attributes.begin);
  context.normalize("size", attributes.size);
  context.add_output(context.input(0).dtype, std::move(attributes.size));
  return {};
}

base::Status gradient_slice(GradientContext &context) {
  TUTTI_ASSIGN(const SliceAttributes attributes, SliceAttributes::from(context.node()));
  SliceGradientAttributes gradient;
  gradient.begin = attributes.begin;
  gradient.strides = attributes.strides;
  gradient.dims = context.dims(context.input(0));
  context.set(0, context.builder().op("slice_gradient", {context.output_gradient(0)}, gradient.to_attributes()));
  return {};
}

base::Status infer_slice_gradient(InferContext &context) {
  TUTTI_ASSIGN(SliceGradientAttributes attributes, SliceGradientAttributes::from(context.node()));
  const size_t rank = context.rank(0);
  if (attributes.strides.empty()) attributes.strides.assign(rank, 1);
  if (attributes.begin.size() != rank || attributes.dims.size() != rank || attributes.strides.size() != rank) {
    return context.input_error(0, base::concat("needs ", rank, " elements in begin, dims and strides"));
  }
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  TUTTI_TRY(require_shape(context, "begin", attributes.begin));
  for (size_t i = 0; i < rank; ++i) {
    if (!fits(attributes.begin[i], context.dims(0)[i], attributes.strides[i], attributes.dims[i])) {
      return context.input_error(0, base::concat("does not fit ", to_string(attributes.dims), " along axis ", i));
    }
  }
  context.add_output(context.input(0).dtype, std::move(attributes.dims));
  return {};
}

base::Status gradient_slice_gradient(GradientContext &context) {
  TUTTI_ASSIGN(const SliceGradientAttributes attributes, SliceGradientAttributes::from(context.node()));
  const Dims size = context.dims(context.input(0));
  context.set(0, context.builder().slice(context.output_gradient(0), attributes.begin, size, attributes.strides));
  return {};
}

base::Status infer_pad(InferContext &context) {
  TUTTI_ASSIGN(const PadAttributes attributes, PadAttributes::from(context.node()));
  Dims dims = context.dims(0);
  if (attributes.low.size() != dims.size() || attributes.high.size() != dims.size()) {
    return context.input_error(
        0, base::concat("needs ", dims.size(), " elements in low ", attributes.low, " and high ", attributes.high));
  }
  for (size_t i = 0; i < dims.size(); ++i)
    dims[i] = dims[i] + attributes.low[i] + attributes.high[i];
  context.add_output(context.input(0).dtype, std::move(dims));
  return {};
}

base::Status gradient_pad(GradientContext &context) {
  TUTTI_ASSIGN(const PadAttributes attributes, PadAttributes::from(context.node()));
  const Dims size = context.dims(context.input(0));
  context.set(0, context.builder().slice(context.output_gradient(0), to_dims(attributes.low), size));
  return {};
}

base::Status infer_gather(InferContext &context) {
  TUTTI_ASSIGN(const GatherAttributes attributes, GatherAttributes::from(context.node()));
  TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axis", attributes.axis, context.rank(0)));
  const Dims &params = context.dims(0), &indices = context.dims(1);
  Dims dims(params.begin(), params.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), params.begin() + axis + 1, params.end());
  context.normalize("axis", axis);
  context.add_output(context.input(0).dtype, std::move(dims));
  return {};
}

base::Status gradient_gather(GradientContext &context) {
  TUTTI_ASSIGN(const GatherAttributes attributes, GatherAttributes::from(context.node()));
  GatherGradientAttributes gradient;
  gradient.axis = attributes.axis;
  gradient.dims = context.dims(context.input(0));
  context.set(0, context.builder().op("gather_gradient", {context.output_gradient(0), context.input(1)},
                                      gradient.to_attributes()));
  return {};
}

base::Status infer_gather_gradient(InferContext &context) {
  TUTTI_ASSIGN(GatherGradientAttributes attributes, GatherGradientAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axis", attributes.axis, attributes.dims.size()));
  const Dims &indices = context.dims(1);
  Dims expected(attributes.dims.begin(), attributes.dims.begin() + axis);
  expected.insert(expected.end(), indices.begin(), indices.end());
  expected.insert(expected.end(), attributes.dims.begin() + axis + 1, attributes.dims.end());
  if (context.dims(0) != expected) {
    return context.inputs_error(0, 1, base::concat("do not fit: expected 'dy' of shape ", to_string(expected)));
  }
  const Dim &rows = attributes.dims[static_cast<size_t>(axis)];
  if (attributes.ignores_others && (!rows.is_constant() || rows.constant() < 1))
    return context.attribute_error("ignores_others", "needs a known number of rows");
  context.normalize("axis", axis);
  context.add_output(context.input(0).dtype, std::move(attributes.dims));
  return {};
}

base::Status gradient_gather_gradient(GradientContext &context) {
  TUTTI_ASSIGN(const GatherGradientAttributes attributes, GatherGradientAttributes::from(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId dy = context.output_gradient(0), indices = context.input(1);
  if (!attributes.ignores_others) {
    context.set(0, b.op("gather", {dy, indices}, {{"axis", attributes.axis}}));
    return {};
  }
  // What was left out has no gradient.
  const auto axis = static_cast<size_t>(attributes.axis);
  const ValueId zero = constant_like(b, 0, indices);
  const ValueId length = constant_like(b, static_cast<double>(attributes.dims[axis].constant()), indices);
  const ValueId is_inside =
      b.op("logical_and", {b.op("greater_equal", {indices, zero}), b.op("less", {indices, length})});
  const ValueId picked = b.op("gather", {dy, b.select(is_inside, indices, zero)}, {{"axis", attributes.axis}});
  Dims spread = b.dims(indices);
  spread.resize(spread.size() + attributes.dims.size() - axis - 1, 1);
  context.set(0, b.select(b.reshape(is_inside, spread), picked, constant_like(b, 0, picked)));
  return {};
}

base::Status infer_one_hot(InferContext &context) {
  TUTTI_ASSIGN(const OneHotAttributes attributes, OneHotAttributes::from(context.node()));
  if (attributes.dtype == tensor::DType::bytes)
    return context.attribute_error("dtype", "is bytes, expected numbers or boolean");
  Dims dims = context.dims(0);
  dims.push_back(attributes.depth);
  context.add_output(attributes.dtype, std::move(dims));
  return {};
}

base::Status infer_iota(InferContext &context) {
  TUTTI_ASSIGN(IotaAttributes attributes, IotaAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axis", attributes.axis, attributes.dims.size()));
  if (!tensor::is_floating(attributes.dtype) && !tensor::is_integer(attributes.dtype)) {
    return context.attribute_error("dtype",
                                   base::concat("is ", tensor::name(attributes.dtype), ", expected a number dtype"));
  }
  context.normalize("axis", axis);
  context.add_output(attributes.dtype, std::move(attributes.dims));
  return {};
}

}  // namespace tutti::impl::graph::ops
