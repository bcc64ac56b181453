// SPDX-License-Identifier: Apache-2.0
//
// What a session has done so far: steps, rows, time, and the values of the last step.
//
// Threads: the session's.
#ifndef TUTTI_ESTIMATOR_SESSION_STATISTICS_H_
#define TUTTI_ESTIMATOR_SESSION_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "distribute/train/trainer.h"
#include "estimator/efficiency_watch.h"
#include "estimator/requests.h"
#include "estimator/run_state.h"

namespace tutti::impl::estimator {

class SessionStatistics {
 public:
  /// The session begins at the step where the trainer is. `replicas`: those of all workers.
  void begin(const distribute::Trainer &trainer, int64_t replicas);
  /// Goes on from the rows and the values of `run`.
  base::Status restore(const RunState &run);
  /// What is of them in a run state.
  void save(RunState &run) const;

  /// Counts what the trainer has done since the last call, also in a run that failed, which has no `report`. An error
  /// where the values of the last step cannot be read; all else is counted then.
  base::Status add(const distribute::Trainer &trainer, const distribute::RunReport *report);
  /// What to warn of since the last add(); "" = nothing.
  const std::string &warning() const { return warning_; }

  int64_t first_step() const { return first_step_; }
  /// Rows in this session.
  int64_t examples() const { return examples_; }
  /// Loss, learning rate and metrics of the last step.
  const std::vector<NamedNumber> &values() const { return values_; }
  /// NaN before the first step.
  double loss() const;
  /// Nanoseconds of all runs: how long steps waited for input, and in all.
  int64_t input_wait_ns() const { return input_wait_ns_; }
  int64_t run_ns() const { return run_ns_; }
  /// Of the last run of the trainer; 0 = not known.
  double secs_per_step() const { return secs_per_step_; }
  distribute::StepShares shares(const distribute::Trainer &trainer) const {
    distribute::StepShares shares = efficiency_.shares(trainer.device_names());
    shares.programs = trainer.counters().programs_built;
    return shares;
  }

  TrainResult result(const distribute::Trainer &trainer, EndReason reason) const;

 private:
  int64_t first_step_ = 0;
  int64_t examples_ = 0;
  int64_t former_examples_ = 0;   // of the model before this session
  int64_t counted_examples_ = 0;  // of the trainer's counter
  std::vector<NamedNumber> values_;
  int64_t input_wait_ns_ = 0, run_ns_ = 0;
  double secs_per_step_ = 0;
  EfficiencyWatch efficiency_;
  std::string warning_;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_SESSION_STATISTICS_H_
