// SPDX-License-Identifier: Apache-2.0
//
// A convolution of MIOpen with its solution for each GPU that it ran on, compiled there. The first is chosen when the
// node is compiled; GPUs of one kind get the same.
//
// Threads: functions may be called from any thread.
#ifndef TUTTI_BACKEND_HIP_PLANNED_CONVOLUTION_H_
#define TUTTI_BACKEND_HIP_PLANNED_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/gpu/device/device_plans.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/library/library_convolution.h"
#include "backend/hip/miopen_convolution.h"
#include "backend/hip/miopen_handle.h"
#include "base/status.h"

namespace tutti::impl::backend::hip {

class PlannedConvolution {
 public:
  using Device = std::shared_ptr<MiopenHandle>;

  PlannedConvolution(const gpu::ConvolutionShape &shape, gpu::ConvolutionPass pass, bool must_repeat)
      : shape_(shape), pass_(pass), must_repeat_(must_repeat) {}

  const gpu::ConvolutionShape &shape() const { return shape_; }
  gpu::ConvolutionPass pass() const { return pass_; }
  /// The solution for a GPU; later ones are within the memory of the first. With `trials` that is the fastest, else
  /// MIOpen's first choice. Null where MIOpen is missing; UNIMPLEMENTED and the reason where it has nothing.
  base::Result<const MiopenSolution *> solution_for(const Device &device, const MiopenHandle::Use &use,
                                                    gpu::AlgorithmTrials *trials = nullptr);
  /// Puts it on the stream, on the current device. `tensors` are x, kernel (filters first) and y.
  base::Status issue(const std::array<void *, 3> &tensors, void *scratch, hipStream_t stream);

 private:
  using Solutions = std::vector<MiopenSolution>;

  base::Result<MiopenSolution> choose(MiopenHandle &device, const MiopenHandle::Use &use, gpu::AlgorithmTrials *trials);
  base::Result<Solutions> compile(miopenHandle_t handle, const Solutions &wanted, size_t most) const;
  size_t fastest(MiopenHandle &device, const MiopenHandle::Use &use, const std::string &what, const Solutions &compiled,
                 gpu::AlgorithmTrials &trials) const;

  const gpu::ConvolutionShape shape_;
  const gpu::ConvolutionPass pass_;
  const bool must_repeat_;
  // Changed while a solution is looked for only:
  std::optional<MiopenConvolution> convolution_;
  std::optional<MiopenSolution> first_;
  gpu::DevicePlans<Device, MiopenSolution> solutions_;
};

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_PLANNED_CONVOLUTION_H_
