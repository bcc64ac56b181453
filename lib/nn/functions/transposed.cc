// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolutions: what the gradient of a convolution does for its input.
#include "graph/ops/op_attributes.h"
#include "nn/functions/sequences.h"

namespace tutti::impl::nn {
namespace {

using Transposed = graph::ops::Conv2dInputGradientAttributes;

/// The size along an axis whose convolution has `size` elements.
Dim transposed_size(const Transposed &c, const Dim &size, const Dim &window, size_t axis, int64_t extra) {
  if (c.padding == Transposed::Padding::same) return size * Dim(c.stride[axis]);
  const Dim whole = (size - 1) * Dim(c.stride[axis]) + (window - 1) * Dim(c.dilation[axis]) + 1 + Dim(extra);
  return c.padding == Transposed::Padding::valid ? whole : whole - Dim(c.pads[2 * axis] + c.pads[2 * axis + 1]);
}

Transposed::Padding padding_of(const Expansion &e) {
  const std::string &padding = e.text("padding");
  return padding == "same"    ? Transposed::Padding::same
         : padding == "valid" ? Transposed::Padding::valid
                              : Transposed::Padding::explicit_;
}

/// Of images x and a kernel [height, width, filters / groups, channels].
ValueId convolve_transposed(Expansion &e, ValueId x, ValueId kernel, Transposed c, const std::vector<int64_t> &extra) {
  GraphBuilder &b = e.builder();
  if (!b.ok()) return kNoValue;
  const Dims dims = b.dims(x), window = b.dims(kernel);
  for (size_t axis = 0; axis < 2; ++axis) {
    if (extra[axis] == 0) continue;
    if (c.padding == Transposed::Padding::same) return e.fail("with same padding there is nothing extra");
    if (extra[axis] >= c.stride[axis])
      return e.fail(base::concat("expected less extra than the stride ", c.stride[axis], ", got ", extra[axis]));
  }
  c.groups = e.i64("groups");
  c.input_dims = {dims[0], transposed_size(c, dims[1], window[0], 0, extra[0]),
                  transposed_size(c, dims[2], window[1], 1, extra[1]), window[2] * Dim(c.groups)};
  const ValueId y = b.op("conv2d_input_gradient", {x, kernel}, c.to_attributes());
  return e.has_input(2) ? b.add(y, e.input(2)) : y;
}

}  // namespace

ValueId expand_function_conv2d_transpose(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0), kernel = e.input(1);
  if (b.rank(x) != 4 || b.rank(kernel) != 4) {
    return e.fail(base::concat("expected images and a kernel [height, width, filters / groups, channels], got ",
                               graph::to_string(b.dims(x)), " and ", graph::to_string(b.dims(kernel))));
  }
  Transposed c;
  c.stride = e.ints("stride"), c.dilation = e.ints("dilation"), c.pads = e.ints("pads"), c.padding = padding_of(e);
  return convolve_transposed(e, x, kernel, c, e.ints("extra"));
}

ValueId expand_function_conv1d_transpose(Expansion &e) {
  const ValueId x = as_image(e, e.input(0));
  const ValueId kernel = x == kNoValue ? kNoValue : as_flat_kernel(e, e.input(1), "[size, filters / groups, channels]");
  if (kernel == kNoValue) return kNoValue;
  Transposed c;
  c.stride = {1, e.i64("stride")}, c.dilation = {1, e.i64("dilation")}, c.padding = padding_of(e);
  c.pads = {0, 0, e.ints("pads")[0], e.ints("pads")[1]};
  return as_sequence(e.builder(), convolve_transposed(e, x, kernel, c, {0, e.i64("extra")}));
}

}  // namespace tutti::impl::nn
