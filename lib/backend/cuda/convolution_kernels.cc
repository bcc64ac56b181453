// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by cuDNN. A convolution of one pixel is a matrix product of pixels and filters, and is done as one.
#include <optional>
#include <utility>

#include "backend/cuda/fold_choice.h"
#include "backend/cuda/library_epilogue.h"
#include "backend/cuda/library_kernels.h"
#include "backend/cuda/planned_convolution.h"
#include "backend/gpu/fusion/norm_sources.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/library/even_padding.h"
#include "backend/gpu/library/folded_stride.h"
#include "backend/gpu/library/library_convolution_steps.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::EvenPadding;
using gpu::FoldedStride;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;
using gpu::status_of;
using tensor::DType;

namespace {

/// Some of cuDNN's algorithms for f32 keep all operands in another layout. Within 256 MiB one engine was left for an
/// input gradient of 200 MB, and took 32 ms on an H200, a third of the whole step.
constexpr int64_t kMostConvolutionScratch = int64_t{1} << 30;

// ---- products ----

/// `has_bias`: with that of the node.
Result<Kernel> product_kernel(KernelRequest &request, const Handles &handles, const ConvolutionShape &shape,
                              ConvolutionPass pass, bool has_bias) {
  ProductShape wanted = gpu::product_of(shape, pass);
  wanted.allows_rounding = request.lowered.allows_tf32();
  if (request.sum != nullptr) return make_product_with_sum(request, handles, wanted);
  LibraryEpilogue tail;
  if (has_bias) tail.add_bias(request, wanted);
  if (!tail.read(request, wanted)) return Kernel();
  TUTTI_ASSIGN(auto product, make_product(request, handles, wanted));
  if (product == nullptr) return Kernel();
  tail.reserve(request);
  return Kernel([handles, product, tail](const Frame &frame) -> Status {
    TUTTI_ASSIGN(const void *const bias, tail.bias(frame));
    return issue_product(*product, frame,
                         {frame.input(0), frame.input(1), frame.output(0), tail.addend(frame), bias, nullptr,
                          tail.gelu_operand(frame), tail.kept_operand(frame)});
  });
}

// ---- cuDNN ----

/// The kernel in cuDNN's order lies at the beginning of the scratch memory, then another x, then cuDNN's own memory.
struct ConvolutionScratch {
  int64_t kernel = 0, own = 0;
};

struct PreparedConvolution {
  std::shared_ptr<PlannedConvolution> convolution;  // null: cuDNN has nothing
  FoldedStride fold;
  EvenPadding padding;  // of what is folded
  ConvolutionScratch scratch = {};
};

Result<PreparedConvolution> prepare(KernelRequest &request, const Handles &handles, ConvolutionWork work) {
  PreparedConvolution prepared{nullptr, FoldedStride::none(work.shape), EvenPadding(work.shape)};
  // What follows a gradient of x would be computed of the larger one.
  const bool follows_x = work.pass == ConvolutionPass::input_gradient && !work.tail.is_empty();
  if (!is_asked_for(work.shape) || (follows_x && prepared.padding.is_needed())) return prepared;
  CudnnLimits limits;
  limits.most_scratch = kMostConvolutionScratch;
  limits.allows_tensor_cores = work.shape.dtype != DType::f32 || request.lowered.allows_tf32();
  limits.must_repeat = request.lowered.level() != TUTTI_LEVEL_FAST;
  const DeviceHandles::Use use(*handles);
  TUTTI_ASSIGN(prepared.fold, choose_fold(handles, use, work.shape, work.pass, limits, request.trials));
  prepared.padding = EvenPadding(prepared.fold.shape());
  work.shape = prepared.padding.shape();
  auto convolution = std::make_shared<PlannedConvolution>(std::move(work), limits);
  TUTTI_ASSIGN(const CudnnPlan *const plan, convolution->plan_for(handles, use, request.trials));
  if (plan == nullptr) return prepared;
  prepared.scratch.kernel = request.reserve_scratch(convolution->work().shape.kernel_bytes());
  prepared.fold.reserve(request);
  prepared.padding.reserve(request);
  prepared.scratch.own = request.reserve_scratch(plan->scratch_bytes());
  request.kernel_name = base::concat("cudnn_", plan->engine());
  prepared.convolution = std::move(convolution);
  return prepared;
}

Result<Kernel> cudnn_kernel(KernelRequest &request, const Handles &handles, const ConvolutionWork &work) {
  TUTTI_ASSIGN(const PreparedConvolution prepared, prepare(request, handles, work));
  if (prepared.convolution == nullptr) return Kernel();
  return Kernel([prepared](const Frame &frame) -> Status {
    PlannedConvolution &convolution = *prepared.convolution;
    const FoldedStride &fold = prepared.fold;
    const ConvolutionPass pass = convolution.work().pass;
    void *const kernel = frame.scratch_as<char>(prepared.scratch.kernel);
    void *const own = frame.scratch_as<char>(prepared.scratch.own);
    if (pass == ConvolutionPass::input_gradient) {
      TUTTI_TRY(fold.to_filters_first(kernel, frame.input(1), frame.stream()));
      void *const dx = prepared.padding.gradient(frame, frame.output(0));
      TUTTI_TRY(convolution.issue(frame, {dx, kernel, const_cast<void *>(frame.input(0))}, own));
      return prepared.padding.narrow(frame, frame.output(0));
    }
    TUTTI_ASSIGN(void *const image, fold.image(frame, frame.input(0)));
    TUTTI_ASSIGN(void *const x, prepared.padding.widen(frame, image));
    if (pass == ConvolutionPass::kernel_gradient) {
      TUTTI_TRY(convolution.issue(frame, {x, kernel, const_cast<void *>(frame.input(1))}, own));
      return fold.to_filters_last(frame.output(0), kernel, frame.stream());
    }
    TUTTI_TRY(fold.to_filters_first(kernel, frame.input(1), frame.stream()));
    return convolution.issue(frame, {x, kernel, frame.output(0)}, own);
  });
}

/// The convolution with the bias of the node and the tail of the request; empty where there are none, too.
Result<Kernel> cudnn_kernel_with_tail(KernelRequest &request, const Handles &handles, ConvolutionWork work) {
  const bool has_bias = request.has_input(2);
  if (!has_bias && request.tail == nullptr) return Kernel();
  if (request.tail != nullptr && request.tail->keeps()) return Kernel();
  std::optional<CudnnEpilogueOperand> bias;
  if (has_bias) bias = CudnnEpilogueOperand{request.input(2).dtype, gpu::EpilogueAccess::column, 2};
  const gpu::Epilogue *const epilogue = request.tail == nullptr ? nullptr : &request.tail->epilogue;
  std::optional<CudnnEpilogue> tail = read_epilogue(epilogue == nullptr ? work.shape.dtype : epilogue->dtype, bias,
                                                    epilogue, static_cast<int32_t>(request.input_count()));
  if (!tail) return Kernel();
  work.tail = std::move(*tail);
  TUTTI_ASSIGN(Kernel kernel, cudnn_kernel(request, handles, work));
  if (kernel && has_bias) request.kernel_name += "_bias";
  return kernel;
}

/// Without what follows.
Result<Kernel> make_kernel(KernelRequest &request, const Handles &handles, const ConvolutionShape &shape,
                           ConvolutionPass pass) {
  if (is_empty(shape) || (request.sum != nullptr && !is_product(shape))) return Kernel();
  return is_product(shape) ? product_kernel(request, handles, shape, pass, false)
                           : cudnn_kernel(request, handles, {shape, pass});
}

/// With what follows, or empty.
Result<Kernel> make_kernel_with_tail(KernelRequest &request, const Handles &handles, const ConvolutionShape &shape,
                                     ConvolutionPass pass) {
  if (is_empty(shape)) return Kernel();
  if (!is_product(shape)) return cudnn_kernel_with_tail(request, handles, {shape, pass});
  const bool has_bias = request.has_input(2);
  return has_bias || request.tail != nullptr ? product_kernel(request, handles, shape, pass, has_bias) : Kernel();
}

}  // namespace

Result<Kernel> make_normalized_conv2d(KernelRequest &request, const Handles &handles) {
  const DType dtype = request.input(0).dtype;
  if (dtype != DType::bf16 && dtype != DType::f16) return Kernel();
  const graph::Node &source = *request.source;
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(source));
  const LoweredGraph &lowered = request.lowered;
  ConvolutionWork work{gpu::convolution_shape(attributes, dtype, lowered.value(source.inputs[0]),
                                              lowered.value(source.inputs[1]), request.input(0))};
  work.has_sums = true;
  if (is_empty(work.shape)) return Kernel();
  TUTTI_ASSIGN(const PreparedConvolution prepared, prepare(request, handles, work));
  if (prepared.convolution == nullptr) return Kernel();
  request.kernel_name += "_sums";
  TUTTI_ASSIGN(const gpu::NormOfSums norm, gpu::NormOfSums::make(request));
  return Kernel([prepared, norm](const Frame &frame) -> Status {
    void *const kernel = frame.scratch_as<char>(prepared.scratch.kernel);
    TUTTI_TRY(prepared.fold.to_filters_first(kernel, norm.kernel(frame), frame.stream()));
    TUTTI_ASSIGN(void *const image, prepared.fold.image(frame, norm.image(frame)));
    TUTTI_ASSIGN(void *const x, prepared.padding.widen(frame, image));
    TUTTI_TRY(prepared.convolution->issue(frame, {x, kernel, norm.result(frame)},
                                          frame.scratch_as<char>(prepared.scratch.own), norm.sums(frame)));
    return norm.issue(frame);
  });
}

Result<Kernel> make_conv2d(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(request.node));
  const LoweredValue &y = request.output(0);
  const ConvolutionShape shape =
      gpu::convolution_shape(attributes, request.output(0).dtype, request.input(0), request.input(1), y);
  TUTTI_ASSIGN(Kernel kernel, make_kernel_with_tail(request, handles, shape, ConvolutionPass::forward));
  if (kernel || request.tail != nullptr) return kernel;
  TUTTI_ASSIGN(kernel, make_kernel(request, handles, shape, ConvolutionPass::forward));
  if (!kernel || !request.has_input(2)) return kernel;
  return gpu::with_bias(std::move(kernel), y);
}

Result<Kernel> make_conv2d_input_gradient(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(request.node));
  const ConvolutionShape shape = gpu::convolution_shape(attributes, request.output(0).dtype, request.output(0),
                                                        request.input(1), request.input(0));
  return request.tail == nullptr ? make_kernel(request, handles, shape, ConvolutionPass::input_gradient)
                                 : make_kernel_with_tail(request, handles, shape, ConvolutionPass::input_gradient);
}

Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request, const Handles &handles) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(request.node));
  const ConvolutionShape shape = gpu::convolution_shape(attributes, request.output(0).dtype, request.input(0),
                                                        request.output(0), request.input(1));
  return make_kernel(request, handles, shape, ConvolutionPass::kernel_gradient);
}

}  // namespace tutti::impl::backend::cuda
