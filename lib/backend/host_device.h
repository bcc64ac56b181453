// SPDX-License-Identifier: Apache-2.0
//
// The plug-in's side of devices, memory and streams for backends that compute on the host's processors (reference,
// cpu): logical devices in any number, host memory, work done at once. Such a backend makes a HostBackend in its
// `create` and puts the three tables below into its own.
//
//   int32_t create(const tutti_backend_host *host, const char *options, tutti_backend **out, tutti_error_sink *sink) {
//     return HostBackend::create(host, "reference", options, 1, out, sink);
//   }
//
// Threads: as <tutti/plugin/backend.h> says.
#ifndef TUTTI_BACKEND_HOST_DEVICE_H_
#define TUTTI_BACKEND_HOST_DEVICE_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <string>

namespace tutti::impl::backend {

/// What a tutti_backend handle of such a backend points to.
struct HostBackend {
  const tutti_backend_host *host = nullptr;
  std::string name;
  int32_t logical_devices = 1;
  std::string plan_cache;  ///< where times of kernels are kept, for backends that do; "" = the usual place

  /// Options: "logical_devices" (1 to 1024; 0 or absent = `default_devices`), "plan_cache" (an absolute path or "off").
  static int32_t create(const tutti_backend_host *host, const char *name, const char *options_json,
                        int32_t default_devices, tutti_backend **backend, tutti_error_sink *sink);
  static void destroy(tutti_backend *backend);
  static HostBackend &of(tutti_backend *handle) { return *reinterpret_cast<HostBackend *>(handle); }
};

/// What a tutti_device handle points to.
struct HostDevice {
  HostBackend *backend = nullptr;
  int32_t index = 0;

  static HostDevice &of(tutti_device *handle) { return *reinterpret_cast<HostDevice *>(handle); }
  std::string name() const { return backend->name + ":" + std::to_string(index); }
};

/// The tables, constant for the life of the process. Stream and event functions return at once.
const tutti_device_table *host_device_table();
const tutti_buffer_table *host_buffer_table();
const tutti_stream_table *host_stream_table();

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_HOST_DEVICE_H_
