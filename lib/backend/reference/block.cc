// SPDX-License-Identifier: Apache-2.0
#include "backend/reference/block.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend/memory_plan.h"
#include "base/memory.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

namespace {

/// "f32, i64 -> f32": the dtypes of a node, for messages.
std::string signature(const LoweredGraph &lowered, const Node &node) {
  std::vector<std::string_view> inputs, outputs;
  for (const ValueId value : node.inputs)
    inputs.push_back(value == kNoValue ? std::string_view("-") : name(lowered.value(value).dtype));
  for (const ValueId value : node.outputs)
    outputs.push_back(name(lowered.value(value).dtype));
  return base::join(inputs, ", ") + " -> " + base::join(outputs, ", ");
}

bool has_bytes(const LoweredGraph &lowered, const std::vector<ValueId> &values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId value) {
    return value != kNoValue && lowered.value(value).dtype == tensor::DType::bytes;
  });
}

}  // namespace

Result<KernelCall> make_call(const LoweredGraph &lowered, const Node &node, int64_t *scratch_bytes) {
  const KernelFactory factory = find_kernel(node.op);
  if (factory == nullptr || has_bytes(lowered, node.inputs) || has_bytes(lowered, node.outputs))
    return base::unimplemented(describe(node), ": the reference backend has no kernel for op '", node.op, "' (",
                               signature(lowered, node), ")");
  KernelRequest request{lowered, node};
  Result<Kernel> kernel = factory(request);
  if (!kernel.ok()) return kernel.status().wrap(base::concat(describe(node), ": cannot be compiled"));
  *scratch_bytes = request.scratch_bytes;
  KernelCall call;
  call.kernel = std::move(kernel).value();
  call.inputs = node.inputs;
  call.outputs = node.outputs;
  call.trace_name = node.scope_name.empty() ? node.op : node.scope_name;
  return call;
}

Result<Block> Block::compile(const LoweredGraph &lowered, const graph::Region &region) {
  Block block;
  std::vector<int64_t> call_scratch;
  for (const NodeId id : region.nodes) {
    const Node &node = lowered.graph().node(id);
    if (node.op == "constant") continue;
    int64_t scratch = 0;
    TUTTI_ASSIGN(KernelCall call, make_call(lowered, node, &scratch));
    block.calls_.push_back(std::move(call));
    call_scratch.push_back(scratch);
  }
  block.plan(lowered, region, call_scratch);
  return block;
}

void Block::plan(const LoweredGraph &lowered, const graph::Region &region, const std::vector<int64_t> &call_scratch) {
  std::map<ValueId, int32_t> position;
  const auto place = [&](ValueId value) {
    const auto [found, is_new] = position.emplace(value, static_cast<int32_t>(locals_.size()));
    if (is_new) locals_.push_back({});
    return found->second;
  };
  for (const ValueId value : region.parameters)
    parameters_.push_back(place(value));
  for (const NodeId id : region.nodes) {
    const Node &node = lowered.graph().node(id);
    if (node.op != "constant") continue;
    const auto value = node.attributes.find("value");
    locals_[static_cast<size_t>(place(node.outputs[0]))].constant = std::get<tensor::Tensor>(value->second).data();
  }

  std::vector<MemoryBlock> blocks;
  std::vector<int32_t> owners;    // position of each block's value
  std::vector<int32_t> block_of;  // by position
  const int32_t end = static_cast<int32_t>(calls_.size());
  const auto use = [&](ValueId value, int32_t step) {
    const size_t at = static_cast<size_t>(place(value));
    if (at < block_of.size() && block_of[at] >= 0) blocks[static_cast<size_t>(block_of[at])].last = step;
  };
  for (int32_t step = 0; step < end; ++step) {
    KernelCall &call = calls_[static_cast<size_t>(step)];
    for (int32_t &value : call.inputs) {
      if (value == kNoValue) continue;
      use(value, step);
      value = place(value);
    }
    for (int32_t &value : call.outputs) {
      const int64_t bytes = lowered.value(value).bytes;
      value = place(value);
      block_of.resize(locals_.size(), -1);
      block_of[static_cast<size_t>(value)] = static_cast<int32_t>(blocks.size());
      blocks.push_back({bytes, step, step});
      owners.push_back(value);
    }
    blocks.push_back({call_scratch[static_cast<size_t>(step)], step, step});
    owners.push_back(-1 - step);
  }
  for (const ValueId value : region.results) {
    use(value, end);
    results_.push_back(place(value));
    result_bytes_.push_back(lowered.value(value).bytes);
  }

  const MemoryPlan memory = plan_memory(blocks);
  const int64_t table_bytes = static_cast<int64_t>(base::round_up(locals_.size() * sizeof(void *), base::kAlignment));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int64_t offset = table_bytes + memory.offsets[i];
    if (owners[i] >= 0) {
      locals_[static_cast<size_t>(owners[i])].offset = offset;
    } else {
      calls_[static_cast<size_t>(-1 - owners[i])].scratch_offset = offset;
    }
  }
  scratch_bytes_ = table_bytes + memory.bytes;
}

void Block::begin(void *scratch) const {
  for (size_t i = 0; i < locals_.size(); ++i) {
    const Local &local = locals_[i];
    table(scratch)[i] =
        local.offset >= 0 ? static_cast<char *>(scratch) + local.offset : const_cast<void *>(local.constant);
  }
}

Status Block::run(void *scratch, const int64_t *scalars) const {
  for (const KernelCall &call : calls_)
    TUTTI_TRY(call.run(table(scratch), scratch, scalars));
  return Status();
}

}  // namespace tutti::impl::backend::reference
