// SPDX-License-Identifier: Apache-2.0
//
// Maximum and average over windows of images, and their gradients.
#include "backend/gpu/device/device_pool2d.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;

namespace {

template <typename Attributes>
Pooling pooling_of(const Attributes &attributes, const LoweredValue &image, const LoweredValue &result) {
  const std::vector<int64_t> &stride = attributes.stride.empty() ? attributes.window : attributes.stride;
  Pooling made{};
  made.dtype = image.dtype;
  made.window = ImageWindow::make(image.dims, result.dims, attributes.window, stride, {1, 1},
                                  static_cast<WindowPadding>(attributes.padding), attributes.pads);
  made.channels = image.dims[3];
  return made;
}

}  // namespace

Result<Kernel> make_max_pool2d(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MaxPool2dAttributes::from(request.node));
  return Kernel([pooling = pooling_of(attributes, request.input(0), request.output(0))](const Frame &frame) {
    return status_of(launch_max_pool2d(pooling, frame.input(0), frame.output(0), frame.stream()),
                     "launching max_pool2d");
  });
}

Result<Kernel> make_max_pool2d_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MaxPool2dGradientAttributes::from(request.node));
  const Pooling pooling = pooling_of(attributes, request.input(1), request.input(2));
  request.reserve_scratch(max_pool2d_gradient_scratch_bytes(pooling));
  return Kernel([pooling](const Frame &frame) {
    return status_of(launch_max_pool2d_gradient(pooling, frame.input(0), frame.input(1), frame.scratch(),
                                                frame.output(0), frame.stream()),
                     "launching max_pool2d_gradient");
  });
}

Result<Kernel> make_avg_pool2d(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AvgPool2dAttributes::from(request.node));
  Pooling pooling = pooling_of(attributes, request.input(0), request.output(0));
  pooling.counts_padding = attributes.count_include_padding ? 1 : 0;
  return Kernel([pooling](const Frame &frame) {
    return status_of(launch_avg_pool2d(pooling, frame.input(0), frame.output(0), frame.stream()),
                     "launching avg_pool2d");
  });
}

Result<Kernel> make_avg_pool2d_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AvgPool2dGradientAttributes::from(request.node));
  Pooling pooling = pooling_of(attributes, request.output(0), request.input(0));
  pooling.counts_padding = attributes.count_include_padding ? 1 : 0;
  return Kernel([pooling](const Frame &frame) {
    return status_of(launch_avg_pool2d_gradient(pooling, frame.input(0), frame.output(0), frame.stream()),
                     "launching avg_pool2d_gradient");
  });
}

}  // namespace tutti::impl::backend::gpu
