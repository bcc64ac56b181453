// SPDX-License-Identifier: Apache-2.0
//
// One run of a program over rows in memory of the host, whatever memory the device has: where it cannot reach the
// host's, its inputs are copied to memory of the device, and its outputs back. That memory grows to the largest need
// and is kept. For a program of one segment; belongs to the device's thread. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_DEVICE_PORTS_H_
#define TUTTI_DISTRIBUTE_DEVICE_PORTS_H_

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"

namespace tutti::impl::distribute {

class DevicePorts {
 public:
  explicit DevicePorts(backend::DeviceRef device) : device_(std::move(device)) {}

  /// Where the inputs of a program lie.
  enum class Inputs : uint8_t { in_host_memory, on_device };

  /// Runs and waits. `inputs` and `outputs`: memory of the host, in the order of the program's description.
  base::Status run(backend::Program &program, const std::vector<const void *> &inputs,
                   const std::vector<void *> &outputs, const backend::RunScalars &scalars, backend::Stream &stream,
                   Inputs place = Inputs::in_host_memory);

 private:
  /// Device pointers of ports that have been given memory.
  base::Result<std::vector<void *>> make_room(const std::vector<backend::PortDescription> &ports,
                                              std::vector<backend::Buffer> &buffers);

  const backend::DeviceRef device_;
  std::vector<backend::Buffer> inputs_, outputs_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_DEVICE_PORTS_H_
