// SPDX-License-Identifier: Apache-2.0
//
// Small pieces that several shape and gradient rules share.
#ifndef TUTTI_GRAPH_OPS_RULES_H_
#define TUTTI_GRAPH_OPS_RULES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "graph/builder.h"
#include "graph/op_registry.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::graph::ops {

/// The shape two shapes broadcast to, or nothing.
std::optional<Dims> broadcast_dims(const Dims &a, const Dims &b);
/// `dims` with the given axes (non-negative) removed, or set to 1.
Dims without_axes(const Dims &dims, const std::vector<int64_t> &axes, bool keep);
/// Dtype that statistics of a normalisation have: f32 for 16-bit floats, else the dtype itself.
tensor::DType statistics_dtype(tensor::DType dtype);

/// x has the dims of y, else an error about both.
base::Status require_same_dims(const InferContext &context, size_t x, size_t y);
/// Input is a vector of `length`.
base::Status require_vector(const InferContext &context, size_t index, const Dim &length);
/// Input is a scalar.
base::Status require_scalar(const InferContext &context, size_t index);
/// Each dimension is representable and no negative constant.
base::Status require_shape(const InferContext &context, std::string_view attribute, const Dims &dims);

/// A dimension that only data tells: a symbol of the node's own, "<name of the node>.<what>".
Dim data_dependent_dim(const InferContext &context, std::string_view what);

/// A scalar constant of the dtype of `like`.
ValueId constant_like(GraphBuilder &builder, double value, ValueId like);
/// 1 along `axes` and otherwise the dims of x: where a reduction's result is put to broadcast against x.
ValueId expand_reduced(GraphBuilder &builder, ValueId reduced, ValueId x, const std::vector<int64_t> &axes);

/// May x [..., k] be taken for the rows of one matrix? Only where the batch, if there is one, is the slowest axis, so
/// that rows stay together.
bool can_flatten(const Dims &dims);
/// x [..., k] as [... · 1, k].
ValueId flatten(GraphBuilder &builder, ValueId x);

}  // namespace tutti::impl::graph::ops

#endif  // TUTTI_GRAPH_OPS_RULES_H_
