// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "nn/expansion.h"

namespace tutti::impl::nn {
namespace {

struct Convolution {
  int64_t filters = 1;
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t groups = 1;
  std::string padding = "same";
  std::string_view kernel_name = "kernel";
  bool use_bias = true;
  std::string_view bias_initializer = "zeros";
};

ValueId convolve(Expansion &e, ValueId x, const Convolution &c) {
  const int64_t channels = e.last_dimension(x);
  if (channels == 0) return kNoValue;
  if (channels % c.groups != 0 || c.filters % c.groups != 0) {
    return e.fail(
        base::concat(channels, " channels and ", c.filters, " filters cannot be divided into ", c.groups, " groups"));
  }
  const ValueId kernel = e.kernel(c.kernel_name, x, {c.size, c.size, channels / c.groups, c.filters});
  const ValueId bias = c.use_bias ? e.weight("bias", x, {c.filters}, c.bias_initializer) : kNoValue;
  return e.builder().op("conv2d", {x, kernel, bias},
                        {{"stride", std::vector<int64_t>{c.stride, c.stride}},
                         {"dilation", std::vector<int64_t>{c.dilation, c.dilation}},
                         {"padding", c.padding},
                         {"groups", c.groups}});
}

}  // namespace

ValueId expand_layer_conv2d(Expansion &e) {
  const LayerScope scope(e.builder(), "conv2d");
  return e.activate(convolve(e, e.input(0),
                             {.filters = e.i64("filters"),
                              .size = e.i64("size"),
                              .stride = e.i64("stride"),
                              .dilation = e.i64("dilation"),
                              .groups = e.i64("groups"),
                              .padding = e.text("padding"),
                              .use_bias = e.flag("use_bias"),
                              .bias_initializer = e.text("bias_initializer")}));
}

ValueId expand_layer_depthwise_conv2d(Expansion &e) {
  const LayerScope scope(e.builder(), "depthwise_conv2d");
  const int64_t channels = e.last_dimension(e.input(0));
  return e.activate(convolve(e, e.input(0),
                             {.filters = channels * e.i64("multiplier"),
                              .size = e.i64("size"),
                              .stride = e.i64("stride"),
                              .groups = channels,
                              .padding = e.text("padding"),
                              .use_bias = e.flag("use_bias")}));
}

ValueId expand_layer_separable_conv2d(Expansion &e) {
  const LayerScope scope(e.builder(), "separable_conv2d");
  const int64_t channels = e.last_dimension(e.input(0));
  const ValueId depthwise = convolve(e, e.input(0),
                                     {.filters = channels * e.i64("multiplier"),
                                      .size = e.i64("size"),
                                      .stride = e.i64("stride"),
                                      .groups = channels,
                                      .padding = e.text("padding"),
                                      .kernel_name = "depthwise_kernel",
                                      .use_bias = false});
  return e.activate(convolve(
      e, depthwise, {.filters = e.i64("filters"), .kernel_name = "pointwise_kernel", .use_bias = e.flag("use_bias")}));
}

}  // namespace tutti::impl::nn
