// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/replica.h"

#include <algorithm>

#include "base/text.h"
#include "distribute/workers/plan_agreement.h"

namespace tutti::impl::distribute {

using backend::RunScalar;
using base::Result;
using base::Status;

Replica::Replica(const TrainProgramSet &programs, const StatePlan &plan, backend::DeviceRef device,
                 backend::Stream stream, size_t place)
    : rank_(programs, plan, std::move(device), std::move(stream), place), scale_entry_(plan.find(loss_scale_entry)) {}

// The group may still be copying from and to the contributors' memory.
Replica::~Replica() { drop_group(); }

Result<std::unique_ptr<Replica>> Replica::create(const TrainProgramSet &programs, const StatePlan &plan,
                                                 ExecutableCache &executables, backend::DeviceRef device, size_t place,
                                                 const ArenaPointers &arenas, int32_t parts, size_t cache_capacity) {
  TUTTI_ASSIGN(backend::Stream stream, device->create_stream());
  std::unique_ptr<Replica> replica(new Replica(programs, plan, std::move(device), std::move(stream), place));
  TUTTI_TRY(replica->reports_.open(plan, *replica->rank_.device(), programs.steps_in_flight));
  TUTTI_TRY(replica->contributors_.open(executables, arenas, parts, cache_capacity, replica->reports_.in_flight()));
  replica->buckets_.plan(replica->contributors_.all());
  replica->open_words();
  return replica;
}

void Replica::open_words() {
  rows_ = StepRows(rank_.programs().workers, rank_.programs().divides_input, rank_.programs().accumulation);
  words_per_part_ = word_count + rows_.word_count();
  words_.resize(contributors_.size() * static_cast<size_t>(words_per_part_));
  for (size_t c = 0; c < contributors_.size(); ++c)
    word_pointers_.push_back(&words_[c * static_cast<size_t>(words_per_part_)]);
}

void Replica::set_group(std::unique_ptr<collective::Group> group) {
  drop_group();
  rank_.set_group(std::move(group));
  contributors_.join_group();
  plan_agreed_ = false;
  recorder_.open();
  contributors_.register_partials();
}

Status Replica::begin_run(const RunCommand &command) {
  step_ = command.step;
  batch_counter_ = command.batch_counter;
  begun_ = applied_ = 0;
  contributors_.set_seed(command.seed);
  for (Contributor &contributor : contributors_.all()) {
    if (rank_.programs().steps_in_flight > 1) TUTTI_TRY(reports_.begin(contributor.report));
  }
  if (!plan_agreed_) TUTTI_TRY(check_same_plan(rank_.group(), rank_.plan().hash()));
  plan_agreed_ = true;
  return Status();
}

Status Replica::set_traced(bool traced) {
  TUTTI_TRY(rank_.stream().synchronize());
  drop_recordings();  // of programs that go
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

Status Replica::run_step(const StepInput &input, StepFeeder &feeder, const LossScaleState &scale) {
  contributors_.begin_step(step_);
  TUTTI_TRY(contributors_.write_loss_scale(scale.scale));
  iteration_ = step_ + 1 - scale.skipped_steps;
  buckets_.begin_step();
  recorder_.begin_step();
  kept_batches_ = rows_.count();
  for (int32_t m = 0; m < rows_.count(); ++m)
    TUTTI_TRY(run_micro_batch(input, m, feeder));
  if (recorder_.is_launched_at_once(rows_)) TUTTI_TRY(recorder_.launch(rows_));
  if (recorder_.launched() != nullptr) return recorder_.settle_launched();
  TUTTI_TRY(buckets_.reduce(feeder));
  return finish(input);
}

Status Replica::run_micro_batch(const StepInput &input, int32_t m, const StepFeeder &feeder) {
  const TrainProgramSet &programs = rank_.programs();
  set_scalars(m);
  const MicroBatch micro_batch{.number = m,
                               .batch = m < input.count ? &input.batches[static_cast<size_t>(m)] : nullptr,
                               .rows = rows_.own(m),
                               .position = programs.accumulate_position(m, rows_.count())};
  TUTTI_TRY(batch_programs_.prepare(micro_batch, feeder.binding()));
  TUTTI_TRY(batch_programs_.point_to_rows(input, m, feeder.device_inputs()));
  batch_programs_.point_to_results(m);
  // The last micro-batch adds to what others left, and there are no others.
  if (programs.rounds_at_last && rows_.count() == 1) TUTTI_TRY(contributors_.clear_accumulated());
  if (recorder_.is_launched_at_once(rows_)) return Status();
  recorder_.note_pieces();
  const Status status = runner_.accumulate(m, m + 1 == rows_.count());
  return rows_.count() == 1 ? status : status.with_detail("micro_batch", std::to_string(m + 1));
}

void Replica::set_scalars(int32_t m) {
  for (Contributor &contributor : contributors_.all()) {
    contributor.rows = rows_.share(m, contributor.index, rank_.programs().contributors);
    contributors_.arguments(contributor, m)
        .scalars.set(RunScalar::step, step_)
        .set(RunScalar::iteration, iteration_)
        .set(RunScalar::batch_counter, batch_counter_ + m)
        .set(RunScalar::row_offset, rows_.first(m) + contributor.rows.begin)
        .set(RunScalar::local_rows, contributor.rows.rows())
        .set(RunScalar::step_rows, rows_.step_rows())
        .set(RunScalar::first_flag, contributor.index == 0 && m == 0 ? 1 : 0);
  }
}

Status Replica::finish(const StepInput &input) {
  if (rank_.programs().finish.empty()) return Status();
  batch_programs_.point_to_features(input.batches[0]);
  return runner_.finish(rows_.count() - 1);
}

void Replica::drop_recordings() {
  recorder_.drop();
  for (IssuedStep &step : issued_steps_)
    step.launched = nullptr;
}

}  // namespace tutti::impl::distribute
