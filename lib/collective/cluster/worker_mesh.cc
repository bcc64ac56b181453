// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/worker_mesh.h"

#include <optional>
#include <utility>

namespace tutti::impl::collective::cluster {

using base::Deadline;
using base::Result;
using base::Status;

namespace {

/// Addresses of a mesh.
class MeshAddresses : public AddressTable {
 public:
  MeshAddresses(SharedTable &table, std::string prefix, Deadline deadline)
      : table_(table), prefix_(std::move(prefix)), deadline_(deadline) {}

  Status put(const char *key, std::string_view bytes) override {
    return table_.put(prefix_ + key, bytes, deadline_, false);
  }
  Result<std::string> get(const char *key) override { return table_.find(prefix_ + key, deadline_); }

 private:
  SharedTable &table_;
  const std::string prefix_;
  const Deadline deadline_;
};

}  // namespace

Result<std::unique_ptr<Mesh>> connect_mesh(const ClusterGroupOptions &options, const std::string &name) {
  const auto workers = static_cast<int32_t>(options.names.size());
  MeshAddresses addresses(*options.table, options.key_prefix + name + "/", Deadline::after_ms(options.timeout_ms));
  MeshOptions mesh_options;
  mesh_options.rank = options.worker;
  mesh_options.size = workers;
  mesh_options.host = options.hosts[static_cast<size_t>(options.worker)];
  mesh_options.timeout_ms = options.timeout_ms;
  Result<std::unique_ptr<Mesh>> mesh = options.engine->connect(mesh_options, addresses);
  if (mesh.ok()) return mesh;
  const std::optional<int32_t> peer = failed_peer(mesh.status(), workers);
  return mesh.status().wrap(base::concat(options.names[static_cast<size_t>(options.worker)], " cannot connect with ",
                                         peer ? options.names[static_cast<size_t>(*peer)] : "the other workers"));
}

Status name_peer(const Status &failure, std::span<const std::string> names, int32_t worker, int64_t timeout_ms,
                 const std::string &what) {
  if (failure.ok() || failure.code() == base::Code::cancelled) return failure;
  const std::optional<int32_t> rank = failed_peer(failure, static_cast<int32_t>(names.size()));
  const std::string peer = rank ? names[static_cast<size_t>(*rank)] : std::string("another worker");
  const Status named =
      failure.code() == base::Code::deadline_exceeded
          ? base::deadline_exceeded("worker ", worker, " waited ", timeout_ms, " ms for ", peer, " in ", what)
          : base::unavailable(peer, " has gone while worker ", worker, " was in ", what);
  return rank ? named.with_cause(failure).with_detail("worker", std::to_string(*rank)) : named.with_cause(failure);
}

}  // namespace tutti::impl::collective::cluster
