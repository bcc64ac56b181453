// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/gpu_executable.h"

#include <algorithm>
#include <utility>

#include "backend/gpu/device_ports.h"
#include "backend/gpu/elementwise.h"
#include "backend/gpu/elementwise_trees.h"
#include "backend/gpu/library.h"

namespace tutti::impl::backend::gpu {

using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;
using graph::Node;

namespace {

/// What every value is aligned to: what runtimes give, and what vector loads and libraries want.
constexpr int64_t kAlignment = 256;

int64_t round_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Nodes that only say where a value lies.
bool is_leaf(const Node &node) { return node.op == "input" || node.op == "constant" || node.op == "state_read"; }

bool is_add(const Node &node) {
  const auto mode = node.attributes.find("mode");
  return mode != node.attributes.end() && std::get<std::string>(mode->second) == "add";
}

Status check_layouts(const LoweredGraph &lowered, const GpuDevice &device) {
  for (const StateEntry &entry : lowered.state().entries()) {
    if (!entry.layout.empty())
      return base::invalid_argument("state entry '", entry.name, "' has layout '", entry.layout, "', device ",
                                    device.name(), " knows row-major only");
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<GpuExecutable>> GpuExecutable::compile(const tutti_compile_request &request, GpuDevice &device) {
  TUTTI_TRY(device.make_current());
  TUTTI_ASSIGN(LoweredGraph lowered, LoweredGraph::decode(request));
  TUTTI_TRY(check_layouts(lowered, device));
  std::unique_ptr<GpuExecutable> executable(new GpuExecutable(std::move(lowered)));
  executable->host_ = device.host();
  executable->has_trace_ = (request.flags & TUTTI_COMPILE_DEBUG_NAMES) != 0;
  const Status status = executable->add_calls(device.library.get());
  if (!status.ok()) return status.with_detail("device", device.name());
  return executable;
}

Status GpuExecutable::make_calls(Library *library, StorageWishes &wishes, std::vector<KernelCall> &by_step) {
  const ElementwiseTrees trees = ElementwiseTrees::make(lowered_);
  wishes.turn = trees.turns();
  JsonArray kernels;
  for (int32_t step = 0; step < lowered_.step_count(); ++step) {
    const Node &node = lowered_.step(step);
    if (trees.is_inner(step)) {
      wishes.bytes[static_cast<size_t>(node.outputs[0])] = 0;
      continue;
    }
    const bool is_elsewhere = is_leaf(node) || node.op == "state_write" || node.op == "all_reduce";
    if (is_elsewhere || (!node.outputs.empty() && wishes.same_memory[static_cast<size_t>(node.outputs[0])] >= 0))
      continue;
    int64_t scratch = 0;
    KernelCall &call = by_step[static_cast<size_t>(step)];
    if (trees.tree(step).empty()) {
      TUTTI_ASSIGN(call, make_call(lowered_, node, library, fault_texts_, &scratch));
    } else {
      TUTTI_ASSIGN(call, make_tree_call(lowered_, trees.tree(step)));
    }
    wishes.scratch[static_cast<size_t>(step)] = scratch;
    kernels.push_back(JsonObject{{"node", node.scope_name}, {"op", node.op}, {"kernel", call.kernel_name}});
  }
  JsonObject report{{"kernels", std::move(kernels)}};
  if (library != nullptr) report.emplace_back("library", library->describe());
  report_ = std::move(report);
  return Status();
}

Status GpuExecutable::add_calls(Library *library) {
  StorageWishes wishes = StorageWishes::row_major(lowered_);
  wishes.alignment = kAlignment;
  wishes.may_overwrite = [&, updates = wishes.may_overwrite](const Node &node, int32_t output, int32_t input) {
    return updates(node, output, input) || may_overwrite(lowered_, node, input);
  };
  std::vector<KernelCall> by_step(lowered_.steps().size());
  TUTTI_TRY(make_calls(library, wishes, by_step));
  plan_ = plan_storage(lowered_, wishes);
  places_ = plan_.locations;
  place_ports();

  for (int32_t step = 0; step < lowered_.step_count(); ++step) {
    KernelCall &call = by_step[static_cast<size_t>(step)];
    if (call.kernel) {
      call.scratch_offset = plan_.scratch_offset[static_cast<size_t>(step)];
      calls_.push_back(std::move(call));
    }
    add_copies(step, false);
    if (lowered_.step(step).op == "all_reduce") segment_ends_.push_back(static_cast<int32_t>(calls_.size()));
    if (lowered_.step(step).op == "state_write") TUTTI_TRY(add_state_write(step));
    add_copies(step, true);
  }
  segment_ends_.push_back(static_cast<int32_t>(calls_.size()));
  return Status();
}

void GpuExecutable::place_ports() {
  int64_t end = round_up(plan_.workspace_bytes);
  const auto place = [&](const std::vector<LoweredPort> &ports, std::vector<PortPlace> &places) {
    for (const LoweredPort &port : ports) {
      const int64_t bytes = lowered_.value(port.value).bytes;
      places.push_back({end, bytes});
      end += round_up(bytes);
    }
  };
  place(lowered_.inputs(), inputs_);
  place(lowered_.outputs(), outputs_);
  run_block_ = end;
  const size_t words = TUTTI_RUN_SCALAR_COUNT + inputs_.size() + outputs_.size();
  plan_.workspace_bytes = end + round_up(static_cast<int64_t>(words * sizeof(uint64_t)));

  for (const Node &node : lowered_.graph().nodes()) {
    if (node.op == "constant") constants_bytes_ += round_up(lowered_.value(node.outputs[0]).bytes);
  }
}

int32_t GpuExecutable::add_place(const Location &location) {
  places_.push_back(location);
  return static_cast<int32_t>(places_.size()) - 1;
}

void GpuExecutable::add_copies(int32_t step, bool into_outputs) {
  for (const StorageCopy &copy : plan_.copies) {
    if (copy.step != step || (copy.to.place == Place::output) != into_outputs) continue;
    KernelCall call;
    call.kernel = copy_kernel(lowered_.value(copy.from).bytes);
    call.inputs = {copy.from};
    call.outputs = {add_place(copy.to)};
    call.trace_name = "copy";
    calls_.push_back(std::move(call));
  }
}

Status GpuExecutable::add_state_write(int32_t step) {
  if (plan_.write_is_done[static_cast<size_t>(step)]) return Status();
  const Node &node = lowered_.step(step);
  const StateAccess &access = lowered_.access(step);
  const LoweredValue &value = lowered_.value(node.inputs[0]);
  KernelCall call;
  call.outputs = {add_place({Place::arena, access.arena, access.offset})};
  call.inputs = {node.inputs[0]};
  if (is_add(node)) {
    call.inputs.push_back(call.outputs[0]);
    call.kernel = accumulate_kernel(value.dtype, value.elements);
  } else {
    call.kernel = copy_kernel(value.bytes);
  }
  call.trace_name = node.scope_name;
  calls_.push_back(std::move(call));
  return Status();
}

std::string GpuExecutable::describe() const { return describe_executable(lowered_, plan_, report_); }

}  // namespace tutti::impl::backend::gpu
