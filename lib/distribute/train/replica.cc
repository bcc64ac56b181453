// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/replica.h"

#include <algorithm>

#include "base/text.h"
#include "distribute/workers/plan_agreement.h"

namespace tutti::impl::distribute {

using backend::RunScalar;
using base::Result;
using base::Status;
using collective::Operation;

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
  replica->plan_collectives();
  return replica;
}

void Replica::plan_collectives() {
  const std::vector<Bucket> &buckets = rank_.plan().buckets();
  bucket_buffers_.resize(buckets.size());
  for (size_t b = 0; b < buckets.size(); ++b) {
    if (rank_.programs().sums_in_finish && buckets[b].sliced) continue;
    for (Contributor &contributor : contributors_.all()) {
      auto *base = static_cast<std::byte *>(contributor.partials.device_pointer());
      bucket_buffers_[b].push_back(base + buckets[b].offset);
    }
    Operation operation;
    operation.kind = buckets[b].sliced ? collective::Kind::reduce_scatter : collective::Kind::all_reduce;
    operation.dtype = buckets[b].dtype;
    operation.buffers = bucket_buffers_[b].data();
    operation.count = buckets[b].elements;
    operation.slices = rank_.plan().slices(b).data();
    operation.slice_count = static_cast<int32_t>(rank_.plan().slices(b).size());
    operation.label = buckets[b].sliced ? "gradient bucket" : "sums";
    operation.stream = rank_.device_stream();
    bucket_operations_.push_back(operation);
  }
  if (bucket_operations_.empty() && rank_.programs().sums_in_finish) {
    // Finish reads what all have written.
    Operation barrier;
    barrier.kind = collective::Kind::barrier;
    barrier.label = "gradients";
    bucket_operations_.push_back(barrier);
  }
  external_buffers_.resize(contributors_.size());
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
  next_bucket_ = 0;
  plan_agreed_ = false;
  recorded_.open(check_recording());
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
  next_bucket_ = 0;
  last_ticket_ = -1;
  launched_ = nullptr;
  has_recorded_ = false;
  kept_batches_ = rows_.count();
  for (int32_t m = 0; m < rows_.count(); ++m)
    TUTTI_TRY(run_micro_batch(input, m, feeder));
  if (is_launched_at_once()) TUTTI_TRY(launch());
  if (launched_ != nullptr) return settle_launched();
  TUTTI_TRY(reduce_buckets(feeder));
  return finish(input);
}

Status Replica::run_micro_batch(const StepInput &input, int32_t m, const StepFeeder &feeder) {
  const TrainProgramSet &programs = rank_.programs();
  const bool is_last = m + 1 == rows_.count();
  micro_batch_ = m;
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
  if (is_launched_at_once()) return Status();
  recorded_.note_pieces();
  const Status status = run_programs(false, is_last);
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

Status Replica::run_programs(bool finishing, bool last) {
  const std::span<Contributor> parts = contributors_.all();
  if (rank_.programs().parts_alternate) return run_segments(parts, finishing, last);
  // A bucket is complete when the last of them has come to its mark.
  for (size_t p = 0; p < parts.size(); ++p)
    TUTTI_TRY(run_segments(parts.subspan(p, 1), finishing, last && p + 1 == parts.size()));
  return Status();
}

Status Replica::run_segments(std::span<Contributor> parts, bool finishing, bool last) {
  const auto program_of = [&](Contributor &contributor) {
    return finishing ? contributor.finish : contributor.current;
  };
  if (program_of(parts.front()) == nullptr) return Status();
  const int32_t segments = program_of(parts.front())->description().segment_count();
  for (int32_t segment = 0; segment < segments; ++segment) {
    for (Contributor &contributor : parts) {
      BoundProgram *program = program_of(contributor);
      if (program == nullptr) continue;
      const Contributor::Arguments &with = contributors_.arguments(contributor, micro_batch_);
      const backend::RunArguments arguments{finishing ? contributor.finish_inputs.data() : with.inputs.data(),
                                            finishing ? nullptr : with.results.data(), with.scalars.data()};
      TUTTI_TRY(program->program.run(segment, arguments, rank_.stream()));
    }
    if (segment + 1 < segments) TUTTI_TRY(run_external(segment, finishing, last));
  }
  return Status();
}

Status Replica::run_external(int32_t position, bool finishing, bool last) {
  const auto external_of = [&](Contributor &contributor) -> const BoundExternal & {
    return (finishing ? contributor.finish : contributor.current)->externals[static_cast<size_t>(position)];
  };
  const BoundExternal &external = external_of(contributors_.front());
  if (external.bucket >= 0) return last ? begin_buckets(std::min(external.bucket + 1, early_buckets())) : Status();
  for (size_t c = 0; c < contributors_.size(); ++c)
    external_buffers_[c] = external_of(contributors_.all()[c]).pointer;
  Operation operation;
  operation.kind = collective::Kind::all_reduce;
  operation.reduction = external.reduction;
  operation.dtype = external.dtype;
  operation.buffers = external_buffers_.data();
  operation.count = external.elements;
  operation.label = external.label.c_str();
  operation.stream = rank_.device_stream();
  if (operation.stream == nullptr) TUTTI_TRY(rank_.stream().synchronize());
  TUTTI_TRY(go_on_recording());
  return wait_for_group([&]() -> Status {
    TUTTI_TRY(rank_.group().run(operation));
    return finishing ? rank_.group().settle() : Status();  // updates come next
  });
}

Status Replica::begin_buckets(int32_t end) {
  if (rank_.programs().contributors == 1 || next_bucket_ >= end) return Status();
  if (rank_.device_stream() == nullptr) TUTTI_TRY(rank_.stream().synchronize());
  for (; next_bucket_ < end; ++next_bucket_) {
    TUTTI_TRY(go_on_recording());
    TUTTI_ASSIGN(last_ticket_, rank_.group().begin(bucket_operations_[static_cast<size_t>(next_bucket_)]));
  }
  return Status();
}

Status Replica::reduce_buckets(StepFeeder &feeder) {
  return rank_.programs().contributors == 1 ? finish_buckets(feeder)
                                            : wait_for_group([&] { return finish_buckets(feeder); });
}

Status Replica::finish_buckets(StepFeeder &feeder) {
  if (rank_.device_stream() != nullptr && !rank_.programs().finish.empty() && !rank_.is_on_devices()) {
    // Only now it shows what was wrong with the data of this rank; nobody updates without its last operation.
    TUTTI_TRY(begin_buckets(early_buckets()));
    if (last_ticket_ >= 0) TUTTI_TRY(rank_.group().wait(last_ticket_));
    TUTTI_TRY(rank_.group().settle());  // the stream waits for other ranks, and only that wait has an end
    TUTTI_TRY(rank_.stream().synchronize());
  }
  TUTTI_TRY(begin_buckets(static_cast<int32_t>(bucket_operations_.size())));
  if (last_ticket_ < 0) return Status();
  if (rank_.group().would_wait(last_ticket_)) feeder.read_ahead();
  TUTTI_TRY(rank_.group().wait(last_ticket_));
  return rank_.is_on_devices() ? Status() : rank_.group().settle();
}

Status Replica::finish(const StepInput &input) {
  if (rank_.programs().finish.empty()) return Status();
  batch_programs_.point_to_features(input.batches[0]);
  return run_programs(true, true);
}

}  // namespace tutti::impl::distribute
