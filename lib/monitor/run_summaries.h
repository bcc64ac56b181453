// SPDX-License-Identifier: Apache-2.0
//
// The summaries of one run: what training steps report, how fast they are, what evaluations give. Those of the training
// are in event files (event_file.h) of a folder, those of evaluations in its folder "eval", so that TensorBoard draws
// both as curves of one picture.
//
//   RunSummaries summaries({.folder = "run", .flush_secs = 10}, logger);
//   summaries.begin(500);                                 // a training goes on behind that step
//   summaries.add_steps(steps, names);                    // after some of them
//   summaries.add_evaluation(600, values);
//   summaries.flush();                                    // as before a checkpoint
//
// Beside the event files is the record of the run, run.jsonl: what each training and each evaluation came to, a line of
// JSON for each. Lines are whole: what a process leaves that is killed in one is ended before the next.
//
// What cannot be written, as on a full disk, is told the logger once, as a warning, and nobody else: a run goes on.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_MONITOR_RUN_SUMMARIES_H_
#define TUTTI_MONITOR_RUN_SUMMARIES_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/object.h"
#include "base/status.h"
#include "graph/graph.h"
#include "monitor/event_file.h"
#include "monitor/shown_summary.h"
#include "monitor/summary.h"

namespace tutti::impl::monitor {

struct RunSummaryOptions {
  std::string folder;  ///< empty: nothing is written
  double flush_secs = 10;
};

/// A step that is to be seen, and what the run had done when it was complete.
struct SeenStep {
  int64_t time_ns = 0;  ///< since 1970
  int64_t step = 0;
  int64_t examples = 0;            ///< rows since begin()
  int64_t input_wait_ns = 0;       ///< since begin(): how long steps waited for their input
  std::span<const double> values;  ///< what it reported
};

/// A value by its tag.
using TaggedValue = std::pair<std::string_view, double>;

class RunSummaries {
 public:
  RunSummaries(RunSummaryOptions options, base::Ref<base::Logger> logger);
  /// Flushes.
  ~RunSummaries();

  bool is_on() const { return !options_.folder.empty(); }
  const std::string &folder() const { return options_.folder; }
  /// A training begins behind `step`: what was written of later ones holds no more.
  void begin(int64_t step);
  /// The values by their names, and since the seen step before it, of this training, "global_step/sec", "examples/sec"
  /// and "input_wait_fraction"; with the last one, about once a second, "memory/resident_bytes" of the process.
  /// `names`: of the values of each.
  void add_steps(std::span<const SeenStep> steps, std::span<const std::string> names);
  /// To the summaries of the training.
  void add_values(int64_t step, std::span<const TaggedValue> values);
  /// What else is to be seen of a step.
  void add(int64_t step, const Summary &summary);
  /// What is trained, and how, the first time: the graph, and the settings as text and as hyper-parameters
  /// (hyperparameters.h). `time_ns`: as of SeenStep.
  void describe(int64_t time_ns, int64_t step, const graph::Graph &graph, const base::JsonObject &settings,
                std::span<const std::string> metrics);
  /// Whether that was done; describing it again does nothing.
  bool is_described() const { return is_described_.load(std::memory_order_relaxed); }
  /// To those of evaluations, with the step of the weights.
  void add_evaluation(int64_t step, std::span<const TaggedValue> values, std::span<const ShownSummary> shown = {});
  /// A line of the record: an object, with "event" and "time", seconds since 1970.
  void add_record(std::string_view event, base::Json object);

  /// Writes what has waited for flush_secs.
  void flush_if_due();
  void flush();

 private:
  /// Event files of a folder, and where the training has begun that nothing was written of yet.
  struct Curves {
    EventFile file;
    std::optional<int64_t> start = std::nullopt;
  };
  // Of the mutex's holder:
  /// To summary_.
  void add_rates(const SeenStep &step);
  void add_memory();
  /// What stands in summary_.
  void add(Curves &curves, int64_t time_ns, int64_t step);
  void add(Curves &curves, const Event &event);
  void note(const base::Status &status);
  base::Status append_record(const std::string &line) const;

  const RunSummaryOptions options_;
  const base::Ref<base::Logger> logger_;
  std::mutex mutex_;
  // Guarded by mutex_:
  Curves training_, evaluation_;
  Summary summary_;        // kept for its memory
  SeenStep last_;          // of this training, without its values; step -1: none
  int64_t memory_ns_ = 0;  // of the clock of base::now_ns(): when memory was looked at; 0: never
  bool has_warned_ = false;
  std::atomic<bool> is_described_{false};  // may be read by anyone
};

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_RUN_SUMMARIES_H_
