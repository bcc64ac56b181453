// SPDX-License-Identifier: Apache-2.0
#include "estimator/training_goal.h"

#include <utility>

namespace tutti::impl::estimator {

using base::Status;

void TrainingGoal::restore(const RunState &run) {
  requested_epochs_ = run.requested_epochs;
  end_epoch_ = run.goal_epoch;
  is_finished_ = run.finished;
}

void TrainingGoal::save(RunState &run) const {
  run.requested_epochs = requested_epochs_;
  run.goal_epoch = end_epoch_;
  run.finished = is_finished_;
}

Status TrainingGoal::set(const TrainRequest &request, int64_t step, InputPasses &passes) {
  const int64_t interrupted = std::exchange(requested_epochs_, 0);
  const int64_t interrupted_end = std::exchange(end_epoch_, 0);
  is_finished_ = false;
  if (request.steps) {
    if (*request.steps > INT64_MAX - step) return base::invalid_argument("steps is too large: ", *request.steps);
    last_step_ = step + *request.steps;
  }
  if (request.max_steps) {
    last_step_ = *request.max_steps;
    if (step >= *last_step_) end(EndReason::max_steps);
  }
  if (!request.epochs) return Status();
  requested_epochs_ = *request.epochs;
  if (interrupted == *request.epochs && interrupted_end > passes.epoch()) {
    end_epoch_ = interrupted_end;
    return Status();
  }
  passes.leave();
  end_epoch_ = passes.epoch() + *request.epochs;
  return Status();
}

int64_t TrainingGoal::expected_end(const InputPasses &passes, int64_t step) const {
  if (last_step_) return *last_step_;
  return passes.step_after(end_epoch_ > 0 ? end_epoch_ - passes.epoch() : (passes.is_between() ? 0 : 1), step);
}

void TrainingGoal::end_pass(int64_t epoch, bool counts) {
  if (end_epoch_ == 0) {
    if (counts) reason_ = EndReason::end_of_input;
  } else if (epoch >= end_epoch_) {
    reason_ = EndReason::epochs;
  }
}

void TrainingGoal::close() {
  is_finished_ = is_reached();
  if (is_finished_) requested_epochs_ = end_epoch_ = 0;
}

}  // namespace tutti::impl::estimator
