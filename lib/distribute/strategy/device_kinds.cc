// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/device_kinds.h"

#include <algorithm>

namespace tutti::impl::distribute {

DeviceKinds kinds_of(std::span<const backend::DeviceRef> devices) {
  DeviceKinds kinds;
  for (size_t d = 0; d < devices.size(); ++d) {
    const auto same = std::ranges::find_if(kinds.first_devices, [&](size_t first) {
      return &devices[first]->backend() == &devices[d]->backend() &&
             devices[first]->description().kind == devices[d]->description().kind;
    });
    kinds.of_device.push_back(static_cast<size_t>(same - kinds.first_devices.begin()));
    if (same == kinds.first_devices.end()) kinds.first_devices.push_back(d);
  }
  return kinds;
}

base::Status check_level(backend::Level level, const DeviceKinds &kinds, std::span<const backend::DeviceRef> devices) {
  if (level != backend::Level::invariant || kinds.count() == 1) return base::Status();
  return base::invalid_argument("determinism is invariant, and devices ", devices[kinds.first_devices[0]]->name(),
                                " and ", devices[kinds.first_devices[1]]->name(),
                                " round differently: set fast or repeatable, or give devices of one kind");
}

std::vector<std::string> names_of(std::span<const backend::DeviceRef> devices) {
  std::vector<std::string> names;
  for (const backend::DeviceRef &device : devices)
    names.push_back(device->name());
  return names;
}

std::string rounding_of(const backend::Device &device, backend::Level level) {
  const std::string &backend = device.backend().name();
  return level == backend::Level::invariant ? base::concat(backend, " ", device.description().kind) : backend;
}

}  // namespace tutti::impl::distribute
