// SPDX-License-Identifier: Apache-2.0
//
// Ops on dtype bytes, which run per element in datasets: shape rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

using tensor::DType;

// Input 0 with as many parts of each text behind it: a number, or one that only data tells where that is 0.
Dims with_parts(const InferContext &context, int64_t count) {
  Dims dims = context.dims(0);
  dims.push_back(count > 0 ? Dim(count) : data_dependent_dim(context, "count"));
  return dims;
}

}  // namespace

// bytes_length, bytes_hash_bucket: a whole number for each text.
base::Status infer_bytes_index(InferContext &context) {
  context.add_output(DType::i64, context.dims(0));
  return {};
}

base::Status infer_bytes_split(InferContext &context) {
  TUTTI_ASSIGN(const BytesSplitAttributes attributes, BytesSplitAttributes::from(context.node()));
  context.add_output(DType::bytes, with_parts(context, attributes.count));
  return {};
}

base::Status infer_bytes_tokenize(InferContext &context) {
  TUTTI_ASSIGN(const BytesTokenizeAttributes attributes, BytesTokenizeAttributes::from(context.node()));
  context.add_output(DType::bytes, with_parts(context, attributes.count));
  return {};
}

base::Status infer_bytes_join(InferContext &context) {
  Dims dims = context.dims(0);
  if (dims.empty()) return context.input_error(0, "has no axis to join along");
  dims.pop_back();
  context.add_output(DType::bytes, std::move(dims));
  return {};
}

base::Status infer_bytes_to_number(InferContext &context) {
  TUTTI_ASSIGN(const BytesToNumberAttributes attributes, BytesToNumberAttributes::from(context.node()));
  const DType dtype = attributes.dtype;
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64) {
    return context.attribute_error("dtype",
                                   base::concat("is ", tensor::name(dtype), ", expected f32, f64, i32 or i64"));
  }
  context.add_output(dtype, context.dims(0));
  return {};
}

base::Status infer_bytes_to_values(InferContext &context) {
  TUTTI_ASSIGN(const BytesToValuesAttributes attributes, BytesToValuesAttributes::from(context.node()));
  if (!tensor::is_floating(attributes.dtype) && !tensor::is_integer(attributes.dtype)) {
    return context.attribute_error("dtype",
                                   base::concat("is ", tensor::name(attributes.dtype), ", expected a number dtype"));
  }
  context.add_output(attributes.dtype, with_parts(context, attributes.count));
  return {};
}

base::Status infer_lookup(InferContext &context) {
  TUTTI_ASSIGN(const LookupAttributes attributes, LookupAttributes::from(context.node()));
  if (context.has_input(1) == !attributes.path.empty()) {
    return context.attribute_error("path", "and the input 'vocabulary': expected exactly one of them");
  }
  if (context.has_input(1)) {
    TUTTI_TRY(context.require_rank(1, 1));
    const NodeId producer = context.input(1).producer;
    if (producer == kNoNode || context.graph().node(producer).op != "constant") {
      return context.input_error(1, "is not a constant");
    }
  }
  context.add_output(DType::i64, context.dims(0));
  return {};
}

}  // namespace tutti::impl::graph::ops
