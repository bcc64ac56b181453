// SPDX-License-Identifier: Apache-2.0
//
// The replicas of one trainer with their threads, which live as long as the set, belong to the library and block all
// signals. A command goes to all of them; the caller sleeps until all have done it. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_REPLICA_SET_H_
#define TUTTI_DISTRIBUTE_TRAIN_REPLICA_SET_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cancel.h"
#include "base/thread.h"
#include "distribute/train/replica.h"
#include "distribute/train/run_command.h"
#include "distribute/train/step_history.h"

namespace tutti::impl::distribute {

class ReplicaSet {
 public:
  /// Starts a thread per replica.
  static base::Result<std::unique_ptr<ReplicaSet>> start(std::vector<std::unique_ptr<Replica>> replicas,
                                                         size_t history_capacity);
  ~ReplicaSet();

  size_t size() const { return workers_.size(); }
  Replica &replica(size_t index) { return *workers_[index]->replica; }

  /// Runs steps on all replicas and waits for them. When `cancel` rises (stop or cancel), or its deadline passes, or
  /// request_stop() is called, they stop at the next step boundary; after a cancel a step that waits longer than the
  /// command's grace for another rank is given up. The error is that of the replica that failed first, or found what
  /// the others only saw go wrong.
  base::Status run(const RunCommand &command, StepFeeder &feeder, const base::CancelToken *cancel, RunOutcome &outcome);
  void request_stop(StepFeeder &feeder);
  /// Of each replica in the last run: Replica::applied_steps().
  std::vector<int64_t> applied_steps() const;
  /// Of the last run.
  std::vector<double> losses() const { return history_.losses(); }
  StepSamples &samples() { return history_.samples(); }
  /// Of each replica, in the last run.
  std::vector<StepTimes> times() const;

 private:
  struct Worker {
    std::unique_ptr<Replica> replica;
    base::Status status;
    RunOutcome outcome;
    base::Thread thread;
  };

  explicit ReplicaSet(size_t history_capacity) : history_(history_capacity) {}
  void loop(Worker &worker);
  void give_up_step(std::unique_lock<std::mutex> &lock, int64_t grace_ms);
  base::Status first_failure() const;
  /// Counts the steps that any replica has applied; what becomes of the batches of the others.
  base::Status conclude(const base::Status &failure, const RunCommand &command, StepFeeder &feeder);

  std::vector<std::unique_ptr<Worker>> workers_;
  StepHistory history_;
  RunSignals signals_;

  std::mutex mutex_;
  std::condition_variable command_given_, all_done_;
  // Guarded by mutex_:
  RunCommand command_;
  StepFeeder *feeder_ = nullptr;
  int64_t command_number_ = 0;
  size_t running_ = 0;
  bool closing_ = false;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_REPLICA_SET_H_
