// SPDX-License-Identifier: Apache-2.0
//
// Running and ending a training session.
#include "estimator/train_session.h"

#include <algorithm>
#include <utility>

#include "base/exceptions.h"
#include "base/function_token.h"
#include "base/trace.h"
#include "tensor/packed_pieces.h"

namespace tutti::impl::estimator {

using base::Json;
using base::Ref;
using base::Result;
using base::Status;

namespace {

// How long the caller sleeps at most before it looks for events.
constexpr double kLongestSleepSecs = 0.5;

double now_secs() { return static_cast<double>(base::now_ns()) * 1e-9; }

}  // namespace

TrainSession::~TrainSession() {
  std::optional<RunState> run;  // none without the memory for it
  (void)base::without_exceptions([&] {
    if (trainer_.is_open() && begun_ && !closed_)
      trainer_->leave_workers(base::unavailable("the training session of a worker was abandoned"));
    run = resumable();
    return Status();
  });
  release(std::move(run));
}

// Running

Result<SessionReport> TrainSession::run(const RunLimit &limit) {
  if (closed_) return base::failed_precondition("the training session is closed");
  if (!failure_.ok()) return base::failed_precondition("the training session has failed").with_cause(failure_);
  const base::FunctionToken functions(request_.cancel);
  Result<SessionReport> report = run_steps(limit);
  if (report.ok()) return report;
  return fail(report.status());
}

Result<SessionReport> TrainSession::run_steps(const RunLimit &limit) {
  const int64_t begin = step(), waited = statistics_.input_wait_ns(), examples = statistics_.examples();
  const int64_t end = limit.steps < 0 || limit.steps > INT64_MAX - begin ? INT64_MAX : begin + limit.steps;
  const std::optional<int64_t> &goal_step = goal_.last_step();
  for (bool paused = false; !goal_.reason() && !paused;) {
    if (const Status status = pump(); !status.ok()) {
      if (!base::check(request_.cancel.get()).ok()) (void)trainer_.stop_workers(request_.cancel.get());
      return status;
    }
    if (goal_step && step() >= *goal_step) {
      goal_.end(EndReason::max_steps);
    } else if (const auto reason = stop_wanted()) {
      TUTTI_TRY(stop(*reason));
    } else if (step() >= end) {
      paused = true;
    } else {
      TUTTI_ASSIGN(const bool pass_ended, run_chunk(std::min(end, goal_step.value_or(INT64_MAX))));
      paused = pass_ended && limit.until_epoch_end;
    }
  }
  return SessionReport{
      .reason = goal_.reason(),
      .step = step(),
      .steps = step() - begin,
      .examples = statistics_.examples() - examples,
      .loss = statistics_.loss(),
      .input_wait_seconds = 1e-9 * static_cast<double>(statistics_.input_wait_ns() - waited),
      .metrics = statistics_.values(),
  };
}

Result<distribute::StepFunctionReport> TrainSession::run_step_function(std::string_view function,
                                                                       std::vector<tensor::Tensor> batch) {
  if (closed_ || !failure_.ok()) return base::failed_precondition("the training session has ended");
  TUTTI_TRY(base::check(request_.cancel.get()));
  Result<distribute::StepFunctionReport> report =
      trainer_.run_step_function(function, std::move(batch), request_.cancel.get());
  state_->completed_steps.store(step(), std::memory_order_relaxed);
  return report;
}

Result<std::vector<tensor::Tensor>> TrainSession::step_output(std::string_view function, std::string_view output) {
  if (closed_ || !failure_.ok()) return base::failed_precondition("the training session has ended");
  std::vector<tensor::Tensor> pieces;
  for (int32_t replica = 0; replica < state_->strategy()->replica_count(); ++replica) {
    TUTTI_ASSIGN(tensor::Tensor piece, trainer_->step_output(function, output, replica));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Result<std::vector<std::string>> TrainSession::step_outputs(std::string_view function) const {
  if (closed_ || !failure_.ok()) return base::failed_precondition("the training session has ended");
  return trainer_->step_outputs(function);
}

Result<std::vector<tensor::Tensor>> TrainSession::pieces_of_all(std::span<const tensor::Tensor> own) {
  if (state_->strategy()->workers().count == 1) return std::vector<tensor::Tensor>(own.begin(), own.end());
  if (closed_ || !failure_.ok()) return base::failed_precondition("the training session has ended");
  TUTTI_ASSIGN(const auto all, trainer_.exchange_with_workers(tensor::pieces_to_bytes(own), request_.cancel.get()));
  std::vector<tensor::Tensor> pieces;
  for (const std::vector<std::byte> &bytes : all)
    TUTTI_TRY(tensor::pieces_from_bytes(bytes, pieces));
  return pieces;
}

// Runs to the next step that somebody wants to see. True when it ended a pass.
Result<bool> TrainSession::run_chunk(int64_t last_step) {
  if (passes_.is_between()) TUTTI_TRY(passes_.attach(*trainer_));
  const bool shows = begin_showing();
  const Result<distribute::RunReport> ran = trainer_.run(chunk_steps(last_step), request_.cancel.get());
  const Status accounted = account(ran.ok() ? &*ran : nullptr);
  TUTTI_TRY(ran);
  TUTTI_TRY(accounted);
  if (step() >= next_histogram_) write_histograms();
  if (shows && ran->steps > 0) TUTTI_TRY(write_shown());
  const distribute::RunReport &report = *ran;
  if (report.steps > 0) {
    Event event = event_of(EventKind::step);
    event.values = statistics_.values();
    TUTTI_ASSIGN(const bool stop, hooks_.send_step(event, now_secs()));
    hook_stop_ |= stop;
  }
  if (report.reason == distribute::StopReason::stopped) {
    TUTTI_TRY(base::check(request_.cancel.get()));
    goal_.end(EndReason::stopped);
  }
  if (report.reason != distribute::StopReason::end_of_input) return false;
  TUTTI_TRY(end_pass());
  return true;
}

int64_t TrainSession::chunk_steps(int64_t last_step) const {
  const double secs = std::min({kLongestSleepSecs, hooks_.secs_until_due(now_secs()), secs_left()});
  const double secs_per_step = statistics_.secs_per_step();
  // The first chunk of a session measures: one step.
  const double affordable = secs_per_step > 0 ? std::min(secs / secs_per_step, 1e9) : 1;
  int64_t wanted = std::min(last_step - step(), hooks_.steps_until_due(step()));
  if (const distribute::StepSamples *samples = trainer_->samples(); samples != nullptr)
    wanted = std::min(wanted, samples->steps_until_full(step()));
  wanted = std::min(wanted, next_histogram_ - step());
  wanted = std::min(wanted, is_shown_next() ? 1 : next_shown_ - 1 - step());
  return std::clamp<int64_t>(static_cast<int64_t>(affordable), 1, std::max<int64_t>(wanted, 1));
}

// Counts what was done; steps of a run that failed later are done too.
Status TrainSession::account(const distribute::RunReport *report) {
  const int64_t examples = statistics_.examples(), input_wait_ns = statistics_.input_wait_ns();
  Status added = statistics_.add(*trainer_, report);
  passes_.add_examples(statistics_.examples() - examples);
  state_->completed_steps.store(step(), std::memory_order_relaxed);
  if (!statistics_.warning().empty()) state_->logger().warning(statistics_.warning());
  if (report != nullptr && state_->summaries.is_on()) distribute::add_times(device_times_, report->times);
  write_summaries(examples, input_wait_ns);
  return added;
}

Status TrainSession::end_pass() {
  TUTTI_ASSIGN(const bool counts, passes_.end(step()));
  goal_.end_pass(passes_.epoch(), counts);
  Event event = event_of(EventKind::epoch_end);
  event.values = statistics_.values();
  return send(event);
}

// What arrived while the caller slept.
Status TrainSession::pump() {
  TUTTI_TRY(base::check(request_.cancel.get()));
  TUTTI_TRY(checkpoints_.status());
  for (const auto &[saved_step, path] : checkpoints_.take_arrived()) {
    Event event = event_of(EventKind::checkpoint_saved);
    event.step = saved_step;
    event.checkpoint_path = path;
    TUTTI_TRY(send(event));
  }
  return Status();
}

// Ends the run of all workers.
Status TrainSession::stop(EndReason reason) {
  const Status told = trainer_.stop_workers(request_.cancel.get());
  TUTTI_TRY(base::check(request_.cancel.get()));  // it may be a cancel that came after pump() looked
  TUTTI_TRY(told);
  goal_.end(reason);
  return Status();
}

Status TrainSession::send(const Event &event) {
  TUTTI_ASSIGN(const bool stop, hooks_.send(event));
  hook_stop_ |= stop;
  return Status();
}

Event TrainSession::event_of(EventKind kind) const {
  Event event;
  event.kind = kind;
  event.step = step();
  event.epoch = passes_.epoch() - (passes_.is_between() ? 1 : 0);
  event.examples = statistics_.examples();
  event.goal_step = goal_.expected_end(passes_, step());
  event.control = const_cast<TrainSession *>(this);
  return event;
}

std::optional<EndReason> TrainSession::stop_wanted() const {
  if (hook_stop_ || (request_.cancel && request_.cancel->stop_requested())) return EndReason::stopped;
  if (secs_left() <= 0) return EndReason::max_seconds;
  return std::nullopt;
}

double TrainSession::secs_left() const { return deadline_secs_ - now_secs(); }

Status TrainSession::send_evaluated(const EvaluateResult &result) {
  if (closed_ || !failure_.ok()) return base::failed_precondition("the training session has ended");
  Event event = event_of(EventKind::evaluated);
  event.step = result.global_step;
  event.values = result.values;
  const Status status = send(event);
  return status.ok() ? status : fail(status);
}

Result<Ref<checkpoint::WeightVersion>> TrainSession::publish() {
  if (closed_ || !failure_.ok()) return base::failed_precondition("the training session has ended");
  return trainer_.publish(false);
}

// Saving

RunState TrainSession::run_state() const {
  RunState run = *run_before_;
  passes_.save(run);
  goal_.save(run);
  statistics_.save(run);
  trainer_.save(run);
  run.hooks = hooks_.save();
  return run;
}

// `finished`: the goal is reached, so nothing is left of it for a later call.
Status TrainSession::save(bool finished) {
  if (!checkpoints_.is_open()) return Status();
  state_->summaries.flush();  // a run that goes on from the checkpoint finds those of its steps
  RunState run = run_state();
  if (finished) run.requested_epochs = run.goal_epoch = 0;
  run.finished = finished;
  TUTTI_ASSIGN(run.input, passes_.position(*trainer_));
  if (checkpoints_.has(step(), run)) return Status();
  return checkpoints_.save(trainer_, run, request_.cancel.get());
}

// Waits until everything is on disk.
Status TrainSession::finish_saving() {
  if (!checkpoints_.is_open()) return Status();
  TUTTI_TRY(checkpoints_.close(request_.cancel.get()));
  return pump();
}

// Ending

Result<TrainResult> TrainSession::close() {
  if (closed_) return base::failed_precondition("the training session is closed");
  if (!failure_.ok()) {
    closed_ = true;
    return failure_;
  }
  const base::FunctionToken functions(request_.cancel);
  goal_.end(EndReason::stopped);
  if (const Status status = finish(); !status.ok()) {
    const Status failure = fail(status);
    closed_ = true;
    return failure;
  }
  closed_ = true;
  const TrainResult all = statistics_.result(*trainer_, *goal_.reason());
  log_.end(*trainer_, statistics_);
  write_record(Status());
  release(resumable());
  return all;
}

Status TrainSession::close_variables(bool changed) {
  const bool is_on_disk = !changed && checkpoints_.newest_step() == step();
  Status status = checkpoints_.is_open() && !is_on_disk
                      ? checkpoints_.save(trainer_, *run_before_, request_.cancel.get())
                      : trainer_.publish(false).status();
  if (status.ok()) status = finish_saving();
  if (!status.ok()) return fail(status);
  closed_ = true;
  release(resumable());
  return Status();
}

Status TrainSession::finish() {
  if (checkpoints_.is_open()) {
    TUTTI_TRY(save(goal_.is_reached()));
  } else if (statistics_.first_step() != step()) {
    TUTTI_TRY(publish());
  }
  TUTTI_TRY(finish_saving());
  state_->summaries.flush();
  goal_.close();
  if (!begun_) return Status();
  Event event = event_of(EventKind::end);
  event.values = statistics_.values();
  return send(event);
}

// What a run that fails still does: keep what it has, and tell.
Status TrainSession::fail(Status status) {
  failure_ = status;
  const bool given_up = request_.cancel && !request_.cancel->check().ok();
  passes_.cancel_reading();  // it may be a read that never ends
  if (trainer_.is_open()) trainer_->leave_workers(status);
  if (!given_up && checkpoints_.is_open() && checkpoints_.status().ok()) {
    Status saved = save(false);
    if (saved.ok()) saved = checkpoints_.close(nullptr);
    if (!saved.ok()) state_->logger().error("the final checkpoint is missing: ", saved.to_string());
  }
  state_->summaries.flush();
  write_record(status);
  Event event = event_of(EventKind::error);
  event.error = status;
  event.control = nullptr;
  if (const Result<bool> sent = hooks_.send(event); !sent.ok()) state_->logger().warning(sent.status().to_string());
  keep_for_resuming();
  release(std::nullopt);
  return status;
}

// A trainer that failed may be of no use any more, but its last complete step is.
void TrainSession::keep_for_resuming() {
  Result<Ref<checkpoint::WeightVersion>> version = trainer_.publish(true);
  Result<Json> input = passes_.position(*trainer_);
  if (!version.ok() || !input.ok()) return;
  RunState run = run_state();
  run.input = input.take();
  state_->resume_version = version.take();
  state_->run_state = std::move(run);
}

std::optional<RunState> TrainSession::resumable() const {
  if (!permitted_ || !failure_.ok() || !trainer_.is_open() || !run_before_) return std::nullopt;
  Result<Json> input = passes_.position(*trainer_);
  if (!input.ok()) return std::nullopt;
  RunState run = run_state();
  run.input = input.take();
  return run;
}

// The thread that saves goes first, the trainer after what it reads.
void TrainSession::release(std::optional<RunState> run) {
  if (!permitted_) return;
  permitted_ = false;
  checkpoints_.abandon();
  if (run) {
    trainer_.leave(std::move(*run));
  } else if (trainer_.is_open()) {
    trainer_.unshare();
  }
  passes_.cancel_reading();
  trainer_.close();
  checkpoints_.unlock();
  state_->end_training();
}

// RunControl

Status TrainSession::set_host_scalar(std::string_view scalar, double value) {
  if (!trainer_.is_open()) return base::failed_precondition("the training session has failed").with_cause(failure_);
  return trainer_->set_host_scalar(scalar, value);
}

}  // namespace tutti::impl::estimator
