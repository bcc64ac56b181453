// SPDX-License-Identifier: Apache-2.0
//
// On which cores the threads of a group's ranks run, and how ranks that wait for one another make room on cores that
// other processes use too. Left to the system, a rank that was put behind another process stays there for a
// slice of some milliseconds, while the rank that waits for it leaves a core idle: a group of two on two cores, one of
// them half busy, then runs slower than one rank alone. So a waiting rank
//
//   * spins for a moment while those it waits for run on other cores,
//   * lets them run when they were last seen on its own core, and now and then tries another core itself,
//   * brings those here that have not run at all while it spun, before it goes to sleep.
//
//   placement.arrive(rank);                                // at each operation
//   if (!placement.wait(rank, over, missing)) ...          // over() does not hold yet: sleep
//
// Threads: each rank is used by one thread at a time; nothing allocates or locks.
#ifndef TUTTI_COLLECTIVE_LOCAL_RANK_PLACEMENT_H_
#define TUTTI_COLLECTIVE_LOCAL_RANK_PLACEMENT_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/scheduled_thread.h"
#include "base/thread.h"

namespace tutti::impl::collective::local {

class RankPlacement {
 public:
  using Over = base::FunctionRef<bool()>;
  using Missing = base::FunctionRef<bool(int32_t rank)>;

  /// `spin_us`: how long a wait spins each time; 0 = not at all, and nobody is moved: ranks outnumber the cores.
  RankPlacement(int32_t ranks, int64_t spin_us) : spin_us_(spin_us), threads_(static_cast<size_t>(ranks)) {}

  /// The calling thread runs this rank, on the core that it is on.
  void arrive(int32_t rank);
  /// Waits for a short time until over(); whether it holds. `missing` says which ranks are waited for.
  bool wait(int32_t rank, Over over, Missing missing);

 private:
  using Clock = std::chrono::steady_clock;

  struct alignas(64) RankThread {
    std::atomic<base::ScheduledThread> thread{};
    std::atomic<int32_t> core{-1};         // where it was last seen
    std::atomic<bool> was_brought{false};  // to another's core, since it last left one
    Clock::time_point next_leave{};        // of its own thread

    // What has not changed is not written: others that wait have read it, and would have to read it anew.
    void see_on(int32_t now) {
      if (core.load(std::memory_order_relaxed) != now) core.store(now, std::memory_order_relaxed);
    }
  };

  RankThread &thread_of(int32_t rank) { return threads_[static_cast<size_t>(rank)]; }
  bool shares_core(int32_t rank, Missing missing);
  bool spin(int32_t rank, Over over, Missing missing);
  void share_core(int32_t rank);

  const int64_t spin_us_;
  std::vector<RankThread> threads_;
};

}  // namespace tutti::impl::collective::local

#endif  // TUTTI_COLLECTIVE_LOCAL_RANK_PLACEMENT_H_
