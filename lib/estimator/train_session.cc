// SPDX-License-Identifier: Apache-2.0
//
// Running and ending a training session.
#include "estimator/train_session.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/function_token.h"
#include "base/trace.h"
#include "estimator/resume_check.h"
#include "estimator/saving.h"

namespace tutti::impl::estimator {

using base::Json;
using base::Ref;
using base::Result;
using base::Status;

namespace {

// How long the caller sleeps at most before it looks for events.
constexpr double kLongestSleepSecs = 0.5;

double now_secs() { return static_cast<double>(base::now_ns()) * 1e-9; }

double loss_of(const std::vector<NamedNumber> &values) {
  for (const NamedNumber &number : values) {
    if (number.name == "loss") return number.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

TrainSession::~TrainSession() {
  if (trainer_ && begun_ && !closed_)
    trainer_->leave_workers(base::unavailable("the training session of a worker was given up"));
  release(failure_.ok());
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
  const int64_t begin = step(), waited = input_wait_ns_, examples = examples_;
  const int64_t end = limit.steps < 0 || limit.steps > INT64_MAX - begin ? INT64_MAX : begin + limit.steps;
  for (bool paused = false; !reason_ && !paused;) {
    if (const Status status = pump(); !status.ok()) {
      if (!base::check(request_.cancel.get()).ok()) (void)stop_others();
      return status;
    }
    if (goal_step_ && step() >= *goal_step_) {
      reason_ = EndReason::max_steps;
    } else if (stop_wanted()) {
      const Status told = stop_others();
      TUTTI_TRY(base::check(request_.cancel.get()));  // it may be a cancel that came after pump() looked
      TUTTI_TRY(told);
      reason_ = EndReason::stopped;
    } else if (step() >= end) {
      paused = true;
    } else {
      TUTTI_ASSIGN(const bool pass_ended, run_chunk(std::min(end, goal_step_.value_or(INT64_MAX))));
      paused = pass_ended && limit.until_epoch_end;
    }
  }
  return SessionReport{
      .reason = reason_,
      .step = step(),
      .steps = step() - begin,
      .examples = examples_ - examples,
      .loss = loss_of(values_),
      .input_wait_seconds = 1e-9 * static_cast<double>(input_wait_ns_ - waited),
      .metrics = values_,
  };
}

// Runs to the next step that somebody wants to see. True when it ended a pass.
Result<bool> TrainSession::run_chunk(int64_t last_step) {
  if (input_ended_) TUTTI_TRY(attach_pass());
  const int64_t steps = chunk_steps(last_step);
  const Result<distribute::RunReport> ran = [&] {
    const auto turn = state_->live.take_turn();
    state_->live.note_change();
    return trainer_->run(steps, request_.cancel.get());
  }();
  account(ran.ok() ? &*ran : nullptr);
  TUTTI_TRY(ran);
  const distribute::RunReport &report = *ran;
  if (report.steps > 0) {
    Event event = event_of(EventKind::step);
    event.values = values_;
    TUTTI_ASSIGN(const bool stop, hooks_.send_step(event, now_secs()));
    hook_stop_ |= stop;
  }
  if (report.reason == distribute::StopReason::stopped) {
    TUTTI_TRY(base::check(request_.cancel.get()));
    if (!reason_) reason_ = EndReason::stopped;
  }
  if (report.reason != distribute::StopReason::end_of_input) return false;
  TUTTI_TRY(end_pass());
  return true;
}

int64_t TrainSession::chunk_steps(int64_t last_step) const {
  const double secs = std::min(kLongestSleepSecs, hooks_.secs_until_due(now_secs()));
  // The first chunk of a session measures: one step.
  const double affordable = secs_per_step_ > 0 ? std::min(secs / secs_per_step_, 1e9) : 1;
  const int64_t wanted = std::min(last_step - step(), hooks_.steps_until_due(step()));
  return std::clamp<int64_t>(static_cast<int64_t>(affordable), 1, std::max<int64_t>(wanted, 1));
}

// Counts what was done; steps of a run that failed later are done too.
void TrainSession::account(const distribute::RunReport *report) {
  const int64_t examples = trainer_->counters().examples - counted_examples_;
  counted_examples_ += examples;
  examples_ += examples;
  pass_examples_ += examples;
  run_.examples += examples;
  state_->completed_steps.store(trainer_->step(), std::memory_order_relaxed);
  if (examples > 0 && (report == nullptr || report->steps > 0)) values_ = trainer_->report();
  if (report == nullptr) return;
  input_wait_ns_ += report->input_wait_ns;
  run_ns_ += report->total_ns;
  if (report->steps == 0) return;
  if (const std::string warning = efficiency_.add(report->times); !warning.empty()) state_->logger().warning(warning);
  secs_per_step_ = std::max(1e-9, static_cast<double>(report->total_ns) * 1e-9 / static_cast<double>(report->steps));
}

Status TrainSession::end_pass() {
  const bool whole = run_.input.is_null();
  if (whole && pass_examples_ == 0)
    return base::invalid_argument("the dataset gave no elements in pass ", run_.epoch + 1,
                                  ": there is not one row to train on");
  if (whole) whole_pass_steps_ = step() - pass_step_;
  ++run_.epoch;
  run_.input = Json();
  input_ended_ = true;
  const bool was_over = skips_ended_pass_ && !whole && pass_examples_ == 0;
  skips_ended_pass_ = false;
  if (run_.goal_epoch == 0) {
    if (!was_over) reason_ = EndReason::end_of_input;
  } else if (run_.epoch >= run_.goal_epoch) {
    reason_ = EndReason::epochs;
  }
  Event event = event_of(EventKind::epoch_end);
  event.values = values_;
  return send(event);
}

// What arrived while the caller slept.
Status TrainSession::pump() {
  TUTTI_TRY(base::check(request_.cancel.get()));
  if (saver_) TUTTI_TRY(saver_->status());
  std::vector<std::pair<int64_t, std::string>> saved;
  {
    std::lock_guard lock(saved_mutex_);
    saved.swap(saved_);
  }
  for (const auto &[saved_step, path] : saved) {
    // The last one is written again when only its run state has changed since.
    if (std::exchange(announced_step_, saved_step) == saved_step) continue;
    Event event = event_of(EventKind::checkpoint_saved);
    event.step = saved_step;
    event.checkpoint_path = path;
    TUTTI_TRY(send(event));
  }
  return Status();
}

Status TrainSession::send(Event event) {
  TUTTI_ASSIGN(const bool stop, hooks_.send(event));
  hook_stop_ |= stop;
  return Status();
}

Event TrainSession::event_of(EventKind kind) const {
  Event event;
  event.kind = kind;
  event.step = trainer_->step();
  event.epoch = run_.epoch - (input_ended_ ? 1 : 0);
  event.examples = examples_;
  event.goal_step = expected_end();
  event.control = const_cast<TrainSession *>(this);
  return event;
}

int64_t TrainSession::steps_of_pass() const {
  const data::Cardinality batches = request_.dataset->cardinality();
  const int64_t accumulation = state_->config.accumulation;
  return batches.is_exact() ? (batches.value() + accumulation - 1) / accumulation : whole_pass_steps_;
}

int64_t TrainSession::expected_end() const {
  if (goal_step_) return *goal_step_;
  if (steps_of_pass() < 0) return -1;
  const int64_t passes = run_.goal_epoch > 0 ? run_.goal_epoch - run_.epoch : (input_ended_ ? 0 : 1);
  const int64_t pass_begin = input_ended_ ? step() : pass_step_;
  // A pass may be longer than the one before it was.
  return std::max(step(), pass_begin + passes * steps_of_pass());
}

// Other workers hear of a stop between runs, too.
Status TrainSession::stop_others() {
  const auto turn = state_->live.take_turn();
  return trainer_->stop_workers(request_.cancel.get());
}

bool TrainSession::stop_wanted() const { return hook_stop_ || (request_.cancel && request_.cancel->stop_requested()); }

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
  return snapshot(false);
}

// Saving

Result<Ref<checkpoint::WeightVersion>> TrainSession::snapshot(bool with_slots) {
  const auto turn = state_->live.take_turn();
  TUTTI_ASSIGN(Ref<checkpoint::WeightVersion> version, trainer_->publish_weights(with_slots));
  state_->publish(version);
  return version;
}

// Position in the pass; null at its beginning and when it is complete.
Result<Json> TrainSession::current_input() {
  if (input_ended_) return Json();
  if (pass_examples_ == 0) return run_.input;
  return trainer_->input_state();
}

// Brings what stands in a manifest up to the current step.
void TrainSession::refresh_state() {
  run_.batch_counter = trainer_->batch_counter();
  run_.loss_scale = trainer_->loss_scale();
  run_.hooks = hooks_.save();
  for (const graph::HostScalarSpec &scalar : trainer_->model().host_scalars) {
    if (const Result<double> value = trainer_->host_scalar(scalar.name); value.ok()) {
      run_.host_scalars[scalar.name] = *value;
    }
  }
  run_.metrics = Json();
  for (const NamedNumber &number : values_)
    run_.metrics.set(number.name, number.value);
}

// `finished`: the goal is reached, so nothing is left of it for a later call.
Status TrainSession::save(bool finished) {
  if (!saver_) return Status();
  refresh_state();
  RunState saved = run_;
  if (finished) saved.requested_epochs = saved.goal_epoch = 0;
  saved.finished = finished;
  TUTTI_ASSIGN(saved.input, current_input());
  Json run = saved.run_json();
  if (step() == saved_step_ && run == saved_run_ && saved.input == saved_input_) return Status();
  return save_as(std::move(saved));
}

Status TrainSession::save_as(RunState saved) {
  TUTTI_ASSIGN(Ref<checkpoint::WeightVersion> version, snapshot(true));
  checkpoint::Snapshot snapshot =
      snapshot_of(std::move(version), saved, state_->config, plan_json(*trainer_, *state_->strategy));
  snapshot.graph_text = graph_text_;
  TUTTI_TRY(saver_->save(std::move(snapshot), request_.cancel.get()));
  saved_step_ = step();
  saved_run_ = saved.run_json();
  saved_input_ = std::move(saved.input);
  return Status();
}

// Waits until everything is on disk.
Status TrainSession::finish_saving(const base::CancelToken *cancel) {
  if (!saver_) return Status();
  const Status status = saver_->close(cancel);
  saver_.reset();
  TUTTI_TRY(status);
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
  if (!reason_) reason_ = EndReason::stopped;
  if (const Status status = finish(); !status.ok()) {
    const Status failure = fail(status);
    closed_ = true;
    return failure;
  }
  closed_ = true;
  const TrainResult all = result();
  log_input_wait();
  log_how_steps_ran();
  log_step_shares();
  release(true);
  return all;
}

Status TrainSession::close_variables(bool changed) {
  const bool is_on_disk = !changed && saved_step_ == step();
  Status status = saver_ && !is_on_disk ? save_as(run_) : snapshot(false).status();
  if (status.ok()) status = finish_saving(request_.cancel.get());
  if (!status.ok()) return fail(status);
  closed_ = true;
  release(true);
  return Status();
}

Status TrainSession::finish() {
  const bool finished = *reason_ != EndReason::stopped;
  if (saver_) {
    TUTTI_TRY(save(finished));
  } else if (first_step_ != step()) {
    TUTTI_TRY(publish());
  }
  TUTTI_TRY(finish_saving(request_.cancel.get()));
  if (finished) run_.requested_epochs = run_.goal_epoch = 0;
  run_.finished = finished;
  if (!begun_) return Status();
  Event event = event_of(EventKind::end);
  event.values = values_;
  return send(event);
}

// What a run that fails still does: keep what it has, and tell.
Status TrainSession::fail(Status status) {
  failure_ = status;
  const bool given_up = request_.cancel && !request_.cancel->check().ok();
  input_cancel_->cancel();  // a read in progress may be one that never ends
  if (trainer_) trainer_->leave_workers(status);
  if (!given_up && saver_ && saver_->status().ok()) {
    Status saved = save(false);
    if (saved.ok()) saved = saver_->close(nullptr);
    if (!saved.ok()) state_->logger().error("the final checkpoint is missing: ", saved.to_string());
  }
  Event event = event_of(EventKind::error);
  event.error = status;
  event.control = nullptr;
  if (const Result<bool> sent = hooks_.send(event); !sent.ok()) state_->logger().warning(sent.status().to_string());
  keep_for_resuming();
  release(false);
  return status;
}

// A trainer that failed may be of no use any more, but its last complete step is.
void TrainSession::keep_for_resuming() {
  Result<Ref<checkpoint::WeightVersion>> version = snapshot(true);
  Result<Json> input = current_input();
  if (!version.ok() || !input.ok()) return;
  refresh_state();
  run_.input = input.take();
  state_->resume_version = version.take();
  state_->run_state = run_;
}

TrainResult TrainSession::result() const {
  TrainResult all;
  all.reason = *reason_;
  all.step = trainer_->step();
  all.steps = all.step - first_step_;
  all.examples = examples_;
  all.loss = loss_of(values_);
  all.metrics = values_;
  all.input_wait_seconds = 1e-9 * static_cast<double>(input_wait_ns_);
  all.input_report = trainer_->input_report();
  all.step_shares = efficiency_.shares(trainer_->device_names());
  return all;
}

// Worth a line: a second and a tenth of the time.
void TrainSession::log_input_wait() const {
  if (input_wait_ns_ < 1'000'000'000 || input_wait_ns_ < run_ns_ / 10) return;
  const Json report = trainer_->input_report();
  if (report.is_null()) return;
  state_->logger().info("training waited for input ", 100 * input_wait_ns_ / run_ns_, " % of the time\n",
                        base::JsonReader(report, "report").get_string("text").value_or(""));
}

// Where that is not what was said at the start: it may turn out later that steps cannot be launched at once.
void TrainSession::log_how_steps_ran() const {
  if (how_steps_run_.empty() || how_steps_run_.starts_with("in pieces")) return;
  const std::string how = trainer_->describe().find("steps")->string();
  if (how.starts_with("in pieces")) state_->logger().info("steps: ", how);
}

// How replicas scale, where they worked for a second.
void TrainSession::log_step_shares() const {
  const distribute::StepShares shares = efficiency_.shares(trainer_->device_names());
  if (shares.replicas < 2 || shares.step_seconds * static_cast<double>(shares.steps) < 1) return;
  state_->logger().info(shares.replicas, " replicas: ", shares.text());
}

// Gives back what belongs to the estimator. The saver goes first: its thread calls into this object.
void TrainSession::release(bool keep_trainer) {
  if (!permitted_) return;
  permitted_ = false;
  saver_.reset();
  Result<Json> input = keep_trainer && trainer_ ? current_input() : Json();
  if (keep_trainer && trainer_ && input.ok()) {
    refresh_state();
    run_.input = input.take();
    state_->run_state = run_;
    const auto turn = state_->live.take_turn();
    state_->live.set(trainer_.get(), false);
    state_->trainer = std::move(trainer_);
    state_->resume_version.reset();
  } else {
    const auto turn = state_->live.take_turn();
    state_->live.set(nullptr, false);
  }
  // The reader lets go of the dataset: who feeds it must not wait for it.
  input_cancel_->cancel();
  if (state_->trainer) (void)state_->trainer->attach_input(nullptr).ok();
  trainer_.reset();
  lock_ = ModelDirLock();
  state_->end_training();
}

// RunControl

Status TrainSession::set_host_scalar(std::string_view scalar, double value) {
  if (trainer_ == nullptr) return base::failed_precondition("the training session has failed").with_cause(failure_);
  return trainer_->set_host_scalar(scalar, value);
}

Result<tensor::Tensor> TrainSession::get_variable(std::string_view variable) {
  const auto turn = state_->live.take_turn();
  return trainer_->get_variable(variable);
}

Status TrainSession::set_variable(std::string_view variable, const tensor::Tensor &value) {
  const auto turn = state_->live.take_turn();
  state_->live.note_change();
  return trainer_->set_variable(variable, value);
}

Result<tensor::Tensor> TrainSession::gradient(std::string_view variable) {
  const auto turn = state_->live.take_turn();
  return trainer_->gradient(variable);
}

}  // namespace tutti::impl::estimator
