// SPDX-License-Identifier: Apache-2.0
#include "backend/clique.h"

#include <cstddef>

#include "base/json.h"

namespace tutti::impl::backend {

using base::Result;
using base::Status;

namespace {

std::vector<tutti_device *> handles_of(std::span<const DeviceRef> devices) {
  std::vector<tutti_device *> handles;
  for (const DeviceRef &device : devices)
    handles.push_back(device->handle());
  return handles;
}

int32_t flags_of(const CliqueOptions &options) { return options.repeatable ? TUTTI_CLIQUE_REPEATABLE : 0; }

/// Tables of older plug-ins end before.
bool joins_processes(const tutti_collective_table &table) {
  return table.struct_size >= offsetof(tutti_collective_table, join) + sizeof(void *) && table.describe != nullptr &&
         table.create_id != nullptr && table.join != nullptr;
}

void take_text(void *user, const char *text, uint64_t length) {
  static_cast<std::string *>(user)->assign(text, static_cast<size_t>(length));
}

}  // namespace

Status Clique::check(std::span<const DeviceRef> devices, const CliqueOptions &options) {
  if (devices.empty()) return base::invalid_argument("no devices to connect");
  Backend &backend = devices.front()->backend();
  if (backend.collective() == nullptr)
    return base::unimplemented("backend '", backend.name(), "' cannot connect its devices");
  for (const DeviceRef &device : devices) {
    if (&device->backend() != &backend)
      return base::unimplemented("devices ", devices.front()->name(), " and ", device->name(),
                                 " belong to different backends");
  }
  const std::vector<tutti_device *> handles = handles_of(devices);
  ErrorSink sink;
  return sink.take(backend.collective()->check(handles.data(), static_cast<int32_t>(handles.size()), flags_of(options),
                                               sink.handle()));
}

Result<std::unique_ptr<Clique>> Clique::connect(std::span<const DeviceRef> devices, const CliqueOptions &options,
                                                int64_t timeout_ms) {
  TUTTI_TRY(check(devices, options));
  const tutti_collective_table *const table = devices.front()->backend().collective();
  const std::vector<tutti_device *> handles = handles_of(devices);
  tutti_clique *handle = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(table->connect(handles.data(), static_cast<int32_t>(handles.size()), flags_of(options),
                                     timeout_ms, &handle, sink.handle())));
  return std::unique_ptr<Clique>(new Clique(devices, table, handle));
}

Result<CliqueDescription> Clique::describe(std::span<const DeviceRef> devices, const CliqueOptions &options) {
  TUTTI_TRY(check(devices, options));
  const Backend &backend = devices.front()->backend();
  const tutti_collective_table &table = *backend.collective();
  if (!joins_processes(table)) {
    return base::unimplemented("the plug-in of backend '", backend.name(),
                               "' is too old: it connects devices of one process only");
  }
  const std::vector<tutti_device *> handles = handles_of(devices);
  std::string text;
  ErrorSink sink;
  TUTTI_TRY(sink.take(table.describe(handles.data(), static_cast<int32_t>(handles.size()), flags_of(options), take_text,
                                     &text, sink.handle())));
  TUTTI_ASSIGN(const base::Json json, base::Json::parse(text));
  const base::JsonReader reader(json, "clique");
  CliqueDescription description;
  TUTTI_ASSIGN(description.library, reader.get_string("library"));
  TUTTI_ASSIGN(const base::JsonReader names, reader.get("devices"));
  TUTTI_ASSIGN(description.devices, names.as_strings());
  if (description.devices.size() == devices.size()) return description;
  return base::internal_error("backend '", backend.name(), "' describes ", description.devices.size(), " of ",
                              devices.size(), " devices");
}

Result<std::string> Clique::create_id(Device &device) {
  std::string text;
  ErrorSink sink;
  TUTTI_TRY(sink.take(device.backend().collective()->create_id(device.handle(), take_text, &text, sink.handle())));
  return text;
}

Result<std::unique_ptr<Clique>> Clique::join(std::span<const DeviceRef> devices, const CliqueOptions &options,
                                             const CliquePlace &place) {
  const tutti_collective_table *const table = devices.front()->backend().collective();
  const std::vector<tutti_device *> handles = handles_of(devices);
  const tutti_clique_request request = {.struct_size = sizeof(tutti_clique_request),
                                        .devices = handles.data(),
                                        .count = static_cast<int32_t>(handles.size()),
                                        .flags = flags_of(options),
                                        .first_rank = place.first_rank,
                                        .rank_count = place.rank_count,
                                        .id = place.id.c_str()};
  tutti_clique *handle = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(table->join(&request, &handle, sink.handle())));
  return std::unique_ptr<Clique>(new Clique(devices, table, handle));
}

Clique::~Clique() { table_->release(handle_); }

Status Clique::enqueue(int32_t rank, const tutti_collective &operation, Stream &stream) {
  ErrorSink sink;
  return sink.take(table_->enqueue(handle_, rank, &operation, stream.handle(), sink.handle()));
}

bool Clique::register_memory(int32_t rank, void *memory, int64_t bytes) {
  return registers_memory() && table_->register_memory(handle_, rank, memory, static_cast<uint64_t>(bytes)) != 0;
}

Status Clique::register_windows(std::span<void *const> memory, int64_t bytes) {
  if (table_->struct_size < offsetof(tutti_collective_table, register_windows) + sizeof(void *) ||
      table_->register_windows == nullptr)
    return base::unimplemented("the backend has no windows");
  ErrorSink sink;
  return sink.take(table_->register_windows(handle_, memory.data(), static_cast<uint64_t>(bytes), sink.handle()));
}

void Clique::deregister_memory(int32_t rank) {
  if (registers_memory()) table_->deregister_memory(handle_, rank);
}

/// Tables of older plug-ins end before.
bool Clique::registers_memory() const {
  return table_->struct_size >= offsetof(tutti_collective_table, deregister_memory) + sizeof(void *) &&
         table_->register_memory != nullptr && table_->deregister_memory != nullptr;
}

Result<bool> Clique::poll(int32_t rank) {
  int32_t is_enqueued = 0;
  ErrorSink sink;
  TUTTI_TRY(sink.take(table_->poll(handle_, rank, &is_enqueued, sink.handle())));
  return is_enqueued != 0;
}

Status Clique::check_recording() {
  const bool is_known = table_->struct_size >= offsetof(tutti_collective_table, record_check) + sizeof(void *) &&
                        table_->record_check != nullptr;
  if (!is_known || !devices_.front()->backend().records_streams())
    return base::unimplemented("backend '", devices_.front()->backend().name(),
                               "' does not record operations of devices");
  ErrorSink sink;
  return sink.take(table_->record_check(handle_, sink.handle()));
}

}  // namespace tutti::impl::backend
