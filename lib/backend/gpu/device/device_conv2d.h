// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images [rows, height, width, channels] with kernels [height, width, channels / groups, filters], and
// its two gradients, as products of matrices whose factors are never made: an element of the matrix of patches is found
// in the image when it is fetched (Chellapilla, Puri, Simard: "High performance convolutional neural networks for
// document processing", 2006, without the copy).
//
//   y       [positions, filters]  = patches of x · kernel
//   dx      [pixels, channels]    = patches of dy · kernel, turned around; for strides of s, s² products, one for each
//                                   phase of the pixels, with those elements of the kernel that meet it
//   dkernel [taps, filters]       = patches of x, transposed · dy; long sums, which are split
//
// For f32, f16 and bf16; device_grouped_conv2d.h has f64. Outside of the image is 0, which is multiplied
// with the kernel: an infinite kernel gives NaN at borders.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_CONV2D_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_CONV2D_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device_epilogue.h"
#include "backend/gpu/device/product_plan.h"
#include "backend/image_window.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

struct Convolution {
  tensor::DType dtype;
  ImageWindow window;
  int64_t channels, filters, groups;
  /// Null, or what is done with the results of a convolution or of its input's gradient, which then have its dtype. On
  /// the host; not for what device_grouped_conv2d.h does.
  const Epilogue *epilogue;

  constexpr int64_t group_channels() const { return channels / groups; }
  constexpr int64_t group_filters() const { return filters / groups; }
  constexpr int64_t positions() const { return window.rows * window.y.output * window.x.output; }
  constexpr int64_t taps() const { return window.y.window * window.x.window; }
  int64_t phases() const;
};

/// The products as plan_product() wants them.
ProductSize conv2d_size(const Convolution &convolution);
ProductSize conv2d_input_gradient_size(const Convolution &convolution);
ProductSize conv2d_kernel_gradient_size(const Convolution &convolution);

/// `bias` may be null.
gpuError_t launch_conv2d(const Convolution &convolution, const void *x, const void *kernel, const void *bias, void *y,
                         const ProductPlan &plan, void *scratch, gpuStream_t stream);
gpuError_t launch_conv2d_input_gradient(const Convolution &convolution, const void *dy, const void *kernel, void *dx,
                                        const ProductPlan &plan, void *scratch, gpuStream_t stream);
gpuError_t launch_conv2d_kernel_gradient(const Convolution &convolution, const void *x, const void *dy, void *dkernel,
                                         const ProductPlan &plan, void *scratch, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_CONV2D_H_
