// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products, and the gradient of the latter.
#include "backend/gpu/device/device_running.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/running_lines.h"

namespace tutti::impl::backend::gpu {

using base::Result;

namespace {

Result<RunningWork> running_work(const KernelRequest &request) {
  TUTTI_ASSIGN(const RunningLines lines, RunningLines::of(request.lowered, request.node));
  RunningWork work{};
  work.dtype = request.output(0).dtype;
  work.outer = lines.outer, work.length = lines.length, work.inner = lines.inner;
  work.is_product = request.node.op != "running_sum";
  work.is_exclusive = lines.is_exclusive, work.is_backward = lines.is_backward;
  return work;
}

}  // namespace

Result<Kernel> make_running(KernelRequest &request) {
  TUTTI_ASSIGN(const RunningWork work, running_work(request));
  return Kernel([work](const Frame &frame) {
    RunningWork issued = work;
    issued.x = frame.input(0);
    issued.y = frame.output(0);
    return status_of(launch_running(issued, frame.stream()), "launching a running sum");
  });
}

Result<Kernel> make_running_product_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const RunningWork work, running_work(request));
  request.reserve_scratch(request.output(0).elements * static_cast<int64_t>(sizeof(double)));
  return Kernel([work](const Frame &frame) {
    RunningProductGradient issued{work, frame.input(0), frame.scratch_as<double>()};
    issued.work.x = frame.input(1);
    issued.work.y = frame.output(0);
    return status_of(launch_running_product_gradient(issued, frame.stream()), "launching running_product_gradient");
  });
}

}  // namespace tutti::impl::backend::gpu
