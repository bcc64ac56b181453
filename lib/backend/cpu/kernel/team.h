// SPDX-License-Identifier: Apache-2.0
//
// The threads of one logical device. A program with T threads cuts its larger kernels into parts (kernel.h); the thread
// that runs the program takes parts from the front, up to T - 1 threads of the team take them from the back until none
// is left. Nobody waits for a thread that has not come: on a busy machine the caller does more of the parts itself.
//
//   TUTTI_ASSIGN(std::shared_ptr<Team> team, Team::of_device(backend, 0, 2));
//   team->run(8, 2, [&](int32_t part, int32_t thread) { ... });     // returns when all eight are done
//
// Which thread does a part is left to chance, so a part must not depend on it but for its scratch: `thread` is 0 for
// the caller and below T, and one thread does one part at a time.
//
// Threads: run() may be called from any thread. While one call has the team, others do their parts alone, and so does a
// part that calls run(). A call takes no lock and no memory; it enters the kernel only to wake threads that sleep.
// Threads without work spin 60 us (not at all when the process has fewer cores than the team has threads), then sleep.
// They flush denormal numbers as the caller does, block all signals, and tell OpenMP that they are one thread each:
// libraries called from a part make no threads of their own.
//
// Lives as long as somebody holds it; the last holder waits until the threads have ended.
#ifndef TUTTI_BACKEND_CPU_KERNEL_TEAM_H_
#define TUTTI_BACKEND_CPU_KERNEL_TEAM_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/spin.h"
#include "base/status.h"
#include "base/thread.h"

namespace tutti::impl::backend::cpu {

class Team {
 public:
  using Body = base::FunctionRef<void(int32_t part, int32_t thread)>;

  /// Between kernels that are cut up there are some that are not, for tens of microseconds; a thread that slept then
  /// took as long again to wake, and its part was done by the caller.
  static constexpr std::chrono::microseconds kSpinTime{60};
  static constexpr int32_t kMostThreads = 256;
  static constexpr int32_t kMostParts = 4095;

  Team() = default;
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;
  ~Team();

  /// The team of logical device `device` of a backend, with at least `threads` threads, the caller's included.
  /// RESOURCE_EXHAUSTED when the system gives no more threads.
  static base::Result<std::shared_ptr<Team>> of_device(const void *backend, int32_t device, int32_t threads);

  /// Makes the team at least so large. Threads: any, also while others run().
  base::Status grow(int32_t threads);
  /// The caller's thread included.
  int32_t size() const { return size_.load(std::memory_order_relaxed); }

  /// Calls body(part, thread) once for each of `parts` (at most kMostParts), with at most `threads` threads. The first
  /// exception of a part is thrown here when all have ended.
  void run(int32_t parts, int32_t threads, Body body);

 private:
  void work(int32_t thread);
  /// Does parts from the back; how many.
  int32_t help(int32_t thread);
  bool may_help(uint64_t word, int32_t thread) const;
  /// Does one part of the job.
  void call(int32_t part, int32_t thread) noexcept;
  void rethrow();
  void wait_for_work(int32_t thread);
  void wait_for_helpers();
  std::chrono::nanoseconds spin_time() const {
    return spins_.load(std::memory_order_relaxed) ? kSpinTime : std::chrono::nanoseconds::zero();
  }

  /// The job under way: number of the job (32 bits), how many helpers it may have (8), first part not taken (12), end
  /// of the parts not taken (12). Whoever changes it from a value with parts left owns one of them.
  alignas(64) std::atomic<uint64_t> word_{0};
  const Body *body_ = nullptr;  // of the job; read by owners of a part only
  std::atomic<bool> has_thrown_{false};
  std::exception_ptr thrown_;  // of the part that set has_thrown_; read when all have ended
  alignas(64) std::atomic<int32_t> unfinished_{0};
  std::atomic<int32_t> caller_sleeps_{0};
  alignas(64) std::atomic<uint32_t> wake_count_{0};
  std::atomic<int32_t> sleepers_{0};  // at least as many as sleep, or are about to, and were not rung for
  std::atomic<bool> taken_{false};    // some caller has the team
  std::atomic<bool> closing_{false};
  std::atomic<int32_t> size_{1};
  std::atomic<bool> spins_{false};

  std::mutex mutex_;
  std::vector<base::Thread> threads_;  // guarded by mutex_
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_TEAM_H_
