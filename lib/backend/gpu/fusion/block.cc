// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/block.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend/gpu/device/device_fused.h"
#include "backend/gpu/fusion/region_products.h"
#include "backend/gpu/generated/generated_kernels.h"
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

/// The further place of a result as if it were a value.
ValueId place_of(const LoweredGraph &lowered, size_t result) {
  return static_cast<ValueId>(lowered.values().size() + result);
}

Kernel fused_kernel(const FusedProgram &program, const GeneratedProgramRef &generated) {
  return [program, generated](const Frame &frame) {
    FusedPlaces places{};
    for (int32_t i = 0; i < program.input_count; ++i)
      places.inputs[i] = frame.input(i);
    for (int32_t i = 0; i < program.output_count; ++i)
      places.outputs[i] = frame.output(i);
    if (generated != nullptr && generated->kernel != nullptr)
      return status_of(launch_generated(*generated, places, program.rows * program.columns, frame.stream()),
                       "launching generated fused work");
    return status_of(launch_fused(program, places, frame.stream()), "launching fused work");
  };
}

KernelCall fused_call(const LoweredGraph &lowered, const FusedGroup &group, KernelBatch *batch) {
  KernelCall call;
  call.inputs = group.inputs;
  for (const FusedTarget &target : group.outputs)
    call.outputs.push_back(target.value != kNoValue ? target.value
                                                    : place_of(lowered, static_cast<size_t>(target.result)));
  call.generated = batch != nullptr ? batch->add_fused(group.program) : nullptr;
  call.kernel = fused_kernel(group.program, call.generated);
  call.kernel_name = base::concat("fused(", group.nodes, ")");
  return call;
}

}  // namespace

Result<Block> Block::compile(KernelRequest &request, const graph::Region &region, const LoopPlaces &places) {
  Block block;
  std::vector<int64_t> call_scratch;
  RegionPlan plan = plan_region(request.lowered, region, places);
  for (const RegionStep &step : plan.steps) {
    if (step.group >= 0) {
      block.calls_.push_back(fused_call(request.lowered, plan.groups[static_cast<size_t>(step.group)], request.batch));
      call_scratch.push_back(0);
      continue;
    }
    const Node &node = request.lowered.graph().node(step.node);
    KernelRequest inner{request.lowered, node, request.library, request.faults, request.batch};
    inner.trials = request.trials;
    TUTTI_ASSIGN(KernelCall call, make_call(inner));
    block.calls_.push_back(std::move(call));
    call_scratch.push_back(inner.scratch_bytes);
  }
  block.add_products(request, region, places, plan);
  block.is_dense_ = std::move(plan.is_dense);
  block.is_placed_ = std::move(plan.is_placed);
  block.plan(request.lowered, region, call_scratch);
  return block;
}

void Block::add_products(KernelRequest &request, const graph::Region &region, const LoopPlaces &places,
                         const RegionPlan &plan) {
  if (request.batch == nullptr || !request.batch->can_generate()) return;
  for (const RegionProduct &found : find_region_products(request.lowered, region, places, plan)) {
    const FusedProgram &program = plan.groups[static_cast<size_t>(plan.steps[found.reader].group)].program;
    GeneratedProgramRef generated = request.batch->add_fused(program, &found.product);
    if (generated != nullptr)
      products_.push_back({found.step, found.reader, found.is_before, program, std::move(generated)});
  }
}

bool Block::leaves_products() const {
  return std::any_of(products_.begin(), products_.end(), [](const FusedCall &product) {
    return product.is_before && product.generated->kernel != nullptr;
  });
}

bool Block::may_leave_products() const {
  return std::any_of(products_.begin(), products_.end(), [](const FusedCall &product) { return product.is_before; });
}

void Block::plan(const LoweredGraph &lowered, const graph::Region &region, const std::vector<int64_t> &call_scratch) {
  Positions positions;
  for (const ValueId value : region.parameters)
    parameters_.push_back(positions.of(value));
  for (size_t result = 0; result < region.results.size(); ++result)
    places_.push_back(positions.of(place_of(lowered, result)));
  const auto is_place = [&](ValueId value) { return static_cast<size_t>(value) >= lowered.values().size(); };
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
    for (const FusedCall &product : products_) {
      if (product.reader != static_cast<size_t>(step) || product.is_before) continue;
      for (const int32_t factor : calls_[product.product].inputs)
        use(factor, step);
    }
    for (int32_t &value : call.outputs) {
      const ValueId made = value;
      value = positions.of(value);
      // Parts of a concat have one memory.
      if (is_place(made) || block_of.count(value) != 0) continue;
      const int64_t bytes = lowered.value(made).bytes;
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

  for (const FusedCall &product : products_) {
    for (size_t i = 0; product.is_before && i < calls_[product.product].inputs.size(); ++i)
      use(calls_[product.product].inputs[i], end);
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

Status Block::Run::issue_product(const FusedCall &product, void *const *factors, const IssueContext &context) const {
  const KernelCall &reader = block_->calls_[product.reader], &multiply = block_->calls_[product.product];
  FusedPlaces places{};
  const int32_t inputs = product.program.input_count;
  for (int32_t i = 0; i < inputs; ++i)
    places.inputs[i] = table_[static_cast<size_t>(reader.inputs[static_cast<size_t>(i)])];
  for (int32_t i = 0; i < 2; ++i)
    places.inputs[inputs + i] = factors[multiply.inputs[static_cast<size_t>(i)]];
  for (int32_t i = 0; i < product.program.output_count; ++i)
    places.outputs[i] = table_[static_cast<size_t>(reader.outputs[static_cast<size_t>(i)])];
  return status_of(
      launch_generated_tiles(*product.generated, places, product.program.rows, product.program.columns, context.stream),
      "launching a product with what reads it");
}

Status Block::Run::issue(const IssueContext &context, const Run *before, bool is_last) {
  for (size_t i = 0; i < table_.size(); ++i) {
    const NodeId constant = block_->locals_[i].constant;
    if (constant != graph::kNoNode) table_[i] = context.constants[constant];
  }
  for (size_t i = 0; i < block_->calls_.size(); ++i) {
    const auto product = std::find_if(block_->products_.begin(), block_->products_.end(), [&](const FusedCall &one) {
      return (one.product == i || one.reader == i) && one.generated->kernel != nullptr;
    });
    const bool is_alone = product == block_->products_.end() ||
                          (product->is_before && (product->reader == i ? before == nullptr : is_last));
    if (is_alone) {
      TUTTI_TRY(block_->calls_[i].issue(table_.data(), scratch_, context));
    } else if (product->reader == i) {
      const Run &factors = product->is_before ? *before : *this;
      TUTTI_TRY(issue_product(*product, factors.table_.data(), context));
    }
  }
  return Status();
}

}  // namespace tutti::impl::backend::gpu
