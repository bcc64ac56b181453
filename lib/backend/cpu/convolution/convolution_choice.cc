// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution/convolution_choice.h"

#include "backend/cpu/convolution/convolution_parts.h"
#include "backend/cpu/convolution/pointwise_convolution.h"
#include "backend/cpu/convolution/split_convolution.h"
#include "backend/cpu/convolution/winograd_convolution.h"
#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/image_geometry.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using graph::Node;

namespace {

/// Channels from which Winograd is faster than the direct algorithm.
constexpr int64_t kWinogradChannels = 32;

/// 3x3, stride 1, as many channels as pay.
bool suits_winograd(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  return request.blocked_input == request.blocked_output && s.groups == 1 && s.kernel_height == 3 &&
         s.kernel_width == 3 && s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 && s.dilation[1] == 1 &&
         s.in_channels >= kWinogradChannels && s.out_channels >= kWinogradChannels;
}

bool suits_dnnl_winograd(const ConvolutionRequest &request) { return request.blocked_input && suits_winograd(request); }

Result<ConvolutionPlanPointer> make_dnnl_winograd(const ConvolutionRequest &request) {
  ConvolutionRequest winograd = request;
  winograd.winograd = true;
  return ConvolutionPlan::make(winograd);
}

bool suits_anything(const ConvolutionRequest &) { return true; }

bool suits_plain(const ConvolutionRequest &request) { return !request.blocked_input && !request.blocked_output; }

Result<ConvolutionPlanPointer> make_plain(const ConvolutionRequest &request) {
  ConvolutionRequest plain = request;
  plain.accept_plain = true;
  return ConvolutionPlan::make(plain);
}

bool suits_bf16(const ConvolutionRequest &) { return has_bf16(); }

Result<ConvolutionPlanPointer> make_bf16(const ConvolutionRequest &request) {
  ConvolutionRequest rounded = request;
  rounded.bf16 = true;
  return ConvolutionPlan::make(rounded);
}

/// Of what is only taken where it was measured.
constexpr double kNever = 1e3;

constexpr ConvolutionFamily kFamilies[] = {
    {"winograd", true, true, false, 300e9, suits_winograd, make_winograd_plan, true},
    {"dnnl_winograd", true, true, false, 300e9, suits_dnnl_winograd, make_dnnl_winograd},
    {"tiles", true, false, false, 200e9, suits_split_plan, make_split_plan},
    {"product", true, false, false, kNever, suits_pointwise_plan, make_pointwise_plan},
    {"dnnl_direct", false, false, false, 150e9, suits_anything, ConvolutionPlan::make},
    // No f16: its sums in f32 need AMX-FP16, and gradients of its range a loss scale.
    {"dnnl_bf16", true, true, false, kNever, suits_bf16, make_bf16, false, true},
    {"dnnl_plain", false, false, true, 1e9, suits_plain, make_plain},
};

struct LayoutPair {
  bool blocked_input, blocked_output;
};

}  // namespace

std::span<const ConvolutionFamily> convolution_families() { return kFamilies; }

std::string label(const ConvolutionCandidate &candidate) {
  return base::concat(candidate.family->name, candidate.request.blocked_input ? ":b" : ":r",
                      candidate.request.blocked_output ? "b" : "r");
}

std::vector<ConvolutionCandidate> convolution_candidates(const ConvolutionShape &shape, ConvolutionPass pass,
                                                         int32_t level, int32_t threads, bool allows_bf16) {
  const bool input_blocks = shape.in_channels % kBlockChannels == 0,
             output_blocks = shape.out_channels % kBlockChannels == 0;
  ConvolutionRequest request;
  request.shape = shape;
  request.pass = pass;
  request.kernel_layout = "any";
  request.repeatable = level != TUTTI_LEVEL_FAST;
  request.threads = threads;
  std::vector<ConvolutionCandidate> list;
  for (const ConvolutionFamily &family : convolution_families()) {
    if (family.fast_only && level != TUTTI_LEVEL_FAST) continue;
    if (family.rounds_factors && !allows_bf16) continue;
    for (const LayoutPair layouts : {LayoutPair{false, false}, {true, true}, {false, true}, {true, false}}) {
      if ((layouts.blocked_input && !input_blocks) || (layouts.blocked_output && !output_blocks)) continue;
      request.blocked_input = layouts.blocked_input;
      request.blocked_output = layouts.blocked_output;
      if (family.suits(request)) list.push_back({&family, request});
    }
  }
  return list;
}

Result<ConvolutionPlanPointer> make_plan(const ConvolutionCandidate &candidate, const std::string &layout,
                                         const ConvolutionEpilogue &epilogue) {
  ConvolutionRequest request = candidate.request;
  request.epilogue = epilogue;
  const auto make = [&]() -> Result<ConvolutionPlanPointer> {
    if (candidate.family->cuts_itself) return candidate.family->make(request);
    return make_convolution_parts(request, candidate.family->transforms_kernels, candidate.family->make);
  };
  if (!layout.empty()) {
    request.kernel_layout = layout;
    Result<ConvolutionPlanPointer> plan = make();
    if (plan.ok()) return plan;
  }
  request.kernel_layout = "any";
  return make();
}

bool suits_stage(const ConvolutionCandidate &candidate, const Parts &parts) {
  // Every part reads the whole kernel: it has to stay in the second-level cache, and to be used often enough.
  constexpr int64_t kMostKernelElements = 256 << 10;
  constexpr int64_t kFewestPositions = 64;
  // The gradient of every part is added to that of others: little beside the images that need not be fetched.
  constexpr int64_t kFewestImageElements = 4;
  const ConvolutionFamily &family = *candidate.family;
  const ConvolutionShape &s = candidate.request.shape;
  if (family.transforms_kernels || family.cuts_itself || family.rounds_factors || family.is_last_resort ||
      is_empty(s)) {
    return false;
  }
  if (cut_everything.load(std::memory_order_relaxed)) return true;
  const int64_t kernel = s.kernel_height * s.kernel_width * s.in_channels / s.groups * s.out_channels;
  const int64_t images = s.rows / parts.count();
  const int64_t in = images * s.in_height * s.in_width * s.in_channels;
  const int64_t positions = images * s.out_height * s.out_width;
  if (kernel > kMostKernelElements || positions < kFewestPositions) return false;
  return candidate.request.pass != ConvolutionPass::kernel_gradient ||
         in + positions * s.out_channels >= kFewestImageElements * kernel;
}

Result<ConvolutionPlanPointer> make_stage_plan(const ConvolutionCandidate &candidate, const std::string &layout,
                                               const ConvolutionEpilogue &epilogue, const Parts &parts) {
  ConvolutionRequest request = candidate.request;
  request.epilogue = epilogue;
  request.image_parts = parts.count();
  const auto make = [&](const std::string &kernel_layout) {
    request.kernel_layout = kernel_layout;
    return make_convolution_parts(request, candidate.family->transforms_kernels, candidate.family->make);
  };
  if (layout.empty()) return make("any");
  Result<ConvolutionPlanPointer> plan = make(layout);
  return plan.ok() || request.pass == ConvolutionPass::forward ? std::move(plan) : make("any");
}

Result<ConvolutionCandidate> choose_by_rule(const ConvolutionShape &shape, int32_t level, int32_t threads) {
  base::Status last = base::unimplemented("no implementation supports this convolution");
  for (ConvolutionCandidate &candidate : convolution_candidates(shape, ConvolutionPass::forward, level, threads)) {
    const Result<ConvolutionPlanPointer> plan = candidate.family->make(candidate.request);
    if (plan.ok()) return std::move(candidate);
    last = plan.status();
  }
  return last;
}

ConvolutionShape convolution_shape(const LoweredGraph &graph, const Node &node) {
  const bool input_gradient = node.op == "conv2d_input_gradient", kernel_gradient = node.op == "conv2d_kernel_gradient";
  const std::vector<int64_t> &x = graph.value(input_gradient ? node.outputs[0] : node.inputs[0]).dims;
  const std::vector<int64_t> &kernel = graph.value(kernel_gradient ? node.outputs[0] : node.inputs[1]).dims;
  const graph::ValueId output = kernel_gradient ? node.inputs[1] : input_gradient ? node.inputs[0] : node.outputs[0];
  const std::vector<int64_t> &y = graph.value(output).dims;
  ConvolutionShape s;
  s.rows = x[0];
  s.groups = integer(node, "groups");
  s.in_height = x[1];
  s.in_width = x[2];
  s.in_channels = x[3];
  s.out_height = y[1];
  s.out_width = y[2];
  s.out_channels = y[3];
  s.kernel_height = kernel[0];
  s.kernel_width = kernel[1];
  const std::vector<int64_t> dilation = integers(node, "dilation");
  for (size_t axis = 0; axis < 2; ++axis)
    s.dilation[axis] = dilation.size() == 2 ? dilation[axis] : 1;
  const int64_t reach[2] = {(kernel[0] - 1) * s.dilation[0] + 1, (kernel[1] - 1) * s.dilation[1] + 1};
  const WindowGeometry geometry = window_geometry(node, {x[1], x[2]}, {y[1], y[2]}, reach, {1, 1});
  for (size_t axis = 0; axis < 2; ++axis) {
    s.stride[axis] = geometry.stride[axis];
    s.pad_low[axis] = geometry.pad_low[axis];
    s.pad_high[axis] = geometry.pad_high[axis];
  }
  return s;
}

bool is_empty(const ConvolutionShape &s) {
  return s.rows == 0 || s.in_channels == 0 || s.out_channels == 0 || s.in_height == 0 || s.in_width == 0 ||
         s.out_height == 0 || s.out_width == 0;
}

std::string_view name(ConvolutionPass pass) {
  constexpr std::string_view kNames[] = {"forward", "input_gradient", "kernel_gradient"};
  return kNames[static_cast<size_t>(pass)];
}

}  // namespace tutti::impl::backend::cpu
