// SPDX-License-Identifier: Apache-2.0
//
// What a walk has cost, stage by stage, and which stage limits it. Every stage that Dataset::walk() opens is counted; a
// stage that does the work of several datasets at once (a shuffle over a mapped source, read by position) is counted as
// the last of them.
//
//   consumer ← prefetch ← batch ← map_callback ← slices
//               wait 2 s   self 0.1   self 7 s               7 s of work in 8 s: map_callback limits
//
// Times are those of calls: the time of a stage is how long who asked it has waited for it, its inputs included. Of
// calls that come often only some are timed, and the sum is scaled.
//
// Threads: a WalkReport may be used from any thread, also while the walk goes on; each StageCounters is written by the
// threads of its stage, one at a time.
#ifndef TUTTI_DATA_WALK_REPORT_H_
#define TUTTI_DATA_WALK_REPORT_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/stage.h"

namespace tutti::impl::data {

class StageCounters {
 public:
  /// One call, which gave `elements` (failing ones too) of `bytes` in all. `timed_ns` < 0: it was not timed.
  void add_call(int64_t elements, int64_t bytes, int64_t timed_ns);
  void add_failure() { add(failures_, 1); }
  /// Elements that waited in the stage's buffer when one was taken out.
  void add_depth(int64_t waiting);
  /// The stage hands over what `threads` of its own have prepared: its time is waiting for them.
  void mark_ahead(int64_t threads) { threads_.store(threads, std::memory_order_relaxed); }
  /// Work of one of these threads beside its inputs.
  void add_work(int64_t work_ns) { work_ns_.fetch_add(work_ns, std::memory_order_relaxed); }
  /// An error that was left out; the first few are kept as text.
  void add_ignored(const base::Status &status);
  /// Is the next call to be timed?
  bool wants_time() const;

  int64_t elements() const { return elements_.load(std::memory_order_relaxed); }
  int64_t time_ns() const;
  /// 0 when it has no threads of its own.
  int64_t threads() const { return threads_.load(std::memory_order_relaxed); }
  int64_t work_ns() const { return work_ns_.load(std::memory_order_relaxed); }
  base::JsonObject to_json() const;

 private:
  static void add(std::atomic<int64_t> &counter, int64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  std::atomic<int64_t> calls_{0}, elements_{0}, failures_{0}, bytes_{0};
  std::atomic<int64_t> timed_calls_{0}, timed_ns_{0};
  std::atomic<int64_t> depths_{0}, depth_sum_{0};
  std::atomic<int64_t> ignored_{0}, threads_{0}, work_ns_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> ignored_errors_;  // guarded by mutex_
};

class WalkReport {
 public:
  /// Those of a dataset's stages, which outlive the walk.
  StageCounters &counters_of(const Dataset &dataset);
  /// A stage that counts what `stage` does.
  std::unique_ptr<Stage> counted(const Dataset &dataset, std::unique_ptr<Stage> stage);

  /// {"elapsed_ms", "stages": [{"stage", "level", "elements", "failures", "bytes", "time_ms", "self_ms", ...}, ...],
  /// "limit": {"stage", "reason"}, "text"}: stages from the last transform to the sources, the text for people.
  base::Json to_json(const Dataset &last) const;

 private:
  const StageCounters *find(const Dataset &dataset) const;
  double time_ms(const Dataset &dataset) const;
  bool runs_ahead(const Dataset &dataset) const;
  double self_ms(const Dataset &dataset) const;
  void add_stages(const Dataset &dataset, int64_t level, base::JsonArray &stages, std::string &text) const;
  std::pair<std::string, std::string> limit(const Dataset &last, double elapsed_ms) const;

  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::map<const Dataset *, std::unique_ptr<StageCounters>> counters_;  // guarded by mutex_
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_WALK_REPORT_H_
