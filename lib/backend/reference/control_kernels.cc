// SPDX-License-Identifier: Apache-2.0
//
// run_scalar and the ops that own regions: call, fusion, custom_gradient, scan, cond. Regions are Blocks in the node's
// scratch memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "backend/random_elements.h"
#include "backend/reference/block.h"
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "backend/reference/strided.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;

namespace {

void copy_bytes(void *to, const void *from, int64_t bytes) {
  if (bytes != 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

void copy_results(const Block &block, void *scratch, const Frame &frame) {
  for (size_t i = 0; i < block.result_count(); ++i)
    copy_bytes(frame.output(static_cast<int32_t>(i)), block.result(scratch, i), block.result_bytes(i));
}

/// Runs a block whose parameters are the node's inputs from `first_input` on.
Status run_block(const Block &block, size_t parameters, int32_t first_input, const Frame &frame) {
  void *const scratch = frame.scratch();
  block.begin(scratch);
  for (size_t i = 0; i < parameters; ++i)
    block.set_parameter(scratch, i, frame.input(first_input + static_cast<int32_t>(i)));
  TUTTI_TRY(block.run(scratch, frame.scalars()));
  copy_results(block, scratch, frame);
  return Status();
}

/// A sequence or stacked result seen as [outer, length, inner] around the scanned axis, in bytes.
struct ScanLine {
  int64_t outer = 1, inner_bytes = 1;
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
  int64_t states = 0, length = 0;
  size_t sequences = 0, captures = 0;
  bool is_reverse = false;
  std::vector<int64_t> state_bytes, state_offsets, element_offsets;
  std::vector<ScanLine> lines, stacked;  // by sequence; by stacked result
};

void take_element(const ScanLine &line, int64_t length, int64_t index, const char *sequence, char *element) {
  for (int64_t o = 0; o < line.outer; ++o)
    copy_bytes(element + o * line.inner_bytes, sequence + (o * length + index) * line.inner_bytes, line.inner_bytes);
}

void put_element(const ScanLine &line, int64_t length, int64_t index, const char *element, char *stacked) {
  for (int64_t o = 0; o < line.outer; ++o)
    copy_bytes(stacked + (o * length + index) * line.inner_bytes, element + o * line.inner_bytes, line.inner_bytes);
}

Status run_scan(const ScanPlan &plan, const Frame &frame) {
  char *const scratch = static_cast<char *>(frame.scratch());
  const Block &block = plan.block;
  const size_t states = static_cast<size_t>(plan.states);
  block.begin(scratch);
  for (size_t i = 0; i < states; ++i) {
    copy_bytes(scratch + plan.state_offsets[i], frame.input(static_cast<int32_t>(i)), plan.state_bytes[i]);
    block.set_parameter(scratch, i, scratch + plan.state_offsets[i]);
  }
  for (size_t i = 0; i < plan.sequences; ++i)
    block.set_parameter(scratch, states + i, scratch + plan.element_offsets[i]);
  for (size_t i = 0; i < plan.captures; ++i)
    block.set_parameter(scratch, states + plan.sequences + i,
                        frame.input(static_cast<int32_t>(states + plan.sequences + i)));

  std::array<int64_t, kScalarCount> scalars;
  std::copy_n(frame.scalars(), scalars.size(), scalars.begin());
  for (int64_t count = 0; count < plan.length; ++count) {
    const int64_t index = plan.is_reverse ? plan.length - 1 - count : count;
    scalars[kScanIteration] = scan_iteration(frame.scalars()[kScanIteration], index);
    for (size_t i = 0; i < plan.sequences; ++i)
      take_element(plan.lines[i], plan.length, index, frame.input_as<char>(static_cast<int32_t>(states + i)),
                   scratch + plan.element_offsets[i]);
    TUTTI_TRY(block.run(scratch, scalars.data()));
    for (size_t i = 0; i < plan.stacked.size(); ++i)
      put_element(plan.stacked[i], plan.length, index, static_cast<const char *>(block.result(scratch, states + i)),
                  frame.output_as<char>(static_cast<int32_t>(states + i)));
    // By way of the outputs: a new state may be another state's old memory.
    for (size_t i = 0; i < states; ++i)
      copy_bytes(frame.output(static_cast<int32_t>(i)), block.result(scratch, i), plan.state_bytes[i]);
    for (size_t i = 0; i < states; ++i)
      copy_bytes(scratch + plan.state_offsets[i], frame.output(static_cast<int32_t>(i)), plan.state_bytes[i]);
  }
  for (size_t i = 0; i < states && plan.length == 0; ++i)
    copy_bytes(frame.output(static_cast<int32_t>(i)), frame.input(static_cast<int32_t>(i)), plan.state_bytes[i]);
  return Status();
}

int64_t reserve(int64_t &total, int64_t bytes) {
  const int64_t offset = total;
  total += (bytes + 63) / 64 * 64;
  return offset;
}

}  // namespace

Result<Kernel> make_run_scalar(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RunScalarAttributes::from(request.node));
  // The kinds stand in the order of the TUTTI_RUN_ indices.
  return Kernel([index = static_cast<size_t>(attributes.kind), dtype = request.output(0).dtype](const Frame &frame) {
    store(dtype, frame.output(0), 0, 1, frame.scalars() + index);
    return Status();
  });
}

Result<Kernel> make_call_region(KernelRequest &request) {
  TUTTI_ASSIGN(Block block, Block::compile(request.lowered, request.node.regions[0]));
  request.scratch_bytes = block.scratch_bytes();
  const size_t parameters = request.node.regions[0].parameters.size();
  return Kernel([block = std::make_shared<const Block>(std::move(block)), parameters](const Frame &frame) {
    return run_block(*block, parameters, 0, frame);
  });
}

Result<Kernel> make_cond(KernelRequest &request) {
  TUTTI_ASSIGN(Block yes, Block::compile(request.lowered, request.node.regions[0]));
  TUTTI_ASSIGN(Block no, Block::compile(request.lowered, request.node.regions[1]));
  request.scratch_bytes = std::max(yes.scratch_bytes(), no.scratch_bytes());
  const size_t parameters = request.node.regions[0].parameters.size();
  auto blocks = std::make_shared<const std::pair<Block, Block>>(std::move(yes), std::move(no));
  return Kernel([blocks, parameters](const Frame &frame) {
    return run_block(*frame.input_as<bool>(0) ? blocks->first : blocks->second, parameters, 1, frame);
  });
}

Result<Kernel> make_scan(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ScanAttributes::from(request.node));
  auto plan = std::make_shared<ScanPlan>();
  TUTTI_ASSIGN(plan->block, Block::compile(request.lowered, request.node.regions[0]));
  plan->states = attributes.states;
  plan->sequences = static_cast<size_t>(attributes.sequences);
  plan->is_reverse = attributes.reverse;
  const size_t states = static_cast<size_t>(attributes.states), axis = static_cast<size_t>(attributes.axis);
  plan->captures = request.input_count() - states - plan->sequences;
  plan->length = request.input(states).dims[axis];
  int64_t total = 0;
  reserve(total, plan->block.scratch_bytes());
  for (size_t i = 0; i < states; ++i) {
    plan->state_bytes.push_back(request.input(i).bytes);
    plan->state_offsets.push_back(reserve(total, request.input(i).bytes));
  }
  for (size_t i = 0; i < plan->sequences; ++i) {
    const ScanLine line = scan_line(request.input(states + i), axis);
    plan->lines.push_back(line);
    plan->element_offsets.push_back(reserve(total, line.outer * line.inner_bytes));
  }
  for (size_t i = states; i < request.node.outputs.size(); ++i)
    plan->stacked.push_back(scan_line(request.output(i), axis));
  request.scratch_bytes = total;
  return Kernel([plan = std::shared_ptr<const ScanPlan>(plan)](const Frame &frame) { return run_scan(*plan, frame); });
}

}  // namespace tutti::impl::backend::reference
