// SPDX-License-Identifier: Apache-2.0
//
// Devices of one backend and of equal kind run each other's executables over one layout of state; others need their
// own. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_STRATEGY_DEVICE_KINDS_H_
#define TUTTI_DISTRIBUTE_STRATEGY_DEVICE_KINDS_H_

#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"

namespace tutti::impl::distribute {

struct DeviceKinds {
  std::vector<size_t> of_device;      ///< the kind of each device, counted in order of their first devices
  std::vector<size_t> first_devices;  ///< of each kind

  size_t count() const { return first_devices.size(); }
};
DeviceKinds kinds_of(std::span<const backend::DeviceRef> devices);

/// INVALID_ARGUMENT for level invariant on devices of several kinds, which round differently.
base::Status check_level(backend::Level level, const DeviceKinds &kinds, std::span<const backend::DeviceRef> devices);

/// As "cpu:0".
std::vector<std::string> names_of(std::span<const backend::DeviceRef> devices);

/// What devices have in common that round alike, for workers to compare: the backend, and at level invariant the kind.
std::string rounding_of(const backend::Device &device, backend::Level level);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_DEVICE_KINDS_H_
