// SPDX-License-Identifier: Apache-2.0
#include "distribute/replica_set.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Result<std::unique_ptr<ReplicaSet>> ReplicaSet::start(std::vector<std::unique_ptr<Replica>> replicas,
                                                      size_t history_capacity) {
  std::unique_ptr<ReplicaSet> set(new ReplicaSet(history_capacity));
  for (size_t r = 0; r < replicas.size(); ++r) {
    set->workers_.push_back(std::make_unique<Worker>());
    set->workers_.back()->replica = std::move(replicas[r]);
  }
  for (size_t r = 0; r < set->workers_.size(); ++r) {
    Worker *worker = set->workers_[r].get();
    ReplicaSet *self = set.get();
    TUTTI_ASSIGN(worker->thread,
                 base::Thread::start("tutti-rank" + std::to_string(r), [self, worker] { self->loop(*worker); }));
  }
  return set;
}

ReplicaSet::~ReplicaSet() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  command_given_.notify_all();
  for (const auto &worker : workers_)
    worker->thread.join();
}

void ReplicaSet::loop(Worker &worker) {
  int64_t done = 0;
  for (;;) {
    RunCommand command;
    StepFeeder *feeder = nullptr;
    {
      std::unique_lock lock(mutex_);
      command_given_.wait(lock, [&] { return closing_ || command_number_ != done; });
      if (closing_) return;
      done = command_number_;
      command = command_;
      feeder = feeder_;
    }
    if (&worker != workers_.front().get()) command.completed_steps = nullptr;
    worker.outcome = RunOutcome();
    worker.status = worker.replica->run_steps(command, *feeder, signals_, losses_, worker.outcome);
    std::lock_guard lock(mutex_);
    if (--running_ == 0) all_done_.notify_all();
  }
}

Status ReplicaSet::run(const RunCommand &command, StepFeeder &feeder, const base::CancelToken *cancel,
                       RunOutcome &outcome) {
  signals_.stop.store(false, std::memory_order_seq_cst);
  feeder.clear_interrupt();
  losses_.clear();
  std::unique_lock lock(mutex_);
  command_ = command;
  feeder_ = &feeder;
  ++command_number_;
  running_ = workers_.size();
  command_given_.notify_all();
  const auto done = [&] { return running_ == 0; };
  const Status waited = base::wait_until(all_done_, lock, cancel, base::Deadline::never(),
                                         [&] { return done() || (cancel != nullptr && cancel->stop_requested()); });
  if (!done()) {
    lock.unlock();
    request_stop(feeder);
    lock.lock();
    // A stop may yet become a cancel.
    if (!base::wait_until(all_done_, lock, cancel, base::Deadline::never(), done).ok()) {
      give_up_step(lock, command.cancel_grace_ms);
    }
  }
  lock.unlock();
  outcome = workers_.front()->outcome;
  if (Status failure = first_failure(); !failure.ok()) {
    const Status cancelled = base::check(cancel);
    const bool is_end = failure.code() == base::Code::aborted || failure.code() == base::Code::cancelled;
    return is_end && !cancelled.ok() ? Status(cancelled).with_cause(failure) : failure;
  }
  TUTTI_TRY(waited);
  // A stop leaves the token's status ok, a cancel does not.
  return outcome.reason == StopReason::stopped ? base::check(cancel) : Status();
}

/// Ends the step under way after a cancel. No weight has changed when a wait ends early: the update begins after the
/// last collective operation of a step, which all ranks pass or none.
void ReplicaSet::give_up_step(std::unique_lock<std::mutex> &lock, int64_t grace_ms) {
  const auto done = [&] { return running_ == 0; };
  if (base::wait_until(all_done_, lock, nullptr, base::Deadline::after_ms(grace_ms), done).ok()) return;
  for (const auto &worker : workers_)
    worker->replica->group().abort(base::cancelled("a replica did not end its step within ", grace_ms, " ms"));
  all_done_.wait(lock, done);
}

void ReplicaSet::request_stop(StepFeeder &feeder) {
  signals_.stop.store(true, std::memory_order_seq_cst);
  feeder.interrupt();
}

std::vector<StepTimes> ReplicaSet::times() const {
  std::vector<StepTimes> times;
  for (const auto &worker : workers_)
    times.push_back(worker->outcome.times);
  return times;
}

Status ReplicaSet::first_failure() const {
  Status failure;
  for (const auto &worker : workers_) {
    if (worker->status.ok()) continue;
    // ABORTED only says that another replica failed.
    if (failure.ok() || failure.code() == base::Code::aborted) failure = worker->status;
  }
  return failure;
}

}  // namespace tutti::impl::distribute
