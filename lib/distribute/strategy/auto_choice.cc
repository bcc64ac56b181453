// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/auto_choice.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Result;

namespace {

constexpr int64_t kLeastRows = 32;  // of a replica on processors

/// Of the first backend that has such.
std::vector<DeviceChoice> devices_with_memory(std::span<const DeviceChoice> devices, bool is_host_memory) {
  std::vector<DeviceChoice> found;
  std::ranges::copy_if(devices, std::back_inserter(found), [&](const DeviceChoice &device) {
    return device.backend->has_host_memory() == is_host_memory &&
           (found.empty() || found.front().backend == device.backend);
  });
  return found;
}

std::string rows_text(const AutoRequest &request) {
  return request.batch_size > 0 ? base::concat("; batches have ", request.batch_size, " rows") : std::string();
}

/// The largest number up to `most` that divides the logical replicas.
int64_t dividing(int64_t most, const AutoRequest &request) {
  if (request.logical_replicas <= 0) return most;
  while (request.logical_replicas % most != 0)
    --most;
  return most;
}

AutoChoice of_accelerators(std::vector<DeviceChoice> devices, const AutoRequest &request) {
  AutoChoice choice;
  const auto all = static_cast<int64_t>(devices.size());
  const int64_t used = dividing(request.batch_size > 0 ? std::min(all, request.batch_size) : all, request);
  devices.resize(static_cast<size_t>(used));
  choice.devices = std::move(devices);
  choice.reason = base::concat(used, " of ", all, " devices with memory of their own", rows_text(request));
  return choice;
}

AutoChoice of_processors(std::vector<DeviceChoice> devices, const AutoRequest &request) {
  AutoChoice choice;
  const int64_t threads = std::max(request.threads, 1);
  const int64_t most = std::min(static_cast<int64_t>(devices.size()), threads);
  const int64_t fed = request.batch_size > 0 ? std::clamp<int64_t>(request.batch_size / kLeastRows, 1, most) : most;
  const int64_t used = dividing(fed, request);
  devices.resize(static_cast<size_t>(used));
  choice.devices = std::move(devices);
  choice.threads_per_replica = static_cast<int32_t>(threads / used);
  choice.reason = base::concat(used, used == 1 ? " replica" : " replicas", " on processors, ", threads,
                               " threads in all", rows_text(request));
  return choice;
}

}  // namespace

std::vector<DeviceChoice> devices_with_own_memory(std::span<const DeviceChoice> devices) {
  return devices_with_memory(devices, false);
}

Result<AutoChoice> choose_devices(std::span<const DeviceChoice> devices, const AutoRequest &request) {
  if (std::vector<DeviceChoice> found = devices_with_own_memory(devices); !found.empty())
    return of_accelerators(std::move(found), request);
  if (std::vector<DeviceChoice> found = devices_with_memory(devices, true); !found.empty())
    return of_processors(std::move(found), request);
  return base::invalid_argument("there are no devices to choose from");
}

}  // namespace tutti::impl::distribute
