// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/runtime/gpu_topology.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu {

using base::Result;

Result<GpuPlace> place_of(int32_t gpu, const std::string &pci_devices) {
  std::array<char, 64> address{};
  TUTTI_TRY(status_of(gpuDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), gpu),
                      "querying the address of a GPU"));
  GpuPlace place;
  place.pci = address.data();
  // The system writes hexadecimal digits small.
  std::ranges::transform(place.pci, place.pci.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file(pci_devices + "/" + place.pci + "/numa_node");
  if (!(file >> place.numa_node)) place.numa_node = -1;
  return place;
}

Result<GpuLink> link_between(int32_t gpu, int32_t other) {
  constexpr const char *doing = "querying which GPUs reach each other";
  int reaches = 0, rank = 0, has_atomics = 0;
  TUTTI_TRY(status_of(gpuDeviceCanAccessPeer(&reaches, gpu, other), doing));
  if (reaches == 0) return GpuLink();
  TUTTI_TRY(status_of(gpuDeviceGetP2PAttribute(&rank, gpuDevP2PAttrPerformanceRank, gpu, other), doing));
  TUTTI_TRY(status_of(gpuDeviceGetP2PAttribute(&has_atomics, gpuDevP2PAttrNativeAtomicSupported, gpu, other), doing));
  return GpuLink{.reaches = true, .rank = rank, .has_atomics = has_atomics != 0};
}

}  // namespace tutti::impl::backend::gpu
