// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/meeting_point.h"

#include <utility>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Result;
namespace rendezvous = collective::rendezvous;

namespace {

/// The port of an address, or of one that was asked to be any.
std::string with_port_of(const std::string &address, int32_t port) {
  return base::concat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace

Result<GatheredWorkers> MeetingPoint::meet(int32_t replicas, const base::CancelToken *cancel) {
  rendezvous::StoreOptions store;
  for (int32_t w = 0; w < cluster_.worker_count(); ++w)
    store.addresses.push_back(cluster_.address(w));
  store.rank = cluster_.worker_index();
  store.replicas = replicas;
  store.build_id = options_.build_id;
  store.secret = options_.job_secret;
  const rendezvous::Limits limits{base::Deadline::after_ms(options_.connect_timeout_ms), cancel};
  const std::lock_guard lock(mutex_);
  if (cluster_.worker_index() == 0 && server_ == nullptr) {
    rendezvous::StoreServerOptions server;
    server.address = cluster_.leader_address();
    server.world_size = cluster_.worker_count();
    server.build_id = options_.build_id;
    server.secret = options_.job_secret;
    server.warn = options_.warn;
    TUTTI_ASSIGN(server_, rendezvous::StoreServer::start(std::move(server)));
  }
  if (server_ != nullptr) store.addresses[0] = with_port_of(cluster_.leader_address(), server_->port());
  TUTTI_ASSIGN(std::shared_ptr<rendezvous::Store> table, rendezvous::Store::connect(store, limits));
  TUTTI_ASSIGN(const rendezvous::Gathering all, table->join(limits));
  GatheredWorkers meeting;
  meeting.table = std::move(table);
  meeting.key_prefix = base::concat(all.number, "/");
  for (int32_t w = 0; w < cluster_.worker_count(); ++w) {
    std::string &address = store.addresses[static_cast<size_t>(w)];
    meeting.hosts.push_back(all.members[static_cast<size_t>(w)].host);
    if (address.empty()) address = meeting.hosts.back();
  }
  for (int32_t w = 0; w < cluster_.worker_count(); ++w)
    meeting.names.push_back(rendezvous::worker_name(store.addresses, w));
  return meeting;
}

}  // namespace tutti::impl::distribute
