// SPDX-License-Identifier: Apache-2.0
//
// A plug-in's client: its devices, buffers on them, compiled programs. What it hands out is let go of by these objects,
// which keep the client.
//
// Threads: a client and an executable may be used from any thread; a buffer's users agree on who has it.
#ifndef TUTTI_BACKEND_PJRT_INTERFACE_PJRT_CLIENT_H_
#define TUTTI_BACKEND_PJRT_INTERFACE_PJRT_CLIENT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/plugin/backend.h>

#include "backend/pjrt/interface/pjrt_plugin.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::pjrt {

class Client;
using ClientRef = std::shared_ptr<const Client>;

/// A buffer on a device; empty, or the only owner. Move-only.
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(ClientRef client, abi::Buffer *buffer) : client_(std::move(client)), buffer_(buffer) {}
  DeviceArray(DeviceArray &&other) noexcept
      : client_(std::move(other.client_)), buffer_(std::exchange(other.buffer_, nullptr)) {}
  DeviceArray &operator=(DeviceArray &&other) noexcept;
  ~DeviceArray();

  abi::Buffer *get() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  ClientRef client_;
  abi::Buffer *buffer_ = nullptr;
};

/// What has begun on a device and ends some time. Move-only; it waits when it goes.
class Completion {
 public:
  Completion() = default;
  Completion(ClientRef client, abi::Event *event) : client_(std::move(client)), event_(event) {}
  Completion(Completion &&other) noexcept
      : client_(std::move(other.client_)), event_(std::exchange(other.event_, nullptr)) {}
  Completion &operator=(Completion &&other) noexcept;
  ~Completion() { (void)wait(); }

  /// The error of what it stands for; OK from then on.
  base::Status wait();
  bool is_ready() const;

 private:
  ClientRef client_;
  abi::Event *event_ = nullptr;
};

/// What a compiled program needs, as the plug-in counts it: bytes, and floating-point operations of a run; -1 = it does
/// not tell.
struct ProgramCost {
  int64_t code = -1, arguments = -1, results = -1, aliased = -1, temporary = -1;
  double operations = -1;
};

/// What one device runs a program with.
struct DeviceRun {
  /// Where an argument is donated it is gone afterwards, unless the run fails.
  std::vector<abi::Buffer *> arguments;
  /// A place for each result; the caller's to let go of.
  std::vector<abi::Buffer *> results;
  Completion done;
};

/// A program on one device or several, or compiled for devices that are not there. Immutable.
class LoadedProgram {
 public:
  /// Owns both; `loaded` is null where the program can only be asked about.
  LoadedProgram(ClientRef client, abi::LoadedExecutable *loaded, abi::Executable *executable)
      : client_(std::move(client)), loaded_(loaded), executable_(executable) {}
  LoadedProgram(const LoadedProgram &) = delete;
  ~LoadedProgram();

  /// Issues it once, on each device that it was compiled for. Programs of several devices are issued one
  /// at a time, so that all devices have them in the same order.
  base::Status execute(std::span<DeviceRun *const> runs) const;
  base::Status execute(DeviceRun &run) const {
    DeviceRun *const one = &run;
    return execute(std::span(&one, 1));
  }
  ProgramCost cost() const;

 private:
  ClientRef client_;
  abi::LoadedExecutable *loaded_;
  abi::Executable *executable_;
};

struct ClientOptions {
  /// Devices to compile for that are not here, as the plug-in names them ("v5e:2x4"): there is no memory of them, and
  /// nothing runs. Empty = the devices of this machine.
  std::string topology = {};
  /// Devices to make of the host's processors, where a plug-in does that; 0 = its own number.
  int64_t logical_devices = 0;
  /// After so long a device that has not finished is given up.
  std::chrono::nanoseconds longest_wait = std::chrono::minutes(10);
  /// What the processes of a job tell each other goes by way of it, where it has them; it outlives the client.
  const tutti_backend_host *host = nullptr;
};

class Client : public std::enable_shared_from_this<Client> {
 public:
  /// UNAVAILABLE where the plug-in finds no device, or knows no such topology.
  static base::Result<ClientRef> create(PluginRef plugin, const ClientOptions &options);
  ~Client();

  const Plugin &plugin() const { return *plugin_; }
  std::chrono::nanoseconds longest_wait() const { return longest_wait_; }
  /// Held while a program of several devices is issued.
  std::mutex &launch_mutex() const { return launch_mutex_; }
  /// "cpu", "tpu", "cuda"
  std::string platform() const;
  std::string platform_version() const;
  bool only_compiles() const { return topology_ != nullptr; }

  size_t device_count() const { return descriptions_.size(); }
  /// "TPU v5 lite"
  std::string device_kind(size_t device) const;
  std::string device_text(size_t device) const;
  /// Bytes of a device's memory and of those in use; -1 = not known.
  int64_t memory_limit(size_t device) const;
  int64_t memory_in_use(size_t device) const;

  /// Copies from the host, which may change the memory as soon as this returns.
  base::Result<DeviceArray> upload(size_t device, tensor::DType dtype, std::span<const int64_t> dims,
                                   const void *data) const;
  /// Copies to the host, row-major; the memory must stay until the completion has been waited for.
  base::Result<Completion> download(const DeviceArray &array, size_t rank, void *data, int64_t bytes) const;

  /// Compiles a module for these devices, in the order of its replicas.
  base::Result<std::shared_ptr<const LoadedProgram>> compile(std::string_view module,
                                                             std::span<const size_t> devices) const;

 private:
  Client(PluginRef plugin, std::chrono::nanoseconds longest_wait)
      : plugin_(std::move(plugin)), longest_wait_(longest_wait) {}
  base::Status open(const ClientOptions &options);
  base::Status open_topology(const std::string &name);
  base::Status read_ids();
  /// FAILED_PRECONDITION where there is no device.
  base::Status check_runs() const;
  std::string text_of(abi::Function function, void *object) const;
  bool memory_stats(size_t device, Call<abi::MemoryStats> &stats) const;

  const PluginRef plugin_;
  const std::chrono::nanoseconds longest_wait_;
  mutable std::mutex launch_mutex_;
  std::string topology_name_;
  abi::Client *client_ = nullptr;                 // of devices that are here, or
  abi::TopologyDescription *topology_ = nullptr;  // of those that are not
  std::vector<abi::Device *> devices_;
  std::vector<abi::DeviceDescription *> descriptions_;
  std::vector<int64_t> ids_;
};

/// The number of a type in the interface; 0 for bytes.
int32_t buffer_type(tensor::DType dtype);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_INTERFACE_PJRT_CLIENT_H_
