// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library: named, joined by who made them, with all signals blocked that are not of a thread's own
// doing: the host's handlers run on them for SIGSEGV and the like alone, which virtual machines need.
//
//   TUTTI_ASSIGN(Thread thread, Thread::start("tutti-saver", [this] { loop(); }));
//   TUTTI_ASSIGN(std::unique_ptr<ThreadPool> pool, ThreadPool::create("tutti-data", 4));
//   TUTTI_TRY(pool->parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) { ...; return Status(); }));
//
// A context has one ThreadBudget from which replicas, pipeline and kernels take their shares.
//
// After fork() the child has none of these threads: check_not_forked() says so at each entry that needs them.
#ifndef TUTTI_BASE_THREAD_H_
#define TUTTI_BASE_THREAD_H_

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "base/object.h"
#include "base/status.h"

namespace tutti::impl::base {

/// One running thread; movable, joined by its destructor.
class Thread {
 public:
  Thread() = default;
  /// Starts a thread. The name is cut to the 15 bytes Linux keeps. RESOURCE_EXHAUSTED when the system refuses. An
  /// exception that leaves `body` ends the thread quietly: a body reports errors by other ways.
  static Result<Thread> start(const std::string &name, std::function<void()> body);
  Thread(Thread &&other) noexcept;
  Thread &operator=(Thread &&other) noexcept;
  ~Thread() { join(); }

  /// Waits for its end; nothing when there is no thread.
  void join();
  bool running() const { return running_; }

 private:
  pthread_t thread_{};
  bool running_ = false;
};

/// Cores this process may use by its affinity mask and its control group, at least 1.
int32_t available_cores();

/// From the first call on, remembers the process; in a forked child of it: FAILED_PRECONDITION. Costs one load.
Status check_not_forked();

/// Counts threads against a limit; who wants threads asks first and gives back.
/// Threads: all functions may be called from any thread.
class ThreadBudget : public Object {
 public:
  explicit ThreadBudget(int32_t total) : total_(total < 1 ? 1 : total), free_(total_) {}

  /// A share of the budget, returned when it is destroyed.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease &&other) noexcept : budget_(std::move(other.budget_)), count_(std::exchange(other.count_, 0)) {}
    Lease &operator=(Lease &&other) noexcept;
    ~Lease();
    int32_t count() const { return count_; }

   private:
    friend class ThreadBudget;
    Lease(Ref<ThreadBudget> budget, int32_t count) : budget_(std::move(budget)), count_(count) {}
    Ref<ThreadBudget> budget_;
    int32_t count_ = 0;
  };

  /// Up to `wanted` threads, never fewer than `at_least` (which may overdraw the budget, so that nobody starves).
  Lease take(int32_t wanted, int32_t at_least);
  int32_t total() const { return total_; }
  /// Below zero when overdrawn.
  int32_t available() const;

 private:
  const int32_t total_;
  mutable std::mutex mutex_;
  int32_t free_;
};

/// A reference to a function that outlives the call it is passed to; no allocation.
template <typename Signature>
class FunctionRef;
template <typename R, typename... Arguments>
class FunctionRef<R(Arguments...)> {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F &, Arguments...>)
      FunctionRef(F &&function)
      : object_(const_cast<void *>(static_cast<const void *>(&function))),
        call_([](void *object, Arguments... arguments) -> R {
          return (*static_cast<std::remove_reference_t<F> *>(object))(std::forward<Arguments>(arguments)...);
        }) {}
  R operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  void *object_;
  R (*call_)(void *, Arguments...);
};

/// A fixed number of threads for short tasks and loops. Tasks that block belong into a pool of their own.
/// Threads: submit() and parallel_for() may be called from any thread, the pool's own included.
class ThreadPool {
 public:
  /// `count` threads named "<name>-<i>"; 0 is legal: tasks then run inside submit(), loops on the caller.
  static Result<std::unique_ptr<ThreadPool>> create(const std::string &name, int32_t count);
  /// Runs what was submitted, then joins.
  ~ThreadPool();

  int32_t thread_count() const { return static_cast<int32_t>(threads_.size()); }

  /// Runs a task on some thread later. FAILED_PRECONDITION after shut_down(). An exception in it is swallowed.
  Status submit(std::function<void()> task);
  /// Refuses new tasks, finishes the old ones, joins. Not from the pool's own threads.
  void shut_down();
  /// Waits until no task waits or runs (loops not counted). Not from the pool's own threads.
  void wait_idle();

  /// Calls body(from, to) for consecutive ranges of at most `grain` covering [begin, end), on the pool's threads and
  /// the caller. Returns after the last call; the status of a failing range (the first in order among those that ran)
  /// stops the handing out of further ranges. Allocates nothing; loops may be nested.
  Status parallel_for(int64_t begin, int64_t end, int64_t grain, FunctionRef<Status(int64_t, int64_t)> body);

 private:
  struct Loop;

  ThreadPool() = default;
  void work();
  bool has_work() const;
  /// Returns, with the lock, when there is some.
  void wait_for_work(std::unique_lock<std::mutex> &lock);
  static void run_task(const std::function<void()> &task);
  /// A loop with ranges not yet handed out.
  Loop *open_loop() const;
  void leave_loop(Loop *loop);
  static void run_ranges(Loop *loop);

  std::mutex mutex_;
  std::condition_variable work_arrived_;
  std::condition_variable became_idle_;
  std::condition_variable loop_left_;
  // Guarded by mutex_:
  std::deque<std::function<void()>> tasks_;
  Loop *loops_ = nullptr;
  int32_t running_tasks_ = 0;
  bool ending_ = false;
  /// Counts up with all that a thread may wait for; written with the lock, watched without it.
  std::atomic<uint32_t> arrivals_{0};
  /// Where the caller of the newest loop runs.
  std::atomic<int32_t> caller_core_{-1};

  std::vector<Thread> threads_;
  /// How long who waits spins before it sleeps.
  std::chrono::nanoseconds spin_time_{};
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_THREAD_H_
