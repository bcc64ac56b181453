// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cudnn_convolution.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// What every tensor is aligned to; memory of arenas is to 64.
constexpr int64_t kAlignment = 16;

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDNN_DATA_DOUBLE;
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

/// The attributes in which an operation differs from the others.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, kernel, y, convolution, alpha, beta;
};

constexpr OperationNames kForward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
constexpr OperationNames kInputGradient = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
constexpr OperationNames kKernelGradient = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

const OperationNames &names_of(ConvolutionPass pass) {
  return pass == ConvolutionPass::forward
             ? kForward
             : (pass == ConvolutionPass::input_gradient ? kInputGradient : kKernelGradient);
}

using Four = std::array<int64_t, 4>;

CudnnDescriptor window_descriptor(const Cudnn &cudnn, const ConvolutionShape &shape, cudnnDataType_t compute) {
  CudnnDescriptor window(cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.pad_before);
  window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.pad_after);
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilation);
  window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.stride);
  return window;
}

constexpr int64_t kX = 1, kKernel = 2, kY = 3, kFirstOperand = 4;

/// A convolution and what follows it, descriptor by descriptor.
class GraphMaker {
 public:
  GraphMaker(const Cudnn &cudnn, const ConvolutionWork &work)
      : cudnn_(cudnn),
        shape_(work.shape),
        pass_(work.pass),
        tail_(work.tail),
        free_uid_(tensor_uids(work.tail).back() + 1) {}

  /// False where cuDNN does not take an operation: there are other kernels.
  Result<bool> make() {
    TUTTI_ASSIGN(const bool is_taken, add_convolution());
    if (!is_taken || tail_.is_empty()) return is_taken;
    TUTTI_TRY(add_tail_tensors());
    for (size_t i = 0; i < tail_.operations.size(); ++i) {
      TUTTI_ASSIGN(const bool is_added, add_tail_operation(tail_.operations[i], i + 1 == tail_.operations.size()));
      if (!is_added) return false;
    }
    return true;
  }
  CudnnGraph take() { return std::move(graph_); }

 private:
  using Pointer = cudnnBackendDescriptor_t;

  /// cuDNN's order of dims, whatever the memory's, is images (or filters), channels, height, width; this memory's is
  /// images, height, width, channels.
  CudnnDescriptor tensor_of(cudnnDataType_t type, int64_t uid, const Four &dims) {
    const auto &[images, height, width, channels] = dims;
    CudnnDescriptor tensor(cudnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, Four{images, channels, height, width});
    tensor.set(CUDNN_ATTR_TENSOR_STRIDES, Four{height * width * channels, 1, width * channels, channels});
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
    return tensor;
  }

  Result<Pointer> add_part(CudnnDescriptor part) {
    TUTTI_TRY(part.finalize());
    graph_.parts.push_back(std::move(part));
    return graph_.parts.back().pointer();
  }
  Result<Pointer> add_tensor(DType dtype, int64_t uid, const Four &dims) {
    return add_part(tensor_of(data_type(dtype), uid, dims));
  }
  /// What lies nowhere: from one operation to the next.
  Result<Pointer> add_virtual(cudnnDataType_t type) {
    CudnnDescriptor tensor = tensor_of(type, free_uid_++, result_dims());
    tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
    return add_part(std::move(tensor));
  }

  const Four &result_dims() const { return pass_ == ConvolutionPass::forward ? shape_.y : shape_.x; }
  int64_t result_uid() const { return pass_ == ConvolutionPass::forward ? kY : kX; }

  /// A tensor of the pass, or what it gives to the tail.
  Result<Pointer> add_image(int64_t uid, const Four &dims) {
    if (tail_.is_empty() || uid != result_uid()) return add_tensor(shape_.dtype, uid, dims);
    TUTTI_ASSIGN(convolved_, add_virtual(CUDNN_DATA_FLOAT));
    return convolved_;
  }

  Result<bool> add_convolution() {
    const bool is_double = shape_.dtype == DType::f64;
    const OperationNames &names = names_of(pass_);
    const Four kernel = {shape_.kernel[3], shape_.kernel[0], shape_.kernel[1], shape_.kernel[2]};
    CudnnDescriptor operation(cudnn_, names.operation);
    TUTTI_ASSIGN(const Pointer x, add_image(kX, shape_.x));
    operation.set(names.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, x);
    TUTTI_ASSIGN(const Pointer weights, add_tensor(shape_.dtype, kKernel, kernel));
    operation.set(names.kernel, CUDNN_TYPE_BACKEND_DESCRIPTOR, weights);
    TUTTI_ASSIGN(const Pointer y, add_image(kY, shape_.y));
    operation.set(names.y, CUDNN_TYPE_BACKEND_DESCRIPTOR, y);
    TUTTI_ASSIGN(const Pointer window,
                 add_part(window_descriptor(cudnn_, shape_, is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)));
    operation.set(names.convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, window);
    if (is_double) {
      operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0);
      operation.set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
    } else {
      operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
      operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
    }
    return add_operation(std::move(operation));
  }

  bool add_operation(CudnnDescriptor operation) {
    if (!operation.finalize().ok()) return false;
    graph_.operations.push_back(std::move(operation));
    return true;
  }

  Status add_tail_tensors() {
    int64_t uid = kFirstOperand;
    for (const TailOperand &operand : tail_.operands) {
      const Four dims = operand.access == gpu::EpilogueAccess::dense    ? result_dims()
                        : operand.access == gpu::EpilogueAccess::column ? Four{1, 1, 1, result_dims()[3]}
                                                                        : Four{1, 1, 1, 1};
      TUTTI_ASSIGN(const Pointer tensor, add_tensor(operand.dtype, uid++, dims));
      operands_.push_back(tensor);
    }
    for (size_t i = 0; i < tail_.constants.size(); ++i) {
      CudnnDescriptor number = tensor_of(CUDNN_DATA_FLOAT, uid++, {1, 1, 1, 1});
      number.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
      TUTTI_ASSIGN(const Pointer tensor, add_part(std::move(number)));
      constants_.push_back(tensor);
    }
    return Status();
  }

  Pointer pointer_of(TailValue value) const {
    const auto index = static_cast<size_t>(value.index);
    switch (value.kind) {
      case TailValue::Kind::convolution:
        return convolved_;
      case TailValue::Kind::operand:
        return operands_[index];
      case TailValue::Kind::constant:
        return constants_[index];
      case TailValue::Kind::operation:
        return made_[index];
      default:
        return nullptr;
    }
  }

  Result<bool> add_tail_operation(const TailOperation &one, bool is_last) {
    CudnnDescriptor mode(cudnn_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, one.mode);
    mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (!mode.finalize().ok()) return false;
    TUTTI_ASSIGN(const Pointer result,
                 is_last ? add_tensor(tail_.result, result_uid(), result_dims())
                         : add_virtual(is_comparison(one.mode) ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT));
    made_.push_back(result);
    const bool has_gradients = is_gradient(one.mode);
    CudnnDescriptor operation(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
    graph_.parts.push_back(std::move(mode));
    const std::pair<cudnnBackendAttributeName_t, Pointer> tensors[] = {
        {has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
         pointer_of(one.x)},
        {has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_XDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
         pointer_of(one.b)},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, pointer_of(one.t)},
        {has_gradients ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result}};
    for (const auto &[name, tensor] : tensors) {
      if (tensor != nullptr) operation.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, tensor);
    }
    return add_operation(std::move(operation));
  }

  const Cudnn &cudnn_;
  const ConvolutionShape &shape_;
  const ConvolutionPass pass_;
  const CudnnTail &tail_;
  CudnnGraph graph_;
  int64_t free_uid_;
  Pointer convolved_ = nullptr;                       // what the tail begins with
  std::vector<Pointer> operands_, constants_, made_;  // of the tail
};

}  // namespace

int64_t padding_behind(int64_t input, int64_t output, int64_t window, int64_t stride, int64_t dilation,
                       int64_t pad_before) {
  const int64_t reach = (window - 1) * dilation + 1;
  const int64_t covered = (output - 1) * stride + reach;
  const int64_t least = std::max<int64_t>(covered - input - pad_before, 0);
  const bool is_even_enough = (input + 2 * pad_before - reach) / stride + 1 == output && pad_before >= least;
  return is_even_enough ? pad_before : least;
}

std::string describe(const ConvolutionWork &work, const CudnnLimits &limits) {
  static constexpr const char *kPasses[] = {"forward", "input gradient", "kernel gradient"};
  const ConvolutionShape &shape = work.shape;
  return base::concat(kPasses[static_cast<size_t>(work.pass)], " ", name(shape.dtype), " x ", base::join(shape.x, "x"),
                      " kernel ", base::join(shape.kernel, "x"), " y ", base::join(shape.y, "x"), " stride ",
                      base::join(shape.stride, "x"), " dilation ", base::join(shape.dilation, "x"), " pads ",
                      base::join(shape.pad_before, "x"), "+", base::join(shape.pad_after, "x"), " within ",
                      limits.most_scratch, limits.allows_tensor_cores ? " tensor cores" : "",
                      limits.must_repeat ? " repeatable" : "", work.tail.describe());
}

std::vector<int64_t> tensor_uids(const CudnnTail &tail) {
  std::vector<int64_t> uids(3 + tail.operands.size() + tail.constants.size());
  std::iota(uids.begin(), uids.end(), kX);
  return uids;
}

Result<std::vector<CudnnPlan>> plan_convolution(const Cudnn &cudnn, const CudnnDevice &device,
                                                const ConvolutionWork &work, const CudnnLimits &limits,
                                                const CudnnWish &wish) {
  GraphMaker graph(cudnn, work);
  TUTTI_ASSIGN(const bool is_taken, graph.make());
  if (!is_taken) return std::vector<CudnnPlan>();
  return CudnnPlan::find(cudnn, device, graph.take(), limits, wish);
}

}  // namespace tutti::impl::backend::cuda
