// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution/pointwise_convolution.h"

#include <algorithm>
#include <string>

#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_reduce.h"

namespace tutti::impl::backend::cpu {

using base::Result;

namespace {

/// Measured: with fewer channels on either side the library is faster, and need not be timed against it.
constexpr int64_t kFewestChannels = 128;
/// Floats of the longest vectors for which products are packed as such gradients want it.
constexpr int64_t kMostLanes = 8;

bool is_pointwise(const ConvolutionRequest &request) {
  return is_pointwise(request.shape) && request.pass != ConvolutionPass::forward && !request.blocked_input &&
         !request.blocked_output && (request.kernel_layout.empty() || request.kernel_layout == "any");
}

GemmShape pointwise_product_of(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  const int64_t in = s.in_channels, out = s.out_channels, positions = s.rows * s.out_height * s.out_width;
  if (request.pass == ConvolutionPass::kernel_gradient) return {in, out, positions, 1, in, out, 1, out, false};
  return {positions, in, out, out, 1, 1, out, in, false};
}

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const ConvolutionRequest &request, const ConvolutionBuffers &buffers)
      : request_(request), product_(pointwise_product_of(request)), buffers_(buffers) {}

  int32_t run(const RunContext &context, KernelState *) const override {
    const ConvolutionBuffers &b = buffers_;
    float *scratch = context.out(b.scratch);
    if (request_.pass == ConvolutionPass::input_gradient) {
      gemm(product_, context.in(b.output), context.in(b.kernel), context.out(b.input), {}, scratch);
      return 0;
    }
    gemm(product_, context.in(b.input), context.in(b.output), context.out(b.kernel), {}, scratch);
    if (b.bias >= 0) add_up_positions(request_.shape, false, context.in(b.output), context.out(b.bias));
    return 0;
  }

 private:
  ConvolutionRequest request_;
  GemmShape product_;
  ConvolutionBuffers buffers_;
};

class PointwiseConvolution final : public ConvolutionPlan {
 public:
  explicit PointwiseConvolution(const ConvolutionRequest &request) : request_(request) {}

  const std::string &implementation() const override { return implementation_; }
  const std::string &kernel_layout() const override { return kernel_layout_; }
  int64_t scratch_bytes() const override {
    return gemm_scratch_floats(pointwise_product_of(request_)) * static_cast<int64_t>(sizeof(float));
  }
  std::unique_ptr<Kernel> kernel(const ConvolutionBuffers &buffers) const override {
    return std::make_unique<PointwiseKernel>(request_, buffers);
  }

 private:
  ConvolutionRequest request_;
  std::string implementation_ = "1x1", kernel_layout_;
};

}  // namespace

bool is_pointwise(const ConvolutionShape &s) {
  for (size_t axis = 0; axis < 2; ++axis) {
    if (s.stride[axis] != 1 || s.pad_low[axis] != 0 || s.pad_high[axis] != 0) return false;
  }
  return s.groups == 1 && s.kernel_height == 1 && s.kernel_width == 1;
}

void add_up_positions(const ConvolutionShape &s, bool blocked, const float *dy, float *dbias) {
  constexpr int64_t kBlock = 16;
  const int64_t positions = s.out_height * s.out_width;
  if (!blocked) return reduce(ReduceKind::sum, {1, s.rows * positions, s.out_channels}, dy, dbias);
  for (int64_t image = 0; image < s.rows; ++image) {
    for (int64_t block = 0; block < s.out_channels; block += kBlock) {
      float sums[kBlock];
      reduce(ReduceKind::sum, {1, positions, kBlock}, dy + (image * s.out_channels + block) * positions, sums);
      for (int64_t i = 0; i < kBlock; ++i)
        dbias[block + i] = (image == 0 ? 0 : dbias[block + i]) + sums[i];
    }
  }
}

bool suits_pointwise_plan(const ConvolutionRequest &request) {
  return is_pointwise(request) && gemm_lanes() <= kMostLanes &&
         std::min(request.shape.in_channels, request.shape.out_channels) >= kFewestChannels;
}

Result<std::shared_ptr<const ConvolutionPlan>> make_pointwise_plan(const ConvolutionRequest &request) {
  if (!is_pointwise(request)) {
    return base::unimplemented("products on vectors are for gradients of 1x1 convolutions without gaps");
  }
  return std::shared_ptr<const ConvolutionPlan>(std::make_shared<PointwiseConvolution>(request));
}

}  // namespace tutti::impl::backend::cpu
