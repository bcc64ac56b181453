// SPDX-License-Identifier: Apache-2.0
//
// Where a session goes on: what the last session of this estimator left, or the newest checkpoint of model_dir if that
// is further, or the first values of the model.
//
// Threads: the session's.
#ifndef TUTTI_ESTIMATOR_RESTORED_RUN_H_
#define TUTTI_ESTIMATOR_RESTORED_RUN_H_

#include "base/status.h"
#include "estimator/estimator_state.h"
#include "estimator/run_state.h"
#include "estimator/session_checkpoints.h"
#include "estimator/session_trainer.h"

namespace tutti::impl::estimator {

struct RestoredRun {
  RunState run;
  bool is_from_checkpoint = false;  ///< `run` is what a checkpoint of model_dir says
  SavedRun newest;                  ///< on disk
};

/// Gives a trainer that was opened its weights and slots. FAILED_PRECONDITION when the newest checkpoint is of another
/// model.
base::Result<RestoredRun> restore_run(EstimatorState &state, SessionTrainer &trainer);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_RESTORED_RUN_H_
