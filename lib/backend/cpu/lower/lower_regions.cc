// SPDX-License-Identifier: Apache-2.0
//
// Loops, choices and calls: the kernels of a region, compiled once, run one after the other for each element.
#include <algorithm>
#include <cstring>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/region_body.h"
#include "backend/cpu/shapes/attributes.h"
#include "base/memory.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;
using graph::Node;
using graph::ValueId;

namespace {

/// One of several regions' state.
class RegionsState final : public KernelState {
 public:
  std::vector<std::unique_ptr<RegionState>> regions;
};

Result<std::unique_ptr<KernelState>> make_states(const std::vector<RegionBody> &bodies) {
  auto state = std::make_unique<RegionsState>();
  for (const RegionBody &body : bodies) {
    TUTTI_ASSIGN(std::unique_ptr<RegionState> of_region, body.make_state());
    state->regions.push_back(std::move(of_region));
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

/// A sequence as `outer` pieces of `length` elements, each of `bytes`; what is stacked likewise.
struct Line {
  int64_t outer = 1, bytes = 0;

  bool is_read = true;  ///< by the region

  /// May elements be used where they lie?
  bool is_whole() const { return outer == 1 && bytes % static_cast<int64_t>(base::kAlignment) == 0; }
};

struct LoopPlan {
  size_t states = 0;
  int64_t length = 0;
  bool is_reversed = false;
  std::vector<int64_t> state_bytes;
  std::vector<Line> sequences, stacked;
  std::vector<BufferId> inputs, outputs;  // states, sequences, captures; states, stacked
  BufferId scratch = -1;
  // Places in the scratch memory: two of each state, one of each element, the region's workspace.
  std::vector<int64_t> state_offsets[2], element_offsets, stacked_offsets;
  int64_t workspace_offset = 0;
};

class LoopKernel final : public Kernel {
 public:
  LoopKernel(std::vector<RegionBody> bodies, LoopPlan plan) : bodies_(std::move(bodies)), plan_(std::move(plan)) {}

  Result<std::unique_ptr<KernelState>> make_state() const override { return make_states(bodies_); }

  int32_t run(const RunContext &context, KernelState *kernel_state) const override {
    RegionState &state = *static_cast<RegionsState &>(*kernel_state).regions.front();
    const RegionBody &body = bodies_.front();
    char *const scratch = static_cast<char *>(context.buffers[plan_.scratch]);
    state.begin(body, scratch + plan_.workspace_offset);
    const size_t first_capture = plan_.states + plan_.sequences.size();
    for (size_t i = 0; i < plan_.states; ++i)
      state.set_parameter(i, buffer(context, plan_.inputs[i]));
    for (size_t i = first_capture; i < plan_.inputs.size(); ++i)
      state.set_parameter(i, buffer(context, plan_.inputs[i]));
    for (int64_t count = 0; count < plan_.length; ++count) {
      const int64_t index = plan_.is_reversed ? plan_.length - 1 - count : count;
      // The last states are results.
      const bool is_last = count + 1 == plan_.length;
      for (size_t i = 0; i < plan_.states; ++i)
        state.set_result(i, is_last ? buffer(context, plan_.outputs[i]) : scratch + plan_.state_offsets[count % 2][i]);
      take_elements(context, index, scratch, state);
      place_stacked(context, index, scratch, state);
      if (const int32_t code = body.run(context, state); code != 0) return code;
      put_stacked(context, index, scratch);
      for (size_t i = 0; i < plan_.states && !is_last; ++i)
        state.set_parameter(i, scratch + plan_.state_offsets[count % 2][i]);
    }
    for (size_t i = 0; i < plan_.states && plan_.length == 0; ++i)
      copy(buffer(context, plan_.outputs[i]), buffer(context, plan_.inputs[i]), plan_.state_bytes[i]);
    return 0;
  }

 private:
  static char *buffer(const RunContext &context, BufferId id) { return static_cast<char *>(context.buffers[id]); }
  static void copy(void *to, const void *from, int64_t bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  void take_elements(const RunContext &context, int64_t index, char *scratch, RegionState &state) const {
    for (size_t s = 0; s < plan_.sequences.size(); ++s) {
      const Line &line = plan_.sequences[s];
      if (!line.is_read) continue;
      const char *const sequence = buffer(context, plan_.inputs[plan_.states + s]);
      if (line.is_whole()) {
        state.set_parameter(plan_.states + s, sequence + index * line.bytes);
        continue;
      }
      char *const element = scratch + plan_.element_offsets[s];
      for (int64_t o = 0; o < line.outer; ++o)
        copy(element + o * line.bytes, sequence + (o * plan_.length + index) * line.bytes, line.bytes);
      state.set_parameter(plan_.states + s, element);
    }
  }

  void place_stacked(const RunContext &context, int64_t index, char *scratch, RegionState &state) const {
    for (size_t s = 0; s < plan_.stacked.size(); ++s) {
      const Line &line = plan_.stacked[s];
      char *const whole = buffer(context, plan_.outputs[plan_.states + s]);
      state.set_result(plan_.states + s,
                       line.is_whole() ? whole + index * line.bytes : scratch + plan_.stacked_offsets[s]);
    }
  }

  void put_stacked(const RunContext &context, int64_t index, const char *scratch) const {
    for (size_t s = 0; s < plan_.stacked.size(); ++s) {
      const Line &line = plan_.stacked[s];
      if (line.is_whole()) continue;
      char *const whole = buffer(context, plan_.outputs[plan_.states + s]);
      for (int64_t o = 0; o < line.outer; ++o)
        copy(whole + (o * plan_.length + index) * line.bytes, scratch + plan_.stacked_offsets[s] + o * line.bytes,
             line.bytes);
    }
  }

  const std::vector<RegionBody> bodies_;
  const LoopPlan plan_;
};

/// Runs one of its regions once: the only one, or where there are two the first if the boolean is true.
class BranchKernel final : public Kernel {
 public:
  BranchKernel(std::vector<RegionBody> bodies, BufferId predicate, std::vector<BufferId> inputs,
               std::vector<BufferId> outputs, BufferId scratch)
      : bodies_(std::move(bodies)),
        predicate_(predicate),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        scratch_(scratch) {}

  Result<std::unique_ptr<KernelState>> make_state() const override { return make_states(bodies_); }

  int32_t run(const RunContext &context, KernelState *kernel_state) const override {
    const bool is_first = predicate_ < 0 || *static_cast<const bool *>(context.buffers[predicate_]);
    const size_t chosen = is_first ? 0 : 1;
    RegionState &state = *static_cast<RegionsState &>(*kernel_state).regions[chosen];
    state.begin(bodies_[chosen], context.buffers[scratch_]);
    for (size_t i = 0; i < inputs_.size(); ++i)
      state.set_parameter(i, context.buffers[inputs_[i]]);
    for (size_t i = 0; i < outputs_.size(); ++i)
      state.set_result(i, context.buffers[outputs_[i]]);
    return bodies_[chosen].run(context, state);
  }

 private:
  const std::vector<RegionBody> bodies_;
  const BufferId predicate_;
  const std::vector<BufferId> inputs_, outputs_;
  const BufferId scratch_;
};

/// The elements of a value along an axis.
Line line_of(const LoweredValue &whole, int64_t axis) {
  Line line;
  for (int64_t i = 0; i < axis; ++i)
    line.outer *= whole.dims[static_cast<size_t>(i)];
  line.bytes = static_cast<int64_t>(tensor::size_bytes(whole.dtype));
  for (size_t i = static_cast<size_t>(axis) + 1; i < whole.dims.size(); ++i)
    line.bytes *= whole.dims[i];
  return line;
}

/// The elements of a value in a layout: one behind the other where that is by elements.
Line line_of(const LoweredValue &whole, int64_t axis, std::string_view layout) {
  Line line = line_of(whole, axis);
  if (layout.empty()) return line;
  line.bytes *= line.outer;
  line.outer = 1;
  return line;
}

/// Do only loops along this axis read a stacked result, element by element?
bool only_loops_read(const Lowering &l, ValueId stacked, int64_t axis) {
  const std::vector<int32_t> &uses = l.fusion().uses(stacked);
  return !l.fusion().is_result(stacked) && std::ranges::all_of(uses, [&](int32_t use) {
    const Node &user = l.graph().step(use);
    if (user.op != "scan" || integer(user, "axis") != axis) return false;
    const auto first = user.inputs.begin() + integer(user, "states"), end = first + integer(user, "sequences");
    return std::count(first, end, stacked) == std::ranges::count(user.inputs, stacked);
  });
}

/// How a loop stacks a result: element behind element where it may, which are then used where they lie.
std::string stacked_layout(const Lowering &l, ValueId stacked, int64_t axis) {
  const LoweredValue &whole = l.value(stacked);
  const bool suits = axis > 0 && whole.elements > 0 && l.is_f32(stacked) && only_loops_read(l, stacked, axis);
  return suits ? by_elements(axis) : std::string();
}

/// In which layout a loop reads a sequence.
std::string sequence_layout(const Lowering &l, ValueId sequence, int64_t axis) {
  const std::string layout = l.layout_of(sequence);
  return layout == by_elements(axis) ? layout : std::string();
}

int64_t reserve(int64_t &total, int64_t bytes) {
  const int64_t offset = total;
  total += base::round_up_aligned(bytes);
  return offset;
}

/// The bodies of all regions; empty where one of them is left to the reference.
Result<std::vector<RegionBody>> lower_bodies(Lowering &l, const Node &node, size_t count) {
  std::vector<RegionBody> bodies;
  for (size_t i = 0; i < count; ++i) {
    TUTTI_ASSIGN(std::optional<RegionBody> body, RegionBody::lower(l.graph(), node, i));
    if (!body) return std::vector<RegionBody>();
    bodies.push_back(std::move(*body));
  }
  return bodies;
}

}  // namespace

Result<bool> lower_scan(Lowering &l, const Node &node) {
  TUTTI_ASSIGN(std::vector<RegionBody> bodies, lower_bodies(l, node, 1));
  if (bodies.empty()) return false;
  const RegionBody &body = bodies.front();
  const int64_t axis = integer(node, "axis"), sequences = integer(node, "sequences");
  LoopPlan plan;
  plan.states = static_cast<size_t>(integer(node, "states"));
  plan.is_reversed = flag(node, "reverse");
  plan.length = l.value(node.inputs[plan.states]).dims[static_cast<size_t>(axis)];
  int64_t total = 0;
  plan.workspace_offset = reserve(total, body.workspace_bytes());
  for (size_t i = 0; i < plan.states; ++i) {
    plan.state_bytes.push_back(l.value(node.inputs[i]).bytes);
    for (std::vector<int64_t> &offsets : plan.state_offsets)
      offsets.push_back(reserve(total, plan.state_bytes.back()));
  }
  for (size_t i = 0; i < static_cast<size_t>(sequences); ++i) {
    const ValueId sequence = node.inputs[plan.states + i];
    plan.sequences.push_back(line_of(l.value(sequence), axis, sequence_layout(l, sequence, axis)));
    plan.sequences.back().is_read = body.reads(plan.states + i);
    plan.element_offsets.push_back(reserve(total, plan.sequences.back().outer * plan.sequences.back().bytes));
  }
  for (size_t i = plan.states; i < node.outputs.size(); ++i) {
    plan.stacked.push_back(line_of(l.value(node.outputs[i]), axis, stacked_layout(l, node.outputs[i], axis)));
    plan.stacked_offsets.push_back(reserve(total, plan.stacked.back().outer * plan.stacked.back().bytes));
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool is_sequence = i >= plan.states && i < plan.states + plan.sequences.size();
    plan.inputs.push_back(l.read(node.inputs[i], is_sequence ? sequence_layout(l, node.inputs[i], axis) : ""));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    plan.outputs.push_back(l.write(node.outputs[i], i < plan.states ? "" : stacked_layout(l, node.outputs[i], axis)));
  plan.scratch = l.scratch(total);
  l.count_fallbacks(body.fallbacks());
  l.emit_kernel("loop", std::make_unique<LoopKernel>(std::move(bodies), std::move(plan)));
  return true;
}

Result<bool> lower_branches(Lowering &l, const Node &node) {
  const bool is_choice = node.op == "cond";
  TUTTI_ASSIGN(std::vector<RegionBody> bodies, lower_bodies(l, node, is_choice ? 2 : 1));
  if (bodies.empty()) return false;
  std::vector<BufferId> inputs, outputs;
  int64_t bytes = 0;
  for (const RegionBody &body : bodies) {
    bytes = std::max(bytes, body.workspace_bytes());
    l.count_fallbacks(body.fallbacks());
  }
  const BufferId predicate = is_choice ? l.read(node.inputs[0]) : -1;
  for (size_t i = is_choice ? 1 : 0; i < node.inputs.size(); ++i)
    inputs.push_back(l.read(node.inputs[i]));
  for (const graph::ValueId output : node.outputs)
    outputs.push_back(l.write(output));
  const BufferId scratch = l.scratch(bytes);
  l.emit_kernel(
      is_choice ? "choice" : "region",
      std::make_unique<BranchKernel>(std::move(bodies), predicate, std::move(inputs), std::move(outputs), scratch));
  return true;
}

}  // namespace tutti::impl::backend::cpu
