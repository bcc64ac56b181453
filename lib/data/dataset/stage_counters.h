// SPDX-License-Identifier: Apache-2.0
//
// What is counted of one stage of a walk (walk_report.h says what it means), and sums over stages that do the same in
// several walks.
//
// Threads: a StageCounters is written by the threads of its stage, one at a time, and may be read from any.
#ifndef TUTTI_DATA_DATASET_STAGE_COUNTERS_H_
#define TUTTI_DATA_DATASET_STAGE_COUNTERS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"

namespace tutti::impl::data {

/// Of one stage, or of several together.
struct StageSums {
  int64_t calls = 0, elements = 0, failures = 0, bytes = 0;
  int64_t time_ns = 0;                ///< of calls, all of them
  int64_t depths = 0, depth_sum = 0;  ///< how often the depth of the buffer was looked at, and these together
  int64_t threads = 0;                ///< of its own; 0 = none
  int64_t work_ns = 0, full_ns = 0;   ///< of these threads together
  int64_t arrival_ns = 0;
  int64_t idle_ns = 0;  ///< between calls
  int64_t ignored = 0;
  std::vector<std::string> ignored_errors;

  void add(const StageSums &other);
};

class StageCounters {
 public:
  /// One call, which gave `elements` (failing ones too) of `bytes` in all. `timed_ns` < 0: it was not timed.
  void add_call(int64_t elements, int64_t bytes, int64_t timed_ns);
  void add_failure() { add(failures_, 1); }
  /// Elements that lay ready in the stage's buffer when one was taken out.
  void add_depth(int64_t waiting);
  /// The stage hands over what `threads` of its own have prepared: its time is waiting for them.
  void mark_ahead(int64_t threads) { threads_.store(threads, std::memory_order_relaxed); }
  /// Of these threads together: work beside their inputs, and standing still while there was no room for more.
  void add_work(int64_t work_ns) { work_ns_.fetch_add(work_ns, std::memory_order_relaxed); }
  void add_full(int64_t full_ns) { full_ns_.fetch_add(full_ns, std::memory_order_relaxed); }
  /// Waiting for elements that come from no other stage.
  void add_arrival(int64_t wait_ns) { add(arrival_ns_, wait_ns); }
  /// An error that was left out; the first few are kept as text.
  void add_ignored(const base::Status &status);
  /// What the time of call `number` counts, where not every call is timed; 0 = it is not timed.
  static int64_t weight_of(int64_t number);
  /// Is the call that comes next, or is under way, to be timed?
  bool wants_time() const { return weight_of(calls_.load(std::memory_order_relaxed)) > 0; }
  /// Before the first call: the stage's life begins.
  void mark_begin(int64_t now_ns) { begin_ns_.store(now_ns, std::memory_order_relaxed); }
  bool has_begun() const { return begin_ns_.load(std::memory_order_relaxed) != 0; }

  /// What has been counted until now.
  StageSums sums(int64_t now_ns) const;

 private:
  static void add(std::atomic<int64_t> &counter, int64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  std::atomic<int64_t> calls_{0}, elements_{0}, failures_{0}, bytes_{0};
  std::atomic<int64_t> timed_calls_{0}, timed_ns_{0};
  std::atomic<int64_t> depths_{0}, depth_sum_{0};
  std::atomic<int64_t> ignored_{0}, threads_{0}, work_ns_{0}, full_ns_{0}, arrival_ns_{0}, begin_ns_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> ignored_errors_;  // guarded by mutex_
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_STAGE_COUNTERS_H_
