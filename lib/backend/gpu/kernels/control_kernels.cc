// SPDX-License-Identifier: Apache-2.0
//
// run_scalar and the ops that own regions: call, fusion, custom_gradient, scan, cond. A scan is unrolled when it is
// issued; of a cond both branches run and the flag on the device decides whose results are kept.
#include <memory>

#include "backend/gpu/device/device_control.h"
#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/fusion/block.h"
#include "backend/gpu/kernel/extents.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/random_elements.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

Status copy(void *to, const void *from, int64_t bytes, const Frame &frame) {
  return status_of(launch_copy(to, from, bytes, frame.stream()), "launching a copy");
}

/// Issues a block whose parameters are the node's inputs from `first_input` on.
Result<Block::Run> issue_block(const Block &block, void *scratch, size_t parameters, int32_t first_input,
                               const Frame &frame, const IssueContext &context) {
  Block::Run run = block.begin(scratch);
  for (size_t i = 0; i < parameters; ++i)
    run.set_parameter(i, frame.input(first_input + static_cast<int32_t>(i)));
  TUTTI_TRY(run.issue(context));
  return run;
}

/// A sequence or stacked result seen as [outer, length, inner] around the scanned axis, in bytes.
struct ScanLine {
  int64_t outer = 1, inner_bytes = 1;

  /// The copy of element `index` between the sequence and an array of its own.
  PieceCopy piece(int64_t length, int64_t index, const void *sequence, const void *element, bool takes) const {
    char *const at = const_cast<char *>(static_cast<const char *>(sequence)) + index * inner_bytes;
    void *const alone = const_cast<void *>(element);
    if (takes) return {alone, at, outer, inner_bytes, inner_bytes, length * inner_bytes};
    return {at, alone, outer, inner_bytes, length * inner_bytes, inner_bytes};
  }
};

ScanLine scan_line(const LoweredValue &value, size_t axis) {
  ScanLine line;
  for (size_t i = 0; i < axis; ++i)
    line.outer *= value.dims[i];
  line.inner_bytes = static_cast<int64_t>(tensor::size_bytes(value.dtype));
  for (size_t i = axis + 1; i < value.dims.size(); ++i)
    line.inner_bytes *= value.dims[i];
  return line;
}

/// Scratch memory of a scan: the block, twice where an iteration leaves products to the next, two places for each
/// state, then one element of each sequence that the block does not read where it lies.
struct ScanPlan {
  Block block;
  int64_t length = 0;
  std::vector<int64_t> block_offsets;  // iterations take turns
  size_t states = 0, sequences = 0, captures = 0;
  bool is_reverse = false;
  std::vector<int64_t> state_bytes, state_offsets, element_offsets;
  std::vector<ScanLine> lines, stacked;  // by sequence; by stacked result

  /// Where a state is after `count` iterations: in the place of the results after the last one.
  void *state(size_t index, int64_t count, const Frame &frame) const {
    if (count == length) return frame.output(static_cast<int32_t>(index));
    return frame.scratch_as<char>(state_offsets[index] + (count % 2) * state_bytes_apart(index));
  }
  int64_t state_bytes_apart(size_t index) const { return (state_bytes[index] + 255) / 256 * 256; }

  /// Kernels want memory that is aligned as all values are.
  bool reads_in_place(size_t sequence) const {
    const ScanLine &line = lines[sequence];
    return block.reads_in_place(states + sequence) || (line.outer == 1 && line.inner_bytes % 256 == 0);
  }
};

/// From one row (the last axis) of a sequence's element to the next, in elements; 0 where rows are not evenly apart.
int64_t pitch_of(const LoweredValue &value, size_t axis) {
  const ScanLine line = scan_line(value, axis);
  Extents element = value.dims;
  element.erase(element.begin() + static_cast<std::ptrdiff_t>(axis));
  const int64_t columns = element.empty() ? 1 : element.back(), size = tensor::size_bytes(value.dtype);
  if (line.outer == 1) return columns;
  return line.inner_bytes == columns * size ? columns * value.dims[axis] : 0;
}

/// Elements of sequences come to be where the block reads them.
Status take_elements(const ScanPlan &plan, int64_t index, Block::Run &run, const Frame &frame) {
  for (size_t i = 0; i < plan.sequences; ++i) {
    const size_t parameter = plan.states + i;
    const auto *const sequence = frame.input_as<char>(static_cast<int32_t>(parameter));
    if (plan.reads_in_place(i)) {
      run.set_parameter(parameter, sequence + index * plan.lines[i].inner_bytes);
      continue;
    }
    const PieceCopy taken =
        plan.lines[i].piece(plan.length, index, sequence, frame.scratch_as<char>(plan.element_offsets[i]), true);
    TUTTI_TRY(status_of(launch_copy_pieces(taken, frame.stream()), "launching a scan"));
  }
  return Status();
}

/// `before`: the iteration before, which has left products to this one; or null.
Status issue_iteration(const ScanPlan &plan, int64_t count, Block::Run &run, const Block::Run *before,
                       const Frame &frame) {
  const int64_t index = plan.is_reverse ? plan.length - 1 - count : count;
  IssueContext context = frame.context();
  context.scan_iteration = scan_iteration(frame.scan_iteration(), index);
  TUTTI_TRY(take_elements(plan, index, run, frame));
  for (size_t i = 0; i < plan.states; ++i) {
    run.set_parameter(i, count == 0 ? frame.input(static_cast<int32_t>(i)) : plan.state(i, count, frame));
    if (plan.block.makes(i)) run.set_result(i, plan.state(i, count + 1, frame));
  }
  for (size_t i = 0; i < plan.stacked.size(); ++i)
    run.set_place(plan.states + i,
                  frame.output_as<char>(static_cast<int32_t>(plan.states + i)) + index * plan.stacked[i].inner_bytes);
  TUTTI_TRY(run.issue(context, before, count + 1 == plan.length || !plan.block.leaves_products()));
  for (size_t i = 0; i < plan.stacked.size(); ++i) {
    const size_t result = plan.states + i;
    if (plan.block.stores_in_place(result)) continue;
    const PieceCopy put = plan.stacked[i].piece(plan.length, index, frame.output(static_cast<int32_t>(result)),
                                                run.result(result), false);
    TUTTI_TRY(status_of(launch_copy_pieces(put, frame.stream()), "launching a scan"));
  }
  // Of two states that are one value the first, and states that the block did not make.
  for (size_t i = 0; i < plan.states; ++i) {
    void *const next = plan.state(i, count + 1, frame);
    if (run.result(i) != next) TUTTI_TRY(copy(next, run.result(i), plan.state_bytes[i], frame));
  }
  return Status();
}

Status issue_scan(const ScanPlan &plan, const Frame &frame) {
  std::vector<Block::Run> runs;
  for (const int64_t offset : plan.block_offsets) {
    Block::Run &run = runs.emplace_back(plan.block.begin(frame.scratch_as<char>(offset)));
    for (size_t i = 0; i < plan.sequences; ++i)
      run.set_parameter(plan.states + i, frame.scratch_as<char>(plan.element_offsets[i]));
    for (size_t i = plan.states + plan.sequences; i < plan.states + plan.sequences + plan.captures; ++i)
      run.set_parameter(i, frame.input(static_cast<int32_t>(i)));
  }
  const bool leaves_products = plan.block.leaves_products();
  for (int64_t count = 0; count < plan.length; ++count) {
    const auto turn = static_cast<size_t>(count) % runs.size();
    const Block::Run *const before = count > 0 && leaves_products ? &runs[1 - turn] : nullptr;
    TUTTI_TRY(issue_iteration(plan, count, runs[turn], before, frame));
  }
  for (size_t i = 0; i < plan.states && plan.length == 0; ++i)
    TUTTI_TRY(
        copy(frame.output(static_cast<int32_t>(i)), frame.input(static_cast<int32_t>(i)), plan.state_bytes[i], frame));
  return Status();
}

/// Scratch memory of a cond: two gates, then both blocks.
struct CondPlan {
  Block yes, no;
  int64_t gates_offset = 0, yes_offset = 0, no_offset = 0;
  size_t parameters = 0;
};

Status issue_cond(const CondPlan &plan, const Frame &frame) {
  const bool *const flag = frame.input_as<bool>(0);
  bool *const gates = frame.scratch_as<bool>(plan.gates_offset);
  TUTTI_TRY(status_of(launch_make_gates(flag, frame.context().faults.gate, gates, frame.stream()), "launching a cond"));
  IssueContext context = frame.context();
  context.faults.gate = gates;
  TUTTI_ASSIGN(const Block::Run yes,
               issue_block(plan.yes, frame.scratch_as<char>(plan.yes_offset), plan.parameters, 1, frame, context));
  context.faults.gate = gates + 1;
  TUTTI_ASSIGN(const Block::Run no,
               issue_block(plan.no, frame.scratch_as<char>(plan.no_offset), plan.parameters, 1, frame, context));
  for (size_t i = 0; i < plan.yes.result_count(); ++i)
    TUTTI_TRY(status_of(launch_choose(flag, yes.result(i), no.result(i), frame.output(static_cast<int32_t>(i)),
                                      plan.yes.result_bytes(i), frame.stream()),
                        "launching a cond"));
  return Status();
}

}  // namespace

Result<Kernel> make_run_scalar(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RunScalarAttributes::from(request.node));
  // The kinds stand in the order of the TUTTI_RUN_ indices.
  return Kernel([index = static_cast<size_t>(attributes.kind), dtype = request.output(0).dtype](const Frame &frame) {
    return status_of(launch_store_scalar(frame.scalars() + index, dtype, frame.output(0), frame.stream()),
                     "launching run_scalar");
  });
}

Result<Kernel> make_call_region(KernelRequest &request) {
  TUTTI_ASSIGN(Block block, Block::compile(request, request.node.regions[0]));
  const int64_t offset = request.reserve_scratch(block.scratch_bytes());
  const size_t parameters = request.node.regions[0].parameters.size();
  return Kernel(
      [block = std::make_shared<const Block>(std::move(block)), offset, parameters](const Frame &frame) -> Status {
        TUTTI_ASSIGN(const Block::Run run,
                     issue_block(*block, frame.scratch_as<char>(offset), parameters, 0, frame, frame.context()));
        for (size_t i = 0; i < block->result_count(); ++i)
          TUTTI_TRY(copy(frame.output(static_cast<int32_t>(i)), run.result(i), block->result_bytes(i), frame));
        return Status();
      });
}

Result<Kernel> make_cond(KernelRequest &request) {
  auto plan = std::make_shared<CondPlan>();
  TUTTI_ASSIGN(plan->yes, Block::compile(request, request.node.regions[0]));
  TUTTI_ASSIGN(plan->no, Block::compile(request, request.node.regions[1]));
  plan->gates_offset = request.reserve_scratch(2);
  plan->yes_offset = request.reserve_scratch(plan->yes.scratch_bytes());
  plan->no_offset = request.reserve_scratch(plan->no.scratch_bytes());
  plan->parameters = request.node.regions[0].parameters.size();
  return Kernel(
      [plan = std::shared_ptr<const CondPlan>(plan)](const Frame &frame) { return issue_cond(*plan, frame); });
}

Result<Kernel> make_scan(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ScanAttributes::from(request.node));
  auto plan = std::make_shared<ScanPlan>();
  plan->states = static_cast<size_t>(attributes.states);
  plan->sequences = static_cast<size_t>(attributes.sequences);
  plan->is_reverse = attributes.reverse;
  const size_t axis = static_cast<size_t>(attributes.axis);
  plan->captures = request.input_count() - plan->states - plan->sequences;
  plan->length = request.input(plan->states).dims[axis];
  LoopPlaces places{plan->states, plan->sequences, {}, {}};
  places.parameter_pitches.resize(request.input_count());
  for (size_t i = plan->states; i < plan->states + plan->sequences; ++i)
    places.parameter_pitches[i] = pitch_of(request.input(i), axis);
  places.result_pitches.resize(request.node.outputs.size());
  for (size_t i = plan->states; i < request.node.outputs.size(); ++i)
    places.result_pitches[i] = pitch_of(request.output(i), axis);
  TUTTI_ASSIGN(plan->block, Block::compile(request, request.node.regions[0], places));
  for (int32_t turn = 0; turn < (plan->block.may_leave_products() ? 2 : 1); ++turn)
    plan->block_offsets.push_back(request.reserve_scratch(plan->block.scratch_bytes()));
  for (size_t i = 0; i < plan->states; ++i) {
    plan->state_bytes.push_back(request.input(i).bytes);
    plan->state_offsets.push_back(request.reserve_scratch(2 * plan->state_bytes_apart(i)));
  }
  for (size_t i = 0; i < plan->sequences; ++i) {
    const ScanLine line = scan_line(request.input(plan->states + i), axis);
    plan->lines.push_back(line);
    const bool is_copied = !plan->reads_in_place(i);
    plan->element_offsets.push_back(request.reserve_scratch(is_copied ? line.outer * line.inner_bytes : 0));
  }
  for (size_t i = plan->states; i < request.node.outputs.size(); ++i)
    plan->stacked.push_back(scan_line(request.output(i), axis));
  request.kernel_name = base::concat("scan of ", plan->block.call_count());
  return Kernel(
      [plan = std::shared_ptr<const ScanPlan>(plan)](const Frame &frame) { return issue_scan(*plan, frame); });
}

}  // namespace tutti::impl::backend::gpu
