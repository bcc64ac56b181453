// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on oneDNN. For each convolution one choice is made from its shape alone, which its gradients repeat:
// Winograd on blocked images where it pays and rounding may differ, else the direct algorithm on row-major images, else
// whatever the library has.
#include "backend/cpu/attributes.h"
#include "backend/cpu/dnnl_convolution.h"
#include "backend/cpu/image_geometry.h"
#include "backend/cpu/lower.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

using PlanPointer = std::shared_ptr<const ConvolutionPlan>;

/// Channels from which Winograd is faster than the direct algorithm.
constexpr int64_t kWinogradChannels = 32;

ConvolutionShape make_shape(const Node &node, const std::vector<int64_t> &x, const std::vector<int64_t> &kernel,
                            const std::vector<int64_t> &y) {
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

bool suits_winograd(const ConvolutionShape &s) {
  return s.groups == 1 && s.kernel_height == 3 && s.kernel_width == 3 && s.stride[0] == 1 && s.stride[1] == 1 &&
         s.dilation[0] == 1 && s.dilation[1] == 1 && s.in_channels % 16 == 0 && s.out_channels % 16 == 0 &&
         s.in_channels >= kWinogradChannels && s.out_channels >= kWinogradChannels;
}

/// How a convolution and its gradients are done.
struct Choice {
  ConvolutionRequest request;  ///< of the forward pass, without bias and relu
  PlanPointer forward;
};

/// What is tried, best first.
std::vector<ConvolutionRequest> candidates(const ConvolutionShape &shape, int32_t level, int32_t threads) {
  ConvolutionRequest request;
  request.shape = shape;
  request.kernel_layout = "any";
  request.repeatable = level != TUTTI_LEVEL_FAST;
  request.threads = threads;
  std::vector<ConvolutionRequest> list;
  const bool blockable = shape.in_channels % 16 == 0 && shape.out_channels % 16 == 0;
  if (level == TUTTI_LEVEL_FAST && suits_winograd(shape)) {
    request.winograd = request.blocked_input = request.blocked_output = true;
    list.push_back(request);
    request.winograd = request.blocked_input = request.blocked_output = false;
  }
  list.push_back(request);
  if (shape.out_channels % 16 == 0) {
    request.blocked_output = true;
    request.blocked_input = blockable;
    list.push_back(request);
    request.blocked_input = request.blocked_output = false;
  }
  request.accept_plain = true;
  list.push_back(request);
  return list;
}

Result<Choice> choose(const ConvolutionShape &shape, int32_t level, int32_t threads) {
  Result<Choice> last = base::unimplemented("there is no way to do this convolution");
  for (const ConvolutionRequest &request : candidates(shape, level, threads)) {
    Result<PlanPointer> plan = ConvolutionPlan::make(request);
    if (plan.ok()) return Choice{request, std::move(plan).value()};
    last = plan.status();
  }
  return last;
}

Result<Choice> choose(const Lowering &l, const ConvolutionShape &shape) {
  return choose(shape, l.graph().level(), l.graph().threads());
}

std::string_view layout_of(bool blocked) { return blocked ? kBlocked16 : std::string_view(); }

std::string name_of(const ConvolutionPlan &plan, const ConvolutionRequest &request, std::string_view suffix) {
  return base::concat("dnnl:", plan.implementation(), request.winograd ? ":winograd" : "", suffix);
}

/// Bias and relu that follow a conv2d in its group.
struct Following {
  ValueId bias = kNoValue;
  bool relu = false;
};

Following following_nodes(const LoweredGraph &graph, const Group &group) {
  const Node &head = graph.step(group.steps.front());
  Following following;
  if (head.inputs.size() > 2) following.bias = head.inputs[2];
  ValueId y = head.outputs[0];
  for (size_t i = 1; i < group.steps.size(); ++i) {
    const Node &node = graph.step(group.steps[i]);
    if (node.op == "add") following.bias = node.inputs[0] == y ? node.inputs[1] : node.inputs[0];
    following.relu |= node.op == "relu";
    y = node.outputs[0];
  }
  return following;
}

Result<PlanPointer> plan_forward(const Choice &choice, const Following &following, std::string kernel_layout) {
  ConvolutionRequest request = choice.request;
  request.kernel_layout = std::move(kernel_layout);
  request.bias = following.bias != kNoValue;
  request.relu = following.relu;
  return ConvolutionPlan::make(request);
}

/// A plan whose kernel lies as `layout` says if that works, else as suits best.
Result<PlanPointer> plan_with_kernel(ConvolutionRequest request, const std::string &layout) {
  if (!layout.empty()) {
    request.kernel_layout = layout;
    Result<PlanPointer> plan = ConvolutionPlan::make(request);
    if (plan.ok()) return plan;
  }
  request.kernel_layout = "any";
  return ConvolutionPlan::make(request);
}

void add_scratch(Lowering &l, const ConvolutionPlan &plan, ConvolutionBuffers &buffers) {
  if (plan.scratch_bytes() > 0) buffers.scratch = l.scratch(plan.scratch_bytes());
}

}  // namespace

std::string preferred_kernel_layout(const LoweredGraph &graph, const FusionPlan &fusion, int32_t step) {
  const Group *group = fusion.group_of(step);
  if (group == nullptr) return "";
  const Node &node = graph.step(step);
  if (graph.value(node.inputs[1]).dtype != tensor::DType::f32) return "";
  const ConvolutionShape shape = make_shape(node, graph.value(node.inputs[0]).dims, graph.value(node.inputs[1]).dims,
                                            graph.value(node.outputs[0]).dims);
  if (is_empty(shape)) return "";
  const Result<Choice> choice = choose(shape, graph.level(), graph.threads());
  if (!choice.ok()) return "";
  const Result<PlanPointer> plan = plan_forward(*choice, following_nodes(graph, *group), "any");
  return plan.ok() ? (*plan)->kernel_layout() : "";
}

bool lower_convolution(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.front());
  const ValueId y = l.graph().step(group.steps.back()).outputs[0];
  if (!l.is_f32(y)) return false;
  const ConvolutionShape shape =
      make_shape(node, l.value(node.inputs[0]).dims, l.value(node.inputs[1]).dims, l.value(node.outputs[0]).dims);
  if (is_empty(shape)) return false;
  const Result<Choice> choice = choose(l, shape);
  if (!choice.ok()) return false;
  const Following following = following_nodes(l.graph(), group);
  ConvolutionRequest request = choice->request;
  request.bias = following.bias != kNoValue;
  request.relu = following.relu;
  const Result<PlanPointer> plan = plan_with_kernel(request, l.layout_of(node.inputs[1]));
  if (!plan.ok()) return false;
  ConvolutionBuffers buffers;
  buffers.input = l.read(node.inputs[0], layout_of(request.blocked_input));
  buffers.kernel = l.read(node.inputs[1], (*plan)->kernel_layout());
  buffers.bias = l.read(following.bias);
  buffers.output = l.write(y, layout_of(request.blocked_output));
  add_scratch(l, **plan, buffers);
  const std::string suffix = std::string(request.bias ? "+bias" : "") + (request.relu ? "+relu" : "");
  l.emit_kernel(name_of(**plan, request, suffix), (*plan)->kernel(buffers));
  return true;
}

bool lower_input_gradient(Lowering &l, const Node &node) {
  const ValueId dx = node.outputs[0];
  if (!l.is_f32(dx)) return false;
  const ConvolutionShape shape =
      make_shape(node, l.value(dx).dims, l.value(node.inputs[1]).dims, l.value(node.inputs[0]).dims);
  if (is_empty(shape)) return false;
  const Result<Choice> choice = choose(l, shape);
  if (!choice.ok()) return false;
  ConvolutionRequest request = choice->request;
  request.pass = ConvolutionPass::input_gradient;
  const Result<PlanPointer> plan = plan_with_kernel(request, "");
  if (!plan.ok()) return false;
  ConvolutionBuffers buffers;
  buffers.output = l.read(node.inputs[0], layout_of(request.blocked_output));
  buffers.kernel = l.read(node.inputs[1], (*plan)->kernel_layout());
  buffers.input = l.write(dx, layout_of(request.blocked_input));
  add_scratch(l, **plan, buffers);
  l.emit_kernel(name_of(**plan, request, ":input_gradient"), (*plan)->kernel(buffers));
  return true;
}

bool lower_kernel_gradient(Lowering &l, const Group &group) {
  // The kernel's gradient, and perhaps the sum over rows and positions that is the bias's.
  ValueId dbias = kNoValue;
  const Node *gradient = nullptr;
  for (int32_t step : group.steps) {
    const Node &node = l.graph().step(step);
    node.op == "reduce_sum" ? void(dbias = node.outputs[0]) : void(gradient = &node);
  }
  const Node &node = *gradient;
  const ValueId dkernel = node.outputs[0];
  if (!l.is_f32(dkernel)) return false;
  const ConvolutionShape shape =
      make_shape(node, l.value(node.inputs[0]).dims, l.value(dkernel).dims, l.value(node.inputs[1]).dims);
  if (is_empty(shape)) return false;
  const Result<Choice> choice = choose(l, shape);
  if (!choice.ok()) return false;
  ConvolutionRequest request = choice->request;
  request.pass = ConvolutionPass::kernel_gradient;
  request.bias = dbias != kNoValue;
  // Best is the layout of the entry it is written to: the gradient is then born where it is wanted.
  const StateEntry *entry = l.entry_of(dkernel);
  const Result<PlanPointer> plan =
      plan_with_kernel(request, entry != nullptr ? entry->layout : choice->forward->kernel_layout());
  if (!plan.ok()) return false;
  ConvolutionBuffers buffers;
  buffers.input = l.read(node.inputs[0], layout_of(request.blocked_input));
  buffers.output = l.read(node.inputs[1], layout_of(request.blocked_output));
  buffers.kernel = l.write(dkernel, (*plan)->kernel_layout());
  if (dbias != kNoValue) buffers.bias = l.write(dbias);
  add_scratch(l, **plan, buffers);
  l.emit_kernel(name_of(**plan, request, request.bias ? ":kernel_and_bias_gradient" : ":kernel_gradient"),
                (*plan)->kernel(buffers));
  return true;
}

}  // namespace tutti::impl::backend::cpu
