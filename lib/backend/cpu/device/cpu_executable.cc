// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/device/cpu_executable.h"

#include <omp.h>

#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/kernel/floating_point_mode.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/host_device.h"
#include "base/text.h"

namespace tutti::impl::backend::cpu {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;

Result<std::unique_ptr<CpuExecutable>> CpuExecutable::compile(const tutti_backend_host *host,
                                                              const tutti_compile_request &request) {
  auto made = std::make_unique<CpuExecutable>();
  made->host_ = host;
  made->traces_ = (request.flags & TUTTI_COMPILE_DEBUG_NAMES) != 0;
  TUTTI_ASSIGN(LoweredGraph graph, LoweredGraph::decode(request));
  made->graph_ = std::make_unique<LoweredGraph>(std::move(graph));
  TUTTI_ASSIGN(made->list_, Lowering(*made->graph_).run());
  return made;
}

Json CpuExecutable::report() const {
  JsonArray kernels;
  for (const Call &call : list_.calls) {
    kernels.push_back(JsonObject{{"node", call.node},
                                 {"op", call.op},
                                 {"kernel", call.kernel_name},
                                 {"layout", call.layout.empty() ? std::string("row-major") : call.layout},
                                 {"bytes", call.bytes}});
  }
  return JsonObject{{"kernels", std::move(kernels)},
                    {"fallbacks", list_.fallbacks},
                    {"reorders", list_.reorders},
                    {"workspace_bytes", list_.workspace_bytes},
                    {"workspace_lower_bound_bytes", list_.workspace_lower_bound}};
}

std::string CpuExecutable::describe() const {
  StoragePlan plan;
  plan.externals = list_.externals;
  plan.workspace_bytes = list_.workspace_bytes;
  plan.workspace_lower_bound = list_.workspace_lower_bound;
  return describe_executable(*graph_, plan, report());
}

Result<std::unique_ptr<CpuProgram>> CpuProgram::bind(const CpuExecutable &executable,
                                                     const tutti_bind_request &request) {
  auto program = std::make_unique<CpuProgram>();
  program->host_ = executable.host();
  program->threads_ = executable.threads();
  program->traces_ = executable.traces();
  const HostDevice &device = HostDevice::of(request.device);
  program->device_ = device.index;
  if (program->threads_ > 1) {
    TUTTI_ASSIGN(program->team_, Team::of_device(device.backend, device.index, program->threads_));
  }
  const CallList &list = executable.list();
  for (const BufferInfo &buffer : list.buffers) {
    const Location &at = buffer.location;
    const auto id = static_cast<BufferId>(program->buffers_.size());
    char *base = nullptr;
    switch (at.place) {
      case Place::workspace:
        base = static_cast<char *>(request.workspace);
        break;
      case Place::arena:
        if (at.index >= request.arena_count) return base::invalid_argument("arena ", at.index, " is not bound");
        base = static_cast<char *>(request.arenas[at.index]);
        if (base == nullptr && buffer.bytes > 0) return base::invalid_argument("arena ", at.index, " has no memory");
        break;
      case Place::constant:
        base =
            static_cast<char *>(attribute<tensor::Tensor>(executable.graph().node(at.index), "value").mutable_data());
        break;
      case Place::input:
        program->inputs_.push_back({id, at.index});
        break;
      case Place::output:
        program->outputs_.push_back({id, at.index});
        break;
      case Place::none:
        break;
    }
    program->buffers_.push_back(base == nullptr ? nullptr : base + at.offset);
  }
  program->segments_.push_back(0);
  for (const Call &call : list.calls) {
    if (call.kernel == nullptr) {
      program->segments_.push_back(static_cast<int32_t>(program->calls_.size()));
      continue;
    }
    TUTTI_ASSIGN(auto state, call.kernel->make_state());
    std::string span = program->traces_ ? base::concat(call.node, " ", call.kernel_name) : std::string();
    program->calls_.push_back({call.kernel.get(), state.get(), std::move(span)});
    if (state != nullptr) program->states_.push_back(std::move(state));
  }
  program->segments_.push_back(static_cast<int32_t>(program->calls_.size()));
  return program;
}

int32_t CpuProgram::run_calls(int32_t segment, const RunContext &context) const {
  const BoundCall *call = calls_.data() + segments_[static_cast<size_t>(segment)];
  const BoundCall *end = calls_.data() + segments_[static_cast<size_t>(segment) + 1];
  if (!traces_) {
    for (; call != end; ++call) {
      const int32_t code = call->kernel->run(context, call->state);
      if (code != 0) return code;
    }
    return 0;
  }
  for (; call != end; ++call) {
    const uint64_t span = host_->trace_begin(host_->user, call->span.c_str());
    const int32_t code = call->kernel->run(context, call->state);
    if (span != 0) host_->trace_end(host_->user, span);
    if (code != 0) return code;
  }
  return 0;
}

int32_t CpuProgram::run(int32_t segment, const tutti_run_arguments &arguments, tutti_stream *stream,
                        tutti_error_sink *sink) {
  if (segment < 0 || segment + 1 >= static_cast<int32_t>(segments_.size())) {
    host_->set_error(sink, static_cast<int32_t>(base::Code::out_of_range),
                     base::concat("segment ", segment, " of ", segments_.size() - 1).c_str());
    return static_cast<int32_t>(base::Code::out_of_range);
  }
  for (const Port &port : inputs_) {
    buffers_[static_cast<size_t>(port.buffer)] = const_cast<void *>(arguments.inputs[port.index]);
  }
  for (const Port &port : outputs_)
    buffers_[static_cast<size_t>(port.buffer)] = arguments.outputs[port.index];
  const FloatingPointMode mode;
  // Libraries run on one thread; parts are handed out here.
  const int threads_before = omp_get_max_threads();
  if (threads_before != 1) omp_set_num_threads(1);
  const RunContext context{buffers_.data(), arguments.scalars, stream, host_, sink, team_.get(), threads_, device_};
  const int32_t code = run_calls(segment, context);
  if (threads_before != 1) omp_set_num_threads(threads_before);
  return code;
}

}  // namespace tutti::impl::backend::cpu
