// SPDX-License-Identifier: Apache-2.0
#include "emulated_convolution.h"

#include <utility>

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/library/even_padding.h"
#include "backend/gpu/library/folded_stride.h"
#include "backend/gpu/library/library_convolution_steps.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {

/// Calls function(x, kernel, y) with the positions of the elements of every product.
template <typename Function>
__device__ void for_products(const ConvolutionShape &shape, Function function) {
  const auto &[images, height, width, channels] = shape.x;
  const auto &[rows, columns, depth, filters] = shape.kernel;
  const int64_t group = filters * depth / channels;  // filters of a group
  for (int64_t image = 0; image < images; ++image)
    for (int64_t p = 0; p < shape.y[1]; ++p)
      for (int64_t q = 0; q < shape.y[2]; ++q)
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            const int64_t h = p * shape.stride[0] + i * shape.dilation[0] - shape.pad_before[0];
            const int64_t w = q * shape.stride[1] + j * shape.dilation[1] - shape.pad_before[1];
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            for (int64_t c = 0; c < depth; ++c)
              for (int64_t f = 0; f < filters; ++f)
                function(((image * height + h) * width + w) * channels + f / group * depth + c,
                         ((i * columns + j) * depth + c) * filters + f,
                         ((image * shape.y[1] + p) * shape.y[2] + q) * filters + f);
          }
}

struct Operands {
  const void *first, *second;  // as the op has them
  void *result;
  double *sums;  // as many as the result has elements
};

/// By one thread: it is about what is computed.
__global__ void convolve(ConvolutionShape shape, ConvolutionPass pass, int64_t elements, Operands at) {
  if (grid_thread() != 0) return;
  for (int64_t i = 0; i < elements; ++i)
    at.sums[i] = 0;
  for_products(shape, [&](int64_t x, int64_t kernel, int64_t y) {
    const int64_t first = pass == ConvolutionPass::input_gradient ? y : x;
    const int64_t second = pass == ConvolutionPass::kernel_gradient ? y : kernel;
    const int64_t result =
        pass == ConvolutionPass::forward ? y : (pass == ConvolutionPass::input_gradient ? x : kernel);
    at.sums[result] +=
        load_element<double>(shape.dtype, at.first, first) * load_element<double>(shape.dtype, at.second, second);
  });
  for (int64_t i = 0; i < elements; ++i)
    store_element<double>(shape.dtype, at.result, i, at.sums[i]);
}

/// Does it pad both sides of an axis alike, and are there as many results as windows?
bool is_taken(const ConvolutionShape &shape) {
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (shape.kernel[axis] - 1) * shape.dilation[axis] + 1;
    const int64_t room = shape.x[1 + axis] + 2 * shape.pad_before[axis] - reach;
    if (shape.pad_before[axis] != shape.pad_after[axis] || room / shape.stride[axis] + 1 != shape.y[1 + axis])
      return false;
  }
  return true;
}

/// The library's call: of what is_taken().
class EvenConvolution {
 public:
  EvenConvolution(KernelRequest &request, const ConvolutionShape &shape, ConvolutionPass pass)
      : shape_(shape), pass_(pass) {
    const int64_t bytes[] = {shape.y_bytes(), shape.x_bytes(), shape.kernel_bytes()};
    elements_ = bytes[static_cast<size_t>(pass)] / shape.element_bytes();
    sums_at_ = request.reserve_scratch(elements_ * static_cast<int64_t>(sizeof(double)));
  }

  Status issue(const Frame &frame, const void *first, const void *second, void *result) const {
    const Operands operands{first, second, result, frame.scratch_as<double>(sums_at_)};
    return status_of(gpu_launch(convolve, 1, kBlockThreads, 0, frame.stream(), shape_, pass_, elements_, operands),
                     "launching a convolution");
  }

 private:
  ConvolutionShape shape_;
  ConvolutionPass pass_;
  int64_t elements_ = 0, sums_at_ = 0;
};

/// The kernel of a folded image: as the fold makes it, and in the order of the op, which the library takes.
class FoldedKernel {
 public:
  FoldedKernel(KernelRequest &request, const FoldedStride &fold) : fold_(fold) {
    if (!fold.is_needed()) return;
    first_at_ = request.reserve_scratch(fold.shape().kernel_bytes());
    last_at_ = request.reserve_scratch(fold.shape().kernel_bytes());
  }

  /// What the library reads.
  Result<const void *> fold(const Frame &frame, const void *kernel) const {
    if (!fold_.is_needed()) return kernel;
    void *const first = frame.scratch_as<char>(first_at_);
    TUTTI_TRY(fold_.to_filters_first(first, kernel, frame.stream()));
    TUTTI_TRY(to_filters_last(fold_.shape(), gradient(frame, nullptr), first, frame.stream()));
    return gradient(frame, nullptr);
  }
  /// Where the library writes the kernel's gradient.
  void *gradient(const Frame &frame, void *own) const {
    return fold_.is_needed() ? frame.scratch_as<char>(last_at_) : own;
  }
  Status unfold(const Frame &frame, void *own) const {
    if (!fold_.is_needed()) return Status();
    void *const first = frame.scratch_as<char>(first_at_);
    TUTTI_TRY(to_filters_first(fold_.shape(), first, gradient(frame, own), frame.stream()));
    return fold_.to_filters_last(own, first, frame.stream());
  }

 private:
  FoldedStride fold_;
  int64_t first_at_ = 0, last_at_ = 0;
};

/// What the library is asked for, and what surrounds it.
struct Surroundings {
  FoldedStride fold;
  FoldedKernel kernel;
  EvenPadding padding;
};

Result<Kernel> find_pass(KernelRequest &request, const ConvolutionShape &own, ConvolutionPass pass, bool folds) {
  if (is_empty(own)) return Kernel();
  // An input gradient is never folded.
  FoldedStride fold(own, folds ? pass : ConvolutionPass::input_gradient);
  fold.reserve(request);
  Surroundings around{fold, FoldedKernel(request, fold), EvenPadding(fold.shape())};
  const ConvolutionShape &shape = around.padding.shape();
  if (!is_taken(shape)) return base::internal_error("the emulated library has no ", describe_convolution(shape, pass));
  const EvenConvolution convolution(request, shape, pass);
  around.padding.reserve(request);
  request.kernel_name = fold.is_needed()             ? "emulated folded"
                        : around.padding.is_needed() ? "emulated larger"
                                                     : "emulated";
  return Kernel([around, convolution, pass](const Frame &frame) -> Status {
    if (pass == ConvolutionPass::input_gradient) {
      void *const dx = around.padding.gradient(frame, frame.output(0));
      TUTTI_TRY(convolution.issue(frame, frame.input(0), frame.input(1), dx));
      return around.padding.narrow(frame, frame.output(0));
    }
    TUTTI_ASSIGN(const void *const image, around.fold.image(frame, frame.input(0)));
    TUTTI_ASSIGN(const void *const x, around.padding.widen(frame, image));
    if (pass == ConvolutionPass::kernel_gradient) {
      void *const gradient = around.kernel.gradient(frame, frame.output(0));
      TUTTI_TRY(convolution.issue(frame, x, frame.input(1), gradient));
      return around.kernel.unfold(frame, frame.output(0));
    }
    TUTTI_ASSIGN(const void *const kernel, around.kernel.fold(frame, frame.input(1)));
    return convolution.issue(frame, x, kernel, frame.output(0));
  });
}

}  // namespace

Result<Kernel> find_convolution(KernelRequest &request, bool folds) {
  if (request.tail != nullptr || request.sum != nullptr || request.source != nullptr) return Kernel();
  const graph::Node &node = request.node;
  const LoweredValue &result = request.output(0);
  if (node.op == "conv2d") {
    TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(node));
    const auto shape = convolution_shape(attributes, result.dtype, request.input(0), request.input(1), result);
    TUTTI_ASSIGN(Kernel kernel, find_pass(request, shape, ConvolutionPass::forward, folds));
    return kernel && request.has_input(2) ? with_bias(std::move(kernel), result) : kernel;
  }
  if (node.op == "conv2d_input_gradient") {
    TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(node));
    const auto shape = convolution_shape(attributes, result.dtype, result, request.input(1), request.input(0));
    return find_pass(request, shape, ConvolutionPass::input_gradient, folds);
  }
  if (node.op == "conv2d_kernel_gradient") {
    TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(node));
    const auto shape = convolution_shape(attributes, result.dtype, request.input(0), result, request.input(1));
    return find_pass(request, shape, ConvolutionPass::kernel_gradient, folds);
  }
  return Kernel();
}

}  // namespace tutti::impl::backend::gpu::platform
