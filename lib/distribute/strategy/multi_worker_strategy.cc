// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/multi_worker_strategy.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "collective/cluster/cluster_group.h"
#include "collective/device/connected_workers.h"
#include "collective/local/local_group.h"
#include "collective/staged/staged_group.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;

class MultiWorkerStrategy : public Strategy {
 public:
  MultiWorkerStrategy(Cluster cluster, std::vector<DeviceChoice> devices, MultiWorkerOptions options)
      : Strategy("multi_worker", std::move(devices), options.worker_input,
                 {cluster.worker_count(), cluster.worker_index()}),
        options_(std::move(options)),
        place_(options_.place != nullptr ? options_.place
                                         : std::make_shared<MeetingPoint>(std::move(cluster), options_)) {}

  Result<ReplicaGroups> make_groups(std::span<const backend::DeviceRef> devices,
                                    const GroupOptions &options) const override;
  Result<std::unique_ptr<collective::Group>> make_worker_group(const GroupOptions &options) const override;

 private:
  Status meet(const GroupOptions &options, collective::cluster::ClusterGroupOptions &group) const;
  Result<std::vector<std::unique_ptr<collective::Group>>> make_ranks(const GroupOptions &options,
                                                                     collective::device::WorkersOptions &workers) const;
  /// Meets the others: a group with so many ranks of each worker, and what else it takes to connect their devices.
  Result<std::vector<std::unique_ptr<collective::Group>>> connect(int32_t ranks, const GroupOptions &options,
                                                                  collective::device::WorkersOptions &workers) const;
  /// Ranks over host memory become such over memory of the devices, where these can be connected.
  Result<collective::device::WorkersConnection> connect_devices(std::span<const backend::DeviceRef> devices,
                                                                const GroupOptions &options, const ConnectionWish &wish,
                                                                collective::device::WorkersOptions &workers,
                                                                ReplicaGroups &groups) const;

  const MultiWorkerOptions options_;
  const std::shared_ptr<MeetingPoint> place_;
};

Status MultiWorkerStrategy::meet(const GroupOptions &options, collective::cluster::ClusterGroupOptions &group) const {
  TUTTI_ASSIGN(GatheredWorkers meeting, place_->meet(replica_count(), options.cancel));
  group.table = std::move(meeting.table);
  group.key_prefix = std::move(meeting.key_prefix);
  group.hosts = std::move(meeting.hosts);
  group.names = std::move(meeting.names);
  return Status();
}

Result<std::vector<std::unique_ptr<collective::Group>>> MultiWorkerStrategy::make_ranks(
    const GroupOptions &options, collective::device::WorkersOptions &workers) const {
  if (this->workers().count == 1) {
    collective::local::LocalGroupOptions on_host;
    on_host.timeout_ms = options.timeout_ms;
    return collective::local::LocalGroup::create(replica_count(), options.parts, on_host);
  }
  return connect(replica_count(), options, workers);
}

Result<std::vector<std::unique_ptr<collective::Group>>> MultiWorkerStrategy::connect(
    int32_t ranks, const GroupOptions &options, collective::device::WorkersOptions &workers) const {
  collective::cluster::ClusterGroupOptions group;
  TUTTI_ASSIGN(group.engine, options_.open_engine());
  TUTTI_TRY(meet(options, group));
  group.worker = this->workers().index;
  group.replicas = ranks;
  group.parts = options.parts;
  group.timeout_ms = options.timeout_ms;
  group.in_order = options.level == backend::Level::invariant;
  group.secret = place_->options().job_secret;
  group.warn = place_->options().warn;
  workers.table = group.table;
  workers.key_prefix = group.key_prefix;
  workers.names = group.names;
  workers.worker = group.worker;
  return collective::cluster::ClusterGroup::create(std::move(group));
}

Result<std::unique_ptr<collective::Group>> MultiWorkerStrategy::make_worker_group(const GroupOptions &options) const {
  collective::device::WorkersOptions unused;
  TUTTI_ASSIGN(std::vector<std::unique_ptr<collective::Group>> own, connect(1, options, unused));
  return std::move(own.front());
}

Result<collective::device::WorkersConnection> MultiWorkerStrategy::connect_devices(
    std::span<const backend::DeviceRef> devices, const GroupOptions &options, const ConnectionWish &wish,
    collective::device::WorkersOptions &workers, ReplicaGroups &groups) const {
  workers.own = wish.may;
  workers.is_demanded = wish.is_demanded;
  workers.cancel = options.cancel;
  if (workers.own.ok() && backend()->has_host_memory())
    workers.own = base::unimplemented("devices of backend '", backend()->name(), "' use host memory");
  const collective::device::DeviceGroupOptions between = {
      .timeout_ms = options.timeout_ms, .repeatable = options.level != backend::Level::fast, .alive = options.alive};
  if (this->workers().count > 1) return collective::device::connect_workers(groups.ranks, devices, between, workers);
  if (workers.own.ok()) workers.own = collective::device::check(devices, options.parts, between);
  if (workers.own.ok()) {
    TUTTI_ASSIGN(groups.ranks, collective::device::connect(std::move(groups.ranks), devices, between));
  } else if (wish.is_demanded) {
    return workers.own.wrap(base::concat(wish.whose, " asks for connected devices, but they cannot be connected"));
  }
  return collective::device::WorkersConnection{.unconnected = workers.own, .library = {}};
}

Result<ReplicaGroups> MultiWorkerStrategy::make_groups(std::span<const backend::DeviceRef> devices,
                                                       const GroupOptions &options) const {
  const AllReduceChoice choice = options.all_reduce;
  if (choice != AllReduceChoice::automatic && choice != AllReduceChoice::host && choice != AllReduceChoice::device) {
    return base::invalid_argument(
        "all_reduce is ", distribute::name(choice),
        ", expected automatic, device or host: several workers add up on their devices, or in host memory ",
        "and by messages");
  }
  TUTTI_ASSIGN(const ConnectionWish wish, connection_wish(choice, options.level));
  const bool is_alone = workers().count == 1;
  ReplicaGroups groups;
  collective::device::WorkersOptions workers;
  TUTTI_ASSIGN(groups.ranks, make_ranks(options, workers));
  groups.description = "host memory";
  if (replicas_in_all() * options.parts == 1) return groups;
  TUTTI_ASSIGN(const auto connection, connect_devices(devices, options, wish, workers, groups));
  if (connection.unconnected.ok()) {
    groups.description = "connected devices";
    if (!is_alone)
      groups.description += base::concat(" of ", this->workers().count, " workers, by ", connection.library);
    return groups;
  }
  const std::string_view between = is_alone ? "" : ", and messages between workers";
  groups.description = base::concat("host memory", between);
  if (backend()->has_host_memory()) return groups;
  groups.description = base::concat("copies on the host", between, ": ", connection.unconnected.message());
  TUTTI_ASSIGN(groups.ranks, collective::staged::stage(std::move(groups.ranks), devices));
  return groups;
}

}  // namespace

std::string job_secret_from_environment() {
  const char *const secret = secure_getenv("TUTTI_JOB_SECRET");
  return secret == nullptr ? std::string() : std::string(secret);
}

Result<StrategyRef> multi_worker(Cluster cluster, std::vector<DeviceChoice> devices, MultiWorkerOptions options) {
  TUTTI_TRY(check_devices(devices));
  if (cluster.task_type() == TaskType::evaluator) {
    return base::invalid_argument(
        "this process is the evaluator of the cluster, which does not train with the others: ",
        "give it a strategy for its own machine only");
  }
  return StrategyRef(std::make_shared<MultiWorkerStrategy>(std::move(cluster), std::move(devices), std::move(options)));
}

}  // namespace tutti::impl::distribute
