// SPDX-License-Identifier: Apache-2.0
#include "backend/reference/executable.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backend/reference/elements.h"

namespace tutti::impl::backend::reference {

using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;
using graph::Node;

namespace {

Kernel copy_kernel(int64_t bytes) {
  return [bytes](const Frame &frame) {
    if (bytes != 0) std::memmove(frame.output(0), frame.input(0), static_cast<size_t>(bytes));
    return Status();
  };
}

/// entry += value; input and output 0 are the entry, input 1 the value.
Kernel add_kernel(tensor::DType dtype, int64_t count) {
  return [dtype, count](const Frame &frame) {
    visit_arithmetic(dtype, [&]<typename C>(C) {
      for_runs(count, [&](int64_t first, int64_t length) {
        C entry[kRun], value[kRun];
        load(dtype, frame.output(0), first, 1, length, entry);
        load(dtype, frame.input(0), first, 1, length, value);
        for (int64_t i = 0; i < length; ++i)
          entry[i] += value[i];
        store(dtype, frame.output(0), first, length, entry);
      });
    });
    return Status();
  };
}

/// Nodes that only say where a value lies.
bool is_leaf(const Node &node) { return node.op == "input" || node.op == "constant" || node.op == "state_read"; }

bool is_add(const Node &node) {
  const auto mode = node.attributes.find("mode");
  return mode != node.attributes.end() && std::get<std::string>(mode->second) == "add";
}

Status check_layouts(const LoweredGraph &lowered) {
  for (const StateEntry &entry : lowered.state().entries()) {
    if (!entry.layout.empty())
      return base::invalid_argument("state entry '", entry.name, "' has layout '", entry.layout,
                                    "', the reference backend supports only row-major");
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<ReferenceExecutable>> ReferenceExecutable::compile(const tutti_compile_request &request,
                                                                          const tutti_backend_host *host,
                                                                          std::string device_name) {
  TUTTI_ASSIGN(LoweredGraph lowered, LoweredGraph::decode(request));
  TUTTI_TRY(check_layouts(lowered));
  std::unique_ptr<ReferenceExecutable> executable(new ReferenceExecutable(std::move(lowered)));
  executable->host_ = host;
  executable->has_trace_ = (request.flags & TUTTI_COMPILE_DEBUG_NAMES) != 0;
  const Status status = executable->add_calls();
  if (!status.ok()) return status.with_detail("device", device_name);
  return executable;
}

Status ReferenceExecutable::add_calls() {
  StorageWishes wishes = StorageWishes::row_major(lowered_);
  std::vector<KernelCall> by_step(lowered_.steps().size());
  JsonArray kernels;
  for (int32_t step = 0; step < lowered_.step_count(); ++step) {
    const Node &node = lowered_.step(step);
    const bool is_elsewhere = is_leaf(node) || node.op == "state_write" || node.op == "all_reduce";
    if (is_elsewhere || (!node.outputs.empty() && wishes.same_memory[static_cast<size_t>(node.outputs[0])] >= 0))
      continue;
    int64_t scratch = 0;
    TUTTI_ASSIGN(by_step[static_cast<size_t>(step)], make_call(lowered_, node, &scratch));
    wishes.scratch[static_cast<size_t>(step)] = scratch;
    kernels.push_back(JsonObject{{"node", node.scope_name}, {"op", node.op}, {"kernel", "reference"}});
  }
  report_ = JsonObject{{"kernels", std::move(kernels)}};
  plan_ = plan_storage(lowered_, wishes);
  places_ = plan_.locations;

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

int32_t ReferenceExecutable::add_place(const Location &location) {
  places_.push_back(location);
  return static_cast<int32_t>(places_.size()) - 1;
}

void ReferenceExecutable::add_copies(int32_t step, bool into_outputs) {
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

Status ReferenceExecutable::add_state_write(int32_t step) {
  if (plan_.write_is_done[static_cast<size_t>(step)]) return Status();
  const Node &node = lowered_.step(step);
  const StateAccess &access = lowered_.access(step);
  const LoweredValue &value = lowered_.value(node.inputs[0]);
  KernelCall call;
  call.kernel = is_add(node) ? add_kernel(value.dtype, value.elements) : copy_kernel(value.bytes);
  call.inputs = {node.inputs[0]};
  call.outputs = {add_place({Place::arena, access.arena, access.offset})};
  call.trace_name = node.scope_name;
  calls_.push_back(std::move(call));
  return Status();
}

std::string ReferenceExecutable::describe() const { return describe_executable(lowered_, plan_, report_); }

Result<std::unique_ptr<ReferenceProgram>> ReferenceProgram::bind(const ReferenceExecutable &executable,
                                                                 const tutti_bind_request &request) {
  std::unique_ptr<ReferenceProgram> program(new ReferenceProgram(executable));
  program->workspace_ = request.workspace;
  if (executable.plan_.workspace_bytes > 0 && request.workspace == nullptr)
    return base::invalid_argument("binding needs a workspace of ", executable.plan_.workspace_bytes, " bytes");
  program->table_.resize(executable.places_.size());
  for (size_t i = 0; i < executable.places_.size(); ++i) {
    const Location &location = executable.places_[i];
    const int32_t place = static_cast<int32_t>(i);
    char *base = nullptr;
    switch (location.place) {
      case Place::none:
        break;
      case Place::workspace:
        base = static_cast<char *>(request.workspace);
        break;
      case Place::arena:
        if (location.index >= request.arena_count || request.arenas[location.index] == nullptr)
          return base::invalid_argument("binding needs arena '",
                                        executable.lowered_.state().arenas()[static_cast<size_t>(location.index)], "'");
        base = static_cast<char *>(request.arenas[location.index]);
        break;
      case Place::input:
        program->inputs_.push_back({place, location.index});
        break;
      case Place::output:
        program->outputs_.push_back({place, location.index});
        break;
      case Place::constant: {
        const Node &node = executable.lowered_.graph().node(location.index);
        base = static_cast<char *>(std::get<tensor::Tensor>(node.attributes.at("value")).mutable_data());
        break;
      }
    }
    program->table_[i] = base == nullptr ? nullptr : base + location.offset;
  }
  return program;
}

Status ReferenceProgram::run(int32_t segment, const tutti_run_arguments &arguments) {
  const std::vector<int32_t> &ends = executable_.segment_ends_;
  if (segment < 0 || static_cast<size_t>(segment) >= ends.size())
    return base::out_of_range("segment ", segment, " of ", ends.size());
  for (const PortPointer &port : inputs_)
    table_[static_cast<size_t>(port.place)] = const_cast<void *>(arguments.inputs[port.port]);
  for (const PortPointer &port : outputs_)
    table_[static_cast<size_t>(port.place)] = arguments.outputs[port.port];
  const int32_t begin = segment == 0 ? 0 : ends[static_cast<size_t>(segment) - 1];
  std::array<int64_t, kScalarCount> scalars{};  // outside of any scan
  std::copy_n(arguments.scalars, TUTTI_RUN_SCALAR_COUNT, scalars.begin());
  const tutti_backend_host *host = executable_.host_;
  for (int32_t i = begin; i < ends[static_cast<size_t>(segment)]; ++i) {
    const KernelCall &call = executable_.calls_[static_cast<size_t>(i)];
    const uint64_t span = executable_.has_trace_ ? host->trace_begin(host->user, call.trace_name.c_str()) : 0;
    TUTTI_TRY(call.run(table_.data(), workspace_, scalars.data()));
    if (span != 0) host->trace_end(host->user, span);
  }
  return Status();
}

}  // namespace tutti::impl::backend::reference
