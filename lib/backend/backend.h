// SPDX-License-Identifier: Apache-2.0
//
// A backend and its devices as upper floors see them: C++ objects over the C tables of <tutti/plugin/backend.h>, the
// same whether the backend is linked in or was loaded as a plug-in. Nothing above names an implementation; it asks
// capabilities.
//
//   TUTTI_ASSIGN(BackendRef backend, Backend::create(tutti_backend_reference_entry, "{\"logical_devices\": 2}", {}));
//   TUTTI_ASSIGN(DeviceRef device, backend->open_device(0));
//   TUTTI_ASSIGN(Buffer buffer, device->allocate(1 << 20));
//   TUTTI_ASSIGN(Stream stream, device->create_stream());
//   TUTTI_ASSIGN(ExecutableRef executable, Executable::compile(*device, request));    // executable.h
//
// Ownership: every object keeps what it came from alive (Program → Executable → Device → Backend), so any order of
// release is legal. Threads: Backend, Device and Executable may be used from any thread; a Buffer, Stream, Event or
// Program by one thread at a time.
#ifndef TUTTI_BACKEND_BACKEND_H_
#define TUTTI_BACKEND_BACKEND_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/host_services.h"
#include "backend/memory.h"
#include "base/json.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend {

class Backend;
class Device;
using BackendRef = std::shared_ptr<Backend>;
using DeviceRef = std::shared_ptr<Device>;

/// Of a device's connection to one whose memory it reads.
struct DeviceLink {
  std::string device;        ///< the other's name
  int32_t rank = 0;          ///< 0 for the fastest kind of connection in the machine, more for slower ones
  bool has_atomics = false;  ///< do atomic operations of all kinds work across it?
};

/// What a device says of itself.
struct DeviceDescription {
  std::string name;  ///< "cpu:0"
  std::string kind;  ///< devices of equal kind run each other's executables
  int64_t memory_bytes = 0;
  std::string description;
  std::vector<std::string> reaches;  ///< names of devices whose memory it reads without the host
  std::string memory;                ///< the name of its memory: devices with equal ones share it
  std::vector<DeviceLink> links;     ///< to those on other silicon; empty where nothing is known of it
  std::string pci;                   ///< its address on the bus, "" = none, or not known
  int64_t numa_node = -1;            ///< whose memory and cores are nearest; -1 = not known
  bool only_compiles = false;        ///< it is not here: programs are compiled for it, and none runs
};

/// The library's own build id: what an in-tree plug-in must have been built with.
const char *build_id();

/// One instance of a backend. Immutable after create.
class Backend : public std::enable_shared_from_this<Backend> {
 public:
  /// Checks the entry's table and makes an instance. An error is one sentence that says why the backend cannot be used.
  /// `build_id`: what api->build_id must be, unless that is "" (a backend from outside the tree); "" accepts any.
  static base::Result<BackendRef> create(tutti_backend_entry_function entry, std::string_view options_json,
                                         HostOptions host, std::string_view build_id = "");
  ~Backend();

  const std::string &name() const { return name_; }
  std::string version() const { return api_->version; }

  /// Capabilities.
  bool lowers_collectives() const { return (api_->capabilities & TUTTI_BACKEND_LOWERS_COLLECTIVES) != 0; }
  bool has_host_memory() const { return (api_->capabilities & TUTTI_BACKEND_HOST_MEMORY) != 0; }
  bool runs_regions() const { return (api_->capabilities & TUTTI_BACKEND_REGIONS) != 0; }
  bool rounds_freely() const { return (api_->capabilities & TUTTI_BACKEND_ROUNDS_FREELY) != 0; }
  bool proposes_layouts() const { return api_->layout != nullptr; }
  /// Streams copy by address, and devices have host memory for it (Stream::read, Device::allocate_host).
  bool copies_by_address() const { return transfer() != nullptr; }
  /// There are events with times (Device::create_timed_event).
  bool has_timed_events() const;
  /// What is issued on streams can be recorded and done again (Recording).
  bool records_streams() const;
  /// Streams can wait for the host (StreamHold).
  bool holds_streams() const;

  int32_t device_count() const { return api_->device->count(instance_); }
  base::Result<DeviceDescription> describe_device(int32_t index) const;
  /// The libraries that it makes use of, by name: a version, or "is missing: ..." with one sentence. They are opened
  /// now at the latest; no device is. Empty where it tells of none.
  base::Result<base::Json> describe_libraries() const;
  base::Result<DeviceRef> open_device(int32_t index, std::string_view options_json = "{}");

  /// Copies between canonical row-major bytes and a layout of this backend. Layout "" is a plain copy.
  base::Status pack(std::string_view layout, tensor::DType dtype, const std::vector<int64_t> &dims,
                    const void *canonical, void *storage, int64_t storage_bytes) const;
  base::Status unpack(std::string_view layout, tensor::DType dtype, const std::vector<int64_t> &dims,
                      const void *storage, int64_t storage_bytes, void *canonical) const;

  const tutti_backend_api &api() const { return *api_; }
  /// Null when the backend has none.
  const tutti_transfer_table *transfer() const;
  /// Null when the backend does not connect its devices (clique.h).
  const tutti_collective_table *collective() const;
  /// Bytes the instance holds of the host's memory.
  int64_t bytes_in_use() const { return host_.bytes_in_use(); }
  /// Null = no limit.
  const MemoryBudget *memory_budget() const { return host_.memory_budget(); }
  /// Counts memory of devices against the budget; false when it does not fit. A backend of host memory asks the host
  /// for it, and it is counted there.
  bool take_device_memory(int64_t bytes) { return has_host_memory() || host_.take_device_memory(bytes); }
  void give_back_device_memory(int64_t bytes) {
    if (!has_host_memory()) host_.give_back_device_memory(bytes);
  }

 private:
  Backend(const tutti_backend_api *api, HostOptions host);

  const tutti_backend_api *api_;
  std::string name_;
  HostServices host_;
  tutti_backend *instance_ = nullptr;
};

/// One open device. Immutable after open.
class Device : public std::enable_shared_from_this<Device> {
 public:
  ~Device();

  const DeviceDescription &description() const { return description_; }
  const std::string &name() const { return description_.name; }
  int32_t index() const { return index_; }
  Backend &backend() const { return *backend_; }
  const tutti_backend_api &api() const { return backend_->api(); }
  tutti_device *handle() const { return handle_; }

  /// Memory of the device; contents undefined. `bytes` may be 0. RESOURCE_EXHAUSTED when there is none or the memory
  /// budget is used up.
  base::Result<Buffer> allocate(int64_t bytes, int64_t alignment = 64);
  /// Bytes of its memory that may be allocated now, whatever the memory budget says; INT64_MAX where there is no limit.
  /// Not for hot loops.
  base::Result<int64_t> available_bytes() const;
  /// As allocate(), of memory that connected devices may read from each other, where there is such (backend/clique.h).
  base::Result<Buffer> allocate_shared(int64_t bytes, int64_t alignment = 64);
  /// Memory of the host for copies to and from the device. UNIMPLEMENTED unless the backend copies by address.
  base::Result<HostMemory> allocate_host(int64_t bytes);
  base::Result<Stream> create_stream();
  base::Result<Event> create_event();
  /// One that knows when it is reached. UNIMPLEMENTED unless the backend has them.
  base::Result<Event> create_timed_event();

 private:
  friend class Backend;
  Device(BackendRef backend, int32_t index, DeviceDescription description, tutti_device *handle);
  base::Result<Buffer> allocate_by(decltype(tutti_buffer_table::allocate) function, int64_t bytes, int64_t alignment);

  BackendRef backend_;
  int32_t index_;
  DeviceDescription description_;
  tutti_device *handle_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_BACKEND_H_
