// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by MIOpen. What follows them is done by the kernels of gpu/.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backend/gpu/library/library_convolution_steps.h"
#include "backend/hip/hip_library.h"
#include "backend/hip/planned_convolution.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;
using gpu::ConvolutionPass;
using gpu::ConvolutionShape;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;

namespace {

/// The kernel in MIOpen's order lies at the beginning of the scratch memory, MIOpen's own memory behind it.
struct Places {
  int64_t kernel = 0, own = 0;
};

Status issue(PlannedConvolution &convolution, const Places &places, const Frame &frame) {
  const ConvolutionShape &shape = convolution.shape();
  void *const kernel = frame.scratch_as<char>(places.kernel), *const own = frame.scratch_as<char>(places.own);
  void *const first = const_cast<void *>(frame.input(0)), *const second = const_cast<void *>(frame.input(1));
  if (convolution.pass() == ConvolutionPass::kernel_gradient) {
    TUTTI_TRY(convolution.issue({first, kernel, second}, own, frame.stream()));
    return gpu::to_filters_last(shape, frame.output(0), kernel, frame.stream());
  }
  TUTTI_TRY(gpu::to_filters_first(shape, kernel, second, frame.stream()));
  return convolution.pass() == ConvolutionPass::forward
             ? convolution.issue({first, kernel, frame.output(0)}, own, frame.stream())
             : convolution.issue({frame.output(0), kernel, first}, own, frame.stream());
}

class MiopenLibrary final : public gpu::Library {
 public:
  explicit MiopenLibrary(PlannedConvolution::Device device) : device_(std::move(device)) {}

  Result<Kernel> find(KernelRequest &request) override {
    const std::string_view op = request.node.op;
    if (request.tail != nullptr || request.sum != nullptr) return Kernel();
    if (op == "conv2d") return make_conv2d(request);
    if (op == "conv2d_input_gradient") return make_conv2d_input_gradient(request);
    if (op == "conv2d_kernel_gradient") return make_conv2d_kernel_gradient(request);
    return Kernel();
  }

  std::vector<std::string> missing() const override { return device_->missing(); }

  /// With the reason for which the first convolution was left to others, if one was.
  std::string describe() const override {
    const std::string text = device_->describe();
    return refusal_.empty() ? text : base::concat(text, ", not for every convolution: ", refusal_);
  }

 private:
  Result<Kernel> make_conv2d(KernelRequest &request) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dAttributes::from(request.node));
    const LoweredValue &y = request.output(0);
    TUTTI_ASSIGN(
        Kernel kernel,
        make_kernel(request, gpu::convolution_shape(attributes, y.dtype, request.input(0), request.input(1), y),
                    ConvolutionPass::forward));
    return kernel && request.has_input(2) ? gpu::with_bias(std::move(kernel), y) : kernel;
  }

  Result<Kernel> make_conv2d_input_gradient(KernelRequest &request) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dInputGradientAttributes::from(request.node));
    const LoweredValue &dx = request.output(0);
    return make_kernel(request, gpu::convolution_shape(attributes, dx.dtype, dx, request.input(1), request.input(0)),
                       ConvolutionPass::input_gradient);
  }

  Result<Kernel> make_conv2d_kernel_gradient(KernelRequest &request) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::Conv2dKernelGradientAttributes::from(request.node));
    const LoweredValue &dkernel = request.output(0);
    return make_kernel(request,
                       gpu::convolution_shape(attributes, dkernel.dtype, request.input(0), dkernel, request.input(1)),
                       ConvolutionPass::kernel_gradient);
  }

  Result<Kernel> make_kernel(KernelRequest &request, const ConvolutionShape &shape, ConvolutionPass pass) {
    if (gpu::is_empty(shape)) return Kernel();
    auto convolution = std::make_shared<PlannedConvolution>(shape, pass, request.lowered.level() != TUTTI_LEVEL_FAST);
    const MiopenHandle::Use use(*device_);
    const Result<const MiopenSolution *> solution = convolution->solution_for(device_, use, request.trials);
    if (!solution.ok() && solution.status().code() == base::Code::unimplemented) {
      if (refusal_.empty()) refusal_ = solution.status().message();
      return Kernel();
    }
    TUTTI_TRY(solution);
    if (*solution == nullptr) return Kernel();
    Places places;
    places.kernel = request.reserve_scratch(shape.kernel_bytes());
    places.own = request.reserve_scratch((*solution)->scratch_bytes);
    request.kernel_name = base::concat("miopen_", (*solution)->id);
    return Kernel([convolution = std::move(convolution), places](const Frame &frame) {
      return issue(*convolution, places, frame);
    });
  }

  const PlannedConvolution::Device device_;
  std::string refusal_;
};

}  // namespace

Result<std::unique_ptr<gpu::Library>> open_miopen_library(int32_t ordinal) {
  TUTTI_ASSIGN(PlannedConvolution::Device device, MiopenHandle::of(ordinal));
  return std::unique_ptr<gpu::Library>(std::make_unique<MiopenLibrary>(std::move(device)));
}

}  // namespace tutti::impl::backend::hip
