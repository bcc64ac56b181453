// SPDX-License-Identifier: Apache-2.0
//
// Convolution and its gradients: as products of matrices, of the images themselves if kernels are 1 x 1, and of their
// patches otherwise; groups of few channels, and f64, result by result.
#include <algorithm>

#include "backend/gpu/device/device_conv2d.h"
#include "backend/gpu/device/device_grouped_conv2d.h"
#include "backend/gpu/device/device_matmul.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

template <typename Attributes>
Result<Convolution> convolution_of(const Attributes &attributes, const LoweredValue &x, const LoweredValue &kernel,
                                   const LoweredValue &y) {
  Convolution made{};
  made.dtype = x.dtype;
  made.window = ImageWindow::make(x.dims, y.dims, {kernel.dims[0], kernel.dims[1]}, attributes.stride,
                                  attributes.dilation, static_cast<WindowPadding>(attributes.padding), attributes.pads);
  made.channels = x.dims[3];
  made.filters = kernel.dims[3];
  made.groups = attributes.groups;
  constexpr int64_t kMost = 1 << 30;  // positions along an axis are 32-bit numbers
  for (const WindowAxis &axis : {made.window.y, made.window.x}) {
    if (axis.input + axis.pad_before >= kMost || axis.output * axis.stride >= kMost ||
        axis.window * axis.dilation >= kMost)
      return base::unimplemented("an image or a kernel that spans ", kMost, " pixels or more");
  }
  return made;
}

bool goes_by_results(const Convolution &convolution) {
  return convolution.dtype == DType::f64 ||
         (convolution.groups > 1 && std::min(convolution.group_channels(), convolution.group_filters()) < 16);
}

/// Is every patch one pixel, in order?
bool is_pointwise(const Convolution &convolution) {
  const auto is_plain = [](const WindowAxis &axis) {
    return axis.window == 1 && axis.stride == 1 && axis.pad_before == 0 && axis.input == axis.output;
  };
  return convolution.groups == 1 && is_plain(convolution.window.y) && is_plain(convolution.window.x);
}

/// y[m, n] of factors that are dense, or dense when transposed.
Matmul pointwise(KernelRequest &request, const Convolution &convolution, ProductSize size, bool transpose_a,
                 bool transpose_b) {
  size.is_row_invariant = request.lowered.is_row_invariant();
  Matmul matmul{};
  matmul.dtype = convolution.dtype;
  matmul.m = size.m;
  matmul.n = size.n;
  matmul.k = size.k;
  matmul.a = transpose_a ? MatrixView{nullptr, 1, size.m} : MatrixView{nullptr, size.k, 1};
  matmul.b = transpose_b ? MatrixView{nullptr, 1, size.k} : MatrixView{nullptr, size.n, 1};
  matmul.batches = 1;
  matmul.addend_column = 1;
  matmul.plan = plan_product(size);
  request.reserve_scratch(matmul.plan.scratch_bytes);
  request.kernel_name = "simt_product";
  return matmul;
}

Status issue(Matmul matmul, const KeptEpilogue &tail, const void *addend, const Frame &frame) {
  Epilogue epilogue;
  matmul.epilogue = tail.place(frame, epilogue);
  matmul.a.data = frame.input(0);
  matmul.b.data = frame.input(1);
  matmul.addend = addend;
  matmul.y = frame.output(0);
  matmul.scratch = frame.scratch();
  return status_of(launch_matmul(matmul, frame.stream()), "launching a convolution");
}

ProductPlan plan_patches(KernelRequest &request, ProductSize size) {
  size.is_row_invariant = request.lowered.is_row_invariant();
  const ProductPlan plan = plan_product(size);
  request.reserve_scratch(plan.scratch_bytes);
  request.kernel_name = "simt_patches";
  return plan;
}

}  // namespace

Result<Kernel> make_conv2d(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(request.node));
  TUTTI_ASSIGN(const Convolution convolution,
               convolution_of(attributes, request.input(0), request.input(1), request.output(0)));
  const auto bias_of = [has_bias = request.has_input(2)](const Frame &frame) {
    return has_bias ? frame.input(2) : nullptr;
  };
  const KeptEpilogue tail(request);
  if (goes_by_results(convolution)) {
    if (request.tail != nullptr) return Kernel();
    request.kernel_name = "simt_results";
    return Kernel([=](const Frame &frame) {
      return status_of(launch_grouped_conv2d(convolution, frame.input(0), frame.input(1), bias_of(frame),
                                             frame.output(0), frame.stream()),
                       "launching conv2d");
    });
  }
  const ProductSize size = conv2d_size(convolution);
  if (is_pointwise(convolution))
    return Kernel([matmul = pointwise(request, convolution, size, false, false), bias_of, tail](const Frame &frame) {
      return issue(matmul, tail, bias_of(frame), frame);
    });
  return Kernel([convolution, plan = plan_patches(request, size), bias_of, tail](const Frame &frame) {
    Convolution own = convolution;
    Epilogue epilogue;
    own.epilogue = tail.place(frame, epilogue);
    return status_of(launch_conv2d(own, frame.input(0), frame.input(1), bias_of(frame), frame.output(0), plan,
                                   frame.scratch(), frame.stream()),
                     "launching conv2d");
  });
}

Result<Kernel> make_conv2d_input_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(request.node));
  TUTTI_ASSIGN(const Convolution convolution,
               convolution_of(attributes, request.output(0), request.input(1), request.input(0)));
  const KeptEpilogue tail(request);
  if (goes_by_results(convolution)) {
    if (request.tail != nullptr) return Kernel();
    request.kernel_name = "simt_results";
    return Kernel([convolution](const Frame &frame) {
      return status_of(launch_grouped_conv2d_input_gradient(convolution, frame.input(0), frame.input(1),
                                                            frame.output(0), frame.stream()),
                       "launching conv2d_input_gradient");
    });
  }
  const ProductSize size = conv2d_input_gradient_size(convolution);
  if (is_pointwise(convolution))
    return Kernel([matmul = pointwise(request, convolution, size, false, true), tail](const Frame &frame) {
      return issue(matmul, tail, nullptr, frame);
    });
  ProductSize planned = size;
  // Some sums are shorter than k, which is that of the longest, but multiples of the filters of a group.
  if (request.lowered.is_row_invariant()) planned.k = convolution.group_filters();
  return Kernel([convolution, plan = plan_patches(request, planned), tail](const Frame &frame) {
    Convolution own = convolution;
    Epilogue epilogue;
    own.epilogue = tail.place(frame, epilogue);
    return status_of(launch_conv2d_input_gradient(own, frame.input(0), frame.input(1), frame.output(0), plan,
                                                  frame.scratch(), frame.stream()),
                     "launching conv2d_input_gradient");
  });
}

Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(request.node));
  TUTTI_ASSIGN(const Convolution convolution,
               convolution_of(attributes, request.input(0), request.output(0), request.input(1)));
  if (goes_by_results(convolution)) {
    const GroupedPlan plan = plan_grouped_kernel_gradient(convolution);
    request.reserve_scratch(plan.scratch_bytes);
    request.kernel_name = "simt_results";
    return Kernel([convolution, plan](const Frame &frame) {
      return status_of(launch_grouped_conv2d_kernel_gradient(convolution, frame.input(0), frame.input(1),
                                                             frame.output(0), plan, frame.scratch(), frame.stream()),
                       "launching conv2d_kernel_gradient");
    });
  }
  const ProductSize size = conv2d_kernel_gradient_size(convolution);
  if (is_pointwise(convolution))
    return Kernel([matmul = pointwise(request, convolution, size, true, false),
                   tail = KeptEpilogue(request)](const Frame &frame) { return issue(matmul, tail, nullptr, frame); });
  return Kernel([convolution, plan = plan_patches(request, size)](const Frame &frame) {
    return status_of(launch_conv2d_kernel_gradient(convolution, frame.input(0), frame.input(1), frame.output(0), plan,
                                                   frame.scratch(), frame.stream()),
                     "launching conv2d_kernel_gradient");
  });
}

}  // namespace tutti::impl::backend::gpu
