// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernel/block.h"

#include <map>
#include <utility>

#include "backend/memory_plan.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

namespace {

constexpr int64_t kScratchAlignment = 256;

/// Gives the values of a region positions in its table.
class Positions {
 public:
  int32_t of(ValueId value) { return positions_.emplace(value, static_cast<int32_t>(positions_.size())).first->second; }
  size_t count() const { return positions_.size(); }

 private:
  std::map<ValueId, int32_t> positions_;
};

}  // namespace

Result<Block> Block::compile(KernelRequest &request, const graph::Region &region) {
  Block block;
  std::vector<int64_t> call_scratch;
  for (const NodeId id : region.nodes) {
    const Node &node = request.lowered.graph().node(id);
    if (node.op == "constant") continue;
    KernelRequest inner{request.lowered, node, request.library, request.faults, request.batch};
    inner.trials = request.trials;
    TUTTI_ASSIGN(KernelCall call, make_call(inner));
    block.calls_.push_back(std::move(call));
    call_scratch.push_back(inner.scratch_bytes);
  }
  block.plan(request.lowered, region, call_scratch);
  return block;
}

void Block::plan(const LoweredGraph &lowered, const graph::Region &region, const std::vector<int64_t> &call_scratch) {
  Positions positions;
  for (const ValueId value : region.parameters)
    parameters_.push_back(positions.of(value));
  std::map<int32_t, NodeId> constants;
  for (const NodeId id : region.nodes) {
    const Node &node = lowered.graph().node(id);
    if (node.op == "constant") constants[positions.of(node.outputs[0])] = id;
  }

  std::vector<MemoryBlock> blocks;
  std::map<int32_t, size_t> block_of;  // by position
  std::vector<size_t> scratch_block;   // by call
  const auto use = [&](int32_t position, int32_t step) {
    const auto found = block_of.find(position);
    if (found != block_of.end()) blocks[found->second].last = step;
  };
  const int32_t end = static_cast<int32_t>(calls_.size());
  for (int32_t step = 0; step < end; ++step) {
    KernelCall &call = calls_[static_cast<size_t>(step)];
    for (int32_t &value : call.inputs) {
      if (value == kNoValue) continue;
      value = positions.of(value);
      use(value, step);
    }
    for (int32_t &value : call.outputs) {
      const int64_t bytes = lowered.value(value).bytes;
      value = positions.of(value);
      block_of[value] = blocks.size();
      blocks.push_back({bytes, step, step});
    }
    scratch_block.push_back(blocks.size());
    blocks.push_back({call_scratch[static_cast<size_t>(step)], step, step});
  }
  for (const ValueId value : region.results) {
    results_.push_back(positions.of(value));
    result_bytes_.push_back(lowered.value(value).bytes);
    use(results_.back(), end);
  }

  const MemoryPlan memory = plan_memory(blocks, kScratchAlignment);
  locals_.resize(positions.count());
  for (const auto &[position, id] : constants)
    locals_[static_cast<size_t>(position)].constant = id;
  for (const auto &[position, index] : block_of)
    locals_[static_cast<size_t>(position)].offset = memory.offsets[index];
  for (size_t i = 0; i < calls_.size(); ++i)
    calls_[i].scratch_offset = memory.offsets[scratch_block[i]];
  scratch_bytes_ = memory.bytes;
}

Block::Run Block::begin(void *scratch) const {
  Run run;
  run.block_ = this;
  run.scratch_ = static_cast<char *>(scratch);
  for (const Local &local : locals_)
    run.table_.push_back(local.offset >= 0 ? run.scratch_ + local.offset : nullptr);
  return run;
}

Status Block::Run::issue(const IssueContext &context) {
  for (size_t i = 0; i < table_.size(); ++i) {
    const NodeId constant = block_->locals_[i].constant;
    if (constant != graph::kNoNode) table_[i] = context.constants[constant];
  }
  for (const KernelCall &call : block_->calls_)
    TUTTI_TRY(call.issue(table_.data(), scratch_, context));
  return Status();
}

}  // namespace tutti::impl::backend::gpu
