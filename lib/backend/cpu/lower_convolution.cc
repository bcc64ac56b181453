// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients: each takes the candidate that was chosen for it (convolution_choice.h).
#include <cstring>

#include "backend/cpu/convolution_choice.h"
#include "backend/cpu/image_layouts.h"
#include "backend/cpu/lower.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

std::string_view layout_of(bool blocked) { return blocked ? kBlocked16 : std::string_view(); }

/// What follows finds the image as the layout pass wants it.
void settle(Lowering &l, ValueId image) {
  if (l.fast()) l.prefer(image, layout_of(l.images().is_blocked(image)));
}

std::string name_of(const ConvolutionCandidate &candidate, const ConvolutionPlan &plan, std::string_view suffix) {
  return base::concat(candidate.family->name, ":", plan.implementation(), suffix);
}

/// Bias, sum and relu that follow a conv2d in its group.
struct Following {
  ValueId bias = kNoValue;
  ValueId addend = kNoValue;
  bool relu = false;

  ConvolutionEpilogue epilogue() const { return {bias != kNoValue, addend != kNoValue, relu}; }
};

Following following_nodes(const LoweredGraph &graph, const Group &group) {
  const Node &head = graph.step(group.steps.front());
  Following following;
  if (head.inputs.size() > 2) following.bias = head.inputs[2];
  ValueId y = head.outputs[0];
  for (size_t i = 1; i < group.steps.size(); ++i) {
    const Node &node = graph.step(group.steps[i]);
    if (node.op == "add") {
      const ValueId other = node.inputs[0] == y ? node.inputs[1] : node.inputs[0];
      (graph.value(other).dims.size() == 1 ? following.bias : following.addend) = other;
    }
    following.relu |= node.op == "relu";
    y = node.outputs[0];
  }
  return following;
}

/// The plan of what was chosen, or of the next best by rule should it not take the epilogue that it got since.
struct Chosen {
  ConvolutionCandidate candidate;
  ConvolutionPlanPointer plan;
};

Result<Chosen> plan_chosen(const ConvolutionCandidate *candidate, const std::string &layout,
                           const ConvolutionEpilogue &epilogue) {
  if (candidate == nullptr) return base::unimplemented("there is no way to do this convolution");
  Result<ConvolutionPlanPointer> plan = make_plan(*candidate, layout, epilogue);
  if (plan.ok()) return Chosen{*candidate, std::move(plan).value()};
  const ConvolutionRequest &request = candidate->request;
  const int32_t level = request.repeatable ? TUTTI_LEVEL_REPEATABLE : TUTTI_LEVEL_FAST;
  for (ConvolutionCandidate &other : convolution_candidates(request.shape, request.pass, level, request.threads)) {
    plan = make_plan(other, layout, epilogue);
    if (plan.ok()) return Chosen{std::move(other), std::move(plan).value()};
  }
  return plan.status();
}

/// The output of a convolution that adds to what it holds: the addend's own memory, or a copy of it.
BufferId write_over_addend(Lowering &l, ValueId addend, ValueId y, std::string_view layout, BufferId input) {
  const BufferId from = l.read(addend, layout);
  // A convolution reads its input while it writes.
  const ValueId overwritten[] = {from == input ? kNoValue : addend};
  const BufferId to = l.write(y, layout, overwritten);
  if (to == from) return to;
  const int64_t bytes = l.value(y).bytes;
  l.emit("copy:addend",
         [=](const RunContext &c) { std::memcpy(c.buffers[to], c.buffers[from], static_cast<size_t>(bytes)); });
  return l.read(y, layout);
}

void add_scratch(Lowering &l, const ConvolutionPlan &plan, ConvolutionBuffers &buffers) {
  if (plan.scratch_bytes() > 0) buffers.scratch = l.scratch(plan.scratch_bytes());
}

}  // namespace

std::string preferred_kernel_layout(const LoweredGraph &graph, const FusionPlan &fusion, const ImageLayouts &images,
                                    int32_t step) {
  const Group *group = fusion.group_of(step);
  if (group == nullptr) return "";
  const Following following = following_nodes(graph, *group);
  const Result<Chosen> chosen = plan_chosen(images.convolution(step), "", following.epilogue());
  return chosen.ok() ? chosen->plan->kernel_layout() : "";
}

bool lower_convolution(Lowering &l, const Group &group) {
  const int32_t step = group.steps.front();
  const Node &node = l.graph().step(step);
  const ValueId y = l.graph().step(group.steps.back()).outputs[0];
  const Following following = following_nodes(l.graph(), group);
  const ConvolutionEpilogue epilogue = following.epilogue();
  const Result<Chosen> chosen = plan_chosen(l.images().convolution(step), l.layout_of(node.inputs[1]), epilogue);
  if (!chosen.ok()) return false;
  const auto &[candidate, plan] = *chosen;
  const std::string_view output_layout = layout_of(candidate.request.blocked_output);
  ConvolutionBuffers buffers;
  if (epilogue.sum) {
    const BufferId input = l.read(node.inputs[0], layout_of(candidate.request.blocked_input));
    buffers.output = write_over_addend(l, following.addend, y, output_layout, input);
  } else {
    buffers.output = l.write(y, output_layout);
  }
  buffers.input = l.read(node.inputs[0], layout_of(candidate.request.blocked_input));
  buffers.kernel = l.read(node.inputs[1], plan->kernel_layout());
  buffers.bias = l.read(following.bias);
  add_scratch(l, *plan, buffers);
  const std::string suffix =
      base::concat(epilogue.bias ? "+bias" : "", epilogue.sum ? "+add" : "", epilogue.relu ? "+relu" : "");
  l.emit_kernel(name_of(candidate, *plan, suffix), plan->kernel(buffers));
  settle(l, y);
  return true;
}

bool lower_input_gradient(Lowering &l, const Node &node) {
  const ValueId dx = node.outputs[0];
  const ConvolutionCandidate *candidate_or_null = l.images().convolution(l.fusion().producer(dx));
  const bool copies = candidate_or_null != nullptr && candidate_or_null->family->rounds_factors;
  // Best is the layout that suits the algorithm; what is copied anyway is read as it lies.
  const Result<Chosen> chosen =
      plan_chosen(candidate_or_null, copies ? l.layout_of(node.inputs[1]) : std::string(), {});
  if (!chosen.ok()) return false;
  const auto &[candidate, plan] = *chosen;
  ConvolutionBuffers buffers;
  buffers.output = l.read(node.inputs[0], layout_of(candidate.request.blocked_output));
  buffers.kernel = l.read(node.inputs[1], plan->kernel_layout());
  buffers.input = l.write(dx, layout_of(candidate.request.blocked_input));
  add_scratch(l, *plan, buffers);
  l.emit_kernel(name_of(candidate, *plan, ":input_gradient"), plan->kernel(buffers));
  settle(l, dx);
  return true;
}

bool lower_kernel_gradient(Lowering &l, const Group &group) {
  // The kernel's gradient, and perhaps the sum over rows and positions that is the bias's.
  ValueId dbias = kNoValue;
  int32_t step = -1;
  for (int32_t one : group.steps) {
    const Node &node = l.graph().step(one);
    node.op == "reduce_sum" ? void(dbias = node.outputs[0]) : void(step = one);
  }
  const Node &node = l.graph().step(step);
  const ValueId dkernel = node.outputs[0];
  const bool bias = dbias != kNoValue;
  // Best is the layout of the entry it is written to: the gradient is then born where it is wanted.
  const StateEntry *entry = l.entry_of(dkernel);
  const Result<Chosen> chosen =
      plan_chosen(l.images().convolution(step), entry != nullptr ? entry->layout : std::string(), {.bias = bias});
  if (!chosen.ok()) return false;
  const auto &[candidate, plan] = *chosen;
  normalize_again(l, node.inputs[0], step);
  ConvolutionBuffers buffers;
  buffers.input = l.read(node.inputs[0], layout_of(candidate.request.blocked_input));
  buffers.output = l.read(node.inputs[1], layout_of(candidate.request.blocked_output));
  buffers.kernel = l.write(dkernel, plan->kernel_layout());
  if (bias) buffers.bias = l.write(dbias);
  add_scratch(l, *plan, buffers);
  l.emit_kernel(name_of(candidate, *plan, bias ? ":kernel_and_bias_gradient" : ":kernel_gradient"),
                plan->kernel(buffers));
  return true;
}

}  // namespace tutti::impl::backend::cpu
