// SPDX-License-Identifier: Apache-2.0
//
// A watch that the workers of a group keep on one another: each tells all others now and then that it is there, by
// connections of its own, so that one that has ended or hangs is found while nobody is in an operation: devices may
// wait for those of another process, of which nothing in this one would hear.
//
//   TUTTI_ASSIGN(auto watch, WorkerWatch::start(options, [&](const Status &lost) { ... }));
//
// Cost for W workers: W - 1 messages of a byte from each in an eighth of the deadline, four times a second at most.
//
// Threads: leave() from any. `lost` is called once at most, in the watch's thread.
#ifndef TUTTI_COLLECTIVE_CLUSTER_WORKER_WATCH_H_
#define TUTTI_COLLECTIVE_CLUSTER_WORKER_WATCH_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "base/status.h"
#include "base/thread.h"
#include "collective/cluster/cluster_group.h"
#include "collective/engine.h"

namespace tutti::impl::collective::cluster {

class WorkerWatch {
 public:
  using Lost = std::function<void(const base::Status &)>;

  /// All workers call it. `options` outlive it. Who has ended, UNAVAILABLE, is told a moment later: what it had sent to
  /// others arrives before, so the last operation of a group that all leave is no failure. Who hangs is
  /// DEADLINE_EXCEEDED.
  static base::Result<std::unique_ptr<WorkerWatch>> start(const ClusterGroupOptions &options, Lost lost);
  ~WorkerWatch();
  WorkerWatch(const WorkerWatch &) = delete;

  /// Ends the watch, and with it that of the others on this worker. Does not wait.
  void leave();

 private:
  WorkerWatch(const ClusterGroupOptions &options, Lost lost) : options_(options), lost_(std::move(lost)) {}
  base::Status open();
  void run();
  void look_round(Mesh &mesh);
  /// Whether the watch has ended meanwhile.
  bool rest(int64_t ms);

  const ClusterGroupOptions &options_;
  const Lost lost_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  bool is_leaving_ = false;
  Mesh *mesh_ = nullptr;  // while it may be interrupted
  std::optional<base::Status> opened_;
  base::Thread thread_;
};

}  // namespace tutti::impl::collective::cluster

#endif  // TUTTI_COLLECTIVE_CLUSTER_WORKER_WATCH_H_
