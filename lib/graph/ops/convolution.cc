// SPDX-License-Identifier: Apache-2.0
//
// conv2d and its two gradients: shape and gradient rules. The three share one geometry: x, kernel and y of one
// convolution.
#include "graph/ops/rules.h"
#include "graph/ops/window.h"

namespace tutti::impl::graph::ops {
namespace {

// The shape of y for x [n, h, w, c] and kernel [kh, kw, c / groups, filters], or why there is none.
template <typename A>
base::Result<Dims> convolved(const InferContext &context, const A &attributes, const Dims &x, const Dims &kernel) {
  const std::string both = base::concat("an image ", to_string(x), " and a kernel ", to_string(kernel));
  if (x.size() != 4 || kernel.size() != 4) return context.error(base::concat(both, " must both have rank 4"));
  if (!kernel[0].is_constant() || !kernel[1].is_constant() || kernel[0].constant() < 1 || kernel[1].constant() < 1) {
    return context.error(
        base::concat("a kernel ", to_string(kernel), " must have a constant height and width of at least 1"));
  }
  const int64_t groups = attributes.groups;
  if (x[3] != kernel[2] * groups) {
    return context.error(base::concat(both, " do not fit: ", x[3], " channels, expected ", kernel[2] * groups, " (",
                                      groups, " groups)"));
  }
  if (!kernel[3].divide_exactly(groups)) {
    return context.error(base::concat(both, ": ", kernel[3], " filters are not a multiple of ", groups, " groups"));
  }
  const Window2d window = Window2d::from(attributes, kernel[0].constant(), kernel[1].constant());
  const Dims y{x[0], window.vertical.output(x[1]), window.horizontal.output(x[2]), kernel[3]};
  for (size_t axis : {size_t{1}, size_t{2}}) {
    if (!y[axis].is_representable() || (y[axis].is_constant() && y[axis].constant() < 0) ||
        (y[axis] == 0 && !(x[axis] == 0 && attributes.padding == A::Padding::same))) {
      return context.error(base::concat(both, ": the kernel is larger than the padded image"));
    }
  }
  return y;
}

template <typename To, typename From>
To same_window(const From &from) {
  To to;
  to.stride = from.stride;
  to.dilation = from.dilation;
  to.padding = static_cast<typename To::Padding>(from.padding);
  to.pads = from.pads;
  to.groups = from.groups;
  return to;
}

template <typename From>
ValueId input_gradient(GraphBuilder &b, const From &from, ValueId dy, ValueId kernel, const Dims &input_dims) {
  auto attributes = same_window<Conv2dInputGradientAttributes>(from);
  attributes.input_dims = input_dims;
  return b.op("conv2d_input_gradient", {dy, kernel}, attributes.to_attributes());
}

template <typename From>
ValueId kernel_gradient(GraphBuilder &b, const From &from, ValueId x, ValueId dy, const Dims &kernel_dims) {
  auto attributes = same_window<Conv2dKernelGradientAttributes>(from);
  attributes.kernel_dims = kernel_dims;
  return b.op("conv2d_kernel_gradient", {x, dy}, attributes.to_attributes());
}

template <typename From>
ValueId convolution(GraphBuilder &b, const From &from, ValueId x, ValueId kernel) {
  return b.op("conv2d", {x, kernel}, same_window<Conv2dAttributes>(from).to_attributes());
}

}  // namespace

base::Status infer_conv2d(InferContext &context) {
  TUTTI_ASSIGN(const Conv2dAttributes attributes, Conv2dAttributes::from(context.node()));
  TUTTI_TRY(context.require_rank(0, 4));
  TUTTI_TRY(context.require_rank(1, 4));
  TUTTI_ASSIGN(Dims y, convolved(context, attributes, context.dims(0), context.dims(1)));
  if (context.has_input(2)) TUTTI_TRY(require_vector(context, 2, context.dims(1)[3]));
  context.add_output(context.input(0).dtype, std::move(y));
  return {};
}

base::Status gradient_conv2d(GradientContext &context) {
  TUTTI_ASSIGN(const Conv2dAttributes attributes, Conv2dAttributes::from(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId x = context.input(0), kernel = context.input(1), dy = context.output_gradient(0);
  const Dims x_dims = b.dims(x), kernel_dims = b.dims(kernel);
  if (context.needs(0)) context.set(0, input_gradient(b, attributes, dy, kernel, x_dims));
  if (context.needs(1)) context.set(1, kernel_gradient(b, attributes, x, dy, kernel_dims));
  if (context.node().inputs.size() > 2 && context.needs(2)) context.set(2, b.reduce_sum(dy, {0, 1, 2}));
  return {};
}

base::Status infer_conv2d_input_gradient(InferContext &context) {
  TUTTI_ASSIGN(Conv2dInputGradientAttributes attributes, Conv2dInputGradientAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "input_dims", attributes.input_dims));
  TUTTI_ASSIGN(const Dims y, convolved(context, attributes, attributes.input_dims, context.dims(1)));
  if (context.dims(0) != y) return context.input_error(0, base::concat("has a wrong shape, expected ", to_string(y)));
  context.add_output(context.input(0).dtype, std::move(attributes.input_dims));
  return {};
}

base::Status gradient_conv2d_input_gradient(GradientContext &context) {
  TUTTI_ASSIGN(const Conv2dInputGradientAttributes attributes, Conv2dInputGradientAttributes::from(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId dy = context.input(0), kernel = context.input(1), g = context.output_gradient(0);
  const Dims kernel_dims = b.dims(kernel);
  if (context.needs(0)) context.set(0, convolution(b, attributes, g, kernel));
  if (context.needs(1)) context.set(1, kernel_gradient(b, attributes, g, dy, kernel_dims));
  return {};
}

base::Status infer_conv2d_kernel_gradient(InferContext &context) {
  TUTTI_ASSIGN(Conv2dKernelGradientAttributes attributes, Conv2dKernelGradientAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "kernel_dims", attributes.kernel_dims));
  TUTTI_ASSIGN(const Dims y, convolved(context, attributes, context.dims(0), attributes.kernel_dims));
  if (context.dims(1) != y) return context.input_error(1, base::concat("has a wrong shape, expected ", to_string(y)));
  context.add_output(context.input(0).dtype, std::move(attributes.kernel_dims));
  return {};
}

base::Status gradient_conv2d_kernel_gradient(GradientContext &context) {
  TUTTI_ASSIGN(const Conv2dKernelGradientAttributes attributes, Conv2dKernelGradientAttributes::from(context.node()));
  GraphBuilder &b = context.builder();
  const ValueId x = context.input(0), dy = context.input(1), g = context.output_gradient(0);
  const Dims x_dims = b.dims(x);
  if (context.needs(0)) context.set(0, input_gradient(b, attributes, dy, g, x_dims));
  if (context.needs(1)) context.set(1, convolution(b, attributes, x, g));
  return {};
}

}  // namespace tutti::impl::graph::ops
