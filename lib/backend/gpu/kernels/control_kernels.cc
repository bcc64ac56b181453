// SPDX-License-Identifier: Apache-2.0
//
// run_scalar and the ops that own regions: call, fusion, custom_gradient, scan, cond. A scan is unrolled when it is
// issued; of a cond both branches run and the flag on the device decides whose results are kept.
#include <memory>

#include "backend/gpu/device/device_control.h"
#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/kernel/block.h"
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

/// Scratch memory of a scan: the block, then the states, then one element of each sequence.
struct ScanPlan {
  Block block;
  int64_t block_offset = 0, length = 0;
  size_t states = 0, sequences = 0, captures = 0;
  bool is_reverse = false;
  std::vector<int64_t> state_bytes, state_offsets, element_offsets;
  std::vector<ScanLine> lines, stacked;  // by sequence; by stacked result
};

Status issue_iteration(const ScanPlan &plan, int64_t index, Block::Run &run, const Frame &frame) {
  const auto at = [](size_t i) { return static_cast<int32_t>(i); };
  IssueContext context = frame.context();
  context.scan_iteration = scan_iteration(frame.scan_iteration(), index);
  for (size_t i = 0; i < plan.sequences; ++i) {
    const PieceCopy taken = plan.lines[i].piece(plan.length, index, frame.input(at(plan.states + i)),
                                                frame.scratch_as<char>(plan.element_offsets[i]), true);
    TUTTI_TRY(status_of(launch_copy_pieces(taken, frame.stream()), "launching a scan"));
  }
  TUTTI_TRY(run.issue(context));
  for (size_t i = 0; i < plan.stacked.size(); ++i) {
    const PieceCopy put = plan.stacked[i].piece(plan.length, index, frame.output(at(plan.states + i)),
                                                run.result(plan.states + i), false);
    TUTTI_TRY(status_of(launch_copy_pieces(put, frame.stream()), "launching a scan"));
  }
  // By way of the outputs: a new state may be another state's old memory.
  for (size_t i = 0; i < plan.states; ++i)
    TUTTI_TRY(copy(frame.output(at(i)), run.result(i), plan.state_bytes[i], frame));
  for (size_t i = 0; i < plan.states; ++i)
    TUTTI_TRY(copy(frame.scratch_as<char>(plan.state_offsets[i]), frame.output(at(i)), plan.state_bytes[i], frame));
  return Status();
}

Status issue_scan(const ScanPlan &plan, const Frame &frame) {
  Block::Run run = plan.block.begin(frame.scratch_as<char>(plan.block_offset));
  for (size_t i = 0; i < plan.states; ++i) {
    void *const state = frame.scratch_as<char>(plan.state_offsets[i]);
    TUTTI_TRY(copy(state, frame.input(static_cast<int32_t>(i)), plan.state_bytes[i], frame));
    run.set_parameter(i, state);
  }
  for (size_t i = 0; i < plan.sequences; ++i)
    run.set_parameter(plan.states + i, frame.scratch_as<char>(plan.element_offsets[i]));
  for (size_t i = plan.states + plan.sequences; i < plan.states + plan.sequences + plan.captures; ++i)
    run.set_parameter(i, frame.input(static_cast<int32_t>(i)));
  for (int64_t count = 0; count < plan.length; ++count)
    TUTTI_TRY(issue_iteration(plan, plan.is_reverse ? plan.length - 1 - count : count, run, frame));
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
  TUTTI_ASSIGN(plan->block, Block::compile(request, request.node.regions[0]));
  plan->states = static_cast<size_t>(attributes.states);
  plan->sequences = static_cast<size_t>(attributes.sequences);
  plan->is_reverse = attributes.reverse;
  const size_t axis = static_cast<size_t>(attributes.axis);
  plan->captures = request.input_count() - plan->states - plan->sequences;
  plan->length = request.input(plan->states).dims[axis];
  plan->block_offset = request.reserve_scratch(plan->block.scratch_bytes());
  for (size_t i = 0; i < plan->states; ++i) {
    plan->state_bytes.push_back(request.input(i).bytes);
    plan->state_offsets.push_back(request.reserve_scratch(request.input(i).bytes));
  }
  for (size_t i = 0; i < plan->sequences; ++i) {
    const ScanLine line = scan_line(request.input(plan->states + i), axis);
    plan->lines.push_back(line);
    plan->element_offsets.push_back(request.reserve_scratch(line.outer * line.inner_bytes));
  }
  for (size_t i = plan->states; i < request.node.outputs.size(); ++i)
    plan->stacked.push_back(scan_line(request.output(i), axis));
  return Kernel(
      [plan = std::shared_ptr<const ScanPlan>(plan)](const Frame &frame) { return issue_scan(*plan, frame); });
}

}  // namespace tutti::impl::backend::gpu
