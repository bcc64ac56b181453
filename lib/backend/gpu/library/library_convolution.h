// SPDX-License-Identifier: Apache-2.0
//
// What a library (cuDNN, MIOpen) is asked for by a convolution of images NHWC: its sizes, as numbers. A convolution of
// one pixel is a product of matrices.
//
// tutti's kernels are [height, width, channels / groups, filters]. Libraries want [filters, height, width, channels /
// groups] for images NHWC, which is the transposed matrix (library_convolution_steps.h).
#ifndef TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_CONVOLUTION_H_
#define TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_CONVOLUTION_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "backend/gpu/library/library_product.h"
#include "backend/lowered_graph.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

enum class ConvolutionPass { forward, input_gradient, kernel_gradient };

/// y = x * kernel; all three passes are described by the same tensors.
struct ConvolutionShape {
  tensor::DType dtype = tensor::DType::f32;
  std::array<int64_t, 4> x{}, y{};  ///< images, height, width, channels
  std::array<int64_t, 4> kernel{};  ///< height, width, channels / groups, filters
  std::array<int64_t, 2> stride{1, 1}, dilation{1, 1}, pad_before{}, pad_after{};  ///< by height and width

  int64_t filters() const { return kernel[3]; }
  /// Elements of the kernel for one filter.
  int64_t filter_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t groups() const { return x[3] / kernel[2]; }
  int64_t element_bytes() const { return static_cast<int64_t>(tensor::size_bytes(dtype)); }
  /// Of what has elements: x, the kernel, y.
  int64_t x_bytes() const { return x[0] * x[1] * x[2] * x[3] * element_bytes(); }
  int64_t kernel_bytes() const { return filter_size() * filters() * element_bytes(); }
  int64_t y_bytes() const { return y[0] * y[1] * y[2] * y[3] * element_bytes(); }
};

/// The padding behind, for one axis: as much as in front where that gives the same windows (more engines take it), else
/// as little as will do.
int64_t padding_behind(int64_t input, int64_t output, int64_t window, int64_t stride, int64_t dilation,
                       int64_t pad_before);

/// Of an op with these attributes (conv2d and its gradients); `x` and `y` are the images, whichever of them is made.
template <typename Attributes>
ConvolutionShape convolution_shape(const Attributes &attributes, tensor::DType dtype, const LoweredValue &x,
                                   const LoweredValue &kernel, const LoweredValue &y) {
  ConvolutionShape shape;
  shape.dtype = dtype;
  std::copy_n(x.dims.begin(), 4, shape.x.begin());
  std::copy_n(kernel.dims.begin(), 4, shape.kernel.begin());
  std::copy_n(y.dims.begin(), 4, shape.y.begin());
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t input = shape.x[1 + axis], output = shape.y[1 + axis], window = shape.kernel[axis];
    const int64_t stride = attributes.stride[axis], dilation = attributes.dilation[axis];
    const int64_t covered = (output - 1) * stride + (window - 1) * dilation + 1;
    int64_t before = 0;
    if (attributes.padding == Attributes::Padding::same) before = std::max<int64_t>(covered - input, 0) / 2;
    if (attributes.padding == Attributes::Padding::explicit_) before = attributes.pads[2 * axis];
    shape.stride[axis] = stride;
    shape.dilation[axis] = dilation;
    shape.pad_before[axis] = before;
    shape.pad_after[axis] = padding_behind(input, output, window, stride, dilation, before);
  }
  return shape;
}

/// The same convolution of a larger x: with so many zeros on one side of an axis that both sides are padded alike, as
/// much as the side was that had less. Where they are anyway, x is as it was.
ConvolutionShape evenly_padded(const ConvolutionShape &shape);

/// Has a tensor of it no elements?
bool is_empty(const ConvolutionShape &shape);

/// Is each pixel of y the product of the pixel of x at the same place with the kernel?
bool is_product(const ConvolutionShape &shape);

/// The product that such a convolution is, of the operands of the pass in their order.
ProductShape product_of(const ConvolutionShape &shape, ConvolutionPass pass);

/// "forward bf16 x 16x56x56x64 ...": what times of algorithms depend on.
std::string describe_convolution(const ConvolutionShape &shape, ConvolutionPass pass);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_CONVOLUTION_H_
