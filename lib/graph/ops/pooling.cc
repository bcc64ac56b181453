// SPDX-License-Identifier: Apache-2.0
//
// max_pool2d, avg_pool2d and their gradients: shape and gradient rules.
#include "graph/ops/rules.h"
#include "graph/ops/window.h"

namespace tutti::impl::graph::ops {
namespace {

// The shape of y for x [n, h, w, c], or why there is none.
template <typename A>
base::Result<Dims> pooled(const InferContext &context, const A &attributes, const Dims &x) {
  if (x.size() != 4)
    return context.error(base::concat("an image ", to_string(x), " has rank ", x.size(), ", expected 4"));
  if (!attributes.stride.empty() && attributes.stride.size() != 2) {
    return context.attribute_error("stride", base::concat("has ", attributes.stride.size(), " elements, expected 2"));
  }
  const Window2d window = Window2d::from(attributes, attributes.window[0], attributes.window[1]);
  for (const WindowAxis &axis : {window.vertical, window.horizontal}) {
    if (axis.before >= axis.window || axis.after >= axis.window) {
      return context.attribute_error(
          "pads", base::concat("is ", attributes.pads, ", expected less than the window ", attributes.window));
    }
  }
  const Dims y{x[0], window.vertical.output(x[1]), window.horizontal.output(x[2]), x[3]};
  for (size_t axis : {size_t{1}, size_t{2}}) {
    if (!y[axis].is_representable() || (y[axis].is_constant() && y[axis].constant() < 0) ||
        (y[axis] == 0 && !(x[axis] == 0 && attributes.padding == A::Padding::same))) {
      return context.error(
          base::concat("the window ", attributes.window, " is larger than the padded image ", to_string(x)));
    }
  }
  return y;
}

// Makes the default stride explicit.
template <typename A>
void normalize_stride(InferContext &context, const A &attributes) {
  if (attributes.stride.empty()) context.normalize("stride", attributes.window);
}

}  // namespace

base::Status infer_max_pool2d(InferContext &context) {
  TUTTI_ASSIGN(const MaxPool2dAttributes attributes, MaxPool2dAttributes::from(context.node()));
  TUTTI_ASSIGN(Dims y, pooled(context, attributes, context.dims(0)));
  normalize_stride(context, attributes);
  context.add_output(context.input(0).dtype, std::move(y));
  return {};
}

base::Status gradient_max_pool2d(GradientContext &context) {
  const Attributes attributes = context.node().attributes;
  context.set(0, context.builder().op("max_pool2d_gradient",
                                      {context.output_gradient(0), context.input(0), context.output(0)}, attributes));
  return {};
}

base::Status infer_max_pool2d_gradient(InferContext &context) {
  TUTTI_ASSIGN(const MaxPool2dGradientAttributes attributes, MaxPool2dGradientAttributes::from(context.node()));
  TUTTI_ASSIGN(const Dims y, pooled(context, attributes, context.dims(1)));
  TUTTI_TRY(require_same_dims(context, 0, 2));
  if (context.dims(0) != y) return context.input_error(0, base::concat("has a wrong shape, expected ", to_string(y)));
  normalize_stride(context, attributes);
  context.add_output(context.input(1).dtype, context.dims(1));
  return {};
}

base::Status infer_avg_pool2d(InferContext &context) {
  TUTTI_ASSIGN(const AvgPool2dAttributes attributes, AvgPool2dAttributes::from(context.node()));
  TUTTI_ASSIGN(Dims y, pooled(context, attributes, context.dims(0)));
  normalize_stride(context, attributes);
  context.add_output(context.input(0).dtype, std::move(y));
  return {};
}

base::Status gradient_avg_pool2d(GradientContext &context) {
  Attributes attributes = context.node().attributes;
  attributes["input_dims"] = context.dims(context.input(0));
  context.set(0, context.builder().op("avg_pool2d_gradient", {context.output_gradient(0)}, std::move(attributes)));
  return {};
}

base::Status infer_avg_pool2d_gradient(InferContext &context) {
  TUTTI_ASSIGN(AvgPool2dGradientAttributes attributes, AvgPool2dGradientAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "input_dims", attributes.input_dims));
  TUTTI_ASSIGN(const Dims y, pooled(context, attributes, attributes.input_dims));
  if (context.dims(0) != y) return context.input_error(0, base::concat("has a wrong shape, expected ", to_string(y)));
  normalize_stride(context, attributes);
  context.add_output(context.input(0).dtype, std::move(attributes.input_dims));
  return {};
}

base::Status gradient_avg_pool2d_gradient(GradientContext &context) {
  Attributes attributes = context.node().attributes;
  attributes.erase("input_dims");
  context.set(0, context.builder().op("avg_pool2d", {context.output_gradient(0)}, std::move(attributes)));
  return {};
}

}  // namespace tutti::impl::graph::ops
