// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/fold_choice.h"

#include <algorithm>
#include <string>

#include "backend/cuda/planned_convolution.h"
#include "backend/gpu/library/even_padding.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::ConvolutionShape;
using gpu::FoldedStride;

namespace {

const std::string kNames[] = {"folded", "as it is"};

}  // namespace

Result<FoldedStride> choose_fold(const Handles &handles, const DeviceHandles::Use &use, const ConvolutionShape &shape,
                                 ConvolutionPass pass, const CudnnLimits &limits, gpu::AlgorithmTrials *trials) {
  const FoldedStride fold(shape, pass), none = FoldedStride::none(shape);
  const Cudnn *const cudnn = handles->cudnn(use);
  if (!fold.is_needed() || trials == nullptr || cudnn == nullptr) return none;
  const std::string what = base::concat("cudnn ", cudnn->cudnnGetVersion(), " folded or not ",
                                        gpu::describe_convolution(shape, pass), " within ", limits.most_scratch);
  if (const auto known = trials->known(what)) return *known == kNames[0] ? fold : none;
  if (!trials->may_measure()) return none;
  PlannedConvolution folded({fold.shape(), pass}, limits), own({gpu::EvenPadding(shape).shape(), pass}, limits);
  TUTTI_ASSIGN(const CudnnPlan *const folded_plan, folded.plan_for(handles, use, trials));
  TUTTI_ASSIGN(const CudnnPlan *const own_plan, own.plan_for(handles, use, trials));
  if (folded_plan == nullptr || own_plan == nullptr) return folded_plan == nullptr ? none : fold;
  // The image to fold lies behind what the folded convolution takes.
  const int64_t image_at = folded.trial_bytes(*folded_plan);
  const int64_t bytes = std::max(image_at + shape.x_bytes(), own.trial_bytes(*own_plan));
  const size_t best = trials->fastest(what, kNames, bytes, [&](size_t i, char *memory, cudaStream_t stream) -> Status {
    if (i == 1) return own.try_once(*own_plan, handles, use, memory, stream);
    TUTTI_TRY(fold.fold_image(memory, memory + image_at, stream));
    return folded.try_once(*folded_plan, handles, use, memory, stream);
  });
  return best == 0 ? fold : none;
}

}  // namespace tutti::impl::backend::cuda
