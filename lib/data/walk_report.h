// SPDX-License-Identifier: Apache-2.0
//
// What a walk has cost, stage by stage, and which stage limits it. Every stage that Dataset::walk() opens is counted; a
// stage that does the work of several datasets at once (a shuffle over a mapped source, read by position) is counted as
// the last of them.
//
//   consumer ← prefetch ← batch ← map_callback ← slices
//               wait 2 s   busy 0.1   busy 7 s               7 s of work in 8 s: map_callback limits
//
// Times are those of calls: the time of a stage is how long who asked it has waited for it, its inputs included. Of
// calls that come often only some are timed, and the sum is scaled. Every stage has
//
//   elements, bytes  what it gave; a failing element counts
//   busy             its own work: its time without that of its inputs; with threads of its own, the work of one
//   wait in          how long its inputs were waited for; of a feed: how long nothing had been pushed
//   wait out         how long it stood still because nobody wanted more: nobody asked, or its buffer was full; with
//                    threads of its own, one of them
//   depth            elements that lay ready in its buffer when one was taken out, on average. Only where others than
//                    who asks fill the buffer: prefetch, feed, and with threads of their own map, map_callback,
//                    interleave, interleave_callback and flat_map. What a shuffle or a bucket holds is its material,
//                    not a queue, and all other stages hold nothing.
//
// Threads: a WalkReport may be used from any thread, also while the walk goes on; each StageCounters is written by the
// threads of its stage, one at a time.
#ifndef TUTTI_DATA_WALK_REPORT_H_
#define TUTTI_DATA_WALK_REPORT_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/trace.h"
#include "data/dataset.h"
#include "data/stage.h"

namespace tutti::impl::data {

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

  int64_t elements() const { return elements_.load(std::memory_order_relaxed); }
  int64_t time_ns() const;
  /// 0 when it has no threads of its own.
  int64_t threads() const { return threads_.load(std::memory_order_relaxed); }
  int64_t work_ns() const { return work_ns_.load(std::memory_order_relaxed); }
  int64_t arrival_ns() const { return arrival_ns_.load(std::memory_order_relaxed); }
  /// Does it have a buffer that was asked for something?
  bool has_depth() const { return depths_.load(std::memory_order_relaxed) > 0; }
  double mean_depth() const;
  /// What is called wait out above.
  int64_t wait_out_ns(int64_t now_ns) const;
  /// What is counted here, without what comes of other stages.
  base::JsonObject to_json() const;

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

class WalkReport {
 public:
  using Now = int64_t (*)();  // nanoseconds since whenever

  /// A test may have a clock of its own.
  explicit WalkReport(Now now = base::now_ns) : now_(now), started_ns_(now()) {}

  /// Those of a dataset's stages, which outlive the walk.
  StageCounters &counters_of(const Dataset &dataset);
  /// A stage that counts what `stage` does.
  std::unique_ptr<Stage> counted(const Dataset &dataset, std::unique_ptr<Stage> stage);

  /// {"elapsed_ms", "stages": [{"stage", "level", "is_counted", "elements", "failures", "bytes", "time_ms", "busy_ms",
  /// "wait_in_ms", "wait_out_ms", "threads", "mean_depth", ...}, ...], "limit": {"stage", "reason"}, "text"}: stages
  /// from the last transform to the sources, the text for people.
  base::Json to_json(const Dataset &last) const;

 private:
  const StageCounters *find(const Dataset &dataset) const;
  /// The stages that a stage draws from: its inputs, and behind those that are part of it, theirs.
  std::vector<const Dataset *> inputs_of(const Dataset &dataset) const;
  double time_ms(const Dataset &dataset) const;
  bool runs_ahead(const Dataset &dataset) const;
  double busy_ms(const Dataset &dataset) const;
  double wait_in_ms(const Dataset &dataset) const;
  void add_stage(const Dataset &dataset, const StageCounters &counters, base::JsonObject &object,
                 std::string &text) const;
  void add_stages(const Dataset &dataset, int64_t level, base::JsonArray &stages, std::string &text) const;
  std::pair<std::string, std::string> limit(const Dataset &last, double elapsed_ms) const;

  const Now now_;
  const int64_t started_ns_;
  mutable std::mutex mutex_;
  std::map<const Dataset *, std::unique_ptr<StageCounters>> counters_;  // guarded by mutex_
};

/// The counters of a stage that counts more than its calls; null when nobody counts.
inline StageCounters *counters_in(const IteratorContext &context, const Dataset &dataset) {
  return context.report != nullptr ? &context.report->counters_of(dataset) : nullptr;
}

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_WALK_REPORT_H_
