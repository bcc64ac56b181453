// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/library_convolution.h"

#include "base/text.h"

namespace tutti::impl::backend::gpu {

int64_t padding_behind(int64_t input, int64_t output, int64_t window, int64_t stride, int64_t dilation,
                       int64_t pad_before) {
  const int64_t reach = (window - 1) * dilation + 1;
  const int64_t covered = (output - 1) * stride + reach;
  const int64_t least = std::max<int64_t>(covered - input - pad_before, 0);
  const bool is_even_enough = (input + 2 * pad_before - reach) / stride + 1 == output && pad_before >= least;
  return is_even_enough ? pad_before : least;
}

ConvolutionShape evenly_padded(const ConvolutionShape &shape) {
  ConvolutionShape even = shape;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t before = shape.pad_before[axis], after = shape.pad_after[axis];
    const int64_t pad = std::min(before, after);
    even.x[1 + axis] += before + after - 2 * pad;
    even.pad_before[axis] = even.pad_after[axis] = pad;
  }
  return even;
}

bool is_empty(const ConvolutionShape &shape) {
  for (const auto *dims : {&shape.x, &shape.kernel, &shape.y}) {
    for (const int64_t dim : *dims) {
      if (dim == 0) return true;
    }
  }
  return false;
}

bool is_product(const ConvolutionShape &shape) {
  const std::array<int64_t, 2> ones = {1, 1}, zeros = {0, 0};
  return shape.kernel[0] == 1 && shape.kernel[1] == 1 && shape.kernel[2] == shape.x[3] && shape.stride == ones &&
         shape.pad_before == zeros && shape.pad_after == zeros && shape.x[1] == shape.y[1] && shape.x[2] == shape.y[2];
}

ProductShape product_of(const ConvolutionShape &shape, ConvolutionPass pass) {
  const int64_t pixels = shape.x[0] * shape.x[1] * shape.x[2], channels = shape.x[3], filters = shape.filters();
  ProductShape product;
  product.dtype = shape.dtype;
  if (pass == ConvolutionPass::forward) {  // y[pixels, filters] = x[pixels, channels] kernel[channels, filters]
    product.m = pixels;
    product.n = filters;
    product.k = channels;
  } else if (pass == ConvolutionPass::input_gradient) {  // dx[pixels, channels] = dy[pixels, filters] kernel'
    product.m = pixels;
    product.n = channels;
    product.k = filters;
    product.transpose_b = true;
  } else {  // dkernel[channels, filters] = x' dy
    product.m = channels;
    product.n = filters;
    product.k = pixels;
    product.transpose_a = true;
  }
  return product;
}

std::string describe_convolution(const ConvolutionShape &shape, ConvolutionPass pass) {
  static constexpr const char *kPasses[] = {"forward", "input gradient", "kernel gradient"};
  return base::concat(kPasses[static_cast<size_t>(pass)], " ", name(shape.dtype), " x ", base::join(shape.x, "x"),
                      " kernel ", base::join(shape.kernel, "x"), " y ", base::join(shape.y, "x"), " stride ",
                      base::join(shape.stride, "x"), " dilation ", base::join(shape.dilation, "x"), " pads ",
                      base::join(shape.pad_before, "x"), "+", base::join(shape.pad_after, "x"));
}

}  // namespace tutti::impl::backend::gpu
