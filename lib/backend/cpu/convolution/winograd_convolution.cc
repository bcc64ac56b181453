// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution/winograd_convolution.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "backend/cpu/simd/simd_winograd.h"
#include "base/text.h"

namespace tutti::impl::backend::cpu {

using base::Result;

namespace {

/// oneDNN's name for [out / 16, in / 16, 3, 3, 16 in, 16 out], in which its direct convolutions keep kernels, too.
constexpr std::string_view kBlockedKernel = "conv/ABcd16b16a";

bool is_winograd(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  for (size_t axis = 0; axis < 2; ++axis) {
    if (s.stride[axis] != 1 || s.dilation[axis] != 1) return false;
    for (int64_t pad : {s.pad_low[axis], s.pad_high[axis]}) {
      if (pad < 0 || pad > 2) return false;
    }
  }
  return s.groups == 1 && s.kernel_height == 3 && s.kernel_width == 3 && s.in_channels % 16 == 0 &&
         s.out_channels % 16 == 0 &&
         (request.kernel_layout.empty() || request.kernel_layout == "any" || request.kernel_layout == kBlockedKernel);
}

WinogradShape winograd_shape(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  WinogradShape shape;
  shape.images = s.rows;
  shape.x = request.blocked_input ? WinogradImages::blocked(s.in_channels, s.in_height, s.in_width)
                                  : WinogradImages::row_major(s.in_channels, s.in_height, s.in_width);
  shape.y = request.blocked_output ? WinogradImages::blocked(s.out_channels, s.out_height, s.out_width)
                                   : WinogradImages::row_major(s.out_channels, s.out_height, s.out_width);
  shape.pad_top = s.pad_low[0];
  shape.pad_left = s.pad_low[1];
  return shape;
}

/// Work worth handing out, in operations of plain sums: about 15 us.
constexpr int64_t kLeastPartFlops = 4'000'000;

int64_t grain(const WinogradShape &s, int64_t items) {
  const int64_t flops = 18 * s.images * s.y.height * s.y.width * s.x.channels * s.y.channels;
  return items * kLeastPartFlops / std::max<int64_t>(flops, 1) + 1;
}

int64_t whole_vectors(int64_t floats) { return (floats + 15) / 16 * 16; }

/// What the kernels of all passes are made of; parts never change the bits of a result.
struct WinogradWork {
  WinogradShape shape;  ///< of the pass
  WinogradKernel place;
  ConvolutionBuffers buffers;
  bool sum = false, relu = false;
  int64_t thread_floats = 0;  ///< scratch of each thread
};

/// y of x, or the gradient of x of that of y. Few tiles are cut by panels, and each part transforms its own of the
/// kernel; many are cut by tiles, for which the kernel is transformed before, into the scratch of all threads.
class Convolve final : public Kernel {
 public:
  Convolve(const WinogradWork &work, bool turned, int32_t threads) : work_(work), turned_(turned) {
    const WinogradShape &s = work.shape;
    by_panels_ = threads <= 1 || s.tiles() <= winograd_group_tiles(s);
    const int64_t items = by_panels_ ? s.panels() : s.tiles();
    parts_ = Parts(items, grain(s, items), threads, by_panels_ ? 1 : Parts::kPartsPerThread);
    if (!by_panels_) {
      kernel_parts_ = Parts(s.panels(), 1, threads);
      kernel_floats_ = whole_vectors(winograd_kernel_floats(s));
    }
    for (int32_t i = 0; i < parts_.count(); ++i) {
      work_.thread_floats =
          std::max(work_.thread_floats, whole_vectors(winograd_scratch_floats(s, range(parts_[i]), !by_panels_)));
    }
  }

  int64_t scratch_floats() const { return kernel_floats_ + parts_.threads() * work_.thread_floats; }
  int32_t parts() const { return parts_.count(); }

  int32_t run(const RunContext &context, KernelState *) const override {
    const ConvolutionBuffers &b = work_.buffers;
    const float *x = context.in(turned_ ? b.output : b.input);
    float *y = context.out(turned_ ? b.input : b.output), *scratch = context.out(b.scratch);
    WinogradWeights weights{context.in(b.kernel), work_.place, turned_, nullptr};
    if (!by_panels_) {
      context.for_parts(kernel_parts_, [&](Range panels) {
        winograd_transform_kernel(work_.shape, weights, panels.begin, panels.end, scratch);
      });
      weights = {nullptr, {}, false, scratch};
      scratch += kernel_floats_;
    }
    WinogradEpilogue epilogue;
    if (!turned_) epilogue.bias = context.in_or_null(b.bias);
    epilogue.relu = work_.relu;
    epilogue.residual = work_.sum ? y : nullptr;
    context.for_parts(parts_, [&](Range part, int32_t thread) {
      winograd_convolve(work_.shape, range(part), weights, x, epilogue, y, scratch + thread * work_.thread_floats);
    });
    return 0;
  }

 private:
  WinogradRange range(Range part) const {
    WinogradRange range = WinogradRange::all(work_.shape);
    if (by_panels_) {
      range.panel_begin = part.begin;
      range.panel_end = part.end;
    } else {
      range.tile_begin = part.begin;
      range.tile_end = part.end;
    }
    return range;
  }

  WinogradWork work_;
  bool turned_, by_panels_ = true;
  Parts parts_, kernel_parts_;
  int64_t kernel_floats_ = 0;
};

/// The gradient of the kernel, cut along the longer of its sides: each part transforms all that lies along the other.
class WinogradKernelGradient final : public Kernel {
 public:
  WinogradKernelGradient(const WinogradWork &work, int32_t threads) : work_(work) {
    const WinogradShape &s = work.shape;
    by_panels_ = s.y.channels > s.x.channels;
    const int64_t items = by_panels_ ? s.panels() : s.x.blocks();
    parts_ = Parts(items, grain(s, items), threads, 1);
    for (int32_t i = 0; i < parts_.count(); ++i) {
      work_.thread_floats =
          std::max(work_.thread_floats, whole_vectors(winograd_gradient_scratch_floats(s, range(parts_[i]))));
    }
  }

  int64_t scratch_floats() const { return parts_.threads() * work_.thread_floats; }
  int32_t parts() const { return parts_.count(); }

  int32_t run(const RunContext &context, KernelState *) const override {
    const ConvolutionBuffers &b = work_.buffers;
    float *dbias = b.bias < 0 ? nullptr : context.out(b.bias);
    context.for_parts(parts_, [&](Range part, int32_t thread) {
      winograd_kernel_gradient(work_.shape, range(part), context.in(b.input), context.in(b.output), work_.place,
                               context.out(b.kernel), dbias, context.out(b.scratch) + thread * work_.thread_floats);
    });
    return 0;
  }

 private:
  WinogradGradientRange range(Range part) const {
    WinogradGradientRange range = WinogradGradientRange::all(work_.shape);
    if (by_panels_) {
      range.panel_begin = part.begin;
      range.panel_end = part.end;
    } else {
      range.block_begin = part.begin;
      range.block_end = part.end;
    }
    return range;
  }

  WinogradWork work_;
  bool by_panels_;
  Parts parts_;
};

class WinogradPlan final : public ConvolutionPlan {
 public:
  explicit WinogradPlan(const ConvolutionRequest &request)
      : pass_(request.pass),
        threads_(request.threads),
        kernel_layout_(request.kernel_layout.empty() ? std::string_view() : kBlockedKernel) {
    const ConvolutionShape &s = request.shape;
    work_.shape = winograd_shape(request);
    if (pass_ == ConvolutionPass::input_gradient) work_.shape = work_.shape.transposed();
    work_.place = request.kernel_layout.empty() ? WinogradKernel::row_major(s.in_channels, s.out_channels)
                                                : WinogradKernel::blocked(s.in_channels);
    work_.relu = request.epilogue.relu;
    work_.sum = request.epilogue.sum;
    const auto [floats, parts] = pass_ == ConvolutionPass::kernel_gradient ? sizes(gradient()) : sizes(convolve());
    scratch_bytes_ = floats * static_cast<int64_t>(sizeof(float));
    implementation_ = parts > 1 ? base::concat("4x4:parts=", parts) : "4x4";
  }

  const std::string &implementation() const override { return implementation_; }
  const std::string &kernel_layout() const override { return kernel_layout_; }
  int64_t scratch_bytes() const override { return scratch_bytes_; }

  std::unique_ptr<Kernel> kernel(const ConvolutionBuffers &buffers) const override {
    if (pass_ == ConvolutionPass::kernel_gradient) return std::make_unique<WinogradKernelGradient>(gradient(buffers));
    return std::make_unique<Convolve>(convolve(buffers));
  }

 private:
  Convolve convolve(const ConvolutionBuffers &buffers = {}) const {
    WinogradWork work = work_;
    work.buffers = buffers;
    return {work, pass_ == ConvolutionPass::input_gradient, threads_};
  }
  WinogradKernelGradient gradient(const ConvolutionBuffers &buffers = {}) const {
    WinogradWork work = work_;
    work.buffers = buffers;
    return {work, threads_};
  }
  template <typename Made>
  static std::pair<int64_t, int32_t> sizes(const Made &made) {
    return {made.scratch_floats(), made.parts()};
  }

  ConvolutionPass pass_;
  int32_t threads_;
  WinogradWork work_;
  std::string kernel_layout_, implementation_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace

Result<std::shared_ptr<const ConvolutionPlan>> make_winograd_plan(const ConvolutionRequest &request) {
  if (!is_winograd(request)) {
    return base::unimplemented("Winograd is for 3x3 convolutions of blocks of 16 channels with stride 1");
  }
  return std::shared_ptr<const ConvolutionPlan>(std::make_shared<WinogradPlan>(request));
}

}  // namespace tutti::impl::backend::cpu
