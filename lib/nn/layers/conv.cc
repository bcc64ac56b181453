// SPDX-License-Identifier: Apache-2.0
//
// Convolutions along 1 to 3 axes, and their transposes.
#include <string>
#include <utility>

#include "base/text.h"
#include "nn/layers/windows.h"

namespace tutti::impl::nn {
namespace {

using Numbers = std::vector<int64_t>;

struct Convolution {
  Numbers size, stride, dilation;  ///< along each axis
  std::string padding = "same";
  Numbers pads;  ///< for explicit: before and behind, axis by axis
  int64_t filters = 1, groups = 1;
  std::string_view kernel_name = "kernel";
  bool use_bias = true;

  size_t axes() const { return size.size(); }
  graph::Attributes attributes() const {
    graph::Attributes made{
        {"stride", for_axes(stride)}, {"dilation", for_axes(dilation)}, {"padding", padding}, {"groups", groups}};
    if (padding == "explicit") made["pads"] = pads;
    return made;
  }
};

/// As the attributes of a layer say.
Convolution convolution_of(const Expansion &e, size_t axes, int64_t filters, int64_t groups) {
  Convolution c;
  c.size = along_axes(e, "size", "sizes", axes);
  c.stride = along_axes(e, "stride", "strides", axes);
  c.dilation = along_axes(e, "dilation", "dilations", axes);
  c.padding = e.text("padding");
  c.pads = e.ints("pads");
  c.filters = filters, c.groups = groups;
  c.use_bias = e.flag("use_bias");
  if (c.padding != "causal") return c;
  c.padding = "explicit";
  c.pads = {(c.size[0] - 1) * c.dilation[0], 0};
  return c;
}

/// Channels of x that can be divided into the groups, or 0 and an error.
int64_t channels_of(Expansion &e, ValueId x, const Convolution &c) {
  if (!has_axes(e, x, c.axes())) return 0;
  const int64_t channels = e.last_dimension(x);
  if (channels == 0 || (channels % c.groups == 0 && c.filters % c.groups == 0)) return channels;
  e.fail(base::concat(channels, " channels and ", c.filters, " filters cannot be divided into ", c.groups, " groups"));
  return 0;
}

/// [size..., last but one, last]
Numbers kernel_dims(const Convolution &c, int64_t before, int64_t last) {
  Numbers dims = c.size;
  dims.push_back(before), dims.push_back(last);
  return dims;
}

ValueId bias_of(Expansion &e, ValueId x, const Convolution &c) {
  return c.use_bias ? e.weight("bias", x, {c.filters}, e.text("bias_initializer")) : kNoValue;
}

ValueId convolve(Expansion &e, ValueId x, const Convolution &c) {
  const int64_t channels = channels_of(e, x, c);
  if (channels == 0) return kNoValue;
  const ValueId kernel = e.kernel(c.kernel_name, x, kernel_dims(c, channels / c.groups, c.filters));
  return on_axes(e, "conv", c.axes(), {x, kernel, bias_of(e, x, c)}, c.attributes());
}

ValueId expand_convolution(Expansion &e, std::string_view name, size_t axes) {
  const LayerScope scope(e.builder(), name);
  return e.activate(convolve(e, e.input(0), convolution_of(e, axes, e.i64("filters"), e.i64("groups"))));
}

ValueId expand_transposed(Expansion &e, std::string_view name, size_t axes) {
  const LayerScope scope(e.builder(), name);
  const ValueId x = e.input(0);
  const Convolution c = convolution_of(e, axes, e.i64("filters"), e.i64("groups"));
  const int64_t channels = channels_of(e, x, c);
  if (channels == 0) return kNoValue;
  const ValueId kernel = e.kernel("kernel", x, kernel_dims(c, c.filters / c.groups, channels));
  graph::Attributes attributes = c.attributes();
  if (axes == 1) attributes["extra"] = e.i64("extra");
  if (axes > 1) attributes["extra"] = e.ints("extra");
  // The name of the layer is that of the function.
  return e.activate(
      expand(e.builder(), name, 1, {x, kernel, bias_of(e, x, c)}, std::move(attributes), {.training = e.training()}));
}

/// Each channel by itself.
Convolution depthwise_of(const Expansion &e, size_t axes, int64_t channels) {
  return convolution_of(e, axes, channels * e.i64("multiplier"), channels);
}

ValueId expand_depthwise(Expansion &e, std::string_view name, size_t axes) {
  const LayerScope scope(e.builder(), name);
  const ValueId x = e.input(0);
  const int64_t channels = has_axes(e, x, axes) ? e.last_dimension(x) : 0;
  return channels == 0 ? kNoValue : e.activate(convolve(e, x, depthwise_of(e, axes, channels)));
}

ValueId expand_separable(Expansion &e, std::string_view name, size_t axes) {
  const LayerScope scope(e.builder(), name);
  const ValueId x = e.input(0);
  const int64_t channels = has_axes(e, x, axes) ? e.last_dimension(x) : 0;
  if (channels == 0) return kNoValue;
  Convolution depthwise = depthwise_of(e, axes, channels);
  depthwise.kernel_name = "depthwise_kernel";
  depthwise.use_bias = false;
  Convolution pointwise;
  pointwise.size = pointwise.stride = pointwise.dilation = Numbers(axes, 1);
  pointwise.filters = e.i64("filters");
  pointwise.kernel_name = "pointwise_kernel";
  pointwise.use_bias = e.flag("use_bias");
  return e.activate(convolve(e, convolve(e, x, depthwise), pointwise));
}

}  // namespace

ValueId expand_layer_conv1d(Expansion &e) { return expand_convolution(e, "conv1d", 1); }

ValueId expand_layer_conv2d(Expansion &e) { return expand_convolution(e, "conv2d", 2); }

ValueId expand_layer_conv3d(Expansion &e) { return expand_convolution(e, "conv3d", 3); }

ValueId expand_layer_conv1d_transpose(Expansion &e) { return expand_transposed(e, "conv1d_transpose", 1); }

ValueId expand_layer_conv2d_transpose(Expansion &e) { return expand_transposed(e, "conv2d_transpose", 2); }

ValueId expand_layer_conv3d_transpose(Expansion &e) { return expand_transposed(e, "conv3d_transpose", 3); }

ValueId expand_layer_depthwise_conv1d(Expansion &e) { return expand_depthwise(e, "depthwise_conv1d", 1); }

ValueId expand_layer_depthwise_conv2d(Expansion &e) { return expand_depthwise(e, "depthwise_conv2d", 2); }

ValueId expand_layer_separable_conv1d(Expansion &e) { return expand_separable(e, "separable_conv1d", 1); }

ValueId expand_layer_separable_conv2d(Expansion &e) { return expand_separable(e, "separable_conv2d", 2); }

}  // namespace tutti::impl::nn
