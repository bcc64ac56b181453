// SPDX-License-Identifier: Apache-2.0
//
// What a run keeps of its steps, for whoever asks when it is over: the last losses, and samples, which are all numbers
// that a step reports, of one step in so many.
//
//   StepSamples *samples = trainer->samples();
//   samples->start(trainer->step() + 1, 100);           // that step, and every 100th behind it
//   TUTTI_TRY(trainer->run(samples->steps_until_full(trainer->step()), cancel));
//   for (size_t i = 0; i < samples->size(); ++i) draw(samples->moment(i).step, samples->names(), samples->values(i));
//   samples->clear();
//
// A sample costs a step what reading a few numbers does: nobody is woken, nothing is allocated.
//
// Threads: while steps run those of the first replica, else the trainer's caller.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_HISTORY_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "distribute/plan/state_plan.h"

namespace tutti::impl::distribute {

/// What a step reports, by the name that users know.
struct ReportEntry {
  std::string name;  ///< "loss", "learning_rate", of a metric or summary its own
  bool is_summary = false;
  const backend::StateEntry *entry = nullptr;
};
/// Numbers and tensors, in the order of the plan, which outlives them.
std::vector<ReportEntry> report_entries(const StatePlan &plan);

/// When a step that was sampled was done, and what its run had done by then.
struct SampleMoment {
  int64_t step = 0;           ///< since the beginning
  int64_t time_ns = 0;        ///< since 1970
  int64_t examples = 0;       ///< rows of the run
  int64_t input_wait_ns = 0;  ///< of the run: how long the first replica waited for its input
};

class StepSamples {
 public:
  /// Samples that are kept until clear(); later ones are not taken.
  static constexpr size_t kCapacity = 1024;

  /// Steps from `first` on, counted since the beginning, every so many; 0 = none. Those there are go.
  void start(int64_t first, int64_t every);
  bool is_on() const { return every_ > 0; }
  /// How many steps after `step` take the last sample that there is room for, at least 1; INT64_MAX where none do.
  int64_t steps_until_full(int64_t step) const;

  size_t size() const { return moments_.size(); }
  const SampleMoment &moment(size_t sample) const { return moments_[sample]; }
  /// In the order of names().
  std::span<const double> values(size_t sample) const {
    return {values_.data() + sample * names_.size(), names_.size()};
  }
  const std::vector<std::string> &names() const { return names_; }
  void clear();

  // For those who run the steps:
  void set_names(std::vector<std::string> names) { names_ = std::move(names); }
  bool is_due(int64_t step) const { return every_ > 0 && step >= next_ && moments_.size() < kCapacity; }
  /// One more; its values are to be filled in.
  std::span<double> add(const SampleMoment &moment);

 private:
  std::vector<std::string> names_;
  std::vector<SampleMoment> moments_;
  std::vector<double> values_;
  int64_t next_ = 0, every_ = 0;
};

/// Internal to this folder.
class StepHistory {
 public:
  explicit StepHistory(size_t capacity) : losses_(capacity) {}
  /// A run begins.
  void begin_run() { count_ = 0; }
  void add_loss(double loss) { losses_[count_++ % losses_.size()] = loss; }
  /// The last ones of the run, oldest first, as many as there is room for.
  std::vector<double> losses() const;
  StepSamples &samples() { return samples_; }

 private:
  std::vector<double> losses_;
  size_t count_ = 0;
  StepSamples samples_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_HISTORY_H_
