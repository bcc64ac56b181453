// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of images NHWC, and what follows them, as operations of cuDNN's graph interface.
#ifndef TUTTI_BACKEND_CUDA_CUDNN_CONVOLUTION_H_
#define TUTTI_BACKEND_CUDA_CUDNN_CONVOLUTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/cudnn_epilogue.h"
#include "backend/cuda/cudnn_plan.h"
#include "backend/gpu/library/library_convolution.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

using gpu::ConvolutionPass;
using gpu::ConvolutionShape;

/// One pass, and what follows it: a tail or sums, not both.
struct ConvolutionWork {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::forward;
  CudnnEpilogue tail = {};
  bool has_sums = false;  ///< forward: the sum and the sum of squares of y for each filter, too, f32

  /// Is it more than the pass?
  bool is_fused() const { return has_sums || !tail.is_empty(); }
};

/// Names of the tensors in a plan: x or its gradient, kernel or its gradient, y or its gradient, then the operands of
/// the tail and its constants, or the sums and those of squares. What follows a pass as a tail is stored in place of
/// its result.
std::vector<int64_t> tensor_uids(const ConvolutionWork &work);

/// Is cuDNN asked for such a convolution? Not of f64, of which engines of 9.14 read beyond arrays, and not with a
/// stride and a dilation on one axis, of which one was seen to be wrong: other kernels are exact, if slower.
bool is_asked_for(const ConvolutionShape &shape);

/// Of a convolution that cuDNN is asked for, evenly padded (gpu/even_padding.h). None where cuDNN does not take it, or
/// not with what follows it.
base::Result<std::vector<CudnnPlan>> plan_convolution(const Cudnn &cudnn, const CudnnDevice &device,
                                                      const ConvolutionWork &work, const CudnnLimits &limits,
                                                      const CudnnWish &wish = {});

/// "forward bf16 x 16x56x56x64 ...": what times of engines depend on.
std::string describe(const ConvolutionWork &work, const CudnnLimits &limits);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUDNN_CONVOLUTION_H_
