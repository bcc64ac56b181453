// SPDX-License-Identifier: Apache-2.0
//
// Where the workers of a cluster meet: at the address of worker 0, which listens there as long as this object lives.
// One serves all that the worker does with the others, several strategies included: an address has one listener.
//
//   auto place = std::make_shared<MeetingPoint>(cluster, options);
//   TUTTI_ASSIGN(GatheredWorkers met, place->meet(replicas, cancel));      // waits for all workers
//
// Threads: calls take turns.
#ifndef TUTTI_DISTRIBUTE_STRATEGY_MEETING_POINT_H_
#define TUTTI_DISTRIBUTE_STRATEGY_MEETING_POINT_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "collective/challenge.h"
#include "collective/rendezvous/store.h"
#include "collective/rendezvous/store_server.h"
#include "distribute/strategy/cluster.h"

namespace tutti::impl::distribute {

struct MeetingOptions {
  /// Workers of another build are turned away.
  std::string build_id;
  /// How long to wait for the other workers.
  int64_t connect_timeout_ms = 300000;
  /// All workers of the job have the same (collective/challenge.h); empty for none.
  std::string job_secret;
  /// Is told who was dropped for not knowing it. Any thread calls it; it may be empty.
  collective::Warn warn;
};

/// All workers have come.
struct GatheredWorkers {
  std::shared_ptr<collective::rendezvous::Store> table;
  /// Of keys that belong to this meeting.
  std::string key_prefix;
  std::vector<std::string> hosts;  ///< at which the others reach each worker
  std::vector<std::string> names;  ///< of workers, for messages: "worker 2 (host:port)"
};

/// The value of a key of the meeting's table, for which a process waits so long; 0 = not at all. Calls of other threads
/// come in between. NOT_FOUND where it is not there in time.
base::Result<std::string> wait_for_value(const GatheredWorkers &workers, const std::string &key, int64_t timeout_ms);

/// How something went, which all workers of a meeting do, each by itself: all tell it, and each returns when all have,
/// worker 0 as the last one, for it has the table. Gives `own` where that is an error, else the first error, with the
/// worker's name. `what` is part of keys and messages, as "initialization"; `index`: this worker's.
base::Status conclude_together(const GatheredWorkers &workers, int32_t index, std::string_view what,
                               const base::Status &own, int64_t timeout_ms);

class MeetingPoint {
 public:
  MeetingPoint(Cluster cluster, MeetingOptions options) : cluster_(std::move(cluster)), options_(std::move(options)) {}

  const Cluster &cluster() const { return cluster_; }
  const MeetingOptions &options() const { return options_; }
  /// All workers call it, in the same order; each says how many replicas it has. Errors name who has not come, cannot
  /// be reached or was turned away. `cancel` may be null.
  base::Result<GatheredWorkers> meet(int32_t replicas, const base::CancelToken *cancel);

 private:
  const Cluster cluster_;
  const MeetingOptions options_;
  std::mutex mutex_;
  std::unique_ptr<collective::rendezvous::StoreServer> server_;  // guarded by mutex_; of worker 0, from the first on
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_MEETING_POINT_H_
