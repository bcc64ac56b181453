// SPDX-License-Identifier: Apache-2.0
//
// A convolution of cuDNN with its plan for each GPU that it ran on. The first is made when the node is compiled; GPUs
// of one kind get equal plans.
//
// Threads: functions may be called from any thread.
#ifndef TUTTI_BACKEND_CUDA_PLANNED_CONVOLUTION_H_
#define TUTTI_BACKEND_CUDA_PLANNED_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cudnn_convolution.h"
#include "backend/cuda/library_kernels.h"
#include "backend/gpu/device/device_plans.h"
#include "backend/gpu/library/algorithm_trials.h"

namespace tutti::impl::backend::cuda {

class PlannedConvolution {
 public:
  PlannedConvolution(ConvolutionWork work, const CudnnLimits &limits) : work_(std::move(work)), limits_(limits) {}

  const ConvolutionWork &work() const { return work_; }
  /// The plan for a GPU, or null; later ones are of the engine and within the memory of the first. With `trials` that
  /// is the fastest, else cuDNN's first choice. Null, too, where trials say that what follows is faster apart.
  base::Result<const CudnnPlan *> plan_for(const Handles &handles, const DeviceHandles::Use &use,
                                           gpu::AlgorithmTrials *trials = nullptr);
  /// Puts the convolution on the frame's stream. `tensors` are x, kernel and y; the tail's are the frame's. `sums` are
  /// those of y, if it has them, then those of squares (gpu::squares_at).
  base::Status issue(const gpu::Frame &frame, const std::array<void *, 3> &tensors, void *scratch,
                     float *sums = nullptr);

  /// One call of a plan of the convolution alone on memory for trials, which has its x first, and how much of that it
  /// takes.
  int64_t trial_bytes(const CudnnPlan &plan) const;
  base::Status try_once(const CudnnPlan &plan, const Handles &handles, const DeviceHandles::Use &use, char *memory,
                        cudaStream_t stream) const;

 private:
  using Plans = std::vector<CudnnPlan>;

  base::Result<Plans> find_plans(const Cudnn &cudnn, const CudnnDevice &device, const CudnnWish &wish);
  base::Result<Plans> find_fastest(const Handles &handles, const DeviceHandles::Use &use, gpu::AlgorithmTrials &trials);
  base::Status try_plan(const CudnnPlan &plan, const CudnnDevice &device, char *memory) const;
  base::Status try_apart(const CudnnPlan &plain, const CudnnDevice &device, char *memory, cudaStream_t stream) const;

  const ConvolutionWork work_;
  // Changed while a plan is looked for only:
  CudnnLimits limits_;
  std::string engine_name_;  // of the first; "" = none yet
  gpu::DevicePlans<Handles, CudnnPlan> plans_;
};

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_PLANNED_CONVOLUTION_H_
