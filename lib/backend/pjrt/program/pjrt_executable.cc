// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/program/pjrt_executable.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/pjrt/emit/program_text.h"
#include "backend/storage_plan.h"
#include "base/json.h"
#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;
using tensor::DType;

namespace {

Status check_request(const tutti_compile_request &request) {
  if (request.level == TUTTI_LEVEL_INVARIANT)
    return base::unimplemented("determinism invariant: devices behind PJRT compile for each shape anew and promise no ",
                               "equal bits for another number of replicas; use repeatable");
  return Status();
}

Status check_layouts(const LoweredGraph &lowered) {
  for (const StateEntry &entry : lowered.state().entries()) {
    if (!entry.layout.empty())
      return base::invalid_argument("state entry '", entry.name, "' has layout '", entry.layout,
                                    "', devices behind PJRT have only row-major");
  }
  return Status();
}

/// What reports and traces call a segment.
std::string segment_name(size_t number) { return base::concat("segment ", number); }

}  // namespace

// ---- executables ----

Result<std::shared_ptr<PjrtExecutable>> PjrtExecutable::compile(const tutti_compile_request &request,
                                                                const tutti_backend_host *host, ClientRef client,
                                                                std::vector<size_t> devices, bool may_donate) {
  TUTTI_TRY(check_request(request));
  TUTTI_ASSIGN(LoweredGraph lowered, LoweredGraph::decode(request));
  TUTTI_TRY(check_layouts(lowered));
  std::shared_ptr<PjrtExecutable> executable(new PjrtExecutable(std::move(lowered), host, std::move(client)));
  executable->has_trace_ = (request.flags & TUTTI_COMPILE_DEBUG_NAMES) != 0;
  executable->devices_ = std::move(devices);
  const size_t count = executable->devices_.size();
  if (count > 1) executable->launch_.emplace(count);
  TUTTI_ASSIGN(executable->program_,
               SegmentedProgram::emit(executable->lowered_, {may_donate, static_cast<int32_t>(count)}));
  TUTTI_TRY(executable->loaded(executable->devices_.front()).status());
  return executable;
}

Result<std::shared_ptr<const LoadedSegments>> PjrtExecutable::loaded(size_t device) {
  if (launch_.has_value()) device = devices_.front();
  const std::span<const size_t> devices =
      launch_.has_value() ? std::span<const size_t>(devices_) : std::span(&device, 1);
  std::lock_guard lock(mutex_);
  if (const auto found = loaded_.find(device); found != loaded_.end()) return found->second;
  auto made = std::make_shared<LoadedSegments>();
  for (const SegmentText &segment : program_.segments) {
    TUTTI_ASSIGN(std::shared_ptr<const LoadedProgram> compiled, client_->compile(segment.module, devices));
    made->push_back(std::move(compiled));
  }
  return std::shared_ptr<const LoadedSegments>(loaded_[device] = std::move(made));
}

Result<size_t> PjrtExecutable::place_of(size_t device) const {
  const auto found = std::ranges::find(devices_, device);
  if (found == devices_.end())
    return base::invalid_argument("the executable was not compiled for device pjrt:", device);
  return static_cast<size_t>(found - devices_.begin());
}

std::string PjrtExecutable::describe() {
  JsonArray kernels, segments;
  std::lock_guard lock(mutex_);
  for (const auto &compiled : *loaded_.begin()->second) {
    const ProgramCost cost = compiled->cost();
    // The plug-in compiles a segment as a whole: which kernels it has made of it is its own affair.
    kernels.push_back(
        JsonObject{{"node", segment_name(segments.size())}, {"op", "program"}, {"kernel", client_->platform()}});
    segments.push_back(JsonObject{{"node", segment_name(segments.size())},
                                  {"code_bytes", cost.code},
                                  {"argument_bytes", cost.arguments},
                                  {"result_bytes", cost.results},
                                  {"in_place_bytes", cost.aliased},
                                  {"temporary_bytes", cost.temporary},
                                  {"operations", cost.operations}});
  }
  // Of memory there is only what the host has to see.
  StoragePlan plan;
  plan.externals = program_.externals;
  // Between bringing arrays and taking results there is nothing for the host to reduce.
  if (launch_.has_value()) plan.externals.push_back({.kind = "all_reduce_sum", .label = "launch"});
  plan.workspace_bytes = plan.workspace_lower_bound = program_.workspace_bytes;
  return describe_executable(lowered_, plan,
                             JsonObject{{"kernels", std::move(kernels)}, {"segments", std::move(segments)}});
}

Status PjrtExecutable::fault_status(const int64_t *fault, int64_t row_offset) const {
  if (fault[0] == 0) return Status();
  return program_.checks[static_cast<size_t>(fault[0] - 1)].error(fault[1], fault[2], row_offset);
}

// ---- programs ----

Result<std::unique_ptr<PjrtProgram>> PjrtProgram::bind(std::shared_ptr<PjrtExecutable> executable, MemoryMap &map,
                                                       size_t device, const tutti_bind_request &request) {
  std::unique_ptr<PjrtProgram> bound(new PjrtProgram(std::move(executable), map, device));
  TUTTI_ASSIGN(bound->loaded_, bound->executable_->loaded(device));
  const SegmentedProgram &program = bound->executable_->program();
  for (const SegmentText &segment : program.segments) {
    for (const auto *ports : {&segment.arguments, &segment.results}) {
      for (const SegmentPort &port : *ports) {
        auto &places = port.slot == Slot::state ? bound->state_ : bound->externals_;
        if ((port.slot != Slot::state && port.slot != Slot::external) || places.contains(port.index)) continue;
        TUTTI_ASSIGN(places[port.index], bound->place_of(port, request));
      }
    }
  }
  const LoweredGraph &lowered = bound->executable_->lowered();
  const auto add_ports = [&](const std::vector<LoweredPort> &ports, std::vector<Place> &places) {
    for (const LoweredPort &port : ports)
      places.push_back({nullptr, lowered.value(port.value).dtype, lowered.value(port.value).dims, nullptr, {}});
  };
  add_ports(lowered.inputs(), bound->inputs_);
  add_ports(lowered.outputs(), bound->outputs_);
  bound->carried_.resize(static_cast<size_t>(program.carried_count));
  if (bound->executable_->launch() != nullptr) {
    TUTTI_ASSIGN(bound->place_, bound->executable_->place_of(device));
  }
  return bound;
}

PjrtProgram::~PjrtProgram() {
  if (SharedLaunch *const launch = executable_->launch(); launch != nullptr) launch->withdraw(place_, run_);
  for (abi::Buffer *const result : run_.results)  // that nobody took
    DeviceArray(executable_->client(), result);
}

Result<PjrtProgram::Place> PjrtProgram::place_of(const SegmentPort &port, const tutti_bind_request &request) const {
  Place place;
  if (port.slot == Slot::external) {
    const ExternalDescription &external = executable_->program().externals[static_cast<size_t>(port.index)];
    if (request.workspace == nullptr)
      return base::invalid_argument("binding needs a workspace of ", executable_->program().workspace_bytes, " bytes");
    place = {static_cast<const std::byte *>(request.workspace) + external.offset,
             external.dtype,
             {external.elements},
             {},
             {}};
  } else {
    const StateTable &state = executable_->lowered().state();
    const StateEntry &entry = state.entries()[static_cast<size_t>(port.index)];
    if (entry.arena >= request.arena_count || request.arenas[entry.arena] == nullptr)
      return base::invalid_argument("binding needs arena '", state.arenas()[static_cast<size_t>(entry.arena)], "'");
    place = {
        static_cast<const std::byte *>(request.arenas[entry.arena]) + entry.offset, entry.dtype, entry.dims, {}, {}};
  }
  return place;
}

int64_t PjrtProgram::bytes_of(const Place &place) {
  auto bytes = static_cast<int64_t>(tensor::size_bytes(place.dtype));
  for (const int64_t dim : place.dims)
    bytes *= dim;
  return bytes;
}

/// Looks the piece up where it is another one than last time.
Status PjrtProgram::refresh(Place &place, const void *address) {
  if (place.piece != nullptr && place.address == address && !place.piece->is_stale()) return Status();
  if (is_empty(place.dims)) {  // an array without elements lies nowhere
    place.piece = std::make_shared<Piece>(executable_->client(), device_, 0);
    place.address = address;
    return Status();
  }
  TUTTI_ASSIGN(const MemoryPlace found, map_.find(address));
  TUTTI_ASSIGN(place.piece, found.memory->piece(found.offset, bytes_of(place)));
  place.address = address;
  return Status();
}

/// Where an argument or result lies in this run.
PjrtProgram::Target PjrtProgram::target_of(const SegmentPort &port, const tutti_run_arguments &arguments) {
  const auto index = static_cast<size_t>(port.index);
  if (port.slot == Slot::input) return {inputs_[index], arguments.inputs[index]};
  if (port.slot == Slot::output) return {outputs_[index], arguments.outputs[index]};
  Place &place = port.slot == Slot::state ? state_.at(port.index) : externals_.at(port.index);
  return {place, place.address};
}

Result<abi::Buffer *> PjrtProgram::argument(const SegmentPort &port, const tutti_run_arguments &arguments) {
  if (port.slot == Slot::scalars) return scalars_.get();
  if (port.slot == Slot::carried) return carried_[static_cast<size_t>(port.index)].get();
  if (port.slot == Slot::fault) return fault_.get();
  const auto [place, address] = target_of(port, arguments);
  if (map_.is_host(address)) {  // as the host has left it
    TUTTI_ASSIGN(place.from_host, executable_->client()->upload(device_, place.dtype, place.dims, address));
    return place.from_host.get();
  }
  TUTTI_TRY(refresh(place, address));
  return place.piece->on_device(place.dtype, place.dims);
}

Status PjrtProgram::upload_scalars(const tutti_run_arguments &arguments) {
  constexpr int64_t kDims[] = {TUTTI_RUN_SCALAR_COUNT};
  TUTTI_ASSIGN(scalars_, executable_->client()->upload(device_, DType::i64, kDims, arguments.scalars));
  return Status();
}

Status PjrtProgram::put_result(const SegmentPort &port, DeviceArray array, const tutti_run_arguments &arguments,
                               StreamState &stream) {
  if (port.slot == Slot::carried) {
    carried_[static_cast<size_t>(port.index)] = std::move(array);
    return Status();
  }
  if (port.slot == Slot::fault) {
    fault_ = std::move(array);
    return Status();
  }
  const auto [place, address] = target_of(port, arguments);
  if (map_.is_host(address)) {
    place.from_host = std::move(array);
    TUTTI_ASSIGN(Completion done, executable_->client()->download(place.from_host, place.dims.size(),
                                                                  const_cast<void *>(address), bytes_of(place)));
    stream.add(std::move(done));
    return Status();
  }
  TUTTI_TRY(refresh(place, address));
  place.piece->take(std::move(array), place.dtype, place.dims);
  return Status();
}

/// The stream tells of what the run has found wrong in the data.
Status PjrtProgram::watch_fault(const tutti_run_arguments &arguments, StreamState &stream) {
  auto fault = std::make_shared<std::array<int64_t, 3>>();
  TUTTI_ASSIGN(Completion done, executable_->client()->download(fault_, 1, fault->data(), sizeof(*fault)));
  stream.add(std::move(done), [executable = executable_, fault, row = arguments.scalars[TUTTI_RUN_ROW_OFFSET]] {
    return executable->fault_status(fault->data(), row);
  });
  return Status();
}

Status PjrtProgram::execute(const LoadedProgram &program, size_t number, std::span<DeviceRun *const> runs) {
  const tutti_backend_host *const host = executable_->host();
  const uint64_t span =
      executable_->has_trace() ? host->trace_begin(host->user, segment_name(number).c_str()) : uint64_t{0};
  Status status = program.execute(runs);
  if (span == 0) return status;
  for (DeviceRun *const run : runs) {
    if (status.ok()) status = run->done.wait();
  }
  host->trace_end(host->user, span);
  for (size_t i = 0; i < runs.size() && !status.ok(); ++i) {
    for (abi::Buffer *&result : runs[i]->results)
      DeviceArray(executable_->client(), std::exchange(result, nullptr));
  }
  return status;
}

Status PjrtProgram::bring(const SegmentText &segment, const tutti_run_arguments &arguments) {
  run_.arguments.clear();
  for (const SegmentPort &port : segment.arguments) {
    TUTTI_ASSIGN(abi::Buffer *const buffer, argument(port, arguments));
    run_.arguments.push_back(buffer);
  }
  run_.results.assign(segment.results.size(), nullptr);
  return Status();
}

Status PjrtProgram::take(const SegmentText &segment, const tutti_run_arguments &arguments, StreamState &stream) {
  stream.add(std::move(run_.done));
  Status put;  // the first error; every result is taken or let go
  for (size_t i = 0; i < run_.results.size(); ++i) {
    DeviceArray array(executable_->client(), std::exchange(run_.results[i], nullptr));
    Status status = put_result(segment.results[i], std::move(array), arguments, stream);
    if (put.ok()) put = std::move(status);
  }
  TUTTI_TRY(put);
  if (segment.checks_data) TUTTI_TRY(watch_fault(arguments, stream));
  return Status();
}

Status PjrtProgram::run_together(int32_t number, const tutti_run_arguments &arguments, StreamState &stream) {
  const SegmentText &segment = executable_->program().segments.front();
  SharedLaunch &launch = *executable_->launch();
  if (number == 1) {
    TUTTI_TRY(launch.take(place_));
    return take(segment, arguments, stream);
  }
  TUTTI_TRY(upload_scalars(arguments));
  TUTTI_TRY(bring(segment, arguments));
  return launch.bring(place_, run_,
                      [&](std::span<DeviceRun *const> runs) { return execute(*loaded_->front(), 0, runs); });
}

Status PjrtProgram::run(int32_t number, const tutti_run_arguments &arguments, StreamState &stream) {
  const bool is_together = executable_->launch() != nullptr;
  const std::vector<SegmentText> &segments = executable_->program().segments;
  const size_t count = is_together ? 2 : segments.size();
  if (number < 0 || static_cast<size_t>(number) >= count) return base::out_of_range("segment ", number, " of ", count);
  if (is_together) return run_together(number, arguments, stream);
  const SegmentText &segment = segments[static_cast<size_t>(number)];
  if (number == 0) TUTTI_TRY(upload_scalars(arguments));
  TUTTI_TRY(bring(segment, arguments));
  DeviceRun *const run = &run_;
  TUTTI_TRY(execute(*(*loaded_)[static_cast<size_t>(number)], static_cast<size_t>(number), std::span(&run, 1)));
  return take(segment, arguments, stream);
}

}  // namespace tutti::impl::backend::pjrt
