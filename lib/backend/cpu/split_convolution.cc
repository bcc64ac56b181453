// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/split_convolution.h"

#include <string>

#include "backend/cpu/simd_reduce.h"
#include "backend/cpu/simd_split_gemm.h"

namespace tutti::impl::backend::cpu {

using base::Result;

namespace {

bool is_possible(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  for (size_t axis = 0; axis < 2; ++axis) {
    if (s.stride[axis] != 1 || s.pad_low[axis] != 0 || s.pad_high[axis] != 0) return false;
  }
  return s.groups == 1 && s.kernel_height == 1 && s.kernel_width == 1 && !request.blocked_input &&
         !request.blocked_output && (request.kernel_layout.empty() || request.kernel_layout == "any");
}

/// The product of a pass.
GemmShape product_of(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  const int64_t positions = s.rows * s.out_height * s.out_width, in = s.in_channels, out = s.out_channels;
  switch (request.pass) {
    case ConvolutionPass::forward:
      return {positions, out, in, in, 1, out, 1, out, request.epilogue.sum};
    case ConvolutionPass::input_gradient:
      return {positions, in, out, out, 1, 1, out, in, false};
    case ConvolutionPass::kernel_gradient:
      break;
  }
  return {in, out, positions, 1, in, out, 1, out, false};
}

class SplitKernel final : public Kernel {
 public:
  SplitKernel(const ConvolutionRequest &request, const GemmShape &shape, const ConvolutionBuffers &buffers)
      : pass_(request.pass), relu_(request.epilogue.relu), shape_(shape), buffers_(buffers) {}

  int32_t run(const RunContext &context, KernelState *) const override {
    const ConvolutionBuffers &b = buffers_;
    float *scratch = context.out(b.scratch);
    switch (pass_) {
      case ConvolutionPass::forward: {
        const GemmEpilogue epilogue{.bias = context.in_or_null(b.bias), .relu = relu_};
        split_gemm(shape_, context.in(b.input), context.in(b.kernel), context.out(b.output), epilogue, scratch);
        break;
      }
      case ConvolutionPass::input_gradient:
        split_gemm(shape_, context.in(b.output), context.in(b.kernel), context.out(b.input), {}, scratch);
        break;
      case ConvolutionPass::kernel_gradient:
        split_gemm(shape_, context.in(b.input), context.in(b.output), context.out(b.kernel), {}, scratch);
        if (b.bias >= 0) reduce(ReduceKind::sum, {1, shape_.k, shape_.n}, context.in(b.output), context.out(b.bias));
        break;
    }
    return 0;
  }

 private:
  ConvolutionPass pass_;
  bool relu_;
  GemmShape shape_;
  ConvolutionBuffers buffers_;
};

class SplitConvolution final : public ConvolutionPlan {
 public:
  explicit SplitConvolution(const ConvolutionRequest &request) : request_(request), shape_(product_of(request)) {}

  const std::string &implementation() const override { return implementation_; }
  const std::string &kernel_layout() const override { return kernel_layout_; }
  int64_t scratch_bytes() const override {
    return split_gemm_scratch_floats(shape_) * static_cast<int64_t>(sizeof(float));
  }
  std::unique_ptr<Kernel> kernel(const ConvolutionBuffers &buffers) const override {
    return std::make_unique<SplitKernel>(request_, shape_, buffers);
  }

 private:
  ConvolutionRequest request_;
  GemmShape shape_;
  std::string implementation_ = "1x1", kernel_layout_;
};

}  // namespace

bool suits_split_plan(const ConvolutionRequest &request) {
  return is_possible(request) && split_gemm_suits(product_of(request));
}

Result<std::shared_ptr<const ConvolutionPlan>> make_split_plan(const ConvolutionRequest &request) {
  const GemmShape shape = product_of(request);
  if (!is_possible(request) || !split_gemm_is_possible(shape)) {
    return base::unimplemented("the matrix unit is for convolutions of 1x1 without gaps between row-major images");
  }
  return std::shared_ptr<const ConvolutionPlan>(std::make_shared<SplitConvolution>(request));
}

}  // namespace tutti::impl::backend::cpu
