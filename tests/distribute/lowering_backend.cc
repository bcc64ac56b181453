// SPDX-License-Identifier: Apache-2.0
#include "distribute/lowering_backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "backend/host_services.h"
#include "base/json.h"
#include "collective/reduction.h"

namespace tutti::testing {
namespace lowering {
namespace {

using impl::backend::ErrorSink;
using impl::base::Json;
using impl::base::JsonArray;
using impl::base::JsonObject;
using impl::base::Result;
using impl::base::Status;
namespace base = impl::base;
namespace collective = impl::collective;
namespace tensor = impl::tensor;

const tutti_backend_api *inner = nullptr;  // the plug-in's
std::atomic<int64_t> runs{0};

struct External {
  collective::Reduction reduction = collective::Reduction::sum;
  tensor::DType dtype = tensor::DType::f32;
  int32_t arena = -1;
  int64_t offset = 0, elements = 0;
};

struct LoweredProgram;

struct LoweredExecutable {
  tutti_executable *handle = nullptr;
  std::vector<tutti_device *> devices;
  std::vector<External> externals;
  std::mutex mutex;
  std::vector<LoweredProgram *> brought;  // guarded by mutex; by place

  bool is_together() const { return devices.size() > 1; }
};

struct LoweredProgram {
  LoweredExecutable *executable = nullptr;
  tutti_program *handle = nullptr;
  size_t place = 0;
  std::vector<void *> arenas;
  void *workspace = nullptr;
  const tutti_run_arguments *arguments = nullptr;  // of what was brought
  tutti_stream *stream = nullptr;

  void *address(const External &external) const {
    void *const begin = external.arena < 0 ? workspace : arenas[static_cast<size_t>(external.arena)];
    return static_cast<std::byte *>(begin) + external.offset;
  }
};

LoweredExecutable *of(tutti_executable *executable) { return reinterpret_cast<LoweredExecutable *>(executable); }
LoweredProgram *of(tutti_program *program) { return reinterpret_cast<LoweredProgram *>(program); }

int32_t tell(tutti_error_sink *sink, const Status &status) {
  if (status.ok()) return 0;
  ErrorSink::set(sink, static_cast<int32_t>(status.code()), std::string(status.message()).c_str());
  return static_cast<int32_t>(status.code());
}

// ---- executables ----

Result<std::vector<External>> read_externals(const Json &description) {
  std::vector<External> externals;
  for (const Json &one : description.find("externals")->array()) {
    External external;
    const std::string &kind = one.find("kind")->string();
    if (kind == "all_reduce_max") external.reduction = collective::Reduction::max;
    if (kind == "all_reduce_min") external.reduction = collective::Reduction::min;
    TUTTI_ASSIGN(external.dtype, tensor::parse_dtype(one.find("dtype")->string()));
    external.arena = static_cast<int32_t>(one.find("arena")->integer());
    external.offset = one.find("offset")->integer();
    external.elements = one.find("elements")->integer();
    externals.push_back(external);
  }
  return externals;
}

int32_t compile(const tutti_compile_request *request, tutti_executable **executable, tutti_error_sink *sink) {
  auto made = std::make_unique<LoweredExecutable>();
  made->devices.assign(request->devices, request->devices + request->device_count);
  tutti_compile_request alone = *request;
  alone.device_count = 1;
  if (const int32_t code = inner->executable->compile(&alone, &made->handle, sink); code != 0) return code;
  made->brought.resize(made->devices.size());
  *executable = reinterpret_cast<tutti_executable *>(made.release());
  return 0;
}

void release_executable(tutti_executable *executable) {
  inner->executable->release(of(executable)->handle);
  delete of(executable);
}

int32_t describe(tutti_executable *executable, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  LoweredExecutable &self = *of(executable);
  if (!self.is_together()) return inner->executable->describe(self.handle, write, user, sink);
  std::string text;
  if (const int32_t code = inner->executable->describe(self.handle, impl::backend::collect_text, &text, sink);
      code != 0)
    return code;
  const auto rewritten = [&]() -> Result<std::string> {
    TUTTI_ASSIGN(Json json, Json::parse(text));
    TUTTI_ASSIGN(self.externals, read_externals(json));
    json.set("externals", JsonArray{JsonObject{{"kind", "all_reduce_sum"},
                                               {"label", "launch"},
                                               {"arena", int64_t{-1}},
                                               {"offset", int64_t{0}},
                                               {"elements", int64_t{0}},
                                               {"dtype", "f32"}}});
    return json.dump();
  }();
  if (!rewritten.ok()) return tell(sink, rewritten.status());
  write(user, rewritten->data(), rewritten->size());
  return 0;
}

// ---- programs ----

int32_t bind(tutti_executable *executable, const tutti_bind_request *request, tutti_program **program,
             tutti_error_sink *sink) {
  auto made = std::make_unique<LoweredProgram>();
  made->executable = of(executable);
  const auto &devices = made->executable->devices;
  made->place = static_cast<size_t>(std::ranges::find(devices, request->device) - devices.begin());
  made->arenas.assign(request->arenas, request->arenas + request->arena_count);
  made->workspace = request->workspace;
  if (const int32_t code = inner->program->bind(made->executable->handle, request, &made->handle, sink); code != 0)
    return code;
  *program = reinterpret_cast<tutti_program *>(made.release());
  return 0;
}

void release_program(tutti_program *program) {
  LoweredProgram &self = *of(program);
  if (self.executable->is_together()) {
    std::lock_guard lock(self.executable->mutex);
    LoweredProgram *&brought = self.executable->brought[self.place];
    if (brought == &self) brought = nullptr;
  }
  inner->program->release(self.handle);
  delete &self;
}

/// Waits for the stream's work, and leaves what it has to tell to whoever synchronizes it.
Status wait_for(tutti_device *device, tutti_stream *stream) {
  const tutti_stream_table &streams = *inner->stream;
  tutti_event *event = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(streams.event_create(device, &event, sink.handle())));
  Status status = sink.take(streams.event_record(event, stream, sink.handle()));
  if (status.ok()) status = sink.take(streams.event_synchronize(event, sink.handle()));
  streams.event_release(event);
  return status;
}

Status reduce(const LoweredExecutable &executable, const External &external) {
  const auto size = static_cast<size_t>(external.elements) * tensor::size_bytes(external.dtype);
  std::vector<std::vector<std::byte>> copies;
  std::vector<void *> sources;
  for (const LoweredProgram *program : executable.brought) {
    tutti_device *const device = executable.devices[program->place];
    ErrorSink sink;
    copies.emplace_back(size);
    TUTTI_TRY(sink.take(inner->transfer->read(device, program->address(external), copies.back().data(), size,
                                              program->stream, sink.handle())));
    TUTTI_TRY(wait_for(device, program->stream));
  }
  for (auto &copy : copies)
    sources.push_back(copy.data());
  collective::reduce_range(external.dtype, external.reduction, sources.data(), static_cast<int32_t>(sources.size()), 0,
                           external.elements, sources[0]);
  for (const LoweredProgram *program : executable.brought) {
    tutti_device *const device = executable.devices[program->place];
    ErrorSink sink;
    TUTTI_TRY(sink.take(
        inner->transfer->write(device, program->address(external), sources[0], size, program->stream, sink.handle())));
    TUTTI_TRY(wait_for(device, program->stream));
  }
  return Status();
}

Status run_all(const LoweredExecutable &executable) {
  for (size_t segment = 0; segment <= executable.externals.size(); ++segment) {
    for (const LoweredProgram *program : executable.brought) {
      ErrorSink sink;
      TUTTI_TRY(sink.take(inner->program->run(program->handle, static_cast<int32_t>(segment), program->arguments,
                                              program->stream, sink.handle())));
    }
    if (segment < executable.externals.size() && executable.externals[segment].elements > 0)
      TUTTI_TRY(reduce(executable, executable.externals[segment]));
  }
  return Status();
}

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
            tutti_error_sink *sink) {
  LoweredProgram &self = *of(program);
  LoweredExecutable &executable = *self.executable;
  if (!executable.is_together()) return inner->program->run(self.handle, segment, arguments, stream, sink);
  std::lock_guard lock(executable.mutex);
  LoweredProgram *&brought = executable.brought[self.place];
  if (segment == 1) {
    if (std::exchange(brought, nullptr) == nullptr) return 0;
    return tell(sink, base::failed_precondition("the program was not run on all devices"));
  }
  brought = &self;
  self.arguments = arguments;
  self.stream = stream;
  if (std::ranges::count(executable.brought, nullptr) > 0) return 0;
  const Status status = run_all(executable);
  std::ranges::fill(executable.brought, nullptr);
  ++runs;
  return tell(sink, status);
}

// ---- the tables ----

const tutti_backend_api *entry(uint32_t host_abi_version) {
  if (host_abi_version != TUTTI_BACKEND_ABI_VERSION) return nullptr;
  static const tutti_executable_table executables = {sizeof(executables), compile, release_executable, describe};
  static const tutti_program_table programs = {sizeof(programs), bind, release_program, run, nullptr};
  static tutti_stream_table streams = *inner->stream;
  streams.record_begin = nullptr;
  streams.record_end = nullptr;
  streams.replay = nullptr;
  streams.recording_release = nullptr;
  streams.hold = nullptr;
  static tutti_backend_api api = *inner;
  api.capabilities |= TUTTI_BACKEND_LOWERS_COLLECTIVES;
  api.stream = &streams;
  api.layout = nullptr;
  api.executable = &executables;
  api.program = &programs;
  api.collective = nullptr;
  return &api;
}

}  // namespace
}  // namespace lowering

impl::base::Result<impl::backend::BackendRef> open_lowering_backend(const std::string &path, const std::string &options,
                                                                    const impl::backend::HostOptions &host) {
  if (lowering::inner == nullptr) {
    void *const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void *const symbol = module == nullptr ? nullptr : dlsym(module, TUTTI_BACKEND_ENTRY_NAME);
    if (symbol == nullptr) return impl::base::unavailable(path, ": ", dlerror());
    lowering::inner = reinterpret_cast<tutti_backend_entry_function>(symbol)(TUTTI_BACKEND_ABI_VERSION);
    if (lowering::inner == nullptr) return impl::base::unavailable(path, " is of another version");
  }
  return impl::backend::Backend::create(lowering::entry, options, host, impl::backend::build_id());
}

int64_t lowered_runs() { return lowering::runs; }

}  // namespace tutti::testing
