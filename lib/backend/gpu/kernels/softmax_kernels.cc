// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax along any axis, and their gradients.
#include "backend/gpu/device/device_softmax.h"
#include "backend/gpu/kernel/kernels.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// x is [outer, length, inner] around the axis.
SoftmaxWork softmax_work(const KernelRequest &request, bool is_log) {
  const LoweredValue &x = request.input(0);
  const auto found = request.node.attributes.find("axis");
  const int64_t axis = found == request.node.attributes.end() ? -1 : std::get<int64_t>(found->second);
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.dims.size()) : axis);
  SoftmaxWork work{};
  work.dtype = x.dtype;
  work.is_log = is_log;
  work.length = x.dims[at];
  work.outer = work.inner = 1;
  for (size_t i = 0; i < at; ++i)
    work.outer *= x.dims[i];
  for (size_t i = at + 1; i < x.dims.size(); ++i)
    work.inner *= x.dims[i];
  work.order = request.sum_order();
  // Rows may be among what is behind the axis: of one row it is no longer there.
  work.goes_by_lines = work.inner > 1 || (work.order == SumOrder::by_length && at + 1 < x.dims.size());
  return work;
}

}  // namespace

Result<Kernel> make_softmax(KernelRequest &request) {
  return Kernel([work = softmax_work(request, request.node.op == "log_softmax")](const Frame &frame) {
    SoftmaxWork issued = work;
    issued.x = frame.input(0);
    issued.result = frame.output(0);
    return status_of(launch_softmax(issued, frame.stream()), "launching softmax");
  });
}

Result<Kernel> make_softmax_gradient(KernelRequest &request) {
  return Kernel([work = softmax_work(request, request.node.op == "log_softmax_gradient")](const Frame &frame) {
    SoftmaxWork issued = work;
    issued.x = frame.input(0);
    issued.y = frame.input(1);
    issued.result = frame.output(0);
    return status_of(launch_softmax_gradient(issued, frame.stream()), "launching a gradient of softmax");
  });
}

}  // namespace tutti::impl::backend::gpu
