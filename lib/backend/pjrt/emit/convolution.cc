// SPDX-License-Identifier: Apache-2.0
//
// Two-dimensional convolution and its two gradients, all of them the operation convolution: the input's gradient is one
// of dy, spread by the stride, with the kernel turned round; the kernel's is one of x with dy, where rows of the batch
// are what is summed over. Images are [rows, height, width, channels] (b01f), kernels 01io.
#include <algorithm>

#include "backend/image_window.h"
#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;

namespace {

template <typename Attributes>
ImageWindow window_of(const Attributes &attributes, const Dims &x, const Dims &kernel, const Dims &y) {
  return ImageWindow::make(x, y, {kernel[0], kernel[1]}, attributes.stride, attributes.dilation,
                           static_cast<WindowPadding>(attributes.padding), attributes.pads);
}

/// Elements that a window covers, gaps included.
int64_t reach(const WindowAxis &axis) { return (axis.window - 1) * axis.dilation + 1; }
/// Elements of dy with stride − 1 zeros between them.
int64_t spread_size(const WindowAxis &axis) { return (axis.output - 1) * axis.stride + 1; }

/// [h, w, channels of a group, groups · filters] as [h, w, filters of a group, groups · channels].
Value swap_channels(ProgramText &text, const Value &kernel, int64_t groups) {
  const Dims &d = kernel.dims;
  const int64_t filters = d[3] / groups;
  const Value parts = text.reshape(kernel, {d[0], d[1], d[2], groups, filters});
  return text.reshape(text.transpose(parts, {0, 1, 4, 3, 2}), {d[0], d[1], filters, groups * d[2]});
}

}  // namespace

Status emit_conv2d(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0), kernel = node.wide_input(1);
  const Dims &dims = node.output(0).dims;
  const ImageWindow window = window_of(attributes, x.dims, kernel.dims, dims);
  ConvolutionText how{.input = "b01f", .kernel = "01io", .output = "b01f"};
  how.stride = attributes.stride;
  how.kernel_dilation = attributes.dilation;
  how.feature_groups = attributes.groups;
  const WindowAxis axes[] = {window.y, window.x};
  for (size_t i = 0; i < 2; ++i) {
    how.low[i] = axes[i].pad_before;
    how.high[i] = spread_size(axes[i]) - 1 + reach(axes[i]) - axes[i].input - axes[i].pad_before;
  }
  Value y = is_empty(dims) ? text.splat(x.dtype, dims, 0) : text.convolution(x, kernel, how, dims);
  if (node.has_input(2)) y = text.add(y, text.broadcast_to(node.wide_input(2), dims));
  node.set_output(0, y);
  return Status();
}

Status emit_conv2d_input_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0), kernel = node.wide_input(1);
  const Dims &dims = node.output(0).dims;
  const ImageWindow window = window_of(attributes, dims, kernel.dims, dy.dims);
  if (is_empty(dy.dims) || is_empty(dims)) {
    node.set_output(0, text.splat(dy.dtype, dims, 0));
    return Status();
  }
  ConvolutionText how{.input = "b01f", .kernel = "01io", .output = "b01f"};
  how.input_dilation = attributes.stride;
  how.kernel_dilation = attributes.dilation;
  how.feature_groups = attributes.groups;
  const WindowAxis axes[] = {window.y, window.x};
  for (size_t i = 0; i < 2; ++i) {
    how.low[i] = reach(axes[i]) - 1 - axes[i].pad_before;
    how.high[i] = axes[i].input - spread_size(axes[i]) - how.low[i] + reach(axes[i]) - 1;
  }
  const Value turned = swap_channels(text, text.reverse(kernel, {0, 1}), attributes.groups);
  node.set_output(0, text.convolution(dy, turned, how, dims));
  return Status();
}

Status emit_conv2d_kernel_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0), dy = node.wide_input(1);
  const Dims &dims = node.output(0).dims;
  const ImageWindow window = window_of(attributes, x.dims, dims, dy.dims);
  if (is_empty(dy.dims) || is_empty(x.dims)) {
    node.set_output(0, text.splat(dy.dtype, dims, 0));
    return Status();
  }
  ConvolutionText how{.input = "f01b", .kernel = "i01o", .output = "01bf"};
  how.stride = attributes.dilation;
  how.kernel_dilation = attributes.stride;
  how.batch_groups = attributes.groups;
  const WindowAxis axes[] = {window.y, window.x};
  for (size_t i = 0; i < 2; ++i) {
    how.low[i] = axes[i].pad_before;
    how.high[i] = reach(axes[i]) - 1 + spread_size(axes[i]) - axes[i].input - axes[i].pad_before;
  }
  node.set_output(0, text.convolution(x, dy, how, dims));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
