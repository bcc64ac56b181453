// SPDX-License-Identifier: Apache-2.0
//
// Which convolutions cuDNN is asked for folded (folded_stride.h).
#ifndef TUTTI_BACKEND_CUDA_FOLD_CHOICE_H_
#define TUTTI_BACKEND_CUDA_FOLD_CHOICE_H_

#include "backend/cuda/cudnn_convolution.h"
#include "backend/cuda/library_kernels.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/library/folded_stride.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

/// The fold of a convolution where trials find that, with the folding of x, faster than the convolution as it is; else
/// one that folds nothing. What follows a convolution does not count. `trials`: null, nothing is folded.
base::Result<gpu::FoldedStride> choose_fold(const Handles &handles, const DeviceHandles::Use &use,
                                            const gpu::ConvolutionShape &shape, ConvolutionPass pass,
                                            const CudnnLimits &limits, gpu::AlgorithmTrials *trials);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_FOLD_CHOICE_H_
