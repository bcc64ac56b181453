// SPDX-License-Identifier: Apache-2.0
//
// dropout and random values: shape and gradient rules.
#include "graph/batch.h"
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

// The three random_* ops share dims and dtype.
base::Status infer_random(InferContext &context) {
  const auto *dims = std::get_if<Dims>(resolve_attribute(context.definition(), context.node(), "dims"));
  const auto *dtype = std::get_if<tensor::DType>(resolve_attribute(context.definition(), context.node(), "dtype"));
  TUTTI_TRY(require_shape(context, "dims", *dims));
  if (batch_axis(*dims).kind == BatchAxis::Kind::mixed) {
    return context.attribute_error("dims",
                                   base::concat("is ", to_string(*dims), ", expected the batch on one axis at most"));
  }
  if (!tensor::is_floating(*dtype)) {
    return context.attribute_error("dtype",
                                   base::concat("is ", tensor::name(*dtype), ", expected a floating point dtype"));
  }
  if (context.node().op == "random_uniform") {
    TUTTI_ASSIGN(const RandomUniformAttributes uniform, RandomUniformAttributes::from(context.node()));
    if (!(uniform.low <= uniform.high)) {
      return context.attribute_error("low",
                                     base::concat("is ", uniform.low, ", expected at most high = ", uniform.high));
    }
  }
  context.add_output(*dtype, *dims);
  return {};
}

// The same elements are dropped: the same key, and 0 means the stable id of the forward node.
base::Status gradient_dropout(GradientContext &context) {
  TUTTI_ASSIGN(DropoutAttributes attributes, DropoutAttributes::from(context.node()));
  if (attributes.key == 0) attributes.key = context.node().stable_id;
  context.set(0, context.builder().op("dropout", {context.output_gradient(0)}, attributes.to_attributes()));
  return {};
}

}  // namespace tutti::impl::graph::ops
