// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/strategy.h"

#include <algorithm>

#include "collective/device/device_group.h"
#include "collective/local/local_group.h"
#include "collective/staged/staged_group.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;

/// Replicas of one process on the devices of one backend.
class LocalStrategy : public Strategy {
 public:
  LocalStrategy(std::string name, std::vector<DeviceChoice> devices, int32_t threads_per_replica)
      : Strategy(std::move(name), std::move(devices), WorkerInput::whole, {}, threads_per_replica) {}
  LocalStrategy(std::string name, DeviceChoice storage, std::vector<DeviceChoice> devices)
      : Strategy(std::move(name), std::move(devices)) {
    store_with(std::move(storage));
  }

  Result<ReplicaGroups> make_groups(std::span<const backend::DeviceRef> devices,
                                    const GroupOptions &options) const override {
    ReplicaGroups groups;
    TUTTI_ASSIGN(collective::local::LocalGroupOptions local, on_host(options.all_reduce, devices, groups.description));
    local.timeout_ms = options.timeout_ms;
    TUTTI_ASSIGN(groups.ranks, collective::local::LocalGroup::create(replica_count(), options.parts, local));
    const bool is_asked = options.all_reduce != AllReduceChoice::automatic;
    const std::string how = is_asked ? groups.description + ", as all_reduce asks" : "";
    groups.description = is_asked ? "host memory: " + how : "host memory";
    if (replica_count() * options.parts == 1) return groups;
    if (!backend()->has_host_memory()) {
      TUTTI_TRY(reach_devices(devices, options, how, groups));
    } else if (options.all_reduce == AllReduceChoice::device) {
      return cannot_connect(base::unimplemented("devices of backend '", backend()->name(), "' use host memory"));
    }
    return groups;
  }

 private:
  static Status cannot_connect(const Status &why) {
    return why.wrap(
        "all_reduce asks for connected devices, but they cannot be connected (automatic, host, ring, "
        "hierarchical and reduce_to_one do not need them)");
  }

  /// `how` the host was asked to add up; empty where it was not.
  static Status reach_devices(std::span<const backend::DeviceRef> devices, const GroupOptions &options,
                              const std::string &how, ReplicaGroups &groups) {
    const bool is_asked = options.all_reduce != AllReduceChoice::automatic;
    TUTTI_ASSIGN(const ConnectionWish wish, connection_wish(options.all_reduce, options.level));
    collective::device::DeviceGroupOptions between;
    between.timeout_ms = options.timeout_ms;
    between.repeatable = options.level != backend::Level::fast;
    between.alive = options.alive;
    Status unconnected = wish.may;
    if (unconnected.ok()) unconnected = collective::device::check(devices, options.parts, between);
    if (unconnected.ok()) {
      groups.description = is_asked ? "connected devices, as all_reduce asks" : "connected devices";
      TUTTI_ASSIGN(groups.ranks, collective::device::connect(std::move(groups.ranks), devices, between));
      return Status();
    }
    if (wish.is_demanded) {
      if (is_asked) return cannot_connect(unconnected);
      return unconnected.wrap(
          "the environment variable TUTTI_GROUP asks for connected devices, but they cannot be connected");
    }
    if (is_asked) unconnected = base::unavailable(how);
    groups.description = "copies on the host: " + unconnected.message();
    TUTTI_ASSIGN(groups.ranks, collective::staged::stage(std::move(groups.ranks), devices));
    return Status();
  }
};

std::string device_name(const DeviceChoice &device) {
  return device.backend->name() + ":" + std::to_string(device.index);
}

}  // namespace

Status check_devices(const std::vector<DeviceChoice> &devices) {
  if (devices.empty()) return base::invalid_argument("a strategy needs at least one device");
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceChoice &device = devices[i];
    if (device.backend == nullptr) return base::invalid_argument("device ", i, " of the strategy has no backend");
    if (device.index < 0 || device.index >= device.backend->device_count()) {
      return base::invalid_argument("there is no device ", device_name(device), ": backend '", device.backend->name(),
                                    "' has ", device.backend->device_count(), " devices");
    }
    for (size_t j = 0; j < i; ++j) {
      if (devices[j] == device) return base::invalid_argument("device ", device_name(device), " is listed twice");
    }
  }
  return Status();
}

Status check_trains(const std::vector<DeviceChoice> &devices) {
  for (const DeviceChoice &device : devices) {
    if (device.backend == devices.front().backend) continue;
    return base::failed_precondition(
        "devices ", device_name(devices.front()), " and ", device_name(device),
        " cannot train together: replicas keep weights that are equal bit by bit, and their backends round ",
        "differently; such a strategy predicts and evaluates, and one with the devices of one backend trains");
  }
  return Status();
}

namespace {

Result<StrategyRef> make_strategy(std::string name, std::vector<DeviceChoice> devices,
                                  int32_t threads_per_replica = 0) {
  TUTTI_TRY(check_devices(devices));
  return StrategyRef(std::make_shared<LocalStrategy>(std::move(name), std::move(devices), threads_per_replica));
}

}  // namespace

Result<StrategyRef> Strategy::one_device(DeviceChoice device) {
  return make_strategy("one_device", {std::move(device)});
}

Result<StrategyRef> Strategy::mirrored(std::vector<DeviceChoice> devices, int32_t threads_per_replica) {
  return make_strategy("mirrored", std::move(devices), threads_per_replica);
}

Result<StrategyRef> Strategy::mirrored_all(const backend::BackendRef &backend) {
  if (backend == nullptr) return base::invalid_argument("a strategy needs a backend");
  std::vector<DeviceChoice> devices;
  for (int32_t i = 0; i < backend->device_count(); ++i)
    devices.push_back({backend, i});
  return make_strategy("mirrored", std::move(devices));
}

Result<StrategyRef> Strategy::central_storage(DeviceChoice storage, std::vector<DeviceChoice> devices) {
  TUTTI_TRY(check_devices(devices));
  TUTTI_TRY(check_devices({storage}).wrap("the storage device"));
  const auto stored = std::ranges::find(devices, storage);
  if (stored != devices.end()) std::rotate(devices.begin(), stored, stored + 1);
  return StrategyRef(std::make_shared<LocalStrategy>("central_storage", std::move(storage), std::move(devices)));
}

bool Strategy::stores_apart() const { return storage_ && *storage_ != devices_.front(); }

base::Result<std::unique_ptr<collective::Group>> Strategy::make_worker_group(const GroupOptions &) const {
  return base::unimplemented("strategy ", name_, " has one process");
}

std::string_view name(WorkerInput input) {
  constexpr std::string_view names[] = {"whole", "own", "auto", "file", "data"};
  return names[static_cast<size_t>(input)];
}

base::Json Strategy::describe() const {
  base::JsonArray names;
  for (const DeviceChoice &device : devices_)
    names.push_back(device_name(device));
  base::JsonObject described{{"strategy", name_}, {"devices", std::move(names)}};
  if (workers_.count > 1) {
    described.emplace_back("workers", workers_.count);
    described.emplace_back("worker", workers_.index);
  }
  if (storage_) described.emplace_back("storage", device_name(*storage_));
  return described;
}

}  // namespace tutti::impl::distribute
