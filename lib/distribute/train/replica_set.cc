// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/replica_set.h"

#include <algorithm>

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
  set->samples().set_names(set->replica(0).sampled_names());
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
  for (const auto &worker : workers_)
    worker->replica->drop_group();
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
    worker.status = worker.replica->run_steps(command, *feeder, signals_, history_, worker.outcome);
    std::lock_guard lock(mutex_);
    if (--running_ == 0) all_done_.notify_all();
  }
}

Status ReplicaSet::run(const RunCommand &command, StepFeeder &feeder, const base::CancelToken *cancel,
                       RunOutcome &outcome) {
  signals_.stop.store(false, std::memory_order_seq_cst);
  feeder.clear_interrupt();
  history_.begin_run();
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
  Status failure = first_failure();
  if (!failure.ok() && !workers_.front()->replica->group().error().ok()) TUTTI_TRY(conclude(failure, command, feeder));
  outcome = workers_.front()->outcome;
  if (!failure.ok()) {
    const Status cancelled = base::check(cancel);
    const bool is_end = failure.code() == base::Code::aborted || failure.code() == base::Code::cancelled;
    return is_end && !cancelled.ok() ? Status(cancelled).with_cause(failure) : failure;
  }
  TUTTI_TRY(waited);
  // A stop leaves the token's status ok, a cancel does not.
  return outcome.reason == StopReason::stopped ? base::check(cancel) : Status();
}

Status ReplicaSet::conclude(const Status &failure, const RunCommand &command, StepFeeder &feeder) {
  const auto is_behind = [](const auto &a, const auto &b) {
    return a->replica->applied_steps() < b->replica->applied_steps();
  };
  const Worker &ahead = **std::max_element(workers_.begin(), workers_.end(), is_behind);
  Worker &front = *workers_.front();
  return front.replica->conclude(*ahead.replica, failure, command, feeder, history_, front.outcome);
}

std::vector<int64_t> ReplicaSet::applied_steps() const {
  std::vector<int64_t> steps;
  for (const auto &worker : workers_)
    steps.push_back(worker->replica->applied_steps());
  return steps;
}

/// Ends the step under way after a cancel. No weight has changed when a wait ends early: the update begins after the
/// last collective operation of a step, which all ranks pass or none; where only the devices see whether it was ended,
/// some ranks may have passed it, and the trainer brings the others there.
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

/// How much an error says: ABORTED, that another replica failed; OUT_OF_RANGE, that a step went wrong for all.
static int weight_of(const Status &status) {
  if (status.ok()) return 0;
  if (status.code() == base::Code::aborted) return 1;
  return status.code() == base::Code::out_of_range ? 2 : 3;
}

Status ReplicaSet::first_failure() const {
  Status failure;
  for (const auto &worker : workers_) {
    if (weight_of(worker->status) > weight_of(failure)) failure = worker->status;
  }
  // All replicas have seen that, if not before the group ended.
  const bool is_of_all = weight_of(failure) == 2 && workers_.front()->replica->group().signals_end();
  return is_of_all ? failure.with_detail("rank", std::to_string(workers_.front()->replica->group().rank())) : failure;
}

}  // namespace tutti::impl::distribute
