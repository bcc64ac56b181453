// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/device/pjrt_backend.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "backend/build_id.h"
#include "backend/pjrt/memory/memory_map.h"
#include "backend/pjrt/memory/pjrt_stream.h"
#include "backend/pjrt/program/donation_probe.h"
#include "backend/pjrt/program/pjrt_executable.h"
#include "backend/plugin_side.h"
#include "base/json.h"
#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::Json;
using base::JsonObject;
using base::JsonReader;
using base::Status;

namespace {

constexpr int64_t kMostDevices = 1024;
constexpr int64_t kWaitSeconds = 600;
constexpr int32_t kWarning = 2;
constexpr uint64_t kHostAlignment = 64;

// ---- what handles stand for ----

struct PjrtBackend {
  const tutti_backend_host *host = nullptr;
  ClientRef client;
  MemoryMap memories;
  std::mutex mutex;
  std::optional<bool> may_donate;  // guarded by mutex; asked before the first program is compiled
};

struct PjrtDevice {
  PjrtBackend *backend = nullptr;
  size_t index = 0;
};

struct PjrtBuffer {
  PjrtBackend *backend = nullptr;
  std::unique_ptr<DeviceMemory> memory;
};

struct PjrtStream {
  PjrtBackend *backend = nullptr;
  StreamState state;
};

struct PjrtEvent {
  PjrtBackend *backend = nullptr;
  EventState state;
};

struct ExecutableHandle {
  PjrtBackend *backend = nullptr;
  std::shared_ptr<PjrtExecutable> executable;
};

template <typename Object, typename Handle>
Object &of(Handle *handle) {
  return *reinterpret_cast<Object *>(handle);
}

PjrtBackend &backend_of(tutti_device *device) { return *of<PjrtDevice>(device).backend; }

// ---- the backend ----

int32_t create(const tutti_backend_host *host, const char *options_json, tutti_backend **backend,
               tutti_error_sink *sink) {
  return guarded(host, sink, [&]() -> Status {
    TUTTI_ASSIGN(const Json json, Json::parse(options_json));
    const JsonReader options(json, "backend options");
    TUTTI_TRY(options.only_keys({"logical_devices", "pjrt_plugin", "pjrt_topology", "plan_cache", "wait_seconds"}));
    TUTTI_ASSIGN(const std::string path, options.get_string("pjrt_plugin", ""));
    TUTTI_ASSIGN(std::string topology, options.get_string("pjrt_topology", ""));
    TUTTI_ASSIGN(const int64_t devices, options.get_integer("logical_devices", 0));
    if (path.empty())
      return base::invalid_argument("backend pjrt: pjrt_plugin is missing, the path of a library with PJRT's C ",
                                    "interface, such as libtpu.so");
    if (devices < 0 || devices > kMostDevices)
      return base::invalid_argument("backend pjrt: logical_devices is ", devices, ", expected 0 to ", kMostDevices);
    TUTTI_ASSIGN(const int64_t seconds, options.get_integer("wait_seconds", kWaitSeconds));
    if (seconds < 1) return base::invalid_argument("backend pjrt: wait_seconds is ", seconds, ", expected 1 or more");
    auto made = std::make_unique<PjrtBackend>();
    made->host = host;
    TUTTI_ASSIGN(PluginRef plugin, Plugin::open(path));
    TUTTI_ASSIGN(made->client, Client::create(std::move(plugin),
                                              {std::move(topology), devices, std::chrono::seconds(seconds), host}));
    *backend = reinterpret_cast<tutti_backend *>(made.release());
    return Status();
  });
}

void destroy(tutti_backend *backend) { delete reinterpret_cast<PjrtBackend *>(backend); }

// ---- devices ----

int32_t device_count(tutti_backend *backend) {
  return static_cast<int32_t>(of<PjrtBackend>(backend).client->device_count());
}

int32_t device_describe(tutti_backend *backend, int32_t index, tutti_text_writer write, void *user,
                        tutti_error_sink *sink) {
  const PjrtBackend &self = of<PjrtBackend>(backend);
  return guarded(self.host, sink, [&]() -> Status {
    const auto device = static_cast<size_t>(index);
    const Json description(JsonObject{{"name", base::concat("pjrt:", index)},
                                      {"kind", base::concat("pjrt ", self.client->device_kind(device))},
                                      {"memory_bytes", std::max<int64_t>(self.client->memory_limit(device), 0)},
                                      {"description", self.client->device_text(device)},
                                      {"only_compiles", self.client->only_compiles()}});
    write_text(write, user, description.dump());
    return Status();
  });
}

int32_t device_open(tutti_backend *backend, int32_t index, const char *options_json, tutti_device **device,
                    tutti_error_sink *sink) {
  PjrtBackend &self = of<PjrtBackend>(backend);
  return guarded(self.host, sink, [&]() -> Status {
    if (index < 0 || index >= device_count(backend))
      return base::not_found("device pjrt:", index, ": there are ", device_count(backend));
    TUTTI_ASSIGN(const Json options, Json::parse(options_json));
    TUTTI_TRY(JsonReader(options, "device options").only_keys({}));
    *device = reinterpret_cast<tutti_device *>(new PjrtDevice{&self, static_cast<size_t>(index)});
    return Status();
  });
}

void device_close(tutti_device *device) { delete reinterpret_cast<PjrtDevice *>(device); }

int64_t available_bytes(tutti_device *device) {
  const PjrtDevice &self = of<PjrtDevice>(device);
  const int64_t limit = self.backend->client->memory_limit(self.index);
  // Of the host's memory, where plug-ins for processors compute, they tell nothing.
  return limit < 0 ? INT64_MAX : limit - std::max<int64_t>(self.backend->client->memory_in_use(self.index), 0);
}

int32_t libraries(tutti_backend *backend, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  const PjrtBackend &self = of<PjrtBackend>(backend);
  return guarded(self.host, sink, [&]() -> Status {
    const Plugin &plugin = self.client->plugin();
    TUTTI_ASSIGN(const Json attributes, Json::parse(plugin.attributes_json()));
    JsonObject found;
    TUTTI_ASSIGN(const auto members, JsonReader(attributes, "attributes").members());
    for (const auto &[key, value] : members) {
      TUTTI_ASSIGN(std::string text, value.as_string());
      found.emplace_back(key, std::move(text));
    }
    found.emplace_back("PJRT", plugin.version());
    found.emplace_back(self.client->platform(), self.client->platform_version());
    write_text(write, user, Json(std::move(found)).dump());
    return Status();
  });
}

// ---- memory ----

int32_t buffer_allocate(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                        tutti_error_sink *sink) {
  const PjrtDevice &self = of<PjrtDevice>(device);
  return guarded(self.backend->host, sink, [&]() -> Status {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096)
      return base::invalid_argument("alignment ", alignment, " is not a power of two up to 4096");
    auto made = std::make_unique<PjrtBuffer>();
    made->backend = self.backend;
    TUTTI_ASSIGN(made->memory, DeviceMemory::create(self.backend->client, self.index, static_cast<int64_t>(bytes)));
    self.backend->memories.add(made->memory.get());
    *buffer = reinterpret_cast<tutti_device_buffer *>(made.release());
    return Status();
  });
}

void buffer_release(tutti_device_buffer *buffer) {
  if (buffer == nullptr) return;
  PjrtBuffer &self = of<PjrtBuffer>(buffer);
  self.backend->memories.remove(self.memory.get());
  delete &self;
}

void *device_pointer(tutti_device_buffer *buffer) { return of<PjrtBuffer>(buffer).memory->address(); }
void *host_pointer(tutti_device_buffer *) { return nullptr; }

/// Copies from a place to the host, on a stream or at once.
Status read_place(const MemoryPlace &place, void *destination, uint64_t bytes, tutti_stream *stream) {
  std::vector<Completion> pending;
  TUTTI_TRY(place.memory->read(place.offset, destination, static_cast<int64_t>(bytes), pending));
  for (Completion &done : pending) {
    if (stream == nullptr) {
      TUTTI_TRY(done.wait());
    } else {
      of<PjrtStream>(stream).state.add(std::move(done));
    }
  }
  return Status();
}

int32_t buffer_read(tutti_device_buffer *buffer, uint64_t offset, void *destination, uint64_t bytes,
                    tutti_stream *stream, tutti_error_sink *sink) {
  const PjrtBuffer &self = of<PjrtBuffer>(buffer);
  return guarded(self.backend->host, sink, [&] {
    return read_place({self.memory.get(), static_cast<int64_t>(offset)}, destination, bytes, stream);
  });
}

int32_t buffer_write(tutti_device_buffer *buffer, uint64_t offset, const void *source, uint64_t bytes, tutti_stream *,
                     tutti_error_sink *sink) {
  const PjrtBuffer &self = of<PjrtBuffer>(buffer);
  return guarded(self.backend->host, sink,
                 [&] { return self.memory->write(static_cast<int64_t>(offset), source, static_cast<int64_t>(bytes)); });
}

int32_t buffer_fill_zero(tutti_device_buffer *buffer, uint64_t offset, uint64_t bytes, tutti_stream *,
                         tutti_error_sink *sink) {
  const PjrtBuffer &self = of<PjrtBuffer>(buffer);
  return guarded(self.backend->host, sink,
                 [&] { return self.memory->fill_zero(static_cast<int64_t>(offset), static_cast<int64_t>(bytes)); });
}

// ---- copies by address ----

int32_t transfer_allocate(tutti_device *device, uint64_t bytes, void **memory, tutti_error_sink *sink) {
  const tutti_backend_host *host = backend_of(device).host;
  return guarded(host, sink, [&]() -> Status {
    // Of the host's own, as memory for copies is with every device: it is not what the budget counts.
    *memory = std::aligned_alloc(kHostAlignment, (bytes + kHostAlignment) / kHostAlignment * kHostAlignment);
    if (*memory == nullptr) return base::resource_exhausted("cannot allocate ", bytes, " bytes of host memory");
    backend_of(device).memories.add_host(*memory, static_cast<int64_t>(bytes));
    return Status();
  });
}

void transfer_release(tutti_device *device, void *memory, uint64_t) {
  if (memory == nullptr) return;
  backend_of(device).memories.remove_host(memory);
  std::free(memory);
}

int32_t transfer_read(tutti_device *device, const void *source, void *destination, uint64_t bytes, tutti_stream *stream,
                      tutti_error_sink *sink) {
  const PjrtBackend &self = backend_of(device);
  return guarded(self.host, sink, [&]() -> Status {
    if (bytes == 0) return Status();
    TUTTI_ASSIGN(const MemoryPlace place, self.memories.find(source));
    return read_place(place, destination, bytes, stream);
  });
}

int32_t transfer_write(tutti_device *device, void *destination, const void *source, uint64_t bytes, tutti_stream *,
                       tutti_error_sink *sink) {
  const PjrtBackend &self = backend_of(device);
  return guarded(self.host, sink, [&]() -> Status {
    if (bytes == 0) return Status();
    TUTTI_ASSIGN(const MemoryPlace place, self.memories.find(destination));
    return place.memory->write(place.offset, source, static_cast<int64_t>(bytes));
  });
}

// ---- streams and events ----

int32_t stream_create(tutti_device *device, tutti_stream **stream, tutti_error_sink *sink) {
  return guarded(backend_of(device).host, sink, [&]() -> Status {
    auto made = std::make_unique<PjrtStream>();
    made->backend = &backend_of(device);
    *stream = reinterpret_cast<tutti_stream *>(made.release());
    return Status();
  });
}

void stream_release(tutti_stream *stream) { delete reinterpret_cast<PjrtStream *>(stream); }

int32_t stream_synchronize(tutti_stream *stream, tutti_error_sink *sink) {
  PjrtStream &self = of<PjrtStream>(stream);
  return guarded(self.backend->host, sink, [&] { return self.state.synchronize(); });
}

int32_t stream_wait_event(tutti_stream *stream, tutti_event *event, tutti_error_sink *sink) {
  PjrtStream &self = of<PjrtStream>(stream);
  return guarded(self.backend->host, sink, [&]() -> Status {
    self.state.add(of<PjrtEvent>(event).state.pending());
    return Status();
  });
}

int32_t stream_has_failed(tutti_stream *stream) { return of<PjrtStream>(stream).state.has_failed() ? 1 : 0; }

int32_t event_create(tutti_device *device, tutti_event **event, tutti_error_sink *sink) {
  return guarded(backend_of(device).host, sink, [&]() -> Status {
    auto made = std::make_unique<PjrtEvent>();
    made->backend = &backend_of(device);
    *event = reinterpret_cast<tutti_event *>(made.release());
    return Status();
  });
}

void event_release(tutti_event *event) { delete reinterpret_cast<PjrtEvent *>(event); }

int32_t event_record(tutti_event *event, tutti_stream *stream, tutti_error_sink *sink) {
  PjrtEvent &self = of<PjrtEvent>(event);
  return guarded(self.backend->host, sink, [&]() -> Status {
    self.state.record(of<PjrtStream>(stream).state);
    return Status();
  });
}

int32_t event_synchronize(tutti_event *event, tutti_error_sink *sink) {
  PjrtEvent &self = of<PjrtEvent>(event);
  return guarded(self.backend->host, sink, [&] { return self.state.synchronize(); });
}

int32_t event_is_done(tutti_event *event) { return of<PjrtEvent>(event).state.is_done() ? 1 : 0; }

// ---- executables and programs ----

base::Result<bool> may_donate(PjrtBackend &backend, size_t device) {
  std::lock_guard lock(backend.mutex);
  if (backend.may_donate.has_value()) return *backend.may_donate;
  TUTTI_ASSIGN(backend.may_donate, donation_works(backend.client, device));
  if (!*backend.may_donate) {
    const std::string line = base::concat("backend pjrt: ", backend.client->plugin().path(),
                                          " computes with old values of arrays that it works on in place; state is ",
                                          "copied in each step instead");
    backend.host->log(backend.host->user, kWarning, line.c_str());
  }
  return *backend.may_donate;
}

int32_t compile(const tutti_compile_request *request, tutti_executable **executable, tutti_error_sink *sink) {
  const PjrtDevice &device = of<PjrtDevice>(request->devices[0]);
  return guarded(device.backend->host, sink, [&]() -> Status {
    auto made = std::make_unique<ExecutableHandle>();
    made->backend = device.backend;
    TUTTI_ASSIGN(const bool donates, may_donate(*device.backend, device.index));
    std::vector<size_t> devices;
    for (int32_t i = 0; i < request->device_count; ++i)
      devices.push_back(of<PjrtDevice>(request->devices[i]).index);
    auto compiled =
        PjrtExecutable::compile(*request, device.backend->host, device.backend->client, std::move(devices), donates);
    if (!compiled.ok()) return compiled.status().with_detail("device", base::concat("pjrt:", device.index));
    made->executable = std::move(compiled).value();
    *executable = reinterpret_cast<tutti_executable *>(made.release());
    return Status();
  });
}

void release_executable(tutti_executable *executable) { delete reinterpret_cast<ExecutableHandle *>(executable); }

int32_t describe_executable(tutti_executable *executable, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  const ExecutableHandle &self = of<ExecutableHandle>(executable);
  return guarded(self.backend->host, sink, [&]() -> Status {
    write_text(write, user, self.executable->describe());
    return Status();
  });
}

int32_t bind(tutti_executable *executable, const tutti_bind_request *request, tutti_program **program,
             tutti_error_sink *sink) {
  const ExecutableHandle &self = of<ExecutableHandle>(executable);
  return guarded(self.backend->host, sink, [&]() -> Status {
    const size_t device = of<PjrtDevice>(request->device).index;
    TUTTI_ASSIGN(auto made, PjrtProgram::bind(self.executable, self.backend->memories, device, *request));
    *program = reinterpret_cast<tutti_program *>(made.release());
    return Status();
  });
}

void release_program(tutti_program *program) { delete reinterpret_cast<PjrtProgram *>(program); }

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
            tutti_error_sink *sink) {
  PjrtProgram &self = of<PjrtProgram>(program);
  return guarded(self.host(), sink, [&] { return self.run(segment, *arguments, of<PjrtStream>(stream).state); });
}

// ---- the tables ----

const tutti_device_table kDeviceTable = {
    sizeof(tutti_device_table), device_count, device_describe, device_open, device_close, available_bytes, libraries};
const tutti_buffer_table kBufferTable = {sizeof(tutti_buffer_table),
                                         buffer_allocate,
                                         buffer_release,
                                         device_pointer,
                                         host_pointer,
                                         buffer_read,
                                         buffer_write,
                                         buffer_fill_zero,
                                         nullptr};
const tutti_stream_table kStreamTable = {.struct_size = sizeof(tutti_stream_table),
                                         .create = stream_create,
                                         .release = stream_release,
                                         .synchronize = stream_synchronize,
                                         .wait_event = stream_wait_event,
                                         .event_create = event_create,
                                         .event_release = event_release,
                                         .event_record = event_record,
                                         .event_synchronize = event_synchronize,
                                         .event_is_done = event_is_done,
                                         .event_create_timed = nullptr,
                                         .event_elapsed = nullptr,
                                         .has_failed = stream_has_failed,
                                         .record_begin = nullptr,
                                         .record_end = nullptr,
                                         .replay = nullptr,
                                         .recording_release = nullptr,
                                         .hold = nullptr};
const tutti_transfer_table kTransferTable = {sizeof(tutti_transfer_table), transfer_allocate, transfer_release,
                                             transfer_read, transfer_write};
const tutti_executable_table kExecutableTable = {sizeof(tutti_executable_table), compile, release_executable,
                                                 describe_executable};
const tutti_program_table kProgramTable = {sizeof(tutti_program_table), bind, release_program, run, nullptr};

}  // namespace

const tutti_backend_api *entry(uint32_t host_abi_version) {
  static const tutti_backend_api api = {
      sizeof(tutti_backend_api),
      TUTTI_BACKEND_ABI_VERSION,
      "pjrt",
      kBuildId,
      kBuildId,
      TUTTI_BACKEND_LOWERS_COLLECTIVES | TUTTI_BACKEND_REGIONS | TUTTI_BACKEND_ROUNDS_FREELY,
      create,
      destroy,
      &kDeviceTable,
      &kBufferTable,
      &kStreamTable,
      nullptr,
      &kExecutableTable,
      &kProgramTable,
      &kTransferTable,
      nullptr};
  return host_abi_version == TUTTI_BACKEND_ABI_VERSION ? &api : nullptr;
}

}  // namespace tutti::impl::backend::pjrt
