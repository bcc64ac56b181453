// SPDX-License-Identifier: Apache-2.0
//
// top_k and its gradient.
#include "backend/gpu/device/device_top_k.h"
#include "backend/gpu/kernel/kernels.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// Places within a row are numbered in 32 bits.
constexpr int64_t kLongestRow = INT32_MAX;

int64_t rows_of(const LoweredValue &value) { return value.dims.back() == 0 ? 0 : value.elements / value.dims.back(); }

}  // namespace

Result<Kernel> make_top_k(KernelRequest &request) {
  const LoweredValue &x = request.input(0);
  TopKWork work{};
  work.dtype = x.dtype;
  work.element_bytes = static_cast<int64_t>(tensor::size_bytes(x.dtype));
  work.rows = rows_of(x);
  work.length = x.dims.back();
  work.k = request.output(0).dims.back();
  if (work.length > kLongestRow)
    return base::unimplemented("rows of ", work.length, " elements, at most ", kLongestRow, " are possible");
  request.reserve_scratch(work.scratch_bytes());
  return Kernel([work](const Frame &frame) {
    TopKWork issued = work;
    issued.x = frame.input(0);
    issued.values = frame.output(0);
    issued.indices = frame.output_as<int64_t>(1);
    issued.scratch = frame.scratch();
    return status_of(launch_top_k(issued, frame.stream()), "launching top_k");
  });
}

Result<Kernel> make_top_k_gradient(KernelRequest &request) {
  const LoweredValue &dy = request.input(0), &dx = request.output(0);
  const auto element_bytes = static_cast<int64_t>(tensor::size_bytes(dx.dtype));
  const TopKGradient gradient{rows_of(dy), dx.dims.back(), dy.dims.back(), element_bytes, nullptr, nullptr, nullptr};
  return Kernel([gradient, bytes = dx.bytes](const Frame &frame) -> Status {
    if (bytes == 0) return Status();
    TUTTI_TRY(status_of(gpuMemsetAsync(frame.output(0), 0, static_cast<size_t>(bytes), frame.stream()),
                        "launching top_k_gradient"));
    TopKGradient issued = gradient;
    issued.dy = frame.input(0);
    issued.indices = frame.input_as<int64_t>(1);
    issued.dx = frame.output(0);
    return status_of(launch_top_k_gradient(issued, frame.stream()), "launching top_k_gradient");
  });
}

}  // namespace tutti::impl::backend::gpu
