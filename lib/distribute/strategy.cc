// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy.h"

#include <cstdlib>

#include "collective/device/device_group.h"
#include "collective/local/local_group.h"
#include "collective/staged/staged_group.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;

/// What the environment says about devices whose memory the host does not reach.
enum class GroupChoice { automatic, staged, device };

Result<GroupChoice> chosen_group() {
  const char *const value = secure_getenv("TUTTI_GROUP");
  const std::string_view choice = value == nullptr ? "" : value;
  if (choice.empty()) return GroupChoice::automatic;
  if (choice == "staged") return GroupChoice::staged;
  if (choice == "device") return GroupChoice::device;
  return base::invalid_argument("the environment's TUTTI_GROUP is ", base::quoted(choice),
                                ", expected \"staged\" or \"device\"");
}

/// Replicas of one process on the devices of one backend.
class LocalStrategy : public Strategy {
 public:
  LocalStrategy(std::string name, std::vector<DeviceChoice> devices) : Strategy(std::move(name), std::move(devices)) {}

  Result<ReplicaGroups> make_groups(std::span<const backend::DeviceRef> devices,
                                    const GroupOptions &options) const override {
    collective::local::LocalGroupOptions on_host;
    on_host.timeout_ms = options.timeout_ms;
    ReplicaGroups groups;
    groups.description = "host memory";
    TUTTI_ASSIGN(groups.ranks, collective::local::LocalGroup::create(replica_count(), options.parts, on_host));
    if (backend()->has_host_memory() || replica_count() * options.parts == 1) return groups;
    TUTTI_TRY(reach_devices(devices, options, groups));
    return groups;
  }

 private:
  static Status reach_devices(std::span<const backend::DeviceRef> devices, const GroupOptions &options,
                              ReplicaGroups &groups) {
    TUTTI_ASSIGN(const GroupChoice choice, chosen_group());
    Status unconnected = base::unavailable("the environment's TUTTI_GROUP says so");
    if (choice != GroupChoice::staged) {
      collective::device::DeviceGroupOptions between;
      between.timeout_ms = options.timeout_ms;
      between.repeatable = options.level != backend::Level::fast;
      unconnected = check_connected(devices, options, between);
      if (unconnected.ok()) {
        groups.description = "connected devices";
        TUTTI_ASSIGN(groups.ranks, collective::device::connect(std::move(groups.ranks), devices, between));
        return Status();
      }
    }
    if (choice == GroupChoice::device) {
      return unconnected.wrap("the environment's TUTTI_GROUP asks for connected devices, and they cannot be connected");
    }
    groups.description = "copies on the host: " + unconnected.message();
    TUTTI_ASSIGN(groups.ranks, collective::staged::stage(std::move(groups.ranks), devices));
    return Status();
  }

  static Status check_connected(std::span<const backend::DeviceRef> devices, const GroupOptions &options,
                                const collective::device::DeviceGroupOptions &between) {
    if (options.level == backend::Level::invariant) {
      return base::unimplemented("level invariant adds in the order of the logical replicas");
    }
    return collective::device::check(devices, options.parts, between);
  }
};

std::string device_name(const DeviceChoice &device) {
  return device.backend->name() + ":" + std::to_string(device.index);
}

Status check_devices(const std::vector<DeviceChoice> &devices) {
  if (devices.empty()) return base::invalid_argument("a strategy needs at least one device");
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceChoice &device = devices[i];
    if (device.backend == nullptr) return base::invalid_argument("device ", i, " of the strategy has no backend");
    if (device.index < 0 || device.index >= device.backend->device_count()) {
      return base::invalid_argument("there is no device ", device_name(device), ": backend '", device.backend->name(),
                                    "' has ", device.backend->device_count(), " devices");
    }
    if (device.backend != devices.front().backend) {
      return base::invalid_argument("devices ", device_name(devices.front()), " and ", device_name(device),
                                    " belong to different backends; the devices of a strategy must be of one");
    }
    for (size_t j = 0; j < i; ++j) {
      if (devices[j].index == device.index) {
        return base::invalid_argument("device ", device_name(device), " is listed twice");
      }
    }
  }
  return Status();
}

Result<StrategyRef> make_strategy(std::string name, std::vector<DeviceChoice> devices) {
  TUTTI_TRY(check_devices(devices));
  return StrategyRef(std::make_shared<LocalStrategy>(std::move(name), std::move(devices)));
}

}  // namespace

Result<StrategyRef> Strategy::one_device(DeviceChoice device) {
  return make_strategy("one_device", {std::move(device)});
}

Result<StrategyRef> Strategy::mirrored(std::vector<DeviceChoice> devices) {
  return make_strategy("mirrored", std::move(devices));
}

Result<StrategyRef> Strategy::mirrored_all(const backend::BackendRef &backend) {
  if (backend == nullptr) return base::invalid_argument("a strategy needs a backend");
  std::vector<DeviceChoice> devices;
  for (int32_t i = 0; i < backend->device_count(); ++i)
    devices.push_back({backend, i});
  return make_strategy("mirrored", std::move(devices));
}

base::Json Strategy::describe() const {
  base::JsonArray names;
  for (const DeviceChoice &device : devices_)
    names.push_back(device_name(device));
  return base::JsonObject{{"strategy", name_}, {"devices", std::move(names)}};
}

}  // namespace tutti::impl::distribute
