// SPDX-License-Identifier: Apache-2.0
#include "distribute/multi_worker_strategy.h"

#include <memory>
#include <mutex>
#include <utility>

#include "collective/cluster/cluster_group.h"
#include "collective/local/local_group.h"
#include "collective/rendezvous/store.h"
#include "collective/rendezvous/store_server.h"
#include "collective/staged/staged_group.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
namespace rendezvous = collective::rendezvous;

/// The port of an address, or of one that was asked to be any.
std::string with_port_of(const std::string &address, int32_t port) {
  return base::concat(address.substr(0, address.rfind(':')), ":", port);
}

class MultiWorkerStrategy : public Strategy {
 public:
  MultiWorkerStrategy(Cluster cluster, std::vector<DeviceChoice> devices, MultiWorkerOptions options)
      : Strategy("multi_worker", std::move(devices), pipeline_of(cluster, options),
                 {cluster.worker_count(), cluster.worker_index()}),
        cluster_(std::move(cluster)),
        options_(std::move(options)) {}

  Result<ReplicaGroups> make_groups(std::span<const backend::DeviceRef> devices,
                                    const GroupOptions &options) const override;
  Result<std::unique_ptr<collective::Group>> make_worker_group(const GroupOptions &options) const override;

 private:
  static InputPipeline pipeline_of(const Cluster &cluster, const MultiWorkerOptions &options) {
    if (!options.divides_input) return {};
    return {cluster.worker_index(), cluster.worker_count()};
  }
  Status meet(const GroupOptions &options, collective::cluster::ClusterGroupOptions &group) const;
  Result<std::vector<std::unique_ptr<collective::Group>>> make_ranks(const GroupOptions &options) const;
  /// Meets the others: a group with so many ranks of each worker.
  Result<std::vector<std::unique_ptr<collective::Group>>> connect(int32_t ranks, const GroupOptions &options) const;

  const Cluster cluster_;
  const MultiWorkerOptions options_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<rendezvous::StoreServer> server_;  // guarded by mutex_; of worker 0, from the first group on
};

Status MultiWorkerStrategy::meet(const GroupOptions &options, collective::cluster::ClusterGroupOptions &group) const {
  rendezvous::StoreOptions store;
  for (int32_t w = 0; w < cluster_.worker_count(); ++w)
    store.addresses.push_back(cluster_.address(w));
  store.rank = cluster_.worker_index();
  store.replicas = replica_count();
  store.build_id = options_.build_id;
  const rendezvous::Limits limits{base::Deadline::after_ms(options_.connect_timeout_ms), options.cancel};
  const std::lock_guard lock(mutex_);
  if (cluster_.worker_index() == 0 && server_ == nullptr) {
    rendezvous::StoreServerOptions server;
    server.address = cluster_.leader_address();
    server.world_size = cluster_.worker_count();
    server.build_id = options_.build_id;
    TUTTI_ASSIGN(server_, rendezvous::StoreServer::start(std::move(server)));
  }
  if (server_ != nullptr) store.addresses[0] = with_port_of(cluster_.leader_address(), server_->port());
  TUTTI_ASSIGN(std::unique_ptr<rendezvous::Store> table, rendezvous::Store::connect(store, limits));
  TUTTI_ASSIGN(const rendezvous::Gathering all, table->join(limits));
  group.table = std::move(table);
  group.key_prefix = base::concat(all.number, "/");
  for (int32_t w = 0; w < cluster_.worker_count(); ++w) {
    std::string &address = store.addresses[static_cast<size_t>(w)];
    group.hosts.push_back(all.members[static_cast<size_t>(w)].host);
    if (address.empty()) address = group.hosts.back();
  }
  for (int32_t w = 0; w < cluster_.worker_count(); ++w)
    group.names.push_back(rendezvous::worker_name(store.addresses, w));
  return Status();
}

Result<std::vector<std::unique_ptr<collective::Group>>> MultiWorkerStrategy::make_ranks(
    const GroupOptions &options) const {
  if (workers().count == 1) {
    collective::local::LocalGroupOptions on_host;
    on_host.timeout_ms = options.timeout_ms;
    return collective::local::LocalGroup::create(replica_count(), options.parts, on_host);
  }
  return connect(replica_count(), options);
}

Result<std::vector<std::unique_ptr<collective::Group>>> MultiWorkerStrategy::connect(
    int32_t ranks, const GroupOptions &options) const {
  collective::cluster::ClusterGroupOptions group;
  TUTTI_ASSIGN(group.engine, options_.open_engine());
  TUTTI_TRY(meet(options, group));
  group.worker = workers().index;
  group.replicas = ranks;
  group.parts = options.parts;
  group.timeout_ms = options.timeout_ms;
  group.in_order = options.level == backend::Level::invariant;
  return collective::cluster::ClusterGroup::create(std::move(group));
}

Result<std::unique_ptr<collective::Group>> MultiWorkerStrategy::make_worker_group(const GroupOptions &options) const {
  TUTTI_ASSIGN(std::vector<std::unique_ptr<collective::Group>> own, connect(1, options));
  return std::move(own.front());
}

Result<ReplicaGroups> MultiWorkerStrategy::make_groups(std::span<const backend::DeviceRef> devices,
                                                       const GroupOptions &options) const {
  if (options.all_reduce != AllReduceChoice::automatic && options.all_reduce != AllReduceChoice::host) {
    return base::invalid_argument("all_reduce is ", distribute::name(options.all_reduce),
                                  "; several workers add up in the host's memory and by messages: automatic or host");
  }
  ReplicaGroups groups;
  groups.description = workers().count == 1 ? "host memory" : "host memory, and messages between workers";
  TUTTI_ASSIGN(groups.ranks, make_ranks(options));
  if (backend()->has_host_memory() || replicas_in_all() * options.parts == 1) return groups;
  groups.description = "copies on the host, and messages between workers";
  TUTTI_ASSIGN(groups.ranks, collective::staged::stage(std::move(groups.ranks), devices));
  return groups;
}

}  // namespace

Result<StrategyRef> multi_worker(Cluster cluster, std::vector<DeviceChoice> devices, MultiWorkerOptions options) {
  TUTTI_TRY(check_devices(devices));
  if (cluster.task_type() == TaskType::evaluator) {
    return base::invalid_argument(
        "this process is the evaluator of the cluster, which does not train with the others: ",
        "give it a strategy of its own machine");
  }
  return StrategyRef(std::make_shared<MultiWorkerStrategy>(std::move(cluster), std::move(devices), std::move(options)));
}

}  // namespace tutti::impl::distribute
