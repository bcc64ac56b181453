// SPDX-License-Identifier: Apache-2.0
#include "base/scheduled_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace tutti::impl::base {

namespace {

/// Whose turn it is to change a thread's affinity mask for a moment: two at a time would put back each other's. Threads
/// share turns by their numbers.
std::array<std::atomic<bool>, 64> turns{};

/// Gives a thread the mask that `choose` makes of its own, and that back; whoever comes meanwhile moves nobody.
template <typename Choose>
void move(pid_t thread, Choose choose) {
  const int core = sched_getcpu();
  if (thread == 0 || core < 0 || core >= CPU_SETSIZE) return;
  std::atomic<bool> &turn = turns[static_cast<size_t>(thread) % turns.size()];
  if (turn.exchange(true, std::memory_order_acquire)) return;
  cpu_set_t before, wanted;
  if (sched_getaffinity(thread, sizeof before, &before) == 0 && choose(core, before, wanted)) {
    if (sched_setaffinity(thread, sizeof wanted, &wanted) == 0) (void)sched_setaffinity(thread, sizeof before, &before);
  }
  turn.store(false, std::memory_order_release);
}

}  // namespace

ScheduledThread ScheduledThread::current() {
  thread_local ScheduledThread self;
  if (self.id_ == 0 && pthread_getcpuclockid(pthread_self(), &self.clock_) == 0) {
    self.id_ = static_cast<pid_t>(syscall(SYS_gettid));
  }
  return self;
}

int64_t ScheduledThread::processor_ns() const {
  timespec time{};
  if (id_ == 0 || clock_gettime(clock_, &time) != 0) return -1;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void ScheduledThread::bring_here() const {
  move(id_, [](int core, const cpu_set_t &before, cpu_set_t &here) {
    CPU_ZERO(&here);
    CPU_SET(core, &here);
    return CPU_ISSET(core, &before) && CPU_COUNT(&before) > 1;
  });
}

void ScheduledThread::leave_core() {
  move(current().id_, [](int core, const cpu_set_t &before, cpu_set_t &others) {
    others = before;
    CPU_CLR(core, &others);
    return CPU_COUNT(&others) > 0;
  });
}

int32_t ScheduledThread::core() { return sched_getcpu(); }

}  // namespace tutti::impl::base
