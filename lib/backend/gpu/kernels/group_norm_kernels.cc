// SPDX-License-Identifier: Apache-2.0
//
// Group normalisation of [rows, ..., channels].
#include "backend/gpu/device/device_group_norm.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

GroupNormShape group_shape(const LoweredValue &x, tensor::DType parameter, tensor::DType statistics, int64_t groups,
                           SumOrder order) {
  int64_t positions = 1;
  for (size_t axis = 1; axis + 1 < x.dims.size(); ++axis)
    positions *= x.dims[axis];
  return {x.dtype, parameter, statistics, x.dims.front(), positions, x.dims.back(), groups, order};
}

}  // namespace

Result<Kernel> make_group_norm(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GroupNormAttributes::from(request.node));
  GroupNormWork work{};
  work.shape = group_shape(request.input(0), request.input(1).dtype, request.output(1).dtype, attributes.groups,
                           request.sum_order());
  work.epsilon = attributes.epsilon;
  request.reserve_scratch(group_norm_scratch_bytes(work.shape));
  return Kernel([work](const Frame &frame) {
    GroupNormWork issued = work;
    issued.x = frame.input(0);
    issued.scale = frame.input(1);
    issued.offset = frame.input(2);
    issued.y = frame.output(0);
    issued.mean = frame.output(1);
    issued.rstd = frame.output(2);
    issued.scratch = frame.scratch();
    return status_of(launch_group_norm(issued, frame.stream()), "launching a group normalisation");
  });
}

Result<Kernel> make_group_norm_gradient(KernelRequest &request) {
  GroupNormGradientWork work{};
  const LoweredValue &mean = request.input(3);
  work.shape = group_shape(request.input(1), request.input(2).dtype, mean.dtype, mean.dims.back(), SumOrder::by_shape);
  request.reserve_scratch(group_norm_gradient_scratch_bytes(work.shape));
  return Kernel([work](const Frame &frame) {
    GroupNormGradientWork issued = work;
    issued.dy = frame.input(0);
    issued.x = frame.input(1);
    issued.scale = frame.input(2);
    issued.mean = frame.input(3);
    issued.rstd = frame.input(4);
    issued.dx = frame.output(0);
    issued.dscale = frame.output(1);
    issued.doffset = frame.output(2);
    issued.scratch = frame.scratch();
    return status_of(launch_group_norm_gradient(issued, frame.stream()), "launching a gradient of group normalisation");
  });
}

}  // namespace tutti::impl::backend::gpu
