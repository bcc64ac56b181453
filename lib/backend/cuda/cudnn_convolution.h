// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of images NHWC, and what follows them, as operations of cuDNN's graph interface.
//
// cuDNN's engines for NHWC want kernels as [filters, height, width, channels / groups]; tutti's are [height, width,
// channels / groups, filters], which is the transposed matrix.
#ifndef TUTTI_BACKEND_CUDA_CUDNN_CONVOLUTION_H_
#define TUTTI_BACKEND_CUDA_CUDNN_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/cudnn_plan.h"
#include "backend/cuda/cudnn_tail.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::cuda {

enum class ConvolutionPass { forward, input_gradient, kernel_gradient };

/// y = x * kernel; all three passes are described by the same tensors.
struct ConvolutionShape {
  tensor::DType dtype = tensor::DType::f32;
  std::array<int64_t, 4> x{}, y{};  ///< images, height, width, channels
  std::array<int64_t, 4> kernel{};  ///< height, width, channels / groups, filters
  std::array<int64_t, 2> stride{1, 1}, dilation{1, 1}, pad_before{}, pad_after{};  ///< by height and width

  int64_t filters() const { return kernel[3]; }
  /// Elements of the kernel for one filter.
  int64_t filter_size() const { return kernel[0] * kernel[1] * kernel[2]; }
};

/// The padding behind, for one axis: as much as in front where that gives the same windows (more engines take it), else
/// as little as will do.
int64_t padding_behind(int64_t input, int64_t output, int64_t window, int64_t stride, int64_t dilation,
                       int64_t pad_before);

/// One pass, and what follows it: a tail or sums, not both.
struct ConvolutionWork {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::forward;
  CudnnTail tail = {};
  bool has_sums = false;  ///< forward: the sum and the sum of squares of y for each filter, too, f32

  /// Is it more than the pass?
  bool is_fused() const { return has_sums || !tail.is_empty(); }
};

/// Names of the tensors in a plan: x or its gradient, kernel or its gradient, y or its gradient, then the operands of
/// the tail and its constants, or the sums and those of squares. What follows a pass as a tail is stored in place of
/// its result.
std::vector<int64_t> tensor_uids(const ConvolutionWork &work);

/// None where cuDNN does not take the convolution, or not with what follows it.
base::Result<std::vector<CudnnPlan>> plan_convolution(const Cudnn &cudnn, const CudnnDevice &device,
                                                      const ConvolutionWork &work, const CudnnLimits &limits,
                                                      const CudnnWish &wish = {});

/// "forward bf16 x 16x56x56x64 ...": what times of engines depend on.
std::string describe(const ConvolutionWork &work, const CudnnLimits &limits);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUDNN_CONVOLUTION_H_
