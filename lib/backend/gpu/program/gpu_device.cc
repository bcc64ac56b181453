// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/program/gpu_device.h"

#include <algorithm>
#include <map>

#include "backend/gpu/device/device_control.h"
#include "backend/gpu/generated/platform.h"
#include "backend/gpu/program/gpu_recording.h"
#include "backend/gpu/runtime/collective_table.h"
#include "backend/gpu/runtime/gpu_topology.h"
#include "backend/gpu/runtime/launch_gate.h"
#include "backend/gpu/runtime/ranges.h"
#include "backend/gpu/runtime/relaxed_capture.h"
#include "backend/plugin_side.h"
#include "base/json.h"

namespace tutti::impl::backend::gpu {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;

std::string GpuBackend::device_name(int32_t index) const { return base::concat(platform::name(), ":", index); }

int64_t GpuBackend::bytes_of(int32_t index, int64_t gpu_bytes) const {
  const int64_t share = shares.at(ordinals[static_cast<size_t>(index)]).limit;
  int64_t bytes = share > 0 ? share : gpu_bytes;
  if (memory_limit > 0) bytes = std::min(bytes, memory_limit);
  return bytes;
}

// ---- devices ----

namespace {

/// UNAVAILABLE where the current GPU, which is one of `kind`, runs nothing of what this build compiled.
Status check_code(int32_t ordinal, const std::string &kind) {
  const RelaxedCapture may_load;
  const gpuError_t error = look_for_code();
  if (error != gpuErrorNoKernelImage && error != gpuErrorInvalidDeviceFunction)
    return status_of(error, "loading kernels");
  (void)gpuGetLastError();  // it would be reported by the next launch
  return base::unavailable("GPU ", ordinal, " (", kind, ") is not supported by this plug-in, which was built for ",
                           platform::architectures());
}

}  // namespace

Result<std::unique_ptr<GpuDevice>> GpuDevice::open(GpuBackend &backend, int32_t index) {
  const BetweenLaunches section;
  auto device = std::make_unique<GpuDevice>();
  device->backend = &backend;
  device->index = index;
  device->ordinal = backend.ordinals[static_cast<size_t>(index)];
  device->memory = std::make_unique<GpuMemory>(
      device->name(),
      GpuMemory::Bounds{backend.memory_limit, &backend.shares.at(device->ordinal), backend.uses_host_memory},
      backend.host);
  TUTTI_TRY(device->make_current());
  TUTTI_TRY(status_of(gpuStreamCreateWithFlags(&device->copies, gpuStreamNonBlocking), "making a stream"));
  device->generator =
      std::make_unique<KernelGenerator>(device->ordinal, backend.generate_kernels, backend.cache_folder, backend.host);
  TUTTI_ASSIGN(const platform::DeviceFacts facts, platform::describe(device->ordinal));
  device->description = facts.description;
  device->multiplies_bf16 = facts.multiplies_bf16;
  device->multiplies_f16 = facts.multiplies_f16;
  const auto log = [host = backend.host](const std::string &line) { host->log(host->user, kWarning, line.c_str()); };
  TUTTI_ASSIGN(device->library,
               platform::open_library(device->ordinal, std::make_shared<const LibraryPlanCache>(
                                                           backend.cache_folder, device->description, log)));
  TUTTI_TRY(check_code(device->ordinal, facts.kind));
  return device;
}

GpuDevice::~GpuDevice() {
  const BetweenLaunches section;
  (void)make_current();
  library.reset();
  if (copies != nullptr) (void)gpuStreamDestroy(copies);
}

Status GpuDevice::make_current() const { return status_of(gpuSetDevice(ordinal), "choosing the device"); }

Result<void *> GpuDevice::allocate(int64_t bytes) {
  TUTTI_TRY(make_current());
  return memory->allocate(bytes);
}

Result<void *> GpuDevice::allocate_shared(int64_t bytes) {
  TUTTI_TRY(make_current());
  return memory->allocate_shared(bytes);
}

void GpuDevice::release(void *pointer, int64_t bytes) {
  (void)make_current();
  memory->release(pointer, bytes);
}

namespace {

int32_t device_count(tutti_backend *backend) { return static_cast<int32_t>(GpuBackend::of(backend).ordinals.size()); }

/// The other devices whose memory this one reads: names of all, and the links to those on other GPUs.
struct Reached {
  JsonArray names;
  JsonObject links;
};

Result<Reached> reached_by(const GpuBackend &backend, int32_t index) {
  const int32_t own = backend.ordinals[static_cast<size_t>(index)];
  std::map<int32_t, GpuLink> links;  // by GPU
  Reached reached;
  for (int32_t other = 0; static_cast<size_t>(other) < backend.ordinals.size(); ++other) {
    const int32_t gpu = backend.ordinals[static_cast<size_t>(other)];
    if (gpu == own && other != index) reached.names.push_back(backend.device_name(other));
    if (gpu == own) continue;
    if (!links.contains(gpu)) {
      TUTTI_ASSIGN(links[gpu], link_between(own, gpu));
    }
    const GpuLink &link = links[gpu];
    if (!link.reaches) continue;
    reached.names.push_back(backend.device_name(other));
    reached.links.emplace_back(backend.device_name(other),
                               JsonObject{{"rank", link.rank}, {"atomics", link.has_atomics}});
  }
  return reached;
}

int32_t device_describe(tutti_backend *backend, int32_t index, tutti_text_writer write, void *user,
                        tutti_error_sink *sink) {
  const GpuBackend &self = GpuBackend::of(backend);
  return guarded(self.host, sink, [&]() -> Status {
    TUTTI_ASSIGN(const platform::DeviceFacts facts, platform::describe(self.ordinals[static_cast<size_t>(index)]));
    TUTTI_ASSIGN(Reached reached, reached_by(self, index));
    TUTTI_ASSIGN(const GpuPlace place, place_of(self.ordinals[static_cast<size_t>(index)], "/sys/bus/pci/devices"));
    write_text(write, user,
               Json(JsonObject{{"name", self.device_name(index)},
                               {"kind", facts.kind},
                               {"memory_bytes", self.bytes_of(index, facts.memory_bytes)},
                               {"description", facts.description},
                               {"reaches", std::move(reached.names)},
                               {"links", std::move(reached.links)},
                               {"pci", place.pci},
                               {"numa_node", place.numa_node},
                               {"memory", base::concat("GPU ", self.ordinals[static_cast<size_t>(index)])}})
                   .dump());
    return Status();
  });
}

int32_t device_libraries(tutti_backend *backend, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  return guarded(GpuBackend::of(backend).host, sink, [&]() -> Status {
    JsonObject libraries;
    for (auto &[name, version] : platform::describe_libraries())
      libraries.emplace_back(name, std::move(version));
    auto [name, version] = describe_collective_library();
    libraries.emplace_back(name, std::move(version));
    libraries.emplace_back("NVTX", describe_ranges());
    write_text(write, user, Json(std::move(libraries)).dump());
    return Status();
  });
}

int32_t device_open(tutti_backend *backend, int32_t index, const char *options_json, tutti_device **device,
                    tutti_error_sink *sink) {
  GpuBackend &self = GpuBackend::of(backend);
  return guarded(self.host, sink, [&]() -> Status {
    if (index < 0 || static_cast<size_t>(index) >= self.ordinals.size())
      return base::not_found("device ", self.device_name(index), ": there are ", self.ordinals.size());
    TUTTI_ASSIGN(const Json options, Json::parse(options_json));
    TUTTI_TRY(JsonReader(options, "device options").only_keys({}));
    TUTTI_ASSIGN(std::unique_ptr<GpuDevice> made, GpuDevice::open(self, index));
    *device = reinterpret_cast<tutti_device *>(made.release());
    return Status();
  });
}

void device_close(tutti_device *device) { delete reinterpret_cast<GpuDevice *>(device); }

int64_t device_available_bytes(tutti_device *handle) {
  const GpuDevice &device = GpuDevice::of(handle);
  return device.make_current().ok() ? device.memory->available() : -1;
}

// ---- memory ----

struct GpuBuffer {
  GpuDevice *device;
  void *memory;
  int64_t allocated;
  char *first;
};

/// What runtimes align to by themselves.
constexpr uint64_t kRuntimeAlignment = 256;

GpuBuffer &buffer_of(tutti_device_buffer *handle) { return *reinterpret_cast<GpuBuffer *>(handle); }

int32_t make_buffer(tutti_device *handle, bool is_shared, uint64_t bytes, uint64_t alignment,
                    tutti_device_buffer **buffer, tutti_error_sink *sink) {
  GpuDevice &device = GpuDevice::of(handle);
  return guarded(device.host(), sink, [&]() -> Status {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096)
      return base::invalid_argument("alignment ", alignment, " is not a power of two up to 4096");
    const int64_t allocated = static_cast<int64_t>(bytes + (alignment > kRuntimeAlignment ? alignment : 0));
    auto made = std::make_unique<GpuBuffer>(GpuBuffer{&device, nullptr, allocated, nullptr});
    TUTTI_ASSIGN(made->memory, is_shared ? device.allocate_shared(allocated) : device.allocate(allocated));
    const auto address = reinterpret_cast<uintptr_t>(made->memory);
    made->first = reinterpret_cast<char *>((address + alignment - 1) / alignment * alignment);
    *buffer = reinterpret_cast<tutti_device_buffer *>(made.release());
    return Status();
  });
}

int32_t buffer_allocate(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                        tutti_error_sink *sink) {
  return make_buffer(device, false, bytes, alignment, buffer, sink);
}

int32_t buffer_allocate_shared(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                               tutti_error_sink *sink) {
  return make_buffer(device, true, bytes, alignment, buffer, sink);
}

void buffer_release(tutti_device_buffer *buffer) {
  if (buffer == nullptr) return;
  GpuBuffer &self = buffer_of(buffer);
  self.device->release(self.memory, self.allocated);
  delete &self;
}

void *buffer_device_pointer(tutti_device_buffer *buffer) { return buffer_of(buffer).first; }
void *buffer_host_pointer(tutti_device_buffer *) { return nullptr; }

/// Issues work on the caller's stream, or on the device's own and waits.
template <typename Issue>
int32_t on_stream(GpuDevice &device, tutti_stream *handle, tutti_error_sink *sink, Issue issue) {
  return guarded(device.host(), sink, [&]() -> Status {
    TUTTI_TRY(device.make_current());
    if (handle != nullptr) return status_of(issue(GpuStream::of(handle).stream), "copying");
    const std::lock_guard guard(device.copies_mutex);
    TUTTI_TRY(status_of(issue(device.copies), "copying"));
    return status_of(gpuStreamSynchronize(device.copies), "copying");
  });
}

int32_t buffer_read(tutti_device_buffer *buffer, uint64_t offset, void *destination, uint64_t bytes,
                    tutti_stream *stream, tutti_error_sink *sink) {
  if (bytes == 0) return 0;
  const GpuBuffer &self = buffer_of(buffer);
  return on_stream(*self.device, stream, sink, [&](gpuStream_t target) {
    return gpuMemcpyAsync(destination, self.first + offset, bytes, gpuMemcpyDeviceToHost, target);
  });
}

int32_t buffer_write(tutti_device_buffer *buffer, uint64_t offset, const void *source, uint64_t bytes,
                     tutti_stream *stream, tutti_error_sink *sink) {
  if (bytes == 0) return 0;
  const GpuBuffer &self = buffer_of(buffer);
  return on_stream(*self.device, stream, sink, [&](gpuStream_t target) {
    return gpuMemcpyAsync(self.first + offset, source, bytes, gpuMemcpyHostToDevice, target);
  });
}

int32_t buffer_fill_zero(tutti_device_buffer *buffer, uint64_t offset, uint64_t bytes, tutti_stream *stream,
                         tutti_error_sink *sink) {
  if (bytes == 0) return 0;
  const GpuBuffer &self = buffer_of(buffer);
  return on_stream(*self.device, stream, sink,
                   [&](gpuStream_t target) { return gpuMemsetAsync(self.first + offset, 0, bytes, target); });
}

// ---- copies by address ----

int32_t transfer_allocate(tutti_device *handle, uint64_t bytes, void **memory, tutti_error_sink *sink) {
  GpuDevice &device = GpuDevice::of(handle);
  return guarded(device.host(), sink, [&]() -> Status {
    TUTTI_TRY(device.make_current());
    void *made = nullptr;
    const BetweenLaunches section;
    const gpuError_t error = gpuHostAlloc(&made, std::max<uint64_t>(bytes, 1), gpuHostAllocCoherent);
    if (error == gpuErrorMemoryAllocation) {
      (void)gpuGetLastError();  // it would be reported by the next launch
      return base::resource_exhausted("device ", device.name(), " needs ", bytes,
                                      " bytes of page-locked host memory, which the system cannot provide");
    }
    TUTTI_TRY(status_of(error, "allocating host memory"));
    *memory = made;
    return Status();
  });
}

void transfer_release(tutti_device *handle, void *memory, uint64_t) {
  if (memory == nullptr) return;
  const BetweenLaunches section;
  (void)GpuDevice::of(handle).make_current();
  (void)gpuFreeHost(memory);
}

int32_t transfer_read(tutti_device *device, const void *source, void *destination, uint64_t bytes, tutti_stream *stream,
                      tutti_error_sink *sink) {
  if (bytes == 0) return 0;
  return on_stream(GpuDevice::of(device), stream, sink, [&](gpuStream_t target) {
    return gpuMemcpyAsync(destination, source, bytes, gpuMemcpyDeviceToHost, target);
  });
}

int32_t transfer_write(tutti_device *device, void *destination, const void *source, uint64_t bytes,
                       tutti_stream *stream, tutti_error_sink *sink) {
  if (bytes == 0) return 0;
  return on_stream(GpuDevice::of(device), stream, sink, [&](gpuStream_t target) {
    return gpuMemcpyAsync(destination, source, bytes, gpuMemcpyHostToDevice, target);
  });
}

// ---- streams and events ----

struct GpuEvent {
  GpuDevice *device = nullptr;
  gpuEvent_t event = nullptr;
  bool is_timed = false;
};

GpuEvent &event_of(tutti_event *handle) { return *reinterpret_cast<GpuEvent *>(handle); }

int32_t stream_create(tutti_device *handle, tutti_stream **stream, tutti_error_sink *sink) {
  GpuDevice &device = GpuDevice::of(handle);
  return guarded(device.host(), sink, [&]() -> Status {
    TUTTI_TRY(device.make_current());
    auto made = std::make_unique<GpuStream>();
    made->device = &device;
    made->faults.reserve(16);
    const BetweenLaunches section;
    TUTTI_TRY(status_of(gpuStreamCreateWithFlags(&made->stream, gpuStreamNonBlocking), "making a stream"));
    *stream = reinterpret_cast<tutti_stream *>(made.release());
    return Status();
  });
}

void stream_release(tutti_stream *stream) {
  if (stream == nullptr) return;
  GpuStream &self = GpuStream::of(stream);
  (void)self.device->make_current();
  (void)gpuStreamSynchronize(self.stream);  // faults are written until then
  const BetweenLaunches section;
  self.times.reset();
  (void)gpuStreamDestroy(self.stream);
  delete &self;
}

int32_t stream_synchronize(tutti_stream *stream, tutti_error_sink *sink) {
  GpuStream &self = GpuStream::of(stream);
  return guarded(self.device->host(), sink, [&] { return self.synchronize(); });
}

int32_t stream_has_failed(tutti_stream *stream) {
  return std::ranges::any_of(GpuStream::of(stream).faults, [](const auto &state) { return state->is_claimed(); });
}

int32_t stream_wait_event(tutti_stream *stream, tutti_event *event, tutti_error_sink *sink) {
  GpuStream &self = GpuStream::of(stream);
  return guarded(self.device->host(), sink, [&]() -> Status {
    TUTTI_TRY(self.device->make_current());
    return status_of(gpuStreamWaitEvent(self.stream, event_of(event).event, 0), "waiting for an event");
  });
}

int32_t make_event(tutti_device *handle, unsigned flags, tutti_event **event, tutti_error_sink *sink) {
  GpuDevice &device = GpuDevice::of(handle);
  return guarded(device.host(), sink, [&]() -> Status {
    TUTTI_TRY(device.make_current());
    auto made = std::make_unique<GpuEvent>();
    made->device = &device;
    made->is_timed = flags != gpuEventDisableTiming;
    TUTTI_TRY(status_of(gpuEventCreateWithFlags(&made->event, flags), "making an event"));
    *event = reinterpret_cast<tutti_event *>(made.release());
    return Status();
  });
}

int32_t event_create(tutti_device *device, tutti_event **event, tutti_error_sink *sink) {
  return make_event(device, gpuEventDisableTiming, event, sink);
}

int32_t event_create_timed(tutti_device *device, tutti_event **event, tutti_error_sink *sink) {
  return make_event(device, 0, event, sink);
}

void event_release(tutti_event *event) {
  if (event == nullptr) return;
  (void)event_of(event).device->make_current();
  (void)gpuEventDestroy(event_of(event).event);
  delete reinterpret_cast<GpuEvent *>(event);
}

int32_t event_record(tutti_event *event, tutti_stream *stream, tutti_error_sink *sink) {
  GpuStream &self = GpuStream::of(stream);
  const GpuEvent &recorded = event_of(event);
  return guarded(self.device->host(), sink, [&]() -> Status {
    TUTTI_TRY(self.device->make_current());
    if (!self.is_recording || !recorded.is_timed)
      return status_of(gpuEventRecord(recorded.event, self.stream), "recording an event");
    const gpuError_t error = gpuEventRecordWithFlags(recorded.event, self.stream, gpuEventRecordExternal);
    if (error == gpuErrorNotSupported) return base::unimplemented("events of recordings do not support timing");
    return status_of(error, "recording an event");
  });
}

int32_t event_synchronize(tutti_event *event, tutti_error_sink *sink) {
  const GpuEvent &self = event_of(event);
  return guarded(self.device->host(), sink, [&]() -> Status {
    TUTTI_TRY(self.device->make_current());
    return status_of(gpuEventSynchronize(self.event), "waiting for an event");
  });
}

/// What went wrong on the device comes from those who wait: there is nothing more to wait for.
int32_t event_is_done(tutti_event *event) {
  if (gpuEventQuery(event_of(event).event) != gpuErrorNotReady) return 1;
  (void)gpuGetLastError();  // a library that launches next would take it for its own
  return 0;
}

int32_t event_elapsed(tutti_event *begin, tutti_event *end, int64_t *nanoseconds, tutti_error_sink *sink) {
  const GpuEvent &first = event_of(begin);
  return guarded(first.device->host(), sink, [&]() -> Status {
    TUTTI_TRY(first.device->make_current());
    TUTTI_ASSIGN(*nanoseconds, nanoseconds_between(first.event, event_of(end).event));
    return Status();
  });
}

}  // namespace

const tutti_device_table kDeviceTable = {
    sizeof(tutti_device_table), device_count,    device_describe, device_open, device_close,
    device_available_bytes,     device_libraries};
const tutti_buffer_table kBufferTable = {
    sizeof(tutti_buffer_table), buffer_allocate, buffer_release, buffer_device_pointer,
    buffer_host_pointer,        buffer_read,     buffer_write,   buffer_fill_zero,
    buffer_allocate_shared};
const tutti_stream_table kStreamTable = {
    sizeof(tutti_stream_table), stream_create, stream_release,     stream_synchronize,
    stream_wait_event,          event_create,  event_release,      event_record,
    event_synchronize,          event_is_done, event_create_timed, event_elapsed,
    stream_has_failed,          record_begin,  record_end,         replay,
    recording_release,          hold};
const tutti_transfer_table kTransferTable = {sizeof(tutti_transfer_table), transfer_allocate, transfer_release,
                                             transfer_read, transfer_write};

// ---- faults ----

Result<std::shared_ptr<FaultState>> FaultState::create(std::vector<BoundedIntegers> bounds) {
  std::shared_ptr<FaultState> state(new FaultState(std::move(bounds)));
  void *memory = nullptr;
  const BetweenLaunches section;
  TUTTI_TRY(status_of(gpuHostAlloc(&memory, sizeof(FaultRecord), gpuHostAllocMapped), "allocating host memory"));
  state->record_ = new (memory) FaultRecord{};
  return state;
}

FaultState::~FaultState() {
  const BetweenLaunches section;
  (void)gpuFreeHost(record_);
}

bool FaultState::is_claimed() const {
  const volatile FaultRecord &record = *record_;
  return record.claimed != 0;
}

Status FaultState::take() {
  const volatile FaultRecord &record = *record_;
  if (record.fault == 0) return Status();
  const Status status =
      bounds_[static_cast<size_t>(record.fault - 1)].error(record.position, record.value, record.row_offset);
  *record_ = {};
  return status;
}

void GpuStream::note(const std::shared_ptr<FaultState> &state) {
  if (std::find(faults.begin(), faults.end(), state) == faults.end()) faults.push_back(state);
}

Result<DeviceTimes *> GpuStream::measured() {
  if (times == nullptr) {
    TUTTI_ASSIGN(times, DeviceTimes::create(device->host(), device->name(), stream));
  }
  return times.get();
}

Status GpuStream::synchronize() {
  TUTTI_TRY(device->make_current());
  TUTTI_TRY(status_of(gpuStreamSynchronize(stream), "waiting for the device"));
  if (times != nullptr) TUTTI_TRY(times->tell());
  Status first;
  for (const std::shared_ptr<FaultState> &state : faults) {
    const Status status = state->take();
    if (first.ok()) first = status;
  }
  faults.clear();
  return first;
}

}  // namespace tutti::impl::backend::gpu
