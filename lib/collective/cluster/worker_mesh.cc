// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/worker_mesh.h"

#include <netinet/in.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "collective/cluster/joint_attempt.h"
#include "collective/cluster/mesh_proof.h"

namespace tutti::impl::collective::cluster {

using base::Deadline;
using base::Result;
using base::Status;

namespace {

// Attempts to connect; and the rest between two, which grows.
constexpr int32_t kMostAttempts = 10;
constexpr int64_t kFirstRetryMs = 50, kLongestRetryMs = 2000;
// The first attempt may take a quarter of the time, but not less and not more than this; a later one twice as long as
// the one before.
constexpr int64_t kLeastMs = 250, kShortestAttemptMs = 1000, kUsualAttemptMs = 3000, kLongestFirstMs = 30000;
constexpr int64_t kShortestProofMs = 500, kLongestProofMs = 5000;

/// The port of an address as Gloo has them, which begin with the system's; 0 for others.
int32_t port_of(std::string_view bytes) {
  sockaddr_in address{};  // the port lies at the same place in both families
  if (bytes.size() < sizeof(address)) return 0;
  std::memcpy(&address, bytes.data(), sizeof(address));
  return address.sin_family == AF_INET || address.sin_family == AF_INET6 ? ntohs(address.sin_port) : 0;
}

/// Addresses of a mesh. Nobody waits for those of a worker that has ended.
class MeshAddresses : public AddressTable {
 public:
  MeshAddresses(const ClusterGroupOptions &options, std::string prefix, Deadline deadline)
      : options_(options), prefix_(std::move(prefix)), deadline_(deadline) {}

  Status put(const char *key, std::string_view bytes) override {
    ports_[key] = port_of(bytes);
    return options_.table->put(prefix_ + key, bytes, deadline_, false);
  }
  /// `key`: "<worker>/<peer>".
  Result<std::string> get(const char *key) override {
    for (;;) {
      Result<std::string> bytes = look(*options_.table, prefix_ + key, deadline_);
      if (bytes.ok() || bytes.code() != base::Code::not_found) return bytes;
      if (!is_awaited(std::atoi(key))) return base::unavailable("it has disconnected");
      if (deadline_.passed()) return bytes;
    }
  }
  bool is_awaited(int32_t worker) override { return !has_gone(options_, worker, deadline_); }
  /// At which this worker has waited for that one; 0 where it cannot be told.
  int32_t port_for(int32_t worker, int32_t peer) const {
    const auto found = ports_.find(base::concat(worker, "/", peer));
    return found == ports_.end() ? 0 : found->second;
  }

 private:
  const ClusterGroupOptions &options_;
  const std::string prefix_;
  const Deadline deadline_;
  std::map<std::string, int32_t, std::less<>> ports_;
};

/// With whom it has failed is known from the outermost error, too.
Status wrapped(const Status &failure, const std::optional<int32_t> &peer, const std::string &what) {
  const Status status = failure.wrap(what);
  return peer ? status.with_detail("rank", std::to_string(*peer)) : status;
}

/// The attempts of this worker to connect a mesh.
class Connecting {
 public:
  Connecting(const ClusterGroupOptions &options, const std::string &name)
      : options_(options),
        name_(name),
        deadline_(Deadline::after_ms(options.timeout_ms)),
        attempt_ms_(options.timeout_ms < 0
                        ? kLongestFirstMs
                        : std::min({options.timeout_ms, kLongestFirstMs,
                                    std::max({options.timeout_ms / 4, kShortestAttemptMs,
                                              std::min(options.timeout_ms / 2, kUsualAttemptMs)})})) {}

  Result<std::unique_ptr<Mesh>> run();

 private:
  /// Until then another attempt, after a rest, is worth the while.
  Deadline last_end() const {
    return deadline_.is_never() ? deadline_
                                : Deadline::at(deadline_.time() - std::chrono::milliseconds(rest_ms_ + kLeastMs));
  }
  /// The mesh, or null where all are to try again.
  Result<std::unique_ptr<Mesh>> attempt(int32_t number);
  Result<std::unique_ptr<Mesh>> connect(MeshAddresses &addresses, Deadline limit) const;
  Status prove(Mesh &mesh, MeshAddresses &addresses, const std::string &mesh_name) const;
  Outcome outcome_of(const Status &status) const;
  /// Whether all go on, or try again. Errors: `own`, or what others say.
  Result<bool> all_go_on(const JointAttempt &attempt, std::string_view stage, const Status &own, Deadline limit,
                         Deadline end) const;
  const std::string &name_of(int32_t worker) const { return options_.names[static_cast<size_t>(worker)]; }
  int32_t workers() const { return static_cast<int32_t>(options_.names.size()); }

  const ClusterGroupOptions &options_;
  const std::string name_;
  const Deadline deadline_;
  int64_t attempt_ms_, rest_ms_ = kFirstRetryMs;
};

Result<std::unique_ptr<Mesh>> Connecting::run() {
  for (int32_t number = 1;; ++number) {
    TUTTI_ASSIGN(std::unique_ptr<Mesh> mesh, attempt(number));
    if (mesh != nullptr) return mesh;
    std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms_));
    rest_ms_ = std::min(2 * rest_ms_, kLongestRetryMs);
    attempt_ms_ *= 2;
  }
}

Result<std::unique_ptr<Mesh>> Connecting::attempt(int32_t number) {
  const JointAttempt all(options_, base::concat(name_, "/", number, "/"));
  const Deadline end = number == kMostAttempts ? Deadline::after_ms(0) : last_end();
  const Deadline limit = earlier(deadline_, Deadline::after_ms(attempt_ms_));
  MeshAddresses addresses(options_, all.prefix(), limit);
  Result<std::unique_ptr<Mesh>> mesh = connect(addresses, limit);
  TUTTI_ASSIGN(bool go_on, all_go_on(all, "connected", mesh.status(), limit, end));
  if (!go_on) return std::unique_ptr<Mesh>();
  const Status proved = prove(**mesh, addresses, all.prefix());
  TUTTI_ASSIGN(go_on, all_go_on(all, "proved", proved, Deadline::after_ms(2 * kLongestProofMs), end));
  if (!go_on) return std::unique_ptr<Mesh>();
  return mesh;
}

Result<std::unique_ptr<Mesh>> Connecting::connect(MeshAddresses &addresses, Deadline limit) const {
  MeshOptions options;
  options.rank = options_.worker;
  options.size = workers();
  options.host = options_.hosts[static_cast<size_t>(options_.worker)];
  options.timeout_ms = std::max<int64_t>(limit.remaining_ms(), 1);
  Result<std::unique_ptr<Mesh>> mesh = options_.engine->connect(options, addresses);
  if (mesh.ok()) return mesh;
  const std::optional<int32_t> peer = failed_peer(mesh.status(), workers());
  return wrapped(
      mesh.status(), peer,
      base::concat(name_of(options_.worker), " cannot connect to ", peer ? name_of(*peer) : "the other workers"));
}

Status Connecting::prove(Mesh &mesh, MeshAddresses &addresses, const std::string &mesh_name) const {
  const int64_t usual = options_.timeout_ms < 0
                            ? kLongestProofMs
                            : std::clamp(options_.timeout_ms / 8, kShortestProofMs, kLongestProofMs);
  const Status status = prove_over(mesh, {.secret = options_.secret,
                                          .name = mesh_name,
                                          .worker = options_.worker,
                                          .workers = workers(),
                                          .timeout_ms = usual});
  const std::optional<int32_t> peer = failed_peer(status, workers());
  if (status.ok() || !peer) return status;
  if (!addresses.is_awaited(*peer))
    return wrapped(status, peer, base::concat(name_of(*peer), " disconnected while the workers connected"));
  const int32_t port = addresses.port_for(options_.worker, *peer);
  const std::string at = port == 0 ? std::string() : base::concat(" at port ", port);
  return wrapped(status, peer,
                 base::concat("the process that connected to ", name_of(options_.worker), at, " in place of ",
                              name_of(*peer), " has not proved that it belongs to the job"));
}

/// With whom a connection is not made, as others may have come first, is worth another attempt; and nothing else is.
Outcome Connecting::outcome_of(const Status &status) const {
  if (status.ok()) return {};
  const bool names_peer = failed_peer(status, workers()).has_value();
  return {names_peer ? Verdict::again : Verdict::give_up, std::string(status.message())};
}

Result<bool> Connecting::all_go_on(const JointAttempt &attempt, std::string_view stage, const Status &own,
                                   Deadline limit, Deadline end) const {
  const Result<Outcome> all = attempt.agree(stage, outcome_of(own), limit, end);
  if (!all.ok()) {
    // That worker 0 has gone looks to this one as if others had.
    const bool is_lost = all.code() == base::Code::unavailable && failed_peer(own, workers()).has_value();
    return own.ok() || is_lost ? all.status() : own;
  }
  if (all->verdict == Verdict::go_on && own.ok()) return true;
  if (all->verdict != Verdict::again)
    return own.ok() ? base::unavailable("the workers cannot connect to each other: ", all->why) : own;
  if (options_.warn && (!own.ok() || options_.worker == 0)) {
    options_.warn(base::concat(own.ok() ? all->why : own.to_string(),
                               "; another process may have connected to a port first: all workers connect again"));
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Mesh>> connect_mesh(const ClusterGroupOptions &options, const std::string &name) {
  return Connecting(options, name).run();
}

Status name_peer(const Status &failure, std::span<const std::string> names, int32_t worker, int64_t timeout_ms,
                 const std::string &what) {
  if (failure.ok() || failure.code() == base::Code::cancelled) return failure;
  const std::optional<int32_t> rank = failed_peer(failure, static_cast<int32_t>(names.size()));
  const std::string peer = rank ? names[static_cast<size_t>(*rank)] : std::string("another worker");
  const Status named =
      failure.code() == base::Code::deadline_exceeded
          ? base::deadline_exceeded("worker ", worker, " waited ", timeout_ms, " ms for ", peer, " in ", what)
          : base::unavailable(peer, " disconnected while worker ", worker, " was in ", what);
  return rank ? named.with_cause(failure).with_detail("worker", std::to_string(*rank)) : named.with_cause(failure);
}

}  // namespace tutti::impl::collective::cluster
