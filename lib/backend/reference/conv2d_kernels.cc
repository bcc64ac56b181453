// SPDX-License-Identifier: Apache-2.0
//
// Direct two-dimensional convolution and its two gradients: images NHWC, kernels [height, width, channels / groups,
// filters].
//   y[n,p,q,f]       = bias[f] + sum over i,j,c of x[n, p·s + i·d - pad, q·s + j·d - pad, c] · k[i,j,c,f]
//   dx[n,h,w,c]      = sum over p,q,i,j,f that reach (h,w) of dy[n,p,q,f] · k[i,j,c,f]
//   dk[i,j,c,f]      = sum over n,p,q of x[...] · dy[n,p,q,f]
#include <algorithm>
#include <cstring>

#include "backend/image_window.h"
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;

namespace {

struct ConvPlan {
  ImageWindow window;
  int64_t channels = 0, filters = 0, groups = 1;
  int64_t group_channels = 0, group_filters = 0;

  int64_t image_at(int64_t n, int64_t h, int64_t w) const {
    return ((n * window.y.input + h) * window.x.input + w) * channels;
  }
  int64_t result_at(int64_t n, int64_t p, int64_t q) const {
    return ((n * window.y.output + p) * window.x.output + q) * filters;
  }
  int64_t kernel_at(int64_t i, int64_t j, int64_t c) const {
    return ((i * window.x.window + j) * group_channels + c) * filters;
  }
};

template <typename Attributes>
ConvPlan conv_plan(const Attributes &attributes, const LoweredValue &x, const LoweredValue &kernel,
                   const LoweredValue &y) {
  ConvPlan plan;
  plan.window = ImageWindow::make(x.dims, y.dims, {kernel.dims[0], kernel.dims[1]}, attributes.stride,
                                  attributes.dilation, static_cast<WindowPadding>(attributes.padding), attributes.pads);
  plan.channels = x.dims[3];
  plan.filters = kernel.dims[3];
  plan.groups = attributes.groups;
  plan.group_channels = kernel.dims[2];
  plan.group_filters = plan.filters / plan.groups;
  return plan;
}

/// Calls function(i, j, h, w) for the elements of window (p, q) that lie inside the image.
template <typename Function>
void for_window(const ImageWindow &window, int64_t p, int64_t q, Function function) {
  for (int64_t i = 0; i < window.y.window; ++i) {
    const int64_t h = window.y.position(p, i);
    if (!window.y.is_inside(h)) continue;
    for (int64_t j = 0; j < window.x.window; ++j) {
      const int64_t w = window.x.position(q, j);
      if (window.x.is_inside(w)) function(i, j, h, w);
    }
  }
}

/// Calls function(n, p, q) for every window.
template <typename Function>
void for_results(const ImageWindow &window, Function function) {
  for (int64_t n = 0; n < window.rows; ++n) {
    for (int64_t p = 0; p < window.y.output; ++p) {
      for (int64_t q = 0; q < window.x.output; ++q)
        function(n, p, q);
    }
  }
}

/// sums[f] over the filters of all groups, in double.
template <typename T>
void convolve(const ConvPlan &plan, const T *x, const T *kernel, const T *bias, T *y, double *sums) {
  for_results(plan.window, [&](int64_t n, int64_t p, int64_t q) {
    for (int64_t f = 0; f < plan.filters; ++f)
      sums[f] = bias == nullptr ? 0 : as_double(bias[f]);
    for_window(plan.window, p, q, [&](int64_t i, int64_t j, int64_t h, int64_t w) {
      const T *pixel = x + plan.image_at(n, h, w);
      for (int64_t c = 0; c < plan.channels; ++c) {
        const int64_t group = c / plan.group_channels, begin = group * plan.group_filters;
        const T *row = kernel + plan.kernel_at(i, j, c % plan.group_channels);
        const double value = as_double(pixel[c]);
        for (int64_t f = begin; f < begin + plan.group_filters; ++f)
          sums[f] += value * as_double(row[f]);
      }
    });
    store(tensor::dtype_of<T>, y, plan.result_at(n, p, q), plan.filters, sums);
  });
}

/// Scatters dy into sums over one image at a time.
template <typename T>
void convolve_input_gradient(const ConvPlan &plan, const T *dy, const T *kernel, T *dx, double *sums) {
  const ImageWindow &window = plan.window;
  const int64_t image = window.y.input * window.x.input * plan.channels;
  for (int64_t n = 0; n < window.rows && image != 0; ++n) {
    std::fill(sums, sums + image, 0.0);
    for (int64_t p = 0; p < window.y.output; ++p) {
      for (int64_t q = 0; q < window.x.output; ++q) {
        const T *result = dy + plan.result_at(n, p, q);
        for_window(window, p, q, [&](int64_t i, int64_t j, int64_t h, int64_t w) {
          double *pixel = sums + plan.image_at(0, h, w);
          for (int64_t c = 0; c < plan.channels; ++c) {
            const int64_t begin = c / plan.group_channels * plan.group_filters;
            const T *row = kernel + plan.kernel_at(i, j, c % plan.group_channels);
            double sum = 0;
            for (int64_t f = begin; f < begin + plan.group_filters; ++f)
              sum += as_double(result[f]) * as_double(row[f]);
            pixel[c] += sum;
          }
        });
      }
    }
    store(tensor::dtype_of<T>, dx, n * image, image, sums);
  }
}

template <typename T>
void convolve_kernel_gradient(const ConvPlan &plan, const T *x, const T *dy, double *sums) {
  for_results(plan.window, [&](int64_t n, int64_t p, int64_t q) {
    const T *result = dy + plan.result_at(n, p, q);
    for_window(plan.window, p, q, [&](int64_t i, int64_t j, int64_t h, int64_t w) {
      const T *pixel = x + plan.image_at(n, h, w);
      for (int64_t c = 0; c < plan.channels; ++c) {
        const int64_t begin = c / plan.group_channels * plan.group_filters;
        double *row = sums + plan.kernel_at(i, j, c % plan.group_channels);
        const double value = as_double(pixel[c]);
        for (int64_t f = begin; f < begin + plan.group_filters; ++f)
          row[f] += value * as_double(result[f]);
      }
    });
  });
}

constexpr int64_t kDouble = static_cast<int64_t>(sizeof(double));

}  // namespace

Result<Kernel> make_conv2d(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(request.node));
  const ConvPlan plan = conv_plan(attributes, request.input(0), request.input(1), request.output(0));
  request.scratch_bytes = plan.filters * kDouble;
  return Kernel([plan, dtype = request.output(0).dtype, has_bias = request.has_input(2)](const Frame &frame) {
    visit_floating(dtype, [&]<typename T>(T) {
      const T *bias = has_bias ? frame.input_as<T>(2) : nullptr;
      convolve(plan, frame.input_as<T>(0), frame.input_as<T>(1), bias, frame.output_as<T>(0), frame.scratch_doubles());
    });
    return Status();
  });
}

Result<Kernel> make_conv2d_input_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(request.node));
  const ConvPlan plan = conv_plan(attributes, request.output(0), request.input(1), request.input(0));
  request.scratch_bytes = plan.window.y.input * plan.window.x.input * plan.channels * kDouble;
  return Kernel([plan, dtype = request.output(0).dtype](const Frame &frame) {
    visit_floating(dtype, [&]<typename T>(T) {
      convolve_input_gradient(plan, frame.input_as<T>(0), frame.input_as<T>(1), frame.output_as<T>(0),
                              frame.scratch_doubles());
    });
    return Status();
  });
}

Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(request.node));
  const LoweredValue &dkernel = request.output(0);
  const ConvPlan plan = conv_plan(attributes, request.input(0), dkernel, request.input(1));
  request.scratch_bytes = dkernel.elements * kDouble;
  return Kernel([plan, dtype = dkernel.dtype, count = dkernel.elements](const Frame &frame) {
    double *const sums = frame.scratch_doubles();
    if (count == 0) return Status();
    std::fill(sums, sums + count, 0.0);
    visit_floating(dtype, [&]<typename T>(T) {
      convolve_kernel_gradient(plan, frame.input_as<T>(0), frame.input_as<T>(1), sums);
    });
    store(dtype, frame.output(0), 0, count, sums);
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
