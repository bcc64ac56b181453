// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients: each takes the candidate that was chosen for it (convolution_choice.h).
#include "backend/cpu/convolution_choice.h"
#include "backend/cpu/lower.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

/// The rule's choice for a node's pass.
Result<ConvolutionCandidate> choose(const LoweredGraph &graph, const ConvolutionShape &shape, ConvolutionPass pass) {
  Result<ConvolutionCandidate> choice = choose_by_rule(shape, graph.level(), graph.threads());
  if (choice.ok()) choice->request.pass = pass;
  return choice;
}

std::string_view layout_of(bool blocked) { return blocked ? kBlocked16 : std::string_view(); }

std::string name_of(const ConvolutionCandidate &candidate, const ConvolutionPlan &plan, std::string_view suffix) {
  return base::concat(candidate.family->name, ":", plan.implementation(), suffix);
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

void add_scratch(Lowering &l, const ConvolutionPlan &plan, ConvolutionBuffers &buffers) {
  if (plan.scratch_bytes() > 0) buffers.scratch = l.scratch(plan.scratch_bytes());
}

}  // namespace

std::string preferred_kernel_layout(const LoweredGraph &graph, const FusionPlan &fusion, int32_t step) {
  const Group *group = fusion.group_of(step);
  if (group == nullptr) return "";
  const Node &node = graph.step(step);
  if (graph.value(node.inputs[1]).dtype != tensor::DType::f32) return "";
  const ConvolutionShape shape = convolution_shape(graph, node);
  if (is_empty(shape)) return "";
  const Result<ConvolutionCandidate> choice = choose(graph, shape, ConvolutionPass::forward);
  if (!choice.ok()) return "";
  const Following following = following_nodes(graph, *group);
  const Result<ConvolutionPlanPointer> plan = make_plan(*choice, "", following.bias != kNoValue, following.relu);
  return plan.ok() ? (*plan)->kernel_layout() : "";
}

bool lower_convolution(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.front());
  const ValueId y = l.graph().step(group.steps.back()).outputs[0];
  if (!l.is_f32(y)) return false;
  const ConvolutionShape shape = convolution_shape(l.graph(), node);
  if (is_empty(shape)) return false;
  const Result<ConvolutionCandidate> choice = choose(l.graph(), shape, ConvolutionPass::forward);
  if (!choice.ok()) return false;
  const Following following = following_nodes(l.graph(), group);
  const bool bias = following.bias != kNoValue;
  const Result<ConvolutionPlanPointer> plan = make_plan(*choice, l.layout_of(node.inputs[1]), bias, following.relu);
  if (!plan.ok()) return false;
  ConvolutionBuffers buffers;
  buffers.input = l.read(node.inputs[0], layout_of(choice->request.blocked_input));
  buffers.kernel = l.read(node.inputs[1], (*plan)->kernel_layout());
  buffers.bias = l.read(following.bias);
  buffers.output = l.write(y, layout_of(choice->request.blocked_output));
  add_scratch(l, **plan, buffers);
  const std::string suffix = std::string(bias ? "+bias" : "") + (following.relu ? "+relu" : "");
  l.emit_kernel(name_of(*choice, **plan, suffix), (*plan)->kernel(buffers));
  return true;
}

bool lower_input_gradient(Lowering &l, const Node &node) {
  const ValueId dx = node.outputs[0];
  if (!l.is_f32(dx)) return false;
  const ConvolutionShape shape = convolution_shape(l.graph(), node);
  if (is_empty(shape)) return false;
  const Result<ConvolutionCandidate> choice = choose(l.graph(), shape, ConvolutionPass::input_gradient);
  if (!choice.ok()) return false;
  const Result<ConvolutionPlanPointer> plan = make_plan(*choice, "", false, false);
  if (!plan.ok()) return false;
  ConvolutionBuffers buffers;
  buffers.output = l.read(node.inputs[0], layout_of(choice->request.blocked_output));
  buffers.kernel = l.read(node.inputs[1], (*plan)->kernel_layout());
  buffers.input = l.write(dx, layout_of(choice->request.blocked_input));
  add_scratch(l, **plan, buffers);
  l.emit_kernel(name_of(*choice, **plan, ":input_gradient"), (*plan)->kernel(buffers));
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
  const ConvolutionShape shape = convolution_shape(l.graph(), node);
  if (is_empty(shape)) return false;
  const Result<ConvolutionCandidate> choice = choose(l.graph(), shape, ConvolutionPass::kernel_gradient);
  if (!choice.ok()) return false;
  // Best is the layout of the entry it is written to: the gradient is then born where it is wanted.
  const StateEntry *entry = l.entry_of(dkernel);
  const bool bias = dbias != kNoValue;
  const Result<ConvolutionPlanPointer> plan =
      make_plan(*choice, entry != nullptr ? entry->layout : std::string(), bias, false);
  if (!plan.ok()) return false;
  ConvolutionBuffers buffers;
  buffers.input = l.read(node.inputs[0], layout_of(choice->request.blocked_input));
  buffers.output = l.read(node.inputs[1], layout_of(choice->request.blocked_output));
  buffers.kernel = l.write(dkernel, (*plan)->kernel_layout());
  if (bias) buffers.bias = l.write(dbias);
  add_scratch(l, **plan, buffers);
  l.emit_kernel(name_of(*choice, **plan, bias ? ":kernel_and_bias_gradient" : ":kernel_gradient"),
                (*plan)->kernel(buffers));
  return true;
}

}  // namespace tutti::impl::backend::cpu
