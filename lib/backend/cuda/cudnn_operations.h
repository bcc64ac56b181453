// SPDX-License-Identifier: Apache-2.0
//
// Graphs of cuDNN's operations, written one operation after the other.
//
//   CudnnGraphWriter graph(cudnn, first_free_uid);
//   const auto x = graph.tensor({CUDNN_DATA_HALF, dims, strides}, 1);         // lies in memory, named by its uid
//   const auto sums = graph.between({CUDNN_DATA_FLOAT, dims, strides});      // lies nowhere: between operations
//   graph.reduce(CUDNN_REDUCE_TENSOR_ADD, x, sums);
//   TUTTI_ASSIGN(const bool is_taken, graph.finish());                        // false: cuDNN takes no such operation
//   CudnnPlan::find(cudnn, device, graph.take(), limits);
//
// What goes wrong first is kept; everything behind it does nothing.
//
// Threads: objects may be used by one thread at a time.
#ifndef TUTTI_BACKEND_CUDA_CUDNN_OPERATIONS_H_
#define TUTTI_BACKEND_CUDA_CUDNN_OPERATIONS_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "backend/cuda/cudnn_plan.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::cuda {

/// What cuDNN calls an element type; f32 for those that it has no operations for.
cudnnDataType_t cudnn_type(tensor::DType dtype);

/// Elements and where they lie; dims in cuDNN's order.
struct CudnnTensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int64_t, 4> dims = {}, strides = {};
};

/// A tensor of a graph; null where an operation has none.
using CudnnValue = cudnnBackendDescriptor_t;

/// A pointwise operation: mode(x, b, t); of modes for gradients x is that of the result, b what the mode was of.
struct CudnnPointwise {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
  CudnnValue x = nullptr, b = nullptr, t = nullptr;
  cudnnDataType_t computed_in = CUDNN_DATA_FLOAT;
  int64_t axis = -1;  ///< of CUDNN_POINTWISE_GEN_INDEX
};

/// Is it of two tensors dy and x, which have attributes of their own?
constexpr bool is_gradient(cudnnPointwiseMode_t mode) {
  return mode == CUDNN_POINTWISE_GELU_BWD || mode == CUDNN_POINTWISE_GELU_APPROX_TANH_BWD;
}

/// Is the result true or false?
constexpr bool is_comparison(cudnnPointwiseMode_t mode) {
  return mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_CMP_LE;
}

class CudnnGraphWriter {
 public:
  /// What every tensor in memory is aligned to, in bytes; memory of arenas is to 64.
  static constexpr int64_t kAlignment = 16;

  /// Tensors that lie nowhere get `first_free_uid` and those behind it.
  CudnnGraphWriter(const Cudnn &cudnn, int64_t first_free_uid) : cudnn_(&cudnn), free_uid_(first_free_uid) {}

  CudnnValue tensor(const CudnnTensor &tensor, int64_t uid) { return add_tensor(tensor, uid, false); }
  CudnnValue between(const CudnnTensor &tensor) { return add_tensor(tensor, free_uid_++, true); }
  /// One number, whose pointer is the host's when the plan is executed.
  CudnnValue number(cudnnDataType_t type, int64_t uid);
  /// A description that operations refer to.
  CudnnValue part(CudnnDescriptor part);

  void operation(CudnnDescriptor operation);
  void pointwise(const CudnnPointwise &operation, CudnnValue y);
  /// c = a b of the last two dims.
  void product(CudnnValue a, CudnnValue b, CudnnValue c);
  /// Over the dims that are 1 in `y`.
  void reduce(cudnnReduceTensorOp_t mode, CudnnValue x, CudnnValue y);
  /// Of each channel of an image the sum and the sum of squares.
  void channel_sums(CudnnValue x, CudnnValue sums, CudnnValue squares);
  /// The same memory with other dims.
  void reshape(CudnnValue x, CudnnValue y);

  /// False where cuDNN does not take an operation; an error where it cannot describe a tensor.
  base::Result<bool> finish() const;
  CudnnGraph take() { return std::move(graph_); }

 private:
  using Operands = std::initializer_list<std::pair<cudnnBackendAttributeName_t, CudnnValue>>;

  bool is_failed() const { return !status_.ok() || !is_taken_; }
  CudnnValue add_tensor(const CudnnTensor &tensor, int64_t uid, bool is_virtual);
  CudnnDescriptor describe(const CudnnTensor &tensor, int64_t uid) const;
  void operation(cudnnBackendDescriptorType_t type, Operands operands);

  const Cudnn *cudnn_;
  int64_t free_uid_;
  CudnnGraph graph_;
  base::Status status_;
  bool is_taken_ = true;
};

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUDNN_OPERATIONS_H_
