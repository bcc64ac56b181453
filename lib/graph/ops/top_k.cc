// SPDX-License-Identifier: Apache-2.0
//
// top_k and its gradient: shape and gradient rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Status infer_top_k(InferContext &context) {
  TUTTI_ASSIGN(const TopKAttributes attributes, TopKAttributes::from(context.node()));
  Dims dims = context.dims(0);
  if (dims.empty()) return context.input_error(0, "is a scalar, expected a last axis to choose from");
  // A length that is a symbol is looked at when it is bound (backend/lowered_graph.cc).
  if (dims.back().is_constant() && attributes.k > dims.back().constant())
    return context.attribute_error(
        "k", base::concat("is ", attributes.k, ", the last axis of 'x' has ", dims.back(), " elements"));
  dims.back() = attributes.k;
  context.add_output(context.input(0).dtype, dims);
  context.add_output(tensor::DType::i64, std::move(dims));
  return {};
}

base::Status gradient_top_k(GradientContext &context) {
  if (context.output_gradient(0) == kNoValue) return {};
  TopKGradientAttributes gradient;
  gradient.dims = context.dims(context.input(0));
  context.set(0, context.builder().op("top_k_gradient", {context.output_gradient(0), context.output(1)},
                                      gradient.to_attributes()));
  return {};
}

base::Status infer_top_k_gradient(InferContext &context) {
  TUTTI_ASSIGN(TopKGradientAttributes attributes, TopKGradientAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  TUTTI_TRY(require_same_dims(context, 0, 1));
  Dims expected = attributes.dims;
  if (!expected.empty() && context.rank(0) != 0) expected.back() = context.dims(0).back();
  if (expected.empty() || context.dims(0) != expected)
    return context.input_error(0, base::concat("does not fit ", to_string(attributes.dims), " but for the last axis"));
  context.add_output(context.input(0).dtype, std::move(attributes.dims));
  return {};
}

}  // namespace tutti::impl::graph::ops
