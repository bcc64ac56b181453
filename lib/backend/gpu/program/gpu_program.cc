// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/program/gpu_program.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "backend/gpu/program/gpu_device.h"
#include "backend/gpu/program/gpu_recording.h"
#include "backend/gpu/runtime/capture_stream.h"
#include "backend/gpu/runtime/launch_gate.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using graph::Node;

namespace {

constexpr int64_t kConstantAlignment = 256;

uint64_t word_of(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

Result<std::unique_ptr<GpuProgram>> GpuProgram::bind(const GpuExecutable &executable,
                                                     const tutti_bind_request &request) {
  GpuDevice &device = GpuDevice::of(request.device);
  const BetweenLaunches section;
  TUTTI_TRY(device.make_current());
  std::unique_ptr<GpuProgram> program(new GpuProgram(executable, device));
  program->workspace_ = static_cast<char *>(request.workspace);
  if (request.workspace == nullptr)
    return base::invalid_argument("binding needs a workspace of ", executable.plan_.workspace_bytes, " bytes");
  TUTTI_TRY(program->upload_constants());
  TUTTI_TRY(program->place(request));
  TUTTI_TRY(program->upload_rows());
  if (!executable.faults_.empty()) {
    TUTTI_ASSIGN(program->faults_, FaultState::create(executable.faults_));
  }
  program->block_ = reinterpret_cast<uint64_t *>(program->workspace_ + executable.run_block_);
  TUTTI_TRY(program->load_run_block_kernel());
  if (device.backend->replays_graphs && !executable.has_trace_) TUTTI_TRY(program->capture());
  return program;
}

/// The first launch of a kernel may load its code, which no run may do: devices may be combining by then. All others
/// are launched where graphs are captured.
Status GpuProgram::load_run_block_kernel() {
  const std::lock_guard guard(device_.copies_mutex);
  RunWords none = words_;
  none.block = block_;
  none.count = 0;
  TUTTI_TRY(status_of(launch_write_run_words(none, device_.copies), "loading kernels"));
  return status_of(gpuStreamSynchronize(device_.copies), "loading kernels");
}

GpuProgram::~GpuProgram() {
  const BetweenLaunches section;
  (void)device_.make_current();
  for (gpuGraphExec_t graph : graphs_)
    (void)gpuGraphExecDestroy(graph);
  if (constants_ != nullptr) device_.release(constants_, executable_.constants_bytes_);
  if (rows_ != nullptr) device_.release(rows_, executable_.joined_.rows_bytes());
  for (uint64_t *block : pass_blocks_)
    device_.release(block, executable_.run_block_bytes());
}

Status GpuProgram::upload_constants() {
  constant_at_.assign(executable_.lowered_.graph().nodes().size(), nullptr);
  if (executable_.constants_bytes_ == 0) return Status();
  TUTTI_ASSIGN(constants_, device_.allocate(executable_.constants_bytes_));
  const std::lock_guard guard(device_.copies_mutex);
  const Status issued = issue_constants(device_.copies);
  // Of copies that were issued before one that failed nothing is left behind the memory's end.
  const Status done = status_of(gpuStreamSynchronize(device_.copies), "copying constants");
  return issued.ok() ? done : issued;
}

Status GpuProgram::issue_constants(gpuStream_t stream) {
  const std::vector<Node> &nodes = executable_.lowered_.graph().nodes();
  char *next = static_cast<char *>(constants_);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op != "constant") continue;
    const auto &tensor = std::get<tensor::Tensor>(nodes[i].attributes.at("value"));
    const int64_t bytes = executable_.lowered_.value(nodes[i].outputs[0]).bytes;
    constant_at_[i] = next;
    if (bytes > 0)
      TUTTI_TRY(
          status_of(gpuMemcpyAsync(next, tensor.data(), static_cast<size_t>(bytes), gpuMemcpyHostToDevice, stream),
                    "copying constants"));
    next += (bytes + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
  }
  return Status();
}

Result<void *> GpuProgram::address(const Location &location, const tutti_bind_request &request) const {
  const auto index = static_cast<size_t>(location.index);
  switch (location.place) {
    case Place::none:
      return static_cast<void *>(nullptr);
    case Place::workspace:
      return static_cast<void *>(workspace_ + location.offset);
    case Place::arena:
      if (location.index >= request.arena_count || request.arenas[location.index] == nullptr)
        return base::invalid_argument("binding needs arena '", executable_.lowered_.state().arenas()[index], "'");
      return static_cast<void *>(static_cast<char *>(request.arenas[location.index]) + location.offset);
    case Place::input:
      return static_cast<void *>(workspace_ + executable_.inputs_[index].offset + location.offset);
    case Place::output:
      return static_cast<void *>(workspace_ + executable_.outputs_[index].offset + location.offset);
    case Place::constant:
      return static_cast<void *>(static_cast<char *>(constant_at_[index]) + location.offset);
  }
  return static_cast<void *>(nullptr);
}

Status GpuProgram::place(const tutti_bind_request &request) {
  for (const PlacedBytes &place : executable_.places_) {
    TUTTI_ASSIGN(void *const pointer, address(place.location, request));
    table_.push_back(pointer);
  }
  return Status();
}

Status GpuProgram::upload_rows() {
  const int64_t bytes = executable_.joined_.rows_bytes();
  if (bytes == 0) return Status();
  TUTTI_ASSIGN(rows_, device_.allocate(bytes));
  std::vector<std::max_align_t> rows((static_cast<size_t>(bytes) + sizeof(std::max_align_t) - 1) /
                                     sizeof(std::max_align_t));
  for (const KernelCall &call : executable_.calls_) {
    if (call.rows != nullptr) call.fill_rows(table_.data(), rows.data());
  }
  const std::lock_guard guard(device_.copies_mutex);
  TUTTI_TRY(
      status_of(gpuMemcpyAsync(rows_, rows.data(), static_cast<size_t>(bytes), gpuMemcpyHostToDevice, device_.copies),
                "copying tables of operands"));
  return status_of(gpuStreamSynchronize(device_.copies), "copying tables of operands");
}

Status GpuProgram::capture() {
  TUTTI_ASSIGN(CaptureStream stream, CaptureStream::take(device_.ordinal));
  graphs_.reserve(executable_.segment_ends_.size());  // no graph is lost for want of memory
  for (int32_t segment = 0; static_cast<size_t>(segment) < executable_.segment_ends_.size(); ++segment)
    TUTTI_TRY(capture_segment(segment, stream.get()));
  // The first launch of a graph would take memory for it.
  for (gpuGraphExec_t graph : graphs_)
    TUTTI_TRY(status_of(gpuGraphUpload(graph, stream.get()), "making a graph ready"));
  TUTTI_TRY(status_of(gpuStreamSynchronize(stream.get()), "making a graph ready"));
  stream.give_back();
  return Status();
}

Status GpuProgram::capture_segment(int32_t segment, gpuStream_t stream) {
  TUTTI_TRY(begin_capture(stream));
  const Status issued = issue(segment, block_, stream, nullptr);
  const Result<gpuGraphExec_t> graph = end_capture(stream);
  if (graph.ok()) graphs_.push_back(*graph);
  TUTTI_TRY(issued);
  return graph.status();
}

Status GpuProgram::issue(int32_t segment, uint64_t *block, gpuStream_t stream, DeviceTimes *times) const {
  const std::vector<int32_t> &ends = executable_.segment_ends_;
  const int32_t begin = segment == 0 ? 0 : ends[static_cast<size_t>(segment) - 1];
  IssueContext context;
  context.stream = stream;
  context.constants = constant_at_.data();
  context.rows = rows_;
  context.scalars = reinterpret_cast<const int64_t *>(block);
  if (faults_ != nullptr) context.faults.record = faults_->record();
  context.faults.scalars = reinterpret_cast<int64_t *>(block);
  if (segment == 0) TUTTI_TRY(issue_ports(true, block, stream, times));
  for (int32_t i = begin; i < ends[static_cast<size_t>(segment)]; ++i)
    TUTTI_TRY(issue_call(executable_.calls_[static_cast<size_t>(i)], context, times));
  return static_cast<size_t>(segment) + 1 == ends.size() ? issue_ports(false, block, stream, times) : Status();
}

Status GpuProgram::issue_call(const KernelCall &call, const IssueContext &context, DeviceTimes *times) const {
  if (times == nullptr) return call.issue(table_.data(), workspace_, context);
  const Range range(call.range, 0);
  TUTTI_TRY(times->begin(call.trace_name, call.kernel_name.empty() ? "copy" : "kernel"));
  TUTTI_TRY(call.issue(table_.data(), workspace_, context));
  return times->end();
}

Status GpuProgram::issue_ports(bool is_input, const uint64_t *block, gpuStream_t stream, DeviceTimes *times) const {
  const std::vector<PortPlace> &places = is_input ? executable_.inputs_ : executable_.outputs_;
  if (times != nullptr) TUTTI_TRY(times->begin(is_input ? "inputs" : "outputs", "copy"));
  const size_t first_word = TUTTI_RUN_SCALAR_COUNT + (is_input ? 0 : executable_.inputs_.size());
  PortCopies copies{};
  copies.block = block;
  copies.into_workspace = is_input;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].bytes > 0)
      copies.ports[copies.count++] = {static_cast<int32_t>(first_word + i), workspace_ + places[i].offset,
                                      places[i].bytes};
    if (copies.count == 0 || (copies.count < PortCopies::kPorts && i + 1 < places.size())) continue;
    TUTTI_TRY(status_of(launch_copy_ports(copies, stream), "copying inputs and outputs"));
    copies.count = 0;
  }
  return times != nullptr ? times->end() : Status();
}

Status GpuProgram::write_run_block(uint64_t *block, const tutti_run_arguments &arguments, gpuStream_t stream) {
  words_.block = block;
  words_.first = 0;
  words_.count = 0;
  const auto flush = [&]() -> Status {
    const Status status = status_of(launch_write_run_words(words_, stream), "writing run arguments");
    words_.first += words_.count;
    words_.count = 0;
    return status;
  };
  const auto add = [&](uint64_t word) -> Status {
    words_.words[words_.count++] = word;
    return words_.count == RunWords::kWords ? flush() : Status();
  };
  for (int32_t i = 0; i < TUTTI_RUN_SCALAR_COUNT; ++i)
    TUTTI_TRY(add(static_cast<uint64_t>(arguments.scalars[i])));
  for (size_t i = 0; i < executable_.inputs_.size(); ++i)
    TUTTI_TRY(add(word_of(arguments.inputs[i])));
  for (size_t i = 0; i < executable_.outputs_.size(); ++i)
    TUTTI_TRY(add(word_of(arguments.outputs == nullptr ? nullptr : arguments.outputs[i])));
  return words_.count > 0 ? flush() : Status();
}

Status GpuProgram::run(int32_t segment, const tutti_run_arguments &arguments, GpuStream &stream) {
  const size_t segments = executable_.segment_ends_.size();
  if (segment < 0 || static_cast<size_t>(segment) >= segments)
    return base::out_of_range("segment ", segment, " of ", segments);
  TUTTI_TRY(device_.make_current());
  if (stream.is_recording) return record(segment, stream);
  const Range range(executable_.ranges_[static_cast<size_t>(segment)], arguments.scalars[TUTTI_RUN_STEP]);
  if (segment == 0) TUTTI_TRY(write_run_block(block_, arguments, stream.stream));
  if (faults_ != nullptr) stream.note(faults_);
  DeviceTimes *times = nullptr;
  if (executable_.has_trace_) {
    TUTTI_ASSIGN(times, stream.measured());
  }
  if (graphs_.empty()) return issue(segment, block_, stream.stream, times);
  return status_of(gpuGraphLaunch(graphs_[static_cast<size_t>(segment)], stream.stream), "launching a program");
}

// ---- recordings ----

Status GpuProgram::record(int32_t segment, GpuStream &stream) {
  if (graphs_.empty()) return base::failed_precondition("kernels are launched one by one, so nothing is recorded");
  if (segment == 0) TUTTI_TRY(begin_pass(stream));
  return issue(segment, pass_blocks_[pass_], stream.stream, nullptr);
}

Status GpuProgram::begin_pass(const GpuStream &stream) {
  pass_ = recording_ == stream.recording ? pass_ + 1 : 0;
  recording_ = stream.recording;
  if (pass_ < pass_blocks_.size()) return Status();
  TUTTI_ASSIGN(void *const block, device_.allocate(executable_.run_block_bytes()));
  pass_blocks_.push_back(static_cast<uint64_t *>(block));
  return Status();
}

Status GpuProgram::set_arguments(int32_t pass, const tutti_run_arguments &arguments, GpuStream &stream) {
  if (pass < 0 || static_cast<size_t>(pass) >= pass_blocks_.size())
    return base::out_of_range("pass ", pass, " of ", pass_blocks_.size(), " that were recorded");
  TUTTI_TRY(device_.make_current());
  if (faults_ != nullptr) stream.note(faults_);
  stream.step = arguments.scalars[TUTTI_RUN_STEP];
  return write_run_block(pass_blocks_[static_cast<size_t>(pass)], arguments, stream.stream);
}

}  // namespace tutti::impl::backend::gpu
