// SPDX-License-Identifier: Apache-2.0
#include "base/scheduled_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tutti::impl::base {

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
  cpu_set_t before, here;
  const int core = sched_getcpu();
  if (id_ == 0 || core < 0 || core >= CPU_SETSIZE || sched_getaffinity(id_, sizeof before, &before) != 0) return;
  if (!CPU_ISSET(core, &before) || CPU_COUNT(&before) < 2) return;
  CPU_ZERO(&here);
  CPU_SET(core, &here);
  if (sched_setaffinity(id_, sizeof here, &here) == 0) (void)sched_setaffinity(id_, sizeof before, &before);
}

void ScheduledThread::leave_core() {
  cpu_set_t before, others;
  const int core = sched_getcpu();
  if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof before, &before) != 0) return;
  others = before;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof others, &others) == 0) (void)sched_setaffinity(0, sizeof before, &before);
}

int32_t ScheduledThread::core() { return sched_getcpu(); }

}  // namespace tutti::impl::base
