// SPDX-License-Identifier: Apache-2.0
//
// Layer and RMS normalisation over the last axis.
#include "backend/gpu/device/device_layer_norm.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// What both directions know of x.
template <typename Work>
Work norm_work(const LoweredValue &x) {
  Work work{};
  work.dtype = x.dtype;
  work.width = x.dims.back();
  work.rows = work.width == 0 ? 0 : x.elements / work.width;
  return work;
}

/// Of an op with x and scale in front; `statistics` is the dtype of those.
LayerNormWork forward_work(const KernelRequest &request, tensor::DType statistics, double epsilon) {
  auto work = norm_work<LayerNormWork>(request.input(0));
  work.parameter = request.input(1).dtype;
  work.statistics = statistics;
  work.epsilon = epsilon;
  work.order = request.sum_order();
  return work;
}

/// Of an op with dy, x, scale and statistics in front.
LayerNormGradientWork gradient_work(KernelRequest &request) {
  auto work = norm_work<LayerNormGradientWork>(request.input(1));
  work.parameter = request.input(2).dtype;
  work.statistics = request.input(3).dtype;
  request.reserve_scratch(layer_norm_gradient_scratch_bytes(work));
  return work;
}

}  // namespace

Result<Kernel> make_layer_norm(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::LayerNormAttributes::from(request.node));
  const LayerNormWork work = forward_work(request, request.output(1).dtype, attributes.epsilon);
  return Kernel([work](const Frame &frame) {
    LayerNormWork issued = work;
    issued.x = frame.input(0);
    issued.scale = frame.input(1);
    issued.offset = frame.input(2);
    issued.y = frame.output(0);
    issued.mean = frame.output(1);
    issued.rstd = frame.output(2);
    return status_of(launch_layer_norm(issued, frame.stream()), "launching a layer normalisation");
  });
}

Result<Kernel> make_layer_norm_gradient(KernelRequest &request) {
  const LayerNormGradientWork work = gradient_work(request);
  return Kernel([work](const Frame &frame) {
    LayerNormGradientWork issued = work;
    issued.dy = frame.input(0);
    issued.x = frame.input(1);
    issued.scale = frame.input(2);
    issued.mean = frame.input(3);
    issued.rstd = frame.input(4);
    issued.dx = frame.output(0);
    issued.dscale = frame.output(1);
    issued.doffset = frame.output(2);
    issued.scratch = frame.scratch();
    return status_of(launch_layer_norm_gradient(issued, frame.stream()), "launching a gradient of layer normalisation");
  });
}

Result<Kernel> make_rms_norm(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RmsNormAttributes::from(request.node));
  const LayerNormWork work = forward_work(request, request.output(1).dtype, attributes.epsilon);
  return Kernel([work](const Frame &frame) {
    LayerNormWork issued = work;
    issued.x = frame.input(0);
    issued.scale = frame.input(1);
    issued.y = frame.output(0);
    issued.rstd = frame.output(1);
    return status_of(launch_layer_norm(issued, frame.stream()), "launching an RMS normalisation");
  });
}

Result<Kernel> make_rms_norm_gradient(KernelRequest &request) {
  const LayerNormGradientWork work = gradient_work(request);
  return Kernel([work](const Frame &frame) {
    LayerNormGradientWork issued = work;
    issued.dy = frame.input(0);
    issued.x = frame.input(1);
    issued.scale = frame.input(2);
    issued.rstd = frame.input(3);
    issued.dx = frame.output(0);
    issued.dscale = frame.output(1);
    issued.scratch = frame.scratch();
    return status_of(launch_layer_norm_gradient(issued, frame.stream()), "launching a gradient of RMS normalisation");
  });
}

}  // namespace tutti::impl::backend::gpu
