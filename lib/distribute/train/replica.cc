// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/replica.h"

#include <chrono>
#include <limits>
#include <utility>

#include "base/exceptions.h"
#include "base/text.h"
#include "distribute/workers/plan_agreement.h"

namespace tutti::impl::distribute {

using backend::RunScalar;
using base::Result;
using base::Status;

Replica::Replica(const TrainProgramSet &programs, const StatePlan &plan, backend::DeviceRef device,
                 backend::Stream stream, size_t place)
    : rank_(programs, plan, std::move(device), std::move(stream), place) {}

// The group may still be copying from and to the contributors' memory, and so may what a step issued before it failed.
Replica::~Replica() {
  drop_group();
  (void)rank_.stream().synchronize();
}

Result<std::unique_ptr<Replica>> Replica::create(const TrainProgramSet &programs, const StatePlan &plan,
                                                 ExecutableCache &executables, backend::DeviceRef device, size_t place,
                                                 const ArenaPointers &arenas, int32_t parts, size_t cache_capacity) {
  TUTTI_ASSIGN(backend::Stream stream, device->create_stream());
  std::unique_ptr<Replica> replica(new Replica(programs, plan, std::move(device), std::move(stream), place));
  Contributors &contributors = replica->contributors_;
  TUTTI_TRY(replica->steps_.open());
  TUTTI_TRY(contributors.open(executables, arenas, parts, cache_capacity, replica->steps_.most()));
  replica->buckets_.plan(contributors.all());
  replica->handout_.plan(arenas[static_cast<size_t>(Arena::weights)], contributors.all());
  replica->agreement_.open(contributors.size());
  replica->reported_ = report_entries(plan);
  std::erase_if(replica->reported_, [](const ReportEntry &reported) { return !reported.entry->dims.empty(); });
  return replica;
}

void Replica::update_with(StorageUpdate &storage) {
  storage_ = &storage;
  steps_.report_from(storage.report(), storage.stream());
}

void Replica::set_group(std::unique_ptr<collective::Group> group) {
  drop_group();
  if (rank_.programs().spmd.has_value()) {  // what was begun together with others is not ended with them
    contributors_.forget_programs();
    batch_programs_.forget();
  }
  rank_.set_group(std::move(group));
  contributors_.join_group();
  plan_agreed_ = false;
  recorder_.open();
  contributors_.register_partials();
}

void Replica::drop_group() {
  steps_.drop_recordings();
  rank_.set_group(nullptr);
}

Status Replica::begin_run(const RunCommand &command) {
  step_ = command.step;
  batch_counter_ = command.batch_counter;
  shows_rows_ = command.shows_rows && !rank_.programs().showing.empty();
  contributors_.set_seed(command.seed);
  TUTTI_TRY(of_this_rank(steps_.begin_run()));
  if (!plan_agreed_) TUTTI_TRY(check_same_plan(rank_.group(), rank_.plan().hash()));
  plan_agreed_ = true;
  return Status();
}

Status Replica::of_this_rank(Status status) {
  if (status.ok()) return status;
  rank_.group().withdraw();
  rank_.group().abort(status);
  return status;
}

Status Replica::run_steps(const RunCommand &command, StepFeeder &feeder, const RunSignals &signals,
                          StepHistory &history, RunOutcome &outcome) {
  outcome.loss_scale = command.loss_scale;
  Run run{command, feeder, history, outcome};
  bool has_thrown = true;
  const Status thrown = base::without_exceptions([&] {
    const Status status = run_steps(run, signals);
    has_thrown = false;
    return status;
  });
  if (!has_thrown) return thrown;
  return base::without_exceptions([&] {
    (void)of_this_rank(thrown);
    return steps_.fail(run.issued, thrown, run);
  });
}

Status Replica::run_steps(Run &run, const RunSignals &signals) {
  StepFeeder &feeder = run.feeder;
  StepTimes &times = clock_.times();
  TUTTI_TRY(begin_run(run.command));
  for (int64_t n = run.command.feeder_step;;) {
    const int64_t begin_ns = base::now_ns(), built = programs_built();
    clock_.begin_step();
    const bool has_more_to_judge = steps_.counts_last(run);
    TUTTI_ASSIGN(const bool go_on, agree(n, signals, run));
    if (!go_on) {
      times = {.total_ns = base::now_ns() - begin_ns,
               .input_ns = times.input_ns,
               .communication_ns = times.communication_ns};
      if (has_more_to_judge) run.outcome.times += times;
      return Status();
    }
    const StepRows &rows = agreement_.rows();
    IssuedStep &step = steps_.begin(
        run,
        {.feeder_step = n, .has_input = feeder.input(n).count > 0, .rows = rows.step_rows(), .batches = rows.count()});
    if (rank_.place() == 0 && step.has_input) feeder.start(n);
    if (step.has_input) ++n;  // else this worker's has ended
    TUTTI_TRY(advance(step, built, run));
    TUTTI_TRY(sample(run));
    if (!step.is_counted) continue;
    times.total_ns = base::now_ns() - begin_ns;
    run.outcome.times += times;
    if (rank_.tracer() != nullptr) rank_.tracer()->record("step", "step", begin_ns, times.total_ns);
  }
}

Result<bool> Replica::agree(int64_t n, const RunSignals &signals, Run &run) {
  TUTTI_ASSIGN(const StepProposal proposal, propose(n, signals, run));
  agreement_.propose(proposal);
  Status agreed;
  {
    // A device that has a step to do is not kept waiting.
    int64_t hidden_ns = 0;
    const WaitClock clock(run.in_flight() > 0 ? hidden_ns : clock_.times().communication_ns,
                          rank_.group().size() > 1 ? rank_.tracer() : nullptr, "control word");
    agreed = agreement_.exchange();
  }
  const StepInput &input = run.feeder.input(n);
  const Result<bool> begins =
      agreed.ok() ? agreement_.conclude(input, step_ + 1, run.outcome.reason) : Result<bool>(agreed);
  if (begins.ok() && *begins) {
    if (rank_.is_traced() != agreement_.is_traced()) {
      TUTTI_TRY(steps_.judge(0, run));
      TUTTI_TRY(of_this_rank(set_traced(!rank_.is_traced())));
    }
    return true;
  }
  TUTTI_TRY(steps_.judge(0, run));
  if (agreed.ok() && !agreement_.is_over() && rank_.place() == 0 && !input.status.ok()) run.feeder.failed();
  return begins;
}

Result<StepProposal> Replica::propose(int64_t n, const RunSignals &signals, Run &run) {
  StepFeeder &feeder = run.feeder;
  StepProposal proposal;
  proposal.reaches_limit = !run.command.stops && run.issued >= run.command.max_steps;
  if (proposal.reaches_limit) return proposal;
  proposal.stops = run.command.stops || signals.stop.load(std::memory_order_seq_cst);
  if (proposal.stops) return proposal;
  // Who has to wait for input had better know first what became of its steps.
  if (!feeder.is_ready(n)) TUTTI_TRY(steps_.judge(0, run));
  {
    const WaitClock clock(clock_.times().input_ns, rank_.tracer(), "input");
    proposal.stops = !feeder.wait_ready(n);
  }
  run.outcome.input_wait_ns += clock_.times().input_ns;
  if (proposal.stops) return proposal;
  proposal.input = &feeder.input(n);
  if (!shows_rows_) proposal.program = recorder_.program_for(*proposal.input, feeder.binding(), agreement_.rows());
  return proposal;
}

Status Replica::set_traced(bool traced) {
  TUTTI_TRY(rank_.stream().synchronize());
  steps_.drop_recordings();  // of programs that go
  rank_.set_traced(traced);
  if (traced) {
    const std::string &device = rank_.device()->name();
    rank_.tracer()->name_row(
        rank_.device_stream() == nullptr ? device : base::concat("replica ", rank_.place(), " on ", device));
  }
  contributors_.set_traced(traced);
  batch_programs_.forget();
  return Status();
}

Status Replica::advance(IssuedStep &step, int64_t built, Run &run) {
  Status status = run_step(run.feeder.input(step.feeder_step), run.feeder, run.outcome.loss_scale);
  if (status.ok() && !rank_.updates()) status = hand_out();  // takes what the first rank gives
  if (status.ok()) status = steps_.issue_report(run);
  if (!status.ok()) return steps_.fail_under_way(std::move(status), run);
  step.is_together = is_whole_step();
  step.is_counted = !recorder_.has_recorded() && programs_built() == built;
  step.launched = recorder_.launched();
  step.last_ticket = step.launched != nullptr ? recorder_.last_ticket() : buckets_.last_ticket();
  ++run.issued;
  ++step_;
  batch_counter_ += step.batches;
  TUTTI_TRY(steps_.judge(rank_.tracer() == nullptr ? steps_.most() - 1 : 0, run));
  if (!rank_.programs().is_central || !rank_.updates()) return Status();
  status = hand_out();  // of a step that counts already
  return status.ok() ? status : steps_.fail(run.issued - 1, std::move(status), run);
}

Status Replica::sample(Run &run) {
  const int64_t step = step_ + run.command.other_steps;
  if (rank_.place() != 0 || !run.history.samples().is_due(step)) return Status();
  TUTTI_TRY(steps_.judge(0, run));
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  const RunOutcome &outcome = run.outcome;
  const std::span<double> values =
      run.history.samples().add({step, now.count(), outcome.examples, outcome.input_wait_ns});
  for (size_t i = 0; i < reported_.size(); ++i) {
    const Result<double> value = report_value(*reported_[i].entry);
    if (!value.ok()) return of_this_rank(value.status());
    values[i] = *value;
  }
  if (values.size() > reported_.size()) values.back() = static_cast<double>(outcome.loss_scale.skipped_steps);
  return Status();
}

std::vector<std::string> Replica::sampled_names() const {
  std::vector<std::string> names;
  for (const ReportEntry &reported : reported_)
    names.push_back(reported.name);
  if (rank_.plan().find(loss_scale_entry) != nullptr) names.push_back("skipped_steps");
  return names;
}

Status Replica::hand_out() {
  if (storage_ != nullptr) TUTTI_TRY(storage_->hand_over(contributors_.front()));
  return handout_.run();
}

Status Replica::run_step(const StepInput &input, StepFeeder &feeder, const LossScaleState &scale) {
  const StepRows &rows = agreement_.rows();
  contributors_.begin_step(step_);
  TUTTI_TRY(contributors_.write_loss_scale(scale.scale));
  iteration_ = step_ + 1 - scale.skipped_steps;
  buckets_.begin_step();
  recorder_.begin_step();
  kept_batches_ = rows.count();
  for (int32_t m = 0; m < rows.count(); ++m)
    TUTTI_TRY(run_micro_batch(input, m, feeder));
  if (recorder_.is_launched_at_once(rows)) TUTTI_TRY(recorder_.launch(rows));
  if (recorder_.launched() != nullptr) return recorder_.settle_launched();
  if (is_whole_step()) return Status();
  TUTTI_TRY(buckets_.reduce(feeder));
  return finish(input);
}

std::string Replica::how_steps_run() const {
  if (!rank_.programs().spmd.has_value()) return recorder_.describe();
  return "one program of all devices, which adds up their gradients; in pieces for batches that these do not share "
         "evenly";
}

bool Replica::is_whole_step() const {
  const TrainProgramSet &programs = rank_.programs();
  const StepRows &rows = agreement_.rows();
  return programs.spmd.has_value() && !shows_rows_ && rows.count() == 1 && rows.own(0) > 0 &&
         rows.own(0) % programs.contributors == 0;
}

Status Replica::run_micro_batch(const StepInput &input, int32_t m, const StepFeeder &feeder) {
  const TrainProgramSet &programs = rank_.programs();
  const StepRows &rows = agreement_.rows();
  set_scalars(m);
  const MicroBatch micro_batch{.number = m,
                               .batch = m < input.count ? &input.batches[static_cast<size_t>(m)] : nullptr,
                               .rows = rows.own(m),
                               .position = programs.accumulate_position(m, rows.count()),
                               .is_whole_step = is_whole_step(),
                               .shows_rows = shows_rows_};
  TUTTI_TRY(batch_programs_.prepare(micro_batch, rows, feeder.binding()));
  TUTTI_TRY(batch_programs_.point_to_rows(input, m, feeder.device_inputs()));
  batch_programs_.point_to_results(m);
  // The last micro-batch adds to what others left, and there are no others.
  if (programs.rounds_at_last && rows.count() == 1) TUTTI_TRY(contributors_.clear_accumulated());
  if (recorder_.is_launched_at_once(rows)) return Status();
  recorder_.note_pieces();
  if (is_whole_step()) return runner_.run_together();
  const Status status = runner_.accumulate(m, m + 1 == rows.count());
  return rows.count() == 1 ? status : status.with_detail("micro_batch", std::to_string(m + 1));
}

void Replica::set_scalars(int32_t m) {
  const StepRows &rows = agreement_.rows();
  for (Contributor &contributor : contributors_.all()) {
    contributor.rows = rows.share(m, contributor.index, rank_.programs().contributors);
    contributors_.arguments(contributor, m)
        .scalars.set(RunScalar::step, step_)
        .set(RunScalar::iteration, iteration_)
        .set(RunScalar::batch_counter, batch_counter_ + m)
        .set(RunScalar::row_offset, rows.first(m) + contributor.rows.begin)
        .set(RunScalar::local_rows, contributor.rows.rows())
        .set(RunScalar::step_rows, rows.step_rows())
        .set(RunScalar::first_flag, contributor.index == 0 && m == 0 ? 1 : 0);
  }
}

Status Replica::finish(const StepInput &input) {
  if (rank_.programs().finish.empty()) return Status();
  const int32_t last = agreement_.rows().count() - 1;
  if (storage_ != nullptr) {
    const Contributor::Arguments &with = contributors_.arguments(contributors_.front(), last);
    return storage_->run(contributors_.front(), rank_.stream(), with.scalars, contributors_.loss_scale());
  }
  batch_programs_.point_to_features(input.batches[0]);
  return runner_.finish(last);
}

Status Replica::conclude(const Replica &ahead, const Status &failure, const RunCommand &command, StepFeeder &feeder,
                         StepHistory &history, RunOutcome &outcome) {
  Run run{command, feeder, history, outcome};
  return steps_.conclude(ahead.steps_, failure, run);
}

Result<std::vector<NamedNumber>> report_values(const StatePlan &plan, const Replica &replica) {
  std::vector<NamedNumber> numbers;
  for (ReportEntry &reported : report_entries(plan)) {
    if (reported.is_summary) continue;
    if (!reported.entry->dims.empty()) {
      TUTTI_ASSIGN(tensor::Tensor elements, replica.report_tensor(*reported.entry));
      numbers.push_back({std::move(reported.name), std::numeric_limits<double>::quiet_NaN(), std::move(elements)});
      continue;
    }
    TUTTI_ASSIGN(const double value, replica.report_value(*reported.entry));
    numbers.push_back({std::move(reported.name), value});
  }
  return numbers;
}

}  // namespace tutti::impl::distribute
