// SPDX-License-Identifier: Apache-2.0
//
// A worker's connection to where the cluster meets (store_server.h).
//
//   TUTTI_ASSIGN(auto store, Store::connect({.addresses = addresses, .rank = 1, .build_id = id}, limits));
//   TUTTI_ASSIGN(Gathering all, store->join(limits));                   // waits for all workers
//   TUTTI_TRY(store->set("7/address/1", bytes, limits));
//   TUTTI_ASSIGN(std::string bytes, store->get("7/address/0", limits)); // waits for the key
//
// Errors name workers with their addresses: who cannot be reached, who has not come, who was turned away and why. A
// wait that its token ended leaves the connection of no further use.
//
// Threads: calls take turns.
#ifndef TUTTI_COLLECTIVE_RENDEZVOUS_STORE_H_
#define TUTTI_COLLECTIVE_RENDEZVOUS_STORE_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collective/rendezvous/message.h"
#include "collective/rendezvous/socket.h"
#include "collective/shared_table.h"

namespace tutti::impl::collective::rendezvous {

struct StoreOptions {
  /// "host:port" of each worker; only the first must be known. As many as there are workers.
  std::vector<std::string> addresses;
  int32_t rank = 0;
  /// How many replicas this worker runs.
  int32_t replicas = 1;
  std::string build_id;
  /// Of the job; empty for none. It is neither sent nor named in an error.
  std::string secret;
};

/// All workers have come.
struct Gathering {
  struct Member {
    int32_t replicas = 1;
    std::string host;  ///< at which the others reach it
  };
  uint32_t number = 0;
  std::vector<Member> members;  ///< in order of ranks
};

/// "worker 2 (host:port)", "worker 2" where the address is not known.
std::string worker_name(const std::vector<std::string> &addresses, int32_t rank);

class Store : public SharedTable {
 public:
  /// Tries until the limits: worker 0 may begin later than others. FAILED_PRECONDITION at once where worker 0 has
  /// another secret, or turns this worker away.
  static base::Result<std::unique_ptr<Store>> connect(const StoreOptions &options, const Limits &limits);

  base::Result<Gathering> join(const Limits &limits);
  /// `only_if_absent`: a key that is there stays as it is.
  base::Status set(std::string_view key, std::string_view value, const Limits &limits, bool only_if_absent = false);
  /// NOT_FOUND when there is no such key until the limits' deadline; worker 0 may say so later, by `patience_ms` at
  /// most. Else the connection is taken for lost.
  base::Result<std::string> get(std::string_view key, const Limits &limits,
                                int64_t patience_ms = SharedTable::kUsualPatienceMs);

  // SharedTable
  base::Status put(std::string_view key, std::string_view value, base::Deadline deadline,
                   bool only_if_absent) override {
    return set(key, value, {deadline}, only_if_absent);
  }
  using SharedTable::find;
  base::Result<std::string> find(std::string_view key, base::Deadline deadline, int64_t patience_ms) override {
    return get(key, {deadline}, patience_ms);
  }

 private:
  struct Answer {
    MessageType type;
    std::string body;
  };

  Store(StoreOptions options, Socket socket) : options_(std::move(options)), socket_(std::move(socket)) {}
  base::Status greet(const Limits &limits);
  base::Result<Answer> ask(std::string_view bytes, const Limits &limits);
  base::Status turned_away(const Answer &answer) const;
  base::Status missing(std::string_view listed) const;
  base::Result<Gathering> parse_gathering(std::string_view body) const;

  const StoreOptions options_;
  std::mutex mutex_;
  Socket socket_;  // guarded by mutex_
};

}  // namespace tutti::impl::collective::rendezvous

#endif  // TUTTI_COLLECTIVE_RENDEZVOUS_STORE_H_
