// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients: each takes the candidate that was chosen for it (convolution_choice.h).
#include <algorithm>
#include <cstring>
#include <optional>

#include "backend/cpu/convolution/convolution_choice.h"
#include "backend/cpu/lower/image_layouts.h"
#include "backend/cpu/lower/lower.h"

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
  if (candidate == nullptr) return base::unimplemented("no implementation supports this convolution");
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
  l.use(to);
  return to;
}

void add_scratch(Lowering &l, const ConvolutionPlan &plan, ConvolutionBuffers &buffers) {
  if (plan.scratch_bytes() > 0) buffers.scratch = l.scratch(plan.scratch_bytes());
}

/// The parts in which a convolution that reads `from` may be a stage.
std::optional<Parts> stage_parts(const Lowering &l, const ConvolutionCandidate *candidate, ValueId from) {
  if (candidate == nullptr) return std::nullopt;
  const ConvolutionShape &s = candidate->request.shape;
  const int64_t elements = s.in_channels * s.in_height * s.in_width + s.out_channels * s.out_height * s.out_width;
  const std::optional<Parts> parts = l.is_in_chain(from) ? l.open_chain_parts() : l.image_parts(s.rows, elements);
  return parts && suits_stage(*candidate, *parts) ? parts : std::nullopt;
}

/// As a stage where there is something to be a stage with, that makes what it reads or takes sums of what it writes;
/// else whole.
Result<Chosen> plan_between(const Lowering &l, const ConvolutionCandidate *candidate, const std::string &layout,
                            const ConvolutionEpilogue &epilogue, ValueId from, ValueId to) {
  const std::optional<Parts> parts = stage_parts(l, candidate, from);
  if (parts && (l.is_in_chain(from) || feeds_sums(l, to))) {
    Result<ConvolutionPlanPointer> plan = make_stage_plan(*candidate, layout, epilogue, *parts);
    if (plan.ok()) return Chosen{*candidate, std::move(plan).value()};
  }
  return plan_chosen(candidate, layout, epilogue);
}

/// As a stage of the chain that makes the gradient it reads, else whole.
Result<Chosen> plan_kernel_gradient(const Lowering &l, int32_t step, const std::string &layout, bool bias) {
  const ConvolutionCandidate *candidate = l.images().convolution(step);
  if (candidate != nullptr && !bias && l.is_in_chain(l.graph().step(step).inputs[1]) &&
      suits_stage(*candidate, l.open_chain_parts())) {
    Result<ConvolutionPlanPointer> plan = make_stage_plan(*candidate, layout, {}, l.open_chain_parts());
    if (plan.ok()) return Chosen{*candidate, std::move(plan).value()};
  }
  return plan_chosen(candidate, layout, {.bias = bias});
}

void emit_convolution(Lowering &l, const std::string &name, const Chosen &chosen, const ConvolutionBuffers &buffers) {
  if (!chosen.plan->is_stage()) return l.emit_kernel(name, chosen.plan->kernel(buffers));
  const ConvolutionShape &s = chosen.candidate.request.shape;
  constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
  const Lowering::ImageUse images[] = {{buffers.input, s.in_channels * s.in_height * s.in_width * kFloatBytes},
                                       {buffers.output, s.out_channels * s.out_height * s.out_width * kFloatBytes}};
  l.emit_stage(name, images, chosen.plan->stage(buffers));
}

}  // namespace

std::optional<Parts> parts_of_next_convolution(const Lowering &l, ValueId image) {
  for (int32_t step : l.fusion().uses(image)) {
    const Node &node = l.graph().step(step);
    const bool convolves = node.op == "conv2d" || node.op == "conv2d_input_gradient";
    if (!convolves || node.inputs[0] != image) continue;
    const std::optional<Parts> parts = stage_parts(l, l.images().convolution(step), image);
    if (parts) return parts;
  }
  return std::nullopt;
}

bool only_stages_read(const Lowering &l, ValueId image, const Parts &parts) {
  const auto &uses = l.fusion().uses(image);
  if (l.fusion().is_result(image)) return false;
  return std::all_of(uses.begin(), uses.end(), [&](int32_t step) {
    const Node &node = l.graph().step(step);
    const bool convolves =
        node.op == "conv2d" || node.op == "conv2d_input_gradient" || node.op == "conv2d_kernel_gradient";
    const ConvolutionCandidate *candidate = convolves ? l.images().convolution(step) : nullptr;
    return candidate != nullptr && l.fusion().group_of(step)->kind != GroupKind::kernel_gradient &&
           suits_stage(*candidate, parts);
  });
}

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
  const Result<Chosen> chosen =
      plan_between(l, l.images().convolution(step), l.layout_of(node.inputs[1]), epilogue, node.inputs[0], y);
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
  emit_convolution(l, name_of(candidate, *plan, suffix), *chosen, buffers);
  settle(l, y);
  return true;
}

bool lower_input_gradient(Lowering &l, const Node &node) {
  const ValueId dx = node.outputs[0];
  const ConvolutionCandidate *candidate_or_null = l.images().convolution(l.fusion().producer(dx));
  const bool copies = candidate_or_null != nullptr && candidate_or_null->family->rounds_factors;
  // Best is the layout that suits the algorithm; what is copied anyway is read as it lies.
  const Result<Chosen> chosen =
      plan_between(l, candidate_or_null, copies ? l.layout_of(node.inputs[1]) : std::string(), {}, node.inputs[0], dx);
  if (!chosen.ok()) return false;
  const auto &[candidate, plan] = *chosen;
  ConvolutionBuffers buffers;
  buffers.output = l.read(node.inputs[0], layout_of(candidate.request.blocked_output));
  buffers.kernel = l.read(node.inputs[1], plan->kernel_layout());
  buffers.input = l.write(dx, layout_of(candidate.request.blocked_input));
  add_scratch(l, *plan, buffers);
  emit_convolution(l, name_of(candidate, *plan, ":input_gradient"), *chosen, buffers);
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
  const Result<Chosen> chosen = plan_kernel_gradient(l, step, entry != nullptr ? entry->layout : std::string(), bias);
  if (!chosen.ok()) return false;
  const auto &[candidate, plan] = *chosen;
  normalize_again(l, node.inputs[0], step, plan->is_stage() ? std::optional(l.open_chain_parts()) : std::nullopt);
  ConvolutionBuffers buffers;
  buffers.input = l.read(node.inputs[0], layout_of(candidate.request.blocked_input));
  buffers.output = l.read(node.inputs[1], layout_of(candidate.request.blocked_output));
  buffers.kernel = l.write(dkernel, plan->kernel_layout());
  if (bias) buffers.bias = l.write(dbias);
  add_scratch(l, *plan, buffers);
  emit_convolution(l, name_of(candidate, *plan, bias ? ":kernel_and_bias_gradient" : ":kernel_gradient"), *chosen,
                   buffers);
  return true;
}

}  // namespace tutti::impl::backend::cpu
