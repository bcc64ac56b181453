// SPDX-License-Identifier: Apache-2.0
//
// Images of another size.
#include "backend/gpu/device/device_interpolate.h"
#include "backend/gpu/kernel/kernels.h"

namespace tutti::impl::backend::gpu {

base::Result<Kernel> make_interpolate2d(KernelRequest &request) {
  const std::vector<int64_t> &from = request.input(0).dims, &to = request.output(0).dims;
  const Interpolation images{
      request.input(0).dtype, from[0], from[1], from[2], from[3], to[1], to[2], nullptr, nullptr};
  return Kernel([images](const Frame &frame) {
    Interpolation issued = images;
    issued.x = frame.input(0);
    issued.y = frame.output(0);
    return status_of(launch_interpolation(issued, frame.stream()), "launching interpolate2d");
  });
}

}  // namespace tutti::impl::backend::gpu
