// SPDX-License-Identifier: Apache-2.0
#include "collective/local/rank_placement.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/spin.h"

namespace tutti::impl::collective::local {

using base::ScheduledThread;

namespace {

/// When a rank that shares its core with another tries for a free one again: soon, unless it had to be brought back
/// from where it went. A try on a busy core costs about 50 us.
constexpr std::chrono::microseconds kLeaveAgain{100}, kLeaveAfterReturn{4000};
/// Ranks that are looked after; those beyond have to wait for the system to move them.
constexpr size_t kMostRanks = 64;

}  // namespace

void RankPlacement::arrive(int32_t rank) {
  RankThread &mine = thread_of(rank);
  mine.see_on(ScheduledThread::core());
  const ScheduledThread thread = ScheduledThread::current();
  if (mine.thread.load(std::memory_order_relaxed) != thread) mine.thread.store(thread, std::memory_order_relaxed);
}

bool RankPlacement::shares_core(int32_t rank, Missing missing) {
  const int32_t core = ScheduledThread::core();
  thread_of(rank).see_on(core);
  for (int32_t r = 0; r < static_cast<int32_t>(threads_.size()); ++r) {
    if (r != rank && thread_of(r).core.load(std::memory_order_relaxed) == core && missing(r)) return true;
  }
  return false;
}

void RankPlacement::share_core(int32_t rank) {
  RankThread &mine = thread_of(rank);
  const auto now = Clock::now();
  if (mine.was_brought.exchange(false, std::memory_order_relaxed)) mine.next_leave = now + kLeaveAfterReturn;
  if (now < mine.next_leave) {
    sched_yield();
    return;
  }
  mine.next_leave = now + kLeaveAgain;
  ScheduledThread::leave_core();
}

bool RankPlacement::spin(int32_t rank, Over over, Missing missing) {
  return base::spin_until(over, std::chrono::microseconds(spin_us_), [&] {
    if (shares_core(rank, missing)) share_core(rank);
  });
}

bool RankPlacement::wait(int32_t rank, Over over, Missing missing) {
  if (spin_us_ <= 0) return over();
  if (spin(rank, over, missing)) return true;
  const size_t ranks = std::min(threads_.size(), kMostRanks);
  std::array<int64_t, kMostRanks> before{};
  for (size_t r = 0; r < ranks; ++r) {
    if (missing(static_cast<int32_t>(r))) before[r] = threads_[r].thread.load(std::memory_order_relaxed).processor_ns();
  }
  if (spin(rank, over, missing)) return true;
  for (size_t r = 0; r < ranks; ++r) {
    if (static_cast<int32_t>(r) == rank || !missing(static_cast<int32_t>(r))) continue;
    const ScheduledThread thread = threads_[r].thread.load(std::memory_order_relaxed);
    if (thread.processor_ns() != before[r]) continue;
    threads_[r].was_brought.store(true, std::memory_order_relaxed);
    thread.bring_here();
  }
  return over();
}

}  // namespace tutti::impl::collective::local
