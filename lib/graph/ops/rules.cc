// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/rules.h"

#include <algorithm>

namespace tutti::impl::graph::ops {

std::optional<Dims> broadcast_dims(const Dims &a, const Dims &b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.size() < rank ? Dim(1) : a[i + a.size() - rank];
    const Dim y = i + b.size() < rank ? Dim(1) : b[i + b.size() - rank];
    if (!(x == y || x == 1 || y == 1)) return {};
    result[i] = x == 1 ? y : x;
  }
  return result;
}

Dims without_axes(const Dims &dims, const std::vector<int64_t> &axes, bool keep) {
  Dims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool removed = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) != 0;
    if (!removed) result.push_back(dims[i]);
    if (removed && keep) result.push_back(1);
  }
  return result;
}

tensor::DType statistics_dtype(tensor::DType dtype) {
  return dtype == tensor::DType::f16 || dtype == tensor::DType::bf16 ? tensor::DType::f32 : dtype;
}

base::Status require_same_dims(const InferContext &context, size_t x, size_t y) {
  if (context.dims(x) == context.dims(y)) return {};
  return context.inputs_error(x, y, "must have equal shapes");
}

base::Status require_vector(const InferContext &context, size_t index, const Dim &length) {
  if (context.dims(index) == Dims{length}) return {};
  return context.input_error(index, base::concat("has a wrong shape, expected [", length, "]"));
}

base::Status require_scalar(const InferContext &context, size_t index) {
  return context.rank(index) == 0 ? base::Status() : context.input_error(index, "is not a scalar");
}

base::Status require_shape(const InferContext &context, std::string_view attribute, const Dims &dims) {
  for (const Dim &dim : dims) {
    if (dim.is_representable() && !(dim.is_constant() && dim.constant() < 0)) continue;
    return context.attribute_error(attribute,
                                   base::concat("is ", to_string(dims), ", expected dimensions of at least 0"));
  }
  return {};
}

Dim data_dependent_dim(const InferContext &context, std::string_view what) {
  const Node &node = context.node();
  const Dim plain = Dim::symbol(base::concat(node.scope_name.empty() ? node.op : node.scope_name, ".", what));
  if (plain.is_representable()) return plain;
  // A name that is no symbol; the stable id stands in.
  return Dim::symbol(base::concat(node.op, "_", node.stable_id, ".", what));
}

ValueId constant_like(GraphBuilder &builder, double value, ValueId like) {
  return builder.constant(value, builder.dtype(like));
}

ValueId expand_reduced(GraphBuilder &builder, ValueId reduced, ValueId x, const std::vector<int64_t> &axes) {
  const Dims shape = without_axes(builder.dims(x), axes, true);
  return builder.reshape(reduced, shape);
}

}  // namespace tutti::impl::graph::ops
