// SPDX-License-Identifier: Apache-2.0
//
// The loop over steps: what ranks agree on before one, and what becomes of one that was issued.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/exceptions.h"
#include "base/text.h"
#include "distribute/train/replica.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status Replica::run_steps(const RunCommand &command, StepFeeder &feeder, const RunSignals &signals, LossHistory &losses,
                          RunOutcome &outcome) {
  outcome.loss_scale = command.loss_scale;
  Run run{command, feeder, losses, outcome};
  bool has_thrown = true;
  const Status thrown = base::without_exceptions([&] {
    const Status status = run_steps(run, signals);
    has_thrown = false;
    return status;
  });
  if (!has_thrown) return thrown;
  // The other ranks would wait for this one, and its device for them.
  return base::without_exceptions([&] {
    rank_.group().withdraw();
    rank_.group().abort(thrown);
    return fail(run.issued, thrown, run);
  });
}

Status Replica::run_steps(Run &run, const RunSignals &signals) {
  const RunCommand &command = run.command;
  StepFeeder &feeder = run.feeder;
  RunOutcome &outcome = run.outcome;
  StepTimes &times = clock_.times();
  TUTTI_TRY(begin_run(command));
  for (int64_t n = command.feeder_step;;) {
    const int64_t begin_ns = base::now_ns(), built = contributors_.programs_built();
    clock_.begin_step();
    const bool has_more_to_judge = run.in_flight() > 0 && issued_step(run.issued - 1).is_counted;
    const bool is_last = command.stops || run.issued >= command.max_steps;
    if (command.stops) outcome.reason = StopReason::stopped;
    TUTTI_ASSIGN(const bool go_on, agree(n, is_last, signals, run));
    if (!go_on) {
      times = {.total_ns = base::now_ns() - begin_ns,
               .input_ns = times.input_ns,
               .communication_ns = times.communication_ns};
      if (has_more_to_judge) outcome.times += times;
      return Status();
    }
    IssuedStep &step = issued_step(run.issued);
    step = {
        .feeder_step = n, .has_input = feeder.input(n).count > 0, .rows = rows_.step_rows(), .batches = rows_.count()};
    begun_ = run.issued + 1;
    if (rank_.place() == 0 && step.has_input) feeder.start(n);
    if (step.has_input) ++n;  // else this worker's has ended
    TUTTI_TRY(advance(built, run));
    if (!step.is_counted) continue;
    times.total_ns = base::now_ns() - begin_ns;
    outcome.times += times;
    if (rank_.tracer() != nullptr) rank_.tracer()->record("step", "step", begin_ns, times.total_ns);
  }
}

Status Replica::advance(int64_t built, Run &run) {
  const int64_t number = run.issued;
  IssuedStep &step = issued_step(number);
  StreamWaits &waits = stream_waits_[ring_place(number)];
  waits.drop();
  clock_.write_waits_to(&waits);
  Status status = run_step(run.feeder.input(step.feeder_step), run.feeder, run.outcome.loss_scale);
  if (status.ok()) status = reports_.issue(number, contributors_.front().report, rank_.stream());
  if (!status.ok()) {
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
  step.is_counted = !recorder_.has_recorded() && programs_built() == built;
  step.launched = recorder_.launched();
  step.last_ticket = step.launched != nullptr ? recorder_.last_ticket() : buckets_.last_ticket();
  ++run.issued;
  ++step_;
  batch_counter_ += step.batches;
  return judge(rank_.tracer() == nullptr ? reports_.in_flight() - 1 : 0, run);
}

/// Can bad data that come up behind a step be those of the step? Where the stream was waited for before the update, no.
bool Replica::may_be_of(int64_t number) const {
  if (!reports_.tells_faults()) return true;
  return rank_.is_on_devices() && reports_.read(number).has_faults;
}

Status Replica::judge(int64_t left, Run &run) {
  while (run.in_flight() > left) {
    const int64_t number = run.outcome.steps;
    if (Status status = judge_oldest(run); !status.ok()) return fail(number, std::move(status), run);
  }
  return Status();
}

Status Replica::judge_oldest(Run &run) {
  const int64_t number = run.outcome.steps;
  IssuedStep &step = issued_step(number);
  if (rank_.is_on_devices() && step.last_ticket >= 0) TUTTI_TRY(rank_.group().await_done(step.last_ticket));
  if (rank_.tracer() != nullptr) TUTTI_TRY(rank_.stream().synchronize());  // which tells the times of kernels
  TUTTI_ASSIGN(const StepReport report, reports_.wait(number, rank_.stream()));
  TUTTI_ASSIGN(int64_t waited_ns,
               stream_waits_[ring_place(number)].take(*rank_.device(), rank_.stream(), rank_.tracer()));
  if (const RecordedStepRef launched = std::exchange(step.launched, nullptr); launched != nullptr) {
    TUTTI_ASSIGN(waited_ns, launched->waits.sum());
  }
  if (step.is_counted) clock_.times().communication_ns += waited_ns;
  if (rank_.is_on_devices() && !report.is_ok) TUTTI_TRY(what_went_wrong(report, run));
  TUTTI_TRY(count(report, run));
  applied_ = run.outcome.steps;
  return Status();
}

/// Ok where the loss or a gradient is not finite, on all replicas.
Status Replica::what_went_wrong(const StepReport &report, const Run &run) {
  if (report.has_faults) {
    // Behind the step the stream may wait for ranks that do not come any more.
    rank_.group().abort(base::aborted("the data of rank ", rank_.group().rank(), " are bad in step ",
                                      run.command.step + run.outcome.steps + 1));
    TUTTI_TRY(rank_.stream().synchronize());
  }
  return rank_.group().error();  // then the step may have been fine, but for its end
}

Status Replica::count(const StepReport &report, Run &run) {
  const int64_t in_all = run.command.step + run.outcome.steps + 1;
  const IssuedStep &step = issued_step(run.outcome.steps);
  TUTTI_TRY(check_report(report, in_all, run.losses, run.outcome.loss_scale));
  ++run.outcome.steps;
  run.outcome.examples += step.rows;
  run.outcome.batches += step.batches;
  if (rank_.place() == 0 && step.has_input) run.feeder.finish(step.feeder_step);
  if (run.command.completed_steps != nullptr) run.command.completed_steps->store(in_all, std::memory_order_relaxed);
  return Status();
}

Status Replica::fail(int64_t number, Status status, Run &run) {
  status = with_place(status, number, run);
  rank_.group().abort(status);
  const Status bad = rank_.stream().synchronize();  // nothing reads the input any more
  drop_recordings();
  if (rank_.is_on_devices()) return look_back(std::move(status), bad, run);
  run.issued = run.outcome.steps;
  return status;
}

/// Whether the same step would fail again, here or at another worker: its data are bad, or the loss is not finite.
static bool is_of_the_data(const Status &failure) {
  for (const base::Error *error = failure.error().get(); error != nullptr; error = error->cause().get())
    if (error->code() == base::Code::invalid_argument || error->code() == base::Code::out_of_range) return true;
  return false;
}

Status Replica::look_back(Status status, const Status &bad, const Run &run) {
  applied_ = run.outcome.steps;
  while (applied_ < run.issued && reports_.read(applied_).is_ok)
    ++applied_;
  int64_t faulty = run.outcome.steps;  // or the one under way
  while (faulty < run.issued && !reports_.read(faulty).has_faults)
    ++faulty;
  return bad.ok() || faulty != applied_ ? status : with_place(bad, faulty, run);
}

Status Replica::with_place(const Status &status, int64_t number, const Run &run) const {
  return status.with_detail("rank", std::to_string(rank_.group().rank()))
      .with_detail("step", std::to_string(run.command.step + number + 1));
}

Status Replica::conclude(const Replica &ahead, const Status &failure, const RunCommand &command, StepFeeder &feeder,
                         LossHistory &losses, RunOutcome &outcome) {
  Run run{command, feeder, losses, outcome};
  while (rank_.is_on_devices() && outcome.steps < ahead.applied_)
    TUTTI_TRY(count(ahead.reports_.read(outcome.steps), run));
  if (outcome.steps == begun_) return Status();
  const IssuedStep &step = issued_step(outcome.steps);
  if (!step.has_input) return Status();
  const bool is_passed_over = is_of_the_data(failure);
  if (is_passed_over) feeder.finish(step.feeder_step);
  feeder.give_back(step.feeder_step + (is_passed_over ? 1 : 0));
  return Status();
}

Status Replica::fill_words(int64_t n, bool is_last, const RunSignals &signals, Run &run) {
  StepFeeder &feeder = run.feeder;
  RunOutcome &outcome = run.outcome;
  std::fill(words_.begin(), words_.end(), 0);
  bool ready = false;
  if (is_last) {
    words_[outcome.reason == StopReason::stopped ? word_stop : word_limit] = 1;
  } else if (signals.stop.load(std::memory_order_seq_cst)) {
    words_[word_stop] = 1;
  } else {
    // Who has to wait for input had better know first what became of its steps.
    if (!feeder.is_ready(n)) TUTTI_TRY(judge(0, run));
    {
      const WaitClock clock(clock_.times().input_ns, rank_.tracer(), "input");
      ready = feeder.wait_ready(n);
    }
    outcome.input_wait_ns += clock_.times().input_ns;
    words_[word_stop] = ready ? 0 : 1;
    words_[word_error] = ready && !feeder.input(n).status.ok() ? 1 : 0;
  }
  words_[word_trace] = rank_.programs().tracer && rank_.programs().tracer->enabled() ? 1 : 0;
  if (ready)
    rows_.publish(words_.data() + word_count, feeder.input(n),
                  recorder_.program_for(feeder.input(n), feeder.binding(), rows_));
  for (size_t c = 1; c < contributors_.size(); ++c)
    std::copy_n(words_.begin(), words_per_part_, words_.begin() + static_cast<int64_t>(c) * words_per_part_);
  return Status();
}

Result<bool> Replica::agree(int64_t n, bool is_last, const RunSignals &signals, Run &run) {
  TUTTI_TRY(fill_words(n, is_last, signals, run));
  Status agreed;
  {
    // A device that has a step to do is not kept waiting.
    int64_t hidden_ns = 0;
    const WaitClock clock(run.in_flight() > 0 ? hidden_ns : clock_.times().communication_ns,
                          rank_.group().size() > 1 ? rank_.tracer() : nullptr, "control word");
    agreed = rank_.group().all_reduce(word_pointers_, words_per_part_, tensor::DType::i64, collective::Reduction::max,
                                      "control word");
  }
  const Result<bool> begins = agreed.ok() ? conclude(n, run) : Result<bool>(agreed);
  if (begins.ok() && *begins) {
    if (rank_.is_traced() != (words_[word_trace] != 0)) {
      TUTTI_TRY(judge(0, run));
      TUTTI_TRY(set_traced(!rank_.is_traced()));
    }
    return true;
  }
  TUTTI_TRY(judge(0, run));
  const bool is_over = words_[word_limit] != 0 || words_[word_stop] != 0;
  if (agreed.ok() && !is_over && rank_.place() == 0 && !run.feeder.input(n).status.ok()) run.feeder.failed();
  return begins;
}

Result<bool> Replica::conclude(int64_t n, Run &run) {
  if (words_[word_limit] != 0) {
    run.outcome.reason = StopReason::steps_done;
    return false;
  }
  if (words_[word_stop] != 0) {
    run.outcome.reason = StopReason::stopped;
    return false;
  }
  const StepInput &input = run.feeder.input(n);
  const int64_t *const words = words_.data() + word_count;
  if (words_[word_error] != 0)
    return rows_.input_error(words, input).wrap(base::concat("reading the input of step ", step_ + 1, " failed"));
  TUTTI_TRY(rows_.take(words, input, step_ + 1));
  if (rows_.count() == 0) run.outcome.reason = StopReason::end_of_input;
  return rows_.count() > 0;
}

Status Replica::check_report(const StepReport &report, int64_t step, LossHistory &losses, LossScaleState &scale) {
  if (rank_.place() == 0) losses.add(report.loss);
  if (scale_entry_ != nullptr && std::isfinite(report.loss) &&
      judge_step(rank_.programs().loss_scale, report.is_ok, scale))
    return Status();
  if (report.is_ok) return Status();
  return base::out_of_range("step ", step, ": the loss or the gradient is not finite (loss ", report.loss,
                            "), or a learning rate that the host sets; the weights keep the values of step ", step - 1);
}

}  // namespace tutti::impl::distribute
