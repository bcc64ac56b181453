// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/meeting_point.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
namespace rendezvous = collective::rendezvous;

namespace {

/// The port of an address, or of one that was asked to be any.
std::string with_port_of(const std::string &address, int32_t port) {
  return base::concat(address.substr(0, address.rfind(':')), ":", port);
}

/// Calls to the table take turns: one that waits for a value lets others in between so often.
constexpr int64_t kTurnMs = 50;
constexpr std::string_view kDone = "done";

/// What a worker told; an error where it has gone instead, or says nothing in time.
Result<std::string> hear(const GatheredWorkers &workers, int32_t worker, const std::string &key,
                         base::Deadline deadline, std::string_view what) {
  const std::string gone = base::concat("gone/", worker);
  for (;;) {
    Result<std::string> told = wait_for_value(workers, key, kTurnMs);
    if (told.ok() || told.code() != base::Code::not_found) return told;
    const std::string &name = workers.names[static_cast<size_t>(worker)];
    if (wait_for_value(workers, gone, 0).ok()) return base::unavailable(name, " has gone during the ", what);
    if (deadline.passed()) return base::deadline_exceeded("timed out waiting for the ", what, " of ", name);
  }
}

}  // namespace

Result<std::string> wait_for_value(const GatheredWorkers &workers, const std::string &key, int64_t timeout_ms) {
  const base::Deadline deadline = base::Deadline::after_ms(std::max<int64_t>(timeout_ms, 0));
  for (;;) {
    Result<std::string> value = workers.table->find(
        base::concat(workers.key_prefix, key), base::Deadline::after_ms(std::clamp<int64_t>(timeout_ms, 1, kTurnMs)));
    if (value.ok() || value.code() != base::Code::not_found) return value;
    if (deadline.passed()) return base::not_found("no process has told the value ", base::quoted(key, 200), " in time");
  }
}

Status conclude_together(const GatheredWorkers &workers, int32_t index, std::string_view what, const Status &own,
                         int64_t timeout_ms) {
  const base::Deadline deadline = base::Deadline::after_ms(timeout_ms);
  const auto key_of = [&](std::string_view phase, int32_t worker) {
    return base::concat(what, "/", phase, "/", worker);
  };
  const auto tell = [&](std::string_view phase, std::string_view text) {
    return workers.table->put(base::concat(workers.key_prefix, key_of(phase, index)), text, deadline, false);
  };
  const auto count = static_cast<int32_t>(workers.names.size());
  Status first = own;
  const Status told = tell("told", own.ok() ? kDone : std::string_view(own.message()));
  if (first.ok()) first = told;
  for (int32_t w = 0; w < count && first.ok(); ++w) {
    if (w == index) continue;
    const Result<std::string> other = hear(workers, w, key_of("told", w), deadline, what);
    if (!other.ok()) first = other.status();
    if (other.ok() && *other != kDone)
      first = base::unavailable(workers.names[static_cast<size_t>(w)], " has failed in the ", what, ": ", *other);
  }
  if (index != 0) return static_cast<void>(tell("heard", kDone)), first;
  for (int32_t w = 1; w < count; ++w)
    static_cast<void>(hear(workers, w, key_of("heard", w), deadline, what));
  return first;
}

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
