// SPDX-License-Identifier: Apache-2.0
//
// A thread of this process as the scheduler of the system sees it: has it run, and could it run somewhere else. For
// threads that wait for one another: when the system leaves the one that has work in the queue of a busy core, the one
// that waits gives it its own.
//
//   const auto rank0 = ScheduledThread::current();                 // on that thread
//   const int64_t before = rank0.processor_ns();                   // on another one, which waits
//   if (rank0.processor_ns() == before) rank0.bring_here();        // it has not run: this core is about to be free
//
// Schedulers move a thread by themselves only after some milliseconds, since they take it for one with warm caches.
//
// Threads: a value; all functions from any thread. Of a thread that has ended nothing is known, and nothing happens.
// Systems other than Linux: likewise.
#ifndef TUTTI_BASE_SCHEDULED_THREAD_H_
#define TUTTI_BASE_SCHEDULED_THREAD_H_

#include <sys/types.h>
#include <time.h>

#include <cstdint>

namespace tutti::impl::base {

// As aligned as it is large, so that one can be read and changed as an atomic value without a lock.
class alignas(sizeof(pid_t) + sizeof(clockid_t)) ScheduledThread {
 public:
  /// No thread.
  ScheduledThread() = default;
  /// The calling one. Costs nothing after the first call on a thread.
  static ScheduledThread current();

  /// Processor time it has had, in nanoseconds, to the moment; -1 when that is not known.
  int64_t processor_ns() const;
  /// Moves it to the core of the calling thread, if its affinity mask allows that. The mask is the same afterwards.
  void bring_here() const;

  /// Moves the calling thread to some other core of its affinity mask, which is the same afterwards.
  static void leave_core();
  /// The core of the calling thread; -1 when that is not known.
  static int32_t core();

  friend bool operator==(const ScheduledThread &, const ScheduledThread &) = default;

 private:
  pid_t id_ = 0;
  clockid_t clock_{};
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_SCHEDULED_THREAD_H_
