// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution/split_convolution.h"

#include <algorithm>
#include <string>

#include "backend/cpu/convolution/pointwise_convolution.h"
#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/simd/simd_split_gemm.h"

namespace tutti::impl::backend::cpu {

using base::Result;

namespace {

bool is_splittable(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  if ((request.blocked_input && s.in_channels % kBlockChannels != 0) ||
      (request.blocked_output && s.out_channels % kBlockChannels != 0))
    return false;
  return is_pointwise(s) && (request.kernel_layout.empty() || request.kernel_layout == "any");
}

/// Images as a matrix with a row for each position.
struct ImageMatrix {
  int64_t row = 0, block = kBlockChannels, image = 0;

  ImageMatrix(bool blocked, int64_t positions, int64_t channels)
      : row(blocked ? kBlockChannels : channels),
        block(blocked ? kBlockChannels * positions : kBlockChannels),
        image(positions * channels) {}
};

/// The product of a pass. Images that are row-major on both sides are one.
SplitShape split_product_of(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  const int64_t in = s.in_channels, out = s.out_channels;
  int64_t positions = s.out_height * s.out_width;
  SplitShape shape;
  if (request.blocked_input || request.blocked_output) {
    shape.images = s.rows;
  } else {
    positions *= s.rows;
  }
  const ImageMatrix x(request.blocked_input, positions, in), y(request.blocked_output, positions, out);
  if (request.pass == ConvolutionPass::kernel_gradient) {
    shape.matrix = {in, out, positions, 1, x.row, y.row, 1, out, false};
    shape.a_block = x.block, shape.b_block = y.block;
    shape.a_image = x.image, shape.b_image = y.image;
    return shape;
  }
  const bool is_forward = request.pass == ConvolutionPass::forward;
  const ImageMatrix &from = is_forward ? x : y, &to = is_forward ? y : x;
  shape.matrix = is_forward ? GemmShape{positions, out, in, from.row, 1, out, 1, to.row, request.epilogue.sum}
                            : GemmShape{positions, in, out, from.row, 1, 1, out, to.row, false};
  shape.a_block = from.block, shape.c_block = to.block;
  shape.a_image = from.image, shape.c_image = to.image;
  return shape;
}

int64_t whole_lines(int64_t floats) { return (floats + 15) / 16 * 16; }

/// What is left of a product whose factors cannot be split, image by image on vectors. Images in blocks are copied.
class VectorProduct {
 public:
  explicit VectorProduct(const SplitShape &shape) : shape_(shape) {
    GemmShape &g = row_major_;
    g = shape.matrix;
    if (is_kernel_gradient()) {
      g.a_column = g.m, g.b_row = g.n;
    } else {
      g.a_row = g.k, g.c_row = g.n;
    }
  }

  int64_t scratch_floats() const { return a_floats() + b_floats() + c_floats() + gemm_scratch_floats(row_major_); }

  void run(const float *a, const float *b, float *c, const GemmEpilogue &epilogue, int64_t done, float *scratch) const {
    if (is_kernel_gradient()) return add_images(a, b, c, scratch);
    for (int64_t image = done / shape_.matrix.m; image < shape_.images; ++image) {
      const int64_t first = std::max<int64_t>(0, done - image * shape_.matrix.m);
      one_image(a + image * shape_.a_image, b, c + image * shape_.c_image, epilogue, first, scratch);
    }
  }

 private:
  bool is_kernel_gradient() const { return shape_.c_image == 0; }
  int64_t a_floats() const { return whole_lines(row_major_.m * row_major_.k); }
  int64_t b_floats() const { return is_kernel_gradient() ? whole_lines(row_major_.k * row_major_.n) : 0; }
  int64_t c_floats() const { return whole_lines(row_major_.m * row_major_.n); }

  void one_image(const float *a, const float *b, float *c, const GemmEpilogue &epilogue, int64_t first,
                 float *scratch) const {
    GemmShape g = row_major_;
    float *own_a = scratch, *own_c = own_a + a_floats();
    if (shape_.a_block != kBlockChannels) from_blocked(1, g.m, g.k, a, own_a), a = own_a;
    float *to = c;
    if (shape_.c_block != kBlockChannels) from_blocked(1, g.m, g.n, c, own_c), to = own_c;
    g.m -= first;
    gemm(g, a + first * g.a_row, b, to + first * g.c_row, epilogue, own_c + c_floats());
    if (to == own_c) to_blocked(1, row_major_.m, g.n, own_c, c);
  }

  void add_images(const float *a, const float *b, float *c, float *scratch) const {
    GemmShape g = row_major_;
    float *own_a = scratch, *own_b = own_a + a_floats(), *rest = own_b + b_floats();
    for (int64_t image = 0; image < shape_.images; ++image) {
      const float *x = a + image * shape_.a_image, *y = b + image * shape_.b_image;
      if (shape_.a_block != kBlockChannels) from_blocked(1, g.k, g.m, x, own_a), x = own_a;
      if (shape_.b_block != kBlockChannels) from_blocked(1, g.k, g.n, y, own_b), y = own_b;
      g.accumulate = image > 0;
      gemm(g, x, y, c, {}, rest);
    }
  }

  SplitShape shape_;
  GemmShape row_major_;
};

class SplitKernel final : public Kernel {
 public:
  SplitKernel(const ConvolutionRequest &request, const SplitShape &shape, const ConvolutionBuffers &buffers)
      : request_(request), shape_(shape), buffers_(buffers) {}

  int32_t run(const RunContext &context, KernelState *) const override {
    const ConvolutionBuffers &b = buffers_;
    switch (request_.pass) {
      case ConvolutionPass::forward: {
        const GemmEpilogue epilogue{.bias = context.in_or_null(b.bias), .relu = request_.epilogue.relu};
        multiply(context, context.in(b.input), context.in(b.kernel), context.out(b.output), epilogue);
        break;
      }
      case ConvolutionPass::input_gradient:
        multiply(context, context.in(b.output), context.in(b.kernel), context.out(b.input), {});
        break;
      case ConvolutionPass::kernel_gradient:
        multiply(context, context.in(b.input), context.in(b.output), context.out(b.kernel), {});
        if (b.bias >= 0)
          add_up_positions(request_.shape, request_.blocked_output, context.in(b.output), context.out(b.bias));
        break;
    }
    return 0;
  }

 private:
  void multiply(const RunContext &context, const float *a, const float *b, float *c,
                const GemmEpilogue &epilogue) const {
    float *scratch = context.out(buffers_.scratch);
    const int64_t rows = shape_.c_image == 0 ? shape_.matrix.m : shape_.images * shape_.matrix.m;
    const int64_t done = split_rows(shape_, a, b, c, epilogue, scratch);
    if (done < rows) VectorProduct(shape_).run(a, b, c, epilogue, done, scratch);
  }

  ConvolutionRequest request_;
  SplitShape shape_;
  ConvolutionBuffers buffers_;
};

class SplitConvolution final : public ConvolutionPlan {
 public:
  explicit SplitConvolution(const ConvolutionRequest &request) : request_(request), shape_(split_product_of(request)) {}

  const std::string &implementation() const override { return implementation_; }
  const std::string &kernel_layout() const override { return kernel_layout_; }
  int64_t scratch_bytes() const override {
    return std::max(split_rows_scratch_floats(shape_), VectorProduct(shape_).scratch_floats()) *
           static_cast<int64_t>(sizeof(float));
  }
  std::unique_ptr<Kernel> kernel(const ConvolutionBuffers &buffers) const override {
    return std::make_unique<SplitKernel>(request_, shape_, buffers);
  }

 private:
  ConvolutionRequest request_;
  SplitShape shape_;
  std::string implementation_ = "1x1", kernel_layout_;
};

}  // namespace

bool suits_split_plan(const ConvolutionRequest &request) {
  return is_splittable(request) && split_gemm_suits(split_product_of(request));
}

Result<std::shared_ptr<const ConvolutionPlan>> make_split_plan(const ConvolutionRequest &request) {
  const SplitShape shape = split_product_of(request);
  if (!is_splittable(request) || !split_gemm_is_possible(shape)) {
    return base::unimplemented("the matrix unit is for convolutions of 1x1 without gaps");
  }
  return std::shared_ptr<const ConvolutionPlan>(std::make_shared<SplitConvolution>(request));
}

}  // namespace tutti::impl::backend::cpu
