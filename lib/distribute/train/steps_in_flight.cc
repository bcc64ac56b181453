// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/steps_in_flight.h"

#include <cmath>
#include <string>
#include <utility>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status StepsInFlight::open() { return reports_.open(rank_.plan(), *rank_.device(), rank_.programs().steps_in_flight); }

Status StepsInFlight::begin_run() {
  begun_ = applied_ = 0;
  if (rank_.programs().steps_in_flight == 1) return Status();
  for (Contributor &contributor : contributors_.all())
    TUTTI_TRY(reports_.begin(contributor.report));
  return Status();
}

IssuedStep &StepsInFlight::begin(const Run &run, IssuedStep step) {
  begun_ = run.issued + 1;
  StreamWaits &waits = stream_waits_[ring_place(run.issued)];
  waits.drop();
  clock_.write_waits_to(&waits);
  return issued_step(run.issued) = std::move(step);
}

Status StepsInFlight::issue_report(const Run &run) {
  const backend::Buffer &report = report_ != nullptr ? *report_ : contributors_.front().report;
  return reports_.issue(run.issued, report, report_stream());
}

Status StepsInFlight::judge(int64_t left, Run &run) {
  while (run.in_flight() > left) {
    const int64_t number = run.outcome.steps;
    if (Status status = judge_oldest(run); !status.ok()) return fail(number, std::move(status), run);
  }
  return Status();
}

Status StepsInFlight::judge_oldest(Run &run) {
  const int64_t number = run.outcome.steps;
  const IssuedStep &step = issued_step(number);
  if (rank_.is_on_devices() && step.last_ticket >= 0) TUTTI_TRY(rank_.group().await_done(step.last_ticket));
  if (rank_.tracer() != nullptr) TUTTI_TRY(rank_.stream().synchronize());  // which tells the times of kernels
  TUTTI_ASSIGN(const StepReport report, reports_.wait(number, report_stream()));
  TUTTI_ASSIGN(const int64_t waited_ns, take_waits(number));
  if (step.is_counted) clock_.times().communication_ns += waited_ns;
  if (rank_.is_on_devices() && !report.is_ok) TUTTI_TRY(what_went_wrong(report, run));
  // Nobody has waited before the update for what is wrong with the data of this rank.
  if (step.is_together && !report.is_ok) TUTTI_TRY(rank_.stream().synchronize());
  TUTTI_TRY(count(report, run));
  applied_ = run.outcome.steps;
  return Status();
}

Result<int64_t> StepsInFlight::take_waits(int64_t number) {
  TUTTI_ASSIGN(const int64_t waited_ns,
               stream_waits_[ring_place(number)].take(*rank_.device(), rank_.stream(), rank_.tracer()));
  const RecordedStepRef launched = std::exchange(issued_step(number).launched, nullptr);
  return launched != nullptr ? launched->waits.sum() : waited_ns;
}

/// Ok where the loss or a gradient is not finite, on all replicas.
Status StepsInFlight::what_went_wrong(const StepReport &report, const Run &run) {
  if (report.has_faults) {
    // Behind the step the stream may wait for ranks that do not come any more.
    rank_.group().abort(base::aborted("the data of rank ", rank_.group().rank(), " are bad in step ",
                                      run.command.step + run.outcome.steps + 1));
    TUTTI_TRY(rank_.stream().synchronize());
  }
  return rank_.group().error();  // then the step may have been fine, but for its end
}

Status StepsInFlight::count(const StepReport &report, Run &run) {
  const int64_t in_all = run.command.step + run.outcome.steps + 1;
  const IssuedStep &step = issued_step(run.outcome.steps);
  TUTTI_TRY(check_report(report, in_all, run));
  ++run.outcome.steps;
  run.outcome.examples += step.rows;
  run.outcome.batches += step.batches;
  if (rank_.place() == 0 && step.has_input) run.feeder.finish(step.feeder_step);
  if (run.command.completed_steps != nullptr)
    run.command.completed_steps->store(in_all + run.command.other_steps, std::memory_order_relaxed);
  return Status();
}

Status StepsInFlight::check_report(const StepReport &report, int64_t step, Run &run) {
  if (rank_.place() == 0) run.history.add_loss(report.loss);
  if (scale_entry_ != nullptr && std::isfinite(report.loss) &&
      judge_step(rank_.programs().loss_scale, report.is_ok, run.outcome.loss_scale))
    return Status();
  if (report.is_ok) return Status();
  return base::out_of_range("step ", step,
                            ": the loss, a gradient or a learning rate set by the host is not finite (loss ",
                            report.loss, "); the weights keep the values of step ", step - 1);
}

Status StepsInFlight::fail(int64_t number, Status status, Run &run) {
  status = with_place(status, number, run);
  rank_.group().abort(status);
  const Status bad = rank_.stream().synchronize();  // nothing reads the input any more
  drop_recordings();
  if (rank_.is_on_devices()) return look_back(std::move(status), bad, run);
  run.issued = run.outcome.steps;
  return status;
}

Status StepsInFlight::fail_under_way(Status status, Run &run) {
  const int64_t number = run.issued;
  rank_.group().withdraw();  // else this thread would wait for a device that waits for it
  // What the step before met with on the device may have come up here.
  const int64_t earlier = run.outcome.steps;
  const Status judged = judge(0, run);
  if (judged.ok()) return fail(number, std::move(status), run);
  // It says why the group has ended.
  if (judged.code() == base::Code::aborted && status.code() != base::Code::invalid_argument)
    return with_place(status, number, run);
  const bool is_earlier = status.code() == base::Code::invalid_argument && may_be_of(earlier);
  return is_earlier ? fail(earlier, std::move(status), run) : judged;
}

/// Can bad data that come up behind a step be those of the step? Where the stream was waited for before the update, no.
bool StepsInFlight::may_be_of(int64_t number) const {
  if (!reports_.tells_faults()) return true;
  return rank_.is_on_devices() && reports_.read(number).has_faults;
}

Status StepsInFlight::look_back(Status status, const Status &bad, const Run &run) {
  applied_ = run.outcome.steps;
  while (applied_ < run.issued && reports_.read(applied_).is_ok)
    ++applied_;
  int64_t faulty = run.outcome.steps;  // or the one under way
  while (faulty < run.issued && !reports_.read(faulty).has_faults)
    ++faulty;
  return bad.ok() || faulty != applied_ ? status : with_place(bad, faulty, run);
}

Status StepsInFlight::with_place(const Status &status, int64_t number, const Run &run) const {
  return status.with_detail("rank", std::to_string(rank_.group().rank()))
      .with_detail("step", std::to_string(run.command.step + number + 1));
}

void StepsInFlight::drop_recordings() {
  recorder_.drop();
  for (IssuedStep &step : issued_steps_)
    step.launched = nullptr;
}

/// Whether the same step would fail again, here or at another worker: its data are bad, or the loss is not finite.
static bool is_of_the_data(const Status &failure) {
  for (const base::Error *error = failure.error().get(); error != nullptr; error = error->cause().get())
    if (error->code() == base::Code::invalid_argument || error->code() == base::Code::out_of_range) return true;
  return false;
}

Status StepsInFlight::conclude(const StepsInFlight &ahead, const Status &failure, Run &run) {
  RunOutcome &outcome = run.outcome;
  while (rank_.is_on_devices() && outcome.steps < ahead.applied_)
    TUTTI_TRY(count(ahead.reports_.read(outcome.steps), run));
  if (outcome.steps == begun_) return Status();
  const IssuedStep &step = issued_step(outcome.steps);
  if (!step.has_input) return Status();
  const bool is_passed_over = is_of_the_data(failure);
  if (is_passed_over) run.feeder.finish(step.feeder_step);
  run.feeder.give_back(step.feeder_step + (is_passed_over ? 1 : 0));
  return Status();
}

}  // namespace tutti::impl::distribute
