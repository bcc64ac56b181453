// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "backend/build_id.h"
#include "backend/host_services.h"
#include "base/json.h"
#include "base/memory.h"

namespace tutti::impl::backend {

using base::Json;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

/// One sentence why the table cannot be used, or ok. Checks what this library calls, not what newer tables append.
Status check_table(const tutti_backend_api *api, std::string_view build_id) {
  if (api == nullptr)
    return base::unavailable("the backend refuses plug-in interface version ", TUTTI_BACKEND_ABI_VERSION);
  constexpr size_t kLeast = offsetof(tutti_backend_api, transfer);  // what came later is optional
  if (api->struct_size < kLeast)
    return base::unavailable("the backend's table has ", api->struct_size, " bytes, expected at least ", kLeast);
  if (api->abi_version != TUTTI_BACKEND_ABI_VERSION)
    return base::unavailable("the backend was built for plug-in interface version ", api->abi_version,
                             ", this library has version ", TUTTI_BACKEND_ABI_VERSION);
  // Backends of other projects have none.
  const std::string_view own_id = api->build_id == nullptr ? "" : api->build_id;
  if (!build_id.empty() && !own_id.empty() && build_id != own_id)
    return base::unavailable("backend '", api->name, "' has build id ", base::quoted(own_id), ", this library has ",
                             base::quoted(build_id), ": install both from one build");
  if (api->device == nullptr || api->buffer == nullptr || api->stream == nullptr || api->executable == nullptr ||
      api->program == nullptr)
    return base::unavailable("backend '", api->name, "' lacks one of its tables");
  if (api->device->struct_size < offsetof(tutti_device_table, available_bytes) ||
      api->buffer->struct_size < offsetof(tutti_buffer_table, allocate_shared) ||
      api->stream->struct_size < offsetof(tutti_stream_table, event_create_timed) ||
      api->executable->struct_size < offsetof(tutti_executable_table, describe) + sizeof(void *) ||
      api->program->struct_size < offsetof(tutti_program_table, set_arguments))
    return base::unavailable("one of the tables of backend '", api->name, "' is shorter than this library expects");
  return Status();
}

}  // namespace

const char *build_id() { return kBuildId; }

Backend::Backend(const tutti_backend_api *api, HostOptions host)
    : api_(api), name_(api->name), host_(std::move(host)) {}

Backend::~Backend() {
  if (instance_ != nullptr) api_->destroy(instance_);
}

Result<BackendRef> Backend::create(tutti_backend_entry_function entry, std::string_view options_json, HostOptions host,
                                   std::string_view build_id) {
  const tutti_backend_api *api = entry(TUTTI_BACKEND_ABI_VERSION);
  TUTTI_TRY(check_table(api, build_id));
  BackendRef backend(new Backend(api, std::move(host)));
  ErrorSink sink;
  tutti_backend *instance = nullptr;
  TUTTI_TRY(
      sink.take(api->create(backend->host_.table(), std::string(options_json).c_str(), &instance, sink.handle())));
  backend->instance_ = instance;
  return backend;
}

/// Where it is, and how it is connected.
static Status read_place(const JsonReader &reader, DeviceDescription &description) {
  TUTTI_ASSIGN(description.pci, reader.get_string("pci", ""));
  TUTTI_ASSIGN(description.numa_node, reader.get_integer("numa_node", -1));
  TUTTI_ASSIGN(description.only_compiles, reader.get_boolean("only_compiles", false));
  if (!reader.has("links")) return Status();
  TUTTI_ASSIGN(const JsonReader links, reader.get("links"));
  TUTTI_ASSIGN(const auto members, links.members());
  for (const auto &[name, link] : members) {
    TUTTI_ASSIGN(const int64_t rank, link.get_integer("rank"));
    TUTTI_ASSIGN(const bool has_atomics, link.get_boolean("atomics"));
    description.links.push_back({name, static_cast<int32_t>(rank), has_atomics});
  }
  return Status();
}

Result<DeviceDescription> Backend::describe_device(int32_t index) const {
  const int32_t count = device_count();
  if (index < 0 || index >= count)
    return base::not_found("device ", name_, ":", index, ": this backend has ", count, " device(s)");
  std::string text;
  ErrorSink sink;
  TUTTI_TRY(sink.take(api_->device->describe(instance_, index, collect_text, &text, sink.handle())));
  TUTTI_ASSIGN(const Json json, Json::parse(text));
  const JsonReader reader(json, "device");
  DeviceDescription description;
  TUTTI_ASSIGN(description.name, reader.get_string("name"));
  TUTTI_ASSIGN(description.kind, reader.get_string("kind"));
  TUTTI_ASSIGN(description.memory_bytes, reader.get_integer("memory_bytes", 0));
  TUTTI_ASSIGN(description.description, reader.get_string("description", ""));
  if (reader.has("reaches")) {
    TUTTI_ASSIGN(description.reaches, reader.get_strings("reaches"));
  }
  TUTTI_TRY(read_place(reader, description));
  TUTTI_ASSIGN(description.memory, reader.get_string("memory", has_host_memory() ? "host" : description.name));
  return description;
}

Result<Json> Backend::describe_libraries() const {
  const tutti_device_table &devices = *api_->device;
  if (devices.struct_size < offsetof(tutti_device_table, libraries) + sizeof(void *) || devices.libraries == nullptr)
    return Json(base::JsonObject());
  std::string text;
  ErrorSink sink;
  TUTTI_TRY(sink.take(devices.libraries(instance_, collect_text, &text, sink.handle())));
  return Json::parse(text);
}

Result<DeviceRef> Backend::open_device(int32_t index, std::string_view options_json) {
  TUTTI_ASSIGN(DeviceDescription description, describe_device(index));
  tutti_device *handle = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(api_->device->open(instance_, index, std::string(options_json).c_str(), &handle, sink.handle())));
  return DeviceRef(new Device(shared_from_this(), index, std::move(description), handle));
}

Status Backend::pack(std::string_view layout, tensor::DType dtype, const std::vector<int64_t> &dims,
                     const void *canonical, void *storage, int64_t storage_bytes) const {
  if (layout.empty()) {
    if (storage_bytes != 0) std::memcpy(storage, canonical, static_cast<size_t>(storage_bytes));
    return Status();
  }
  if (api_->layout == nullptr) return base::unimplemented("backend '", name_, "' has no layout '", layout, "'");
  ErrorSink sink;
  return sink.take(api_->layout->pack(instance_, std::string(layout).c_str(), static_cast<int32_t>(dtype), dims.data(),
                                      static_cast<int32_t>(dims.size()), canonical, storage,
                                      static_cast<uint64_t>(storage_bytes), sink.handle()));
}

Status Backend::unpack(std::string_view layout, tensor::DType dtype, const std::vector<int64_t> &dims,
                       const void *storage, int64_t storage_bytes, void *canonical) const {
  if (layout.empty()) {
    if (storage_bytes != 0) std::memcpy(canonical, storage, static_cast<size_t>(storage_bytes));
    return Status();
  }
  if (api_->layout == nullptr) return base::unimplemented("backend '", name_, "' has no layout '", layout, "'");
  ErrorSink sink;
  return sink.take(api_->layout->unpack(instance_, std::string(layout).c_str(), static_cast<int32_t>(dtype),
                                        dims.data(), static_cast<int32_t>(dims.size()), storage,
                                        static_cast<uint64_t>(storage_bytes), canonical, sink.handle()));
}

const tutti_transfer_table *Backend::transfer() const {
  const size_t end = offsetof(tutti_backend_api, transfer) + sizeof(api_->transfer);
  return api_->struct_size < end ? nullptr : api_->transfer;
}

const tutti_collective_table *Backend::collective() const {
  const size_t end = offsetof(tutti_backend_api, collective) + sizeof(api_->collective);
  if (api_->struct_size < end || api_->collective == nullptr) return nullptr;
  constexpr size_t kLeast = offsetof(tutti_collective_table, register_memory);  // what came later is optional
  return api_->collective->struct_size < kLeast ? nullptr : api_->collective;
}

bool Backend::has_timed_events() const {
  const tutti_stream_table &stream = *api_->stream;
  return stream.struct_size >= offsetof(tutti_stream_table, has_failed) && stream.event_create_timed != nullptr &&
         stream.event_elapsed != nullptr;
}

bool Backend::records_streams() const {
  const tutti_stream_table &stream = *api_->stream;
  const tutti_program_table &program = *api_->program;
  return stream.struct_size >= offsetof(tutti_stream_table, recording_release) + sizeof(void *) &&
         program.struct_size >= offsetof(tutti_program_table, set_arguments) + sizeof(void *) &&
         stream.record_begin != nullptr && stream.record_end != nullptr && stream.replay != nullptr &&
         stream.recording_release != nullptr && program.set_arguments != nullptr;
}

bool Backend::holds_streams() const {
  const tutti_stream_table &stream = *api_->stream;
  return stream.struct_size >= offsetof(tutti_stream_table, hold) + sizeof(void *) && stream.hold != nullptr &&
         transfer() != nullptr;
}

Device::Device(BackendRef backend, int32_t index, DeviceDescription description, tutti_device *handle)
    : backend_(std::move(backend)), index_(index), description_(std::move(description)), handle_(handle) {}

Device::~Device() { api().device->close(handle_); }

Result<int64_t> Device::available_bytes() const {
  const tutti_device_table &table = *api().device;
  const bool is_told = table.struct_size >= offsetof(tutti_device_table, available_bytes) + sizeof(void *) &&
                       table.available_bytes != nullptr;
  if (!is_told) {
    if (backend_->has_host_memory()) return base::available_memory();
    return description_.memory_bytes > 0 ? description_.memory_bytes : INT64_MAX;
  }
  const int64_t bytes = table.available_bytes(handle_);
  if (bytes < 0) return base::internal_error("device ", name(), " cannot report its free memory");
  return bytes;
}

Result<Buffer> Device::allocate(int64_t bytes, int64_t alignment) {
  return allocate_by(api().buffer->allocate, bytes, alignment);
}

/// Tables of older plug-ins end before.
Result<Buffer> Device::allocate_shared(int64_t bytes, int64_t alignment) {
  const tutti_buffer_table &buffer = *api().buffer;
  const bool has_shared = buffer.struct_size >= offsetof(tutti_buffer_table, allocate_shared) + sizeof(void *) &&
                          buffer.allocate_shared != nullptr;
  return allocate_by(has_shared ? buffer.allocate_shared : buffer.allocate, bytes, alignment);
}

Result<Buffer> Device::allocate_by(decltype(tutti_buffer_table::allocate) function, int64_t bytes, int64_t alignment) {
  if (bytes < 0) return base::invalid_argument("the size of a buffer is ", bytes, " bytes, expected at least 0");
  const MemoryBudget *budget = backend_->memory_budget();
  const auto over_budget = [&] {
    return base::resource_exhausted("device ", name(), " needs ", bytes, " more bytes, but ", budget->in_use(),
                                    " bytes of the memory budget of ", budget->limit(), " bytes are in use");
  };
  if (!backend_->take_device_memory(bytes)) return over_budget();
  tutti_device_buffer *handle = nullptr;
  ErrorSink sink;
  const Status status = sink.take(
      function(handle_, static_cast<uint64_t>(bytes), static_cast<uint64_t>(alignment), &handle, sink.handle()));
  if (status.ok()) return Buffer(shared_from_this(), handle, bytes);
  backend_->give_back_device_memory(bytes);
  const bool is_budget =
      status.code() == base::Code::resource_exhausted && budget != nullptr && backend_->has_host_memory();
  return is_budget ? over_budget().with_cause(status) : status;
}

Result<HostMemory> Device::allocate_host(int64_t bytes) {
  const tutti_transfer_table *const transfer = backend_->transfer();
  if (transfer == nullptr) return base::unimplemented("backend '", backend_->name(), "' does not copy by address");
  void *memory = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(transfer->allocate(handle_, static_cast<uint64_t>(bytes), &memory, sink.handle())));
  return HostMemory(shared_from_this(), memory, bytes);
}

Result<Stream> Device::create_stream() {
  tutti_stream *handle = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(api().stream->create(handle_, &handle, sink.handle())));
  return Stream(shared_from_this(), handle);
}

Result<Event> Device::create_event() {
  tutti_event *handle = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(api().stream->event_create(handle_, &handle, sink.handle())));
  return Event(shared_from_this(), handle);
}

Result<Event> Device::create_timed_event() {
  if (!backend_->has_timed_events())
    return base::unimplemented("backend '", backend_->name(), "' does not support timed events");
  tutti_event *handle = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(api().stream->event_create_timed(handle_, &handle, sink.handle())));
  return Event(shared_from_this(), handle);
}

}  // namespace tutti::impl::backend
