// SPDX-License-Identifier: Apache-2.0
//
// What follows a convolution, as pointwise operations of cuDNN's graph interface: computed in f32, rounded once. What
// becomes of a NaN in cuDNN's relu, maximum and activations is documented nowhere, and a loss that is not finite has to
// be seen: all that chooses is made of comparisons and BINARY_SELECT, and activations are chosen only for numbers.
#ifndef TUTTI_BACKEND_CUDA_CUDNN_EPILOGUE_H_
#define TUTTI_BACKEND_CUDA_CUDNN_EPILOGUE_H_

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/gpu/device/device_epilogue.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::cuda {

/// What an operation reads.
struct CudnnEpilogueValue {
  enum class Kind : int32_t { none, convolution, operand, constant, operation };

  Kind kind = Kind::none;
  int32_t index = 0;  ///< of the operand, constant or operation
};

struct CudnnEpilogueOperand {
  tensor::DType dtype = tensor::DType::f32;
  gpu::EpilogueAccess access = gpu::EpilogueAccess::dense;
  int32_t input = 0;  ///< of the frame
};

/// mode(x, b, t); of modes for gradients x is that of the result and b what the activation was of.
struct CudnnEpilogueOperation {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
  CudnnEpilogueValue x, b, t;
};

struct CudnnEpilogue {
  /// A bias of the node's own and what an epilogue reads.
  static constexpr size_t kMostOperands = 1 + gpu::Epilogue::kOperands;

  tensor::DType result = tensor::DType::f32;  ///< of what is stored
  std::vector<CudnnEpilogueOperand> operands;
  std::vector<float> constants;
  std::vector<CudnnEpilogueOperation> operations;  ///< each behind what it reads; the last one's result is stored
  int32_t kernels_apart = 0;                       ///< launches that would do it behind the convolution

  bool is_empty() const { return operations.empty(); }
  /// " then 1(c 0:f32 column -) ...": what times of engines depend on.
  std::string describe() const;
};

/// The bias if there is one, then the epilogue if there is one, whose first operand is the frame's input `first`.
/// Nothing where an op is not among cuDNN's, or where the results are f32 and how exact cuDNN's is is not documented.
std::optional<CudnnEpilogue> read_epilogue(tensor::DType result, const std::optional<CudnnEpilogueOperand> &bias,
                                           const gpu::Epilogue *epilogue, int32_t first);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUDNN_EPILOGUE_H_
