// SPDX-License-Identifier: Apache-2.0
//
// What replicas are told to run, and what they have done: one command for all replicas of a trainer, an outcome for
// each. Values; internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_RUN_COMMAND_H_
#define TUTTI_DISTRIBUTE_TRAIN_RUN_COMMAND_H_

#include <atomic>
#include <cstdint>

#include "distribute/plan/loss_scale.h"
#include "distribute/train/step_times.h"
#include "distribute/train/trainer.h"

namespace tutti::impl::distribute {

/// One command: run steps until a limit, the end of input or a stop.
struct RunCommand {
  int64_t feeder_step = 0;
  int64_t max_steps = 0;
  int64_t step = 0;           ///< completed before, of this model
  int64_t other_steps = 0;    ///< of step functions
  int64_t batch_counter = 0;  ///< micro-batches before
  int64_t seed = 0;
  LossScaleState loss_scale;
  bool stops = false;       ///< nothing is run, and all workers hear of it
  bool shows_rows = false;  ///< of summaries, on all workers (TrainProgramSet::showing)
  int64_t cancel_grace_ms = 0;
  std::atomic<int64_t> *completed_steps = nullptr;  ///< told after each step; null for all replicas but one
};

/// What one replica did; equal on all replicas but for waiting times.
struct RunOutcome {
  StopReason reason = StopReason::steps_done;
  int64_t steps = 0, examples = 0, batches = 0;
  int64_t input_wait_ns = 0;
  LossScaleState loss_scale;  ///< after the last step that was judged
  StepTimes times;
};

/// Set by the session, read by the replicas.
struct RunSignals {
  std::atomic<bool> stop{false};
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_RUN_COMMAND_H_
