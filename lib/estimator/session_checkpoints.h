// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a session, where it saves any: the lock on model_dir, the thread that writes, what the newest one
// says, and which have come to be on disk.
//
//   TUTTI_TRY(checkpoints.lock());
//   TUTTI_TRY(checkpoints.prepare(spec));
//   TUTTI_TRY(checkpoints.start(newest));
//   TUTTI_TRY(checkpoints.save(trainer, run, cancel));   // queues it
//   for (const auto &[step, path] : checkpoints.take_arrived()) ...
//   TUTTI_TRY(checkpoints.close(cancel));                // all is on disk
//
// Threads: the session's.
#ifndef TUTTI_ESTIMATOR_SESSION_CHECKPOINTS_H_
#define TUTTI_ESTIMATOR_SESSION_CHECKPOINTS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/status.h"
#include "checkpoint/background_saver.h"
#include "checkpoint/reader.h"
#include "data/element/element.h"
#include "estimator/estimator_state.h"
#include "estimator/model_dir_lock.h"
#include "estimator/run_state.h"
#include "estimator/session_trainer.h"

namespace tutti::impl::estimator {

/// What the newest checkpoint, on disk or on its way there, says of the run.
struct SavedRun {
  int64_t step = -1;  // -1: there is none
  base::Json run, input;
};

class SessionCheckpoints {
 public:
  /// `state` outlives it.
  explicit SessionCheckpoints(EstimatorState &state) : state_(state) {}

  /// Makes model_dir this session's, without what killed writers left there, if this process saves: it is the first of
  /// the strategy's workers, or the only one, and the run has a place for checkpoints.
  base::Status lock();
  /// Makes the graph to predict with, which checkpoints of elements of this spec have.
  base::Status prepare(const data::ElementSpec &spec);
  /// Starts the thread, if this process saves. `newest`: what there is.
  base::Status start(SavedRun newest);

  /// start() has started it and neither close() nor abandon() has ended it.
  bool is_open() const { return saver_ != nullptr; }
  /// Ok, or the first failure of the disk.
  base::Status status() const { return saver_ ? saver_->status() : base::Status(); }
  int64_t newest_step() const { return newest_.step; }
  /// The newest one says the same.
  bool has(int64_t step, const RunState &run) const;
  /// Queues one of the trainer's current step; waits while others are written.
  base::Status save(SessionTrainer &trainer, const RunState &run, const base::CancelToken *cancel);
  /// Those that came to be on disk since the last call, each step once.
  std::vector<checkpoint::CheckpointName> take_arrived();
  /// Waits until everything is on disk. Nothing where none is open.
  base::Status close(const base::CancelToken *cancel);
  /// Ends the thread without waiting for the disk.
  void abandon() { saver_.reset(); }
  /// model_dir is free for others.
  void unlock() { lock_ = ModelDirLock(); }

 private:
  /// Whether this process writes what is on disk.
  bool saves() const { return state_.strategy()->workers().index == 0 && state_.config.saves_checkpoints(); }

  EstimatorState &state_;
  ModelDirLock lock_;
  std::string graph_text_;
  SavedRun newest_;
  int64_t announced_step_ = -1;  // of the newest one that take_arrived() has given
  std::mutex mutex_;
  std::vector<checkpoint::CheckpointName> arrived_;     // guarded by mutex_
  std::unique_ptr<checkpoint::BackgroundSaver> saver_;  // last: its thread uses what stands above
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_SESSION_CHECKPOINTS_H_
