// SPDX-License-Identifier: Apache-2.0
//
// The group of the replicas of several processes: rank = worker * replicas + replica. Inside a process the ranks post
// their operations, and one thread carries them out in the total order: it adds up the buffers of its process,
// exchanges the sum with the other workers and shares the result, while the replicas compute.
//
//   TUTTI_ASSIGN(auto ranks, ClusterGroup::create(options));      // ranks[r] is that of replica r of this process
//
// Order of additions: each worker's contributors, then the workers; `in_order` sends the contributors' buffers as they
// are and adds over all contributors, as the group of one process with as many replicas does, to the bit.
//
// Errors: a worker whose connection ends, who does not come in time or who gives up is named with its address on every
// worker. The first cause is kept in the table that they share, where the others look for it; there, too, says who has
// waited in vain for whom, since whom one worker waits for may itself wait for another. A worker that is not in an
// operation learns of the end at its next one, or by itself after watch() (worker_watch.h).
//
// settle() lets all workers pass or none; only if worker 0 dies in it, or hangs until the time is over and goes on
// then, may some have passed. wait() alone may have failed on one worker and not on another.
#ifndef TUTTI_COLLECTIVE_CLUSTER_CLUSTER_GROUP_H_
#define TUTTI_COLLECTIVE_CLUSTER_CLUSTER_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/challenge.h"
#include "collective/engine.h"
#include "collective/group.h"
#include "collective/shared_table.h"

namespace tutti::impl::collective::cluster {

struct ClusterGroupOptions {
  EngineRef engine;  ///< may be null for one worker alone, like the table
  std::shared_ptr<SharedTable> table;
  /// Begins every key of this group; all workers have the same, and no other group has it. Behind it, "gone/<worker>"
  /// is a key that the table has as soon as the worker's connection to it has ended.
  std::string key_prefix;
  /// Of all workers, in order: at which the others reach them, and what they are called in messages.
  std::vector<std::string> hosts, names;
  int32_t worker = 0;
  int32_t replicas = 1;  ///< of each worker
  int32_t parts = 1;
  /// How long a worker waits for others in one operation before it gives the group up.
  int64_t timeout_ms = 600000;
  bool in_order = false;
  /// Of the job; empty for none. Each two workers prove to each other that they have the same (challenge.h).
  std::string secret;
  /// Is told where somebody else was found in place of a worker. Any thread calls it; it may be empty.
  Warn warn;
};

class ClusterGroup {
 public:
  /// Connects with all other workers and gives the handles of this process, in order. All workers call it.
  static base::Result<std::vector<std::unique_ptr<Group>>> create(ClusterGroupOptions options);
};

}  // namespace tutti::impl::collective::cluster

#endif  // TUTTI_COLLECTIVE_CLUSTER_CLUSTER_GROUP_H_
