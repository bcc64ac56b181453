// SPDX-License-Identifier: Apache-2.0
#include "backend/host_device.h"

#include <cstring>
#include <memory>

#include "backend/plugin_side.h"
#include "base/json.h"

namespace tutti::impl::backend {

using base::Json;
using base::JsonObject;
using base::JsonReader;
using base::Status;

namespace {

constexpr int32_t kMostDevices = 1024;

// ---- devices ----

int32_t device_count(tutti_backend *backend) { return HostBackend::of(backend).logical_devices; }

int32_t device_describe(tutti_backend *backend, int32_t index, tutti_text_writer write, void *user,
                        tutti_error_sink *sink) {
  const HostBackend &self = HostBackend::of(backend);
  return guarded(self.host, sink, [&]() -> Status {
    const HostDevice device{&HostBackend::of(backend), index};
    write_text(write, user,
               Json(JsonObject{{"name", device.name()},
                               {"kind", self.name},
                               {"memory_bytes", 0},
                               {"description", "logical device on the host's processors"}})
                   .dump());
    return Status();
  });
}

int32_t device_open(tutti_backend *backend, int32_t index, const char *options_json, tutti_device **device,
                    tutti_error_sink *sink) {
  HostBackend &self = HostBackend::of(backend);
  return guarded(self.host, sink, [&]() -> Status {
    if (index < 0 || index >= self.logical_devices)
      return base::not_found("device ", self.name, ":", index, ": there are ", self.logical_devices);
    TUTTI_ASSIGN(const Json options, Json::parse(options_json));
    TUTTI_TRY(JsonReader(options, "device options").only_keys({}));
    *device = reinterpret_cast<tutti_device *>(new HostDevice{&self, index});
    return Status();
  });
}

void device_close(tutti_device *device) { delete reinterpret_cast<HostDevice *>(device); }

// ---- memory ----

struct HostBuffer {
  const tutti_backend_host *host;
  char *memory;
  uint64_t bytes;
};

HostBuffer &buffer_of(tutti_device_buffer *handle) { return *reinterpret_cast<HostBuffer *>(handle); }

int32_t buffer_allocate(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                        tutti_error_sink *sink) {
  const tutti_backend_host *host = HostDevice::of(device).backend->host;
  return guarded(host, sink, [&]() -> Status {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096)
      return base::invalid_argument("alignment ", alignment, " is not a power of two up to 4096");
    auto made = std::make_unique<HostBuffer>(HostBuffer{host, nullptr, bytes});
    made->memory = static_cast<char *>(host->allocate(host->user, bytes, alignment));
    if (made->memory == nullptr)
      return base::resource_exhausted("device ", HostDevice::of(device).name(), ": cannot allocate ", bytes, " bytes");
    *buffer = reinterpret_cast<tutti_device_buffer *>(made.release());
    return Status();
  });
}

void buffer_release(tutti_device_buffer *buffer) {
  if (buffer == nullptr) return;
  const HostBuffer &self = buffer_of(buffer);
  self.host->release(self.host->user, self.memory, self.bytes);
  delete &self;
}

void *buffer_pointer(tutti_device_buffer *buffer) { return buffer_of(buffer).memory; }

int32_t buffer_read(tutti_device_buffer *buffer, uint64_t offset, void *destination, uint64_t bytes, tutti_stream *,
                    tutti_error_sink *) {
  if (bytes != 0) std::memcpy(destination, buffer_of(buffer).memory + offset, bytes);
  return 0;
}

int32_t buffer_write(tutti_device_buffer *buffer, uint64_t offset, const void *source, uint64_t bytes, tutti_stream *,
                     tutti_error_sink *) {
  if (bytes != 0) std::memcpy(buffer_of(buffer).memory + offset, source, bytes);
  return 0;
}

int32_t buffer_fill_zero(tutti_device_buffer *buffer, uint64_t offset, uint64_t bytes, tutti_stream *,
                         tutti_error_sink *) {
  if (bytes != 0) std::memset(buffer_of(buffer).memory + offset, 0, bytes);
  return 0;
}

// ---- streams and events: real objects around work that is done at once ----

struct HostStream {
  HostDevice *device;
};
struct HostEvent {
  HostDevice *device;
};

int32_t stream_create(tutti_device *device, tutti_stream **stream, tutti_error_sink *sink) {
  return guarded(HostDevice::of(device).backend->host, sink, [&]() -> Status {
    *stream = reinterpret_cast<tutti_stream *>(new HostStream{&HostDevice::of(device)});
    return Status();
  });
}

void stream_release(tutti_stream *stream) { delete reinterpret_cast<HostStream *>(stream); }
int32_t stream_synchronize(tutti_stream *, tutti_error_sink *) { return 0; }
int32_t stream_wait_event(tutti_stream *, tutti_event *, tutti_error_sink *) { return 0; }

int32_t event_create(tutti_device *device, tutti_event **event, tutti_error_sink *sink) {
  return guarded(HostDevice::of(device).backend->host, sink, [&]() -> Status {
    *event = reinterpret_cast<tutti_event *>(new HostEvent{&HostDevice::of(device)});
    return Status();
  });
}

void event_release(tutti_event *event) { delete reinterpret_cast<HostEvent *>(event); }
int32_t event_record(tutti_event *, tutti_stream *, tutti_error_sink *) { return 0; }
int32_t event_synchronize(tutti_event *, tutti_error_sink *) { return 0; }
int32_t event_is_done(tutti_event *) { return 1; }

const tutti_device_table kDeviceTable = {
    sizeof(tutti_device_table), device_count, device_describe, device_open, device_close, nullptr, nullptr};
const tutti_buffer_table kBufferTable = {sizeof(tutti_buffer_table),
                                         buffer_allocate,
                                         buffer_release,
                                         buffer_pointer,
                                         buffer_pointer,
                                         buffer_read,
                                         buffer_write,
                                         buffer_fill_zero,
                                         nullptr};
const tutti_stream_table kStreamTable = {sizeof(tutti_stream_table),
                                         stream_create,
                                         stream_release,
                                         stream_synchronize,
                                         stream_wait_event,
                                         event_create,
                                         event_release,
                                         event_record,
                                         event_synchronize,
                                         event_is_done,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr,
                                         nullptr};

}  // namespace

int32_t HostBackend::create(const tutti_backend_host *host, const char *name, const char *options_json,
                            int32_t default_devices, tutti_backend **backend, tutti_error_sink *sink) {
  return guarded(host, sink, [&]() -> Status {
    TUTTI_ASSIGN(const Json json, Json::parse(options_json));
    const JsonReader options(json, "backend options");
    TUTTI_TRY(options.only_keys({"logical_devices", "plan_cache"}));
    TUTTI_ASSIGN(const int64_t count, options.get_integer("logical_devices", 0));
    if (count < 0 || count > kMostDevices)
      return base::invalid_argument("backend ", name, ": logical_devices is ", count, ", expected 0 to ", kMostDevices);
    TUTTI_ASSIGN(std::string plan_cache, options.get_string("plan_cache", ""));
    if (!plan_cache.empty() && plan_cache != "off" && plan_cache.front() != '/')
      return base::invalid_argument("backend ", name, ": plan_cache is '", plan_cache,
                                    "', expected an absolute path or 'off'");
    auto made = std::make_unique<HostBackend>();
    made->host = host;
    made->name = name;
    made->plan_cache = std::move(plan_cache);
    made->logical_devices = count == 0 ? default_devices : static_cast<int32_t>(count);
    *backend = reinterpret_cast<tutti_backend *>(made.release());
    return Status();
  });
}

void HostBackend::destroy(tutti_backend *backend) { delete reinterpret_cast<HostBackend *>(backend); }

const tutti_device_table *host_device_table() { return &kDeviceTable; }
const tutti_buffer_table *host_buffer_table() { return &kBufferTable; }
const tutti_stream_table *host_stream_table() { return &kStreamTable; }

}  // namespace tutti::impl::backend
