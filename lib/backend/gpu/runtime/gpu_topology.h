// SPDX-License-Identifier: Apache-2.0
//
// Where GPUs are in the machine, and how they are connected with each other.
//
// Threads: any.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_GPU_TOPOLOGY_H_
#define TUTTI_BACKEND_GPU_RUNTIME_GPU_TOPOLOGY_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

struct GpuPlace {
  std::string pci;         ///< its address: "0000:17:00.0"
  int32_t numa_node = -1;  ///< whose memory and cores are nearest; -1: the system does not tell, or has but one
};
/// `pci_devices`: the system's folder of what is on the bus, /sys/bus/pci/devices.
base::Result<GpuPlace> place_of(int32_t gpu, const std::string &pci_devices);

/// From a GPU to another; the rest says nothing where it does not reach that.
struct GpuLink {
  bool reaches = false;      ///< does it read the other's memory without the host?
  int32_t rank = 0;          ///< 0 for the fastest kind of connection, more for slower ones
  bool has_atomics = false;  ///< do atomic operations of all kinds work across it?
};
base::Result<GpuLink> link_between(int32_t gpu, int32_t other);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_GPU_TOPOLOGY_H_
