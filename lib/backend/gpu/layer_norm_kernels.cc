// SPDX-License-Identifier: Apache-2.0
//
// Layer normalisation over the last axis.
#include "backend/gpu/device_layer_norm.h"
#include "backend/gpu/kernels.h"
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

}  // namespace

Result<Kernel> make_layer_norm(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::LayerNormAttributes::from(request.node));
  auto work = norm_work<LayerNormWork>(request.input(0));
  work.parameter = request.input(1).dtype;
  work.statistics = request.output(1).dtype;
  work.epsilon = attributes.epsilon;
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
  auto work = norm_work<LayerNormGradientWork>(request.input(1));
  work.parameter = request.input(2).dtype;
  work.statistics = request.input(3).dtype;
  request.reserve_scratch(layer_norm_gradient_scratch_bytes(work));
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

}  // namespace tutti::impl::backend::gpu
