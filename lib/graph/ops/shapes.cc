// SPDX-License-Identifier: Apache-2.0
//
// reshape, transpose, broadcast_to, concat: shape and gradient rules.
#include <algorithm>

#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Status infer_reshape(InferContext &context) {
  TUTTI_ASSIGN(ReshapeAttributes attributes, ReshapeAttributes::from(context.node()));
  const Dim count = element_count(context.dims(0));
  const auto open = std::find(attributes.dims.begin(), attributes.dims.end(), Dim(-1));
  if (std::count(attributes.dims.begin(), attributes.dims.end(), Dim(-1)) > 1) {
    return context.attribute_error("dims",
                                   base::concat("is ", to_string(attributes.dims), ", expected one −1 at most"));
  }
  if (open != attributes.dims.end()) {
    *open = 1;
    const Dim rest = element_count(attributes.dims);
    std::optional<Dim> missing = count.divide_exactly(rest);
    if (!missing) {
      *open = -1;
      return context.input_error(0, base::concat("cannot become ", to_string(attributes.dims), ": ", count,
                                                 " elements are not a multiple of ", rest));
    }
    *open = *std::move(missing);
  }
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  if (element_count(attributes.dims) != count) {
    return context.input_error(0, base::concat("cannot become ", to_string(attributes.dims), ": ", count,
                                               " elements, not ", element_count(attributes.dims)));
  }
  context.normalize("dims", attributes.dims);
  context.add_output(context.input(0).dtype, std::move(attributes.dims));
  return {};
}

base::Status gradient_reshape(GradientContext &context) {
  const Dims dims = context.dims(context.input(0));
  context.set(0, context.builder().reshape(context.output_gradient(0), dims));
  return {};
}

base::Status infer_transpose(InferContext &context) {
  TUTTI_ASSIGN(TransposeAttributes attributes, TransposeAttributes::from(context.node()));
  const size_t rank = context.rank(0);
  std::vector<int64_t> &permutation = attributes.permutation;
  if (permutation.empty()) {
    for (size_t i = rank; i > 0; --i)
      permutation.push_back(static_cast<int64_t>(i) - 1);
  }
  if (permutation.size() != rank) {
    return context.attribute_error("permutation", base::concat("is ", permutation, ", expected ", rank,
                                                               " axes for input ", to_string(context.dims(0))));
  }
  std::vector<bool> seen(rank, false);
  Dims dims;
  for (int64_t &axis : permutation) {
    TUTTI_ASSIGN(axis, context.normalize_axis("permutation", axis, rank));
    if (seen[static_cast<size_t>(axis)])
      return context.attribute_error("permutation", base::concat("names axis ", axis, " twice"));
    seen[static_cast<size_t>(axis)] = true;
    dims.push_back(context.dims(0)[static_cast<size_t>(axis)]);
  }
  context.normalize("permutation", permutation);
  context.add_output(context.input(0).dtype, std::move(dims));
  return {};
}

base::Status gradient_transpose(GradientContext &context) {
  TUTTI_ASSIGN(const TransposeAttributes attributes, TransposeAttributes::from(context.node()));
  std::vector<int64_t> inverse(attributes.permutation.size());
  for (size_t i = 0; i < inverse.size(); ++i)
    inverse[static_cast<size_t>(attributes.permutation[i])] = static_cast<int64_t>(i);
  context.set(0, context.builder().transpose(context.output_gradient(0), std::move(inverse)));
  return {};
}

base::Status infer_reverse_axes(InferContext &context) {
  TUTTI_ASSIGN(const ReverseAxesAttributes attributes, ReverseAxesAttributes::from(context.node()));
  std::vector<int64_t> axes;
  for (const int64_t given : attributes.axes) {
    TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axes", given, context.rank(0)));
    if (std::ranges::find(axes, axis) != axes.end())
      return context.attribute_error("axes", base::concat("names axis ", axis, " twice"));
    axes.push_back(axis);
  }
  context.normalize("axes", std::move(axes));
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

base::Status gradient_reverse_axes(GradientContext &context) {
  context.set(0, context.builder().op("reverse_axes", {context.output_gradient(0)}, context.node().attributes));
  return {};
}

base::Status infer_broadcast_to(InferContext &context) {
  TUTTI_ASSIGN(BroadcastToAttributes attributes, BroadcastToAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "dims", attributes.dims));
  const std::optional<Dims> dims = broadcast_dims(context.dims(0), attributes.dims);
  if (!dims || *dims != attributes.dims) {
    return context.input_error(
        0, base::concat("does not broadcast to ", to_string(attributes.dims), ": dimensions must be equal or 1"));
  }
  context.add_output(context.input(0).dtype, std::move(attributes.dims));
  return {};
}

base::Status gradient_broadcast_to(GradientContext &context) {
  const Dims dims = context.dims(context.input(0));
  context.set(0, context.builder().sum_to(context.output_gradient(0), dims));
  return {};
}

base::Status infer_concat(InferContext &context) {
  TUTTI_ASSIGN(const ConcatAttributes attributes, ConcatAttributes::from(context.node()));
  TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axis", attributes.axis, context.rank(0)));
  Dims dims = context.dims(0);
  Dim &joined = dims[static_cast<size_t>(axis)];
  for (size_t i = 1; i < context.input_count(); ++i) {
    const Dims &other = context.dims(i);
    bool fits = other.size() == dims.size();
    for (size_t k = 0; fits && k < dims.size(); ++k)
      fits = static_cast<int64_t>(k) == axis || dims[k] == other[k];
    if (!fits) return context.inputs_error(0, i, base::concat("must have equal shapes but for axis ", axis));
    joined = joined + other[static_cast<size_t>(axis)];
  }
  context.normalize("axis", axis);
  context.add_output(context.input(0).dtype, std::move(dims));
  return {};
}

base::Status gradient_concat(GradientContext &context) {
  TUTTI_ASSIGN(const ConcatAttributes attributes, ConcatAttributes::from(context.node()));
  GraphBuilder &b = context.builder();
  Dims begin(b.rank(context.output(0)), 0);
  for (size_t i = 0; i < context.node().inputs.size(); ++i) {
    const Dims size = b.dims(context.input(i));
    if (context.needs(i)) context.set(i, b.slice(context.output_gradient(0), begin, size));
    Dim &at = begin[static_cast<size_t>(attributes.axis)];
    at = at + size[static_cast<size_t>(attributes.axis)];
  }
  return {};
}

}  // namespace tutti::impl::graph::ops
