// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cudnn_convolution.h"

#include <numeric>
#include <utility>
#include <vector>

#include "backend/cuda/cudnn_operations.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using tensor::DType;

namespace {

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

CudnnDescriptor window_descriptor(const Cudnn &cudnn, const ConvolutionShape &shape) {
  CudnnDescriptor window(cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.pad_before);
  window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.pad_after);
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilation);
  window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.stride);
  return window;
}

constexpr int64_t kInput = 1, kKernel = 2, kOutput = 3, kFirstTensor = 4;

/// cuDNN's order of dims, whatever the memory's, is images (or filters), channels, height, width; this memory's is
/// images, height, width, channels.
CudnnTensor image_tensor(cudnnDataType_t type, const Four &dims) {
  const auto &[images, height, width, channels] = dims;
  return {type, {images, channels, height, width}, {height * width * channels, 1, width * channels, channels}};
}

/// What the sums are of: y as it is stored, or its elements as f32, which are the same numbers.
enum class Summed { stored, widened };

/// In this order. Of dtypes cuDNN documents f16 and f32 for what it adds up (constraints for GenStats operations), and
/// a virtual tensor in front of it. Engines that add up bf16 as it is are there, but are documented nowhere.
std::vector<Summed> ways_to_sum(const ConvolutionWork &work) {
  if (work.has_sums && work.shape.dtype == DType::bf16) return {Summed::widened, Summed::stored};
  return {Summed::stored};
}

/// A convolution and what follows it, operation by operation.
class ConvolutionGraphMaker {
 public:
  ConvolutionGraphMaker(const Cudnn &cudnn, const ConvolutionWork &work, Summed summed)
      : cudnn_(cudnn),
        shape_(work.shape),
        pass_(work.pass),
        tail_(work.tail),
        has_sums_(work.has_sums),
        summed_(summed),
        graph_(cudnn, tensor_uids(work).back() + 1) {}

  /// False where cuDNN does not take an operation: there are other kernels.
  Result<bool> make() {
    add_convolution();
    if (has_sums_) add_sums();
    if (tail_.is_empty()) return graph_.finish();
    add_tail_tensors();
    for (size_t i = 0; i < tail_.operations.size(); ++i)
      add_tail_operation(tail_.operations[i], i + 1 == tail_.operations.size());
    return graph_.finish();
  }
  CudnnGraph take() { return graph_.take(); }

 private:
  const Four &result_dims() const { return pass_ == ConvolutionPass::forward ? shape_.y : shape_.x; }
  int64_t result_uid() const { return pass_ == ConvolutionPass::forward ? kOutput : kInput; }

  /// A tensor of the pass, or what it gives to the tail.
  CudnnValue add_image(int64_t uid, const Four &dims) {
    const bool is_stored = tail_.is_empty() || uid != result_uid();
    const CudnnValue stored = is_stored ? graph_.tensor(image_tensor(cudnn_type(shape_.dtype), dims), uid) : nullptr;
    if (is_stored && uid == result_uid()) convolved_ = stored;
    if (is_stored) return stored;
    return convolved_ = graph_.between(image_tensor(CUDNN_DATA_FLOAT, dims));
  }

  void add_convolution() {
    const OperationNames &names = names_of(pass_);
    const Four kernel = {shape_.kernel[3], shape_.kernel[0], shape_.kernel[1], shape_.kernel[2]};
    CudnnDescriptor operation(cudnn_, names.operation);
    operation.set(names.x, CUDNN_TYPE_BACKEND_DESCRIPTOR, add_image(kInput, shape_.x));
    operation.set(names.kernel, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  graph_.tensor(image_tensor(cudnn_type(shape_.dtype), kernel), kKernel));
    operation.set(names.y, CUDNN_TYPE_BACKEND_DESCRIPTOR, add_image(kOutput, shape_.y));
    operation.set(names.convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph_.part(window_descriptor(cudnn_, shape_)));
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
    graph_.operation(std::move(operation));
  }

  void add_sums() {
    const CudnnTensor numbers = image_tensor(CUDNN_DATA_FLOAT, {1, 1, 1, shape_.filters()});
    const CudnnValue sums = graph_.tensor(numbers, kFirstTensor), squares = graph_.tensor(numbers, kFirstTensor + 1);
    CudnnValue summed = convolved_;
    if (summed_ == Summed::widened) {
      summed = graph_.between(image_tensor(CUDNN_DATA_FLOAT, shape_.y));
      graph_.pointwise({CUDNN_POINTWISE_IDENTITY, convolved_}, summed);
    }
    graph_.channel_sums(summed, sums, squares);
  }

  void add_tail_tensors() {
    int64_t uid = kFirstTensor;
    for (const CudnnEpilogueOperand &operand : tail_.operands) {
      const Four dims = operand.access == gpu::EpilogueAccess::dense    ? result_dims()
                        : operand.access == gpu::EpilogueAccess::column ? Four{1, 1, 1, result_dims()[3]}
                                                                        : Four{1, 1, 1, 1};
      operands_.push_back(graph_.tensor(image_tensor(cudnn_type(operand.dtype), dims), uid++));
    }
    for (size_t i = 0; i < tail_.constants.size(); ++i)
      constants_.push_back(graph_.number(CUDNN_DATA_FLOAT, uid++));
  }

  CudnnValue value_of(CudnnEpilogueValue value) const {
    const auto index = static_cast<size_t>(value.index);
    switch (value.kind) {
      case CudnnEpilogueValue::Kind::convolution:
        return convolved_;
      case CudnnEpilogueValue::Kind::operand:
        return operands_[index];
      case CudnnEpilogueValue::Kind::constant:
        return constants_[index];
      case CudnnEpilogueValue::Kind::operation:
        return made_[index];
      default:
        return nullptr;
    }
  }

  void add_tail_operation(const CudnnEpilogueOperation &one, bool is_last) {
    const cudnnDataType_t between = is_comparison(one.mode) ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
    made_.push_back(is_last ? graph_.tensor(image_tensor(cudnn_type(tail_.result), result_dims()), result_uid())
                            : graph_.between(image_tensor(between, result_dims())));
    graph_.pointwise({one.mode, value_of(one.x), value_of(one.b), value_of(one.t)}, made_.back());
  }

  const Cudnn &cudnn_;
  const ConvolutionShape &shape_;
  const ConvolutionPass pass_;
  const CudnnEpilogue &tail_;
  const bool has_sums_;
  const Summed summed_;
  CudnnGraphWriter graph_;
  CudnnValue convolved_ = nullptr;                       // what the tail begins with, or the sums are of
  std::vector<CudnnValue> operands_, constants_, made_;  // of the tail
};

}  // namespace

bool is_asked_for(const ConvolutionShape &shape) {
  const auto steps_and_gaps = [&](size_t axis) { return shape.stride[axis] > 1 && shape.dilation[axis] > 1; };
  return shape.dtype != DType::f64 && !steps_and_gaps(0) && !steps_and_gaps(1);
}

std::string describe(const ConvolutionWork &work, const CudnnLimits &limits) {
  return base::concat(gpu::describe_convolution(work.shape, work.pass), " within ", limits.most_scratch,
                      limits.allows_tensor_cores ? " tensor cores" : "", limits.must_repeat ? " repeatable" : "",
                      work.has_sums ? " and sums" : "", work.tail.describe());
}

std::vector<int64_t> tensor_uids(const ConvolutionWork &work) {
  std::vector<int64_t> uids(3 + work.tail.operands.size() + work.tail.constants.size() + (work.has_sums ? 2 : 0));
  std::iota(uids.begin(), uids.end(), kInput);
  return uids;
}

Result<std::vector<CudnnPlan>> plan_convolution(const Cudnn &cudnn, const CudnnDevice &device,
                                                const ConvolutionWork &work, const CudnnLimits &limits,
                                                const CudnnWish &wish) {
  for (const Summed summed : ways_to_sum(work)) {
    ConvolutionGraphMaker graph(cudnn, work, summed);
    TUTTI_ASSIGN(const bool is_taken, graph.make());
    if (!is_taken) continue;
    CudnnWish wanted = wish;
    wanted.kept_as = describe(work, limits) + (summed == Summed::widened ? " widened" : "");
    TUTTI_ASSIGN(std::vector<CudnnPlan> plans, CudnnPlan::find(cudnn, device, graph.take(), limits, wanted));
    if (!plans.empty()) return plans;
  }
  return std::vector<CudnnPlan>();
}

}  // namespace tutti::impl::backend::cuda
