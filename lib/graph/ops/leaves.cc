// SPDX-License-Identifier: Apache-2.0
//
// Shape rules of the leaves: input, constant, variable, run_scalar, state_read, state_write.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Status infer_input(InferContext &context) {
  TUTTI_ASSIGN(InputAttributes attributes, InputAttributes::from(context.node()));
  if (attributes.name.empty()) return context.attribute_error("name", "is empty");
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  context.add_output(attributes.dtype, std::move(attributes.dims));
  return {};
}

base::Status infer_constant(InferContext &context) {
  TUTTI_ASSIGN(const ConstantAttributes attributes, ConstantAttributes::from(context.node()));
  const auto extents = attributes.value.shape().extents();
  context.add_output(attributes.value.dtype(), Dims(extents.begin(), extents.end()));
  return {};
}

base::Status infer_variable(InferContext &context) {
  TUTTI_ASSIGN(VariableAttributes attributes, VariableAttributes::from(context.node()));
  if (attributes.name.empty()) return context.attribute_error("name", "is empty");
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  if (!constant_shape(attributes.dims)) {
    return context.attribute_error("dims",
                                   base::concat("is ", to_string(attributes.dims), ", expected constants only"));
  }
  context.add_output(attributes.dtype, std::move(attributes.dims));
  return {};
}

base::Status infer_run_scalar(InferContext &context) {
  TUTTI_ASSIGN(const RunScalarAttributes attributes, RunScalarAttributes::from(context.node()));
  const tensor::DType dtype = attributes.dtype;
  if (dtype != tensor::DType::i64 && dtype != tensor::DType::f32 && dtype != tensor::DType::f64) {
    return context.attribute_error("dtype", base::concat("is ", tensor::name(dtype), ", expected i64, f32 or f64"));
  }
  context.add_output(dtype, {});
  return {};
}

base::Status infer_state_read(InferContext &context) {
  TUTTI_ASSIGN(StateReadAttributes attributes, StateReadAttributes::from(context.node()));
  if (attributes.entry.empty()) return context.attribute_error("entry", "is empty");
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  context.add_output(attributes.dtype, std::move(attributes.dims));
  return {};
}

base::Status infer_state_write(InferContext &context) {
  TUTTI_ASSIGN(const StateWriteAttributes attributes, StateWriteAttributes::from(context.node()));
  if (attributes.entry.empty()) return context.attribute_error("entry", "is empty");
  const tensor::DType dtype = context.input(0).dtype;
  if (attributes.mode == StateWriteAttributes::Mode::add && !tensor::is_floating(dtype) && !tensor::is_integer(dtype)) {
    return context.input_error(0, base::concat("has dtype ", tensor::name(dtype), ", which cannot be added"));
  }
  return {};
}

}  // namespace tutti::impl::graph::ops
