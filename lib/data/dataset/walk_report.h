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
// The datasets that a function makes (flat_map) are stages behind the one whose function it is: all that it has made
// until now together, those of equal names as one.
//
// Threads: a WalkReport may be used from any thread, also while the walk goes on.
#ifndef TUTTI_DATA_DATASET_WALK_REPORT_H_
#define TUTTI_DATA_DATASET_WALK_REPORT_H_

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
#include "data/dataset/dataset.h"
#include "data/dataset/stage.h"
#include "data/dataset/stage_counters.h"
#include "data/dataset/stage_tree.h"

namespace tutti::impl::data {

class MadeDatasets;

class WalkReport {
 public:
  using Now = int64_t (*)();  // nanoseconds since whenever

  /// Of a walk over `last`. A test may have a clock of its own.
  explicit WalkReport(DatasetRef last, Now now = base::now_ns);
  ~WalkReport();
  WalkReport(const WalkReport &) = delete;
  WalkReport &operator=(const WalkReport &) = delete;

  /// A report for a walk over a dataset that a function of `stage` has made. What it counts appears in this one, where
  /// it is added to that of the others.
  std::shared_ptr<WalkReport> of_made(const Dataset &stage, DatasetRef made);

  /// Those of a dataset's stages, which outlive the walk.
  StageCounters &counters_of(const Dataset &dataset);
  /// What a stage is called here and in errors: its kind; "map #2 of 3", counted from the sources, where the walk has
  /// several of that kind; "flat_map/map" in a dataset that a function has made.
  std::string name_of(const Dataset &dataset) const;

  /// {"elapsed_ms", "stages": [{"stage", "level", "is_counted", "elements", "failures", "bytes", "time_ms", "busy_ms",
  /// "wait_in_ms", "wait_out_ms", "threads", "mean_depth", ...}, ...], "limit": {"stage", "reason"}, "text"}: stages
  /// from the last transform to the sources, the text for people.
  base::Json to_json() const { return tree().to_json(static_cast<double>(now_() - started_ns_) * 1e-6); }

 private:
  friend class MadeDatasets;
  struct Entry {
    std::unique_ptr<StageCounters> counters;
    std::shared_ptr<MadeDatasets> made;
  };
  using Names = std::map<const Dataset *, std::string>;

  WalkReport(DatasetRef last, Now now, std::shared_ptr<MadeDatasets> into);
  Names names() const;
  StageTree tree() const;
  StageTree tree(const Dataset &dataset, const Names &names) const;

  const DatasetRef last_;
  const Now now_;
  const int64_t started_ns_;
  const std::shared_ptr<MadeDatasets> into_;  // of a dataset that a function made
  mutable std::mutex mutex_;
  std::map<const Dataset *, Entry> entries_;  // guarded by mutex_
};

/// A stage that counts what `stage` does, in the report of the context, which has one; names it in its errors; and asks
/// it for nothing more once the walk is interrupted (interrupt_check.h).
std::unique_ptr<Stage> counted(const IteratorContext &context, const Dataset &dataset, std::unique_ptr<Stage> stage);
/// An access whose errors name the dataset that it belongs to.
std::unique_ptr<RandomAccess> named(const IteratorContext &context, const Dataset &dataset,
                                    std::unique_ptr<RandomAccess> access);
/// The error of a stage with the detail stage; as it is if it has one, is an interrupt, or `report` is null.
base::Status in_stage(const base::Status &status, const WalkReport *report, const Dataset &dataset);

/// The counters of a stage that counts more than its calls; null when nobody counts.
inline StageCounters *counters_in(const IteratorContext &context, const Dataset &dataset) {
  return context.report != nullptr ? &context.report->counters_of(dataset) : nullptr;
}

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_WALK_REPORT_H_
