// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/step_recorder.h"

#include <array>
#include <memory>
#include <utility>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

/// Micro-batches, which are so many times as large a graph.
constexpr int32_t kMostRecorded = 16;

Status StepRecorder::check_recording() {
  const TrainProgramSet &programs = rank_.programs();
  const collective::Group &group = rank_.group();
  if (contributors_.size() > 1 || group.size() != programs.workers.count)
    return base::unimplemented(rank_.has_other_workers() ? "workers have several replicas each"
                                                         : "there is only one process");
  if (programs.updates_apart) return base::unimplemented("another device updates the variables");
  if (rank_.device_stream() == nullptr) return base::unimplemented("the devices use host memory");
  if (!rank_.device()->backend().records_streams()) return base::unimplemented("the backend does not record streams");
  if (!rank_.has_other_workers() && programs.finish.empty())
    return base::unimplemented("a step is one program, launched at once");
  if (programs.gathers_factors) return base::unimplemented("workers give each other the gradients of rows");
  if (programs.accumulation > kMostRecorded)
    return base::unimplemented("steps have more than ", kMostRecorded, " micro-batches");
  TUTTI_TRY(recording_from_environment());
  return rank_.has_other_workers() ? rank_.group().check_recording() : Status();
}

int64_t StepRecorder::program_for(const StepInput &input, const InputBinding &binding, const StepRows &rows) {
  const TrainProgramSet &programs = rank_.programs();
  if (!recorded_.may_record() || rank_.is_traced() || !input.status.ok()) return 0;
  if (input.count != 0 && input.count != programs.accumulation) return 0;
  const Contributor &contributor = contributors_.front();
  // Updates that wait for others in their middle are left in pieces.
  if (contributor.finish == nullptr || contributor.finish->description().segment_count() > 1) return 0;
  if (input.count == 0) {
    next_key_ = contributor.key;
    clear_key(binding.symbols().size(), next_key_);
  }
  for (int32_t m = 0; m < input.count; ++m) {
    const auto at = static_cast<size_t>(m);
    ShapeKey &key = m == 0 ? next_key_ : next_other_key_;
    const RowRange share = rows.share_of(input.rows[at], contributor.index, programs.contributors);
    binding.fill_key(input.batches[at], share.rows(), key);
    if (m > 0 && next_other_key_ != next_key_) return 0;
  }
  const BoundProgram *const program = contributor.accumulate_programs->peek(programs.accumulate.front(), next_key_);
  return program == nullptr ? 0 : program->id;
}

void StepRecorder::begin_step() {
  launched_ = nullptr;
  last_ticket_ = -1;
  has_recorded_ = false;
}

Status StepRecorder::launch(const StepRows &rows) {
  const size_t turn = contributors_.turn();
  const int64_t own = rows.programs()[static_cast<size_t>(rank_.programs().workers.index)];
  if (contributors_.front().accumulate.front()->id != own)
    return base::internal_error("a program was bound again after the workers had agreed to launch it");
  launched_ = recorded_.find(rows.programs(), turn);
  if (launched_ == nullptr) {
    TUTTI_ASSIGN(launched_, record_step(rows.count()));
    if (launched_ == nullptr) return runner_.accumulate_all(rows.count());
    recorded_.add(rows.programs(), turn, launched_);
  }
  TUTTI_TRY(set_arguments(rows));
  if (!rank_.has_other_workers()) return launched_->recording.replay(rank_.stream());
  TUTTI_ASSIGN(last_ticket_, rank_.group().replay(launched_->operations, launched_->recording, rank_.stream()));
  return Status();
}

Status StepRecorder::set_arguments(const StepRows &rows) {
  Contributor &contributor = contributors_.front();
  std::array<int32_t, 3> passes{};  // by position of the program
  const Contributor::Arguments *with = nullptr;
  for (int32_t m = 0; m < rows.count(); ++m) {
    const size_t position = rank_.programs().accumulate_position(m, rows.count());
    with = &contributors_.arguments(contributor, m);
    TUTTI_TRY(contributor.accumulate[position]->program.set_arguments(
        passes[position]++, {with->inputs.data(), with->results.data(), with->scalars.data()}, rank_.stream()));
  }
  return contributor.finish->program.set_arguments(0, {contributor.finish_inputs.data(), nullptr, with->scalars.data()},
                                                   rank_.stream());
}

Result<RecordedStepRef> StepRecorder::record_step(int32_t micro_batches) {
  TUTTI_TRY(rank_.settle_building());
  has_recorded_ = true;
  agreement_.begin();
  Result<RecordedStepRef> recorded = record(micro_batches);
  TUTTI_TRY(rank_.group().error());
  if (agreement_.all_can()) TUTTI_TRY(agreement_.tell(recorded.ok()));
  if (agreement_.all_can()) return recorded;
  recorded_.give_up(recorded.ok() ? RecordingAgreement::refused_elsewhere() : recorded.status());
  return RecordedStepRef();
}

Result<RecordedStepRef> StepRecorder::record(int32_t micro_batches) {
  if (rank_.has_other_workers()) TUTTI_TRY(rank_.group().begin_recording());
  auto step = std::make_shared<RecordedStep>();
  StreamWaits *const of_the_step = clock_.write_waits_to(&step->waits);
  Status issued = rank_.stream().begin_recording();
  const bool has_begun = issued.ok();
  agreement_.set_recording(has_begun);
  if (issued.ok()) issued = issue(micro_batches);
  agreement_.set_recording(false);
  clock_.write_waits_to(of_the_step);
  buckets_.begin_step();  // what has begun is in the recording
  if (rank_.has_other_workers()) step->operations = rank_.group().end_recording();
  if (!has_begun) return issued;
  Result<backend::Recording> recording = rank_.stream().end_recording();
  TUTTI_TRY(issued);
  TUTTI_TRY(recording.status());
  step->recording = recording.take();
  return step;
}

Status StepRecorder::issue(int32_t micro_batches) {
  TUTTI_TRY(runner_.accumulate_all(micro_batches));
  if (rank_.has_other_workers()) {
    TUTTI_TRY(clock_.wait_for_group([&]() -> Status {
      TUTTI_TRY(buckets_.begin_all());
      TUTTI_TRY(rank_.group().wait(buckets_.last_ticket()));
      return rank_.group().record_settle(rank_.stream());
    }));
  }
  return runner_.finish(micro_batches - 1);
}

Status StepRecorder::settle_launched() {
  if (!rank_.has_other_workers()) return Status();
  TUTTI_TRY(rank_.group().await_done(last_ticket_));
  if (!rank_.stream().has_failed()) return rank_.group().settle();
  rank_.group().withdraw();
  return rank_.stream().synchronize();  // it tells what is wrong with the data of this rank
}

std::string StepRecorder::describe_memory() const {
  std::string how = rank_.group().registration();
  if (recorded_.are_recorded() && rank_.has_other_workers() && rank_.group().registered_bytes() == 0)
    how += "; for steps that are launched at once the library of the devices does it itself";
  return how;
}

void StepRecorder::drop() {
  // None waits for settle() any more.
  if (launched_ != nullptr || !recorded_.is_empty()) (void)rank_.stream().synchronize();
  launched_ = nullptr;
  recorded_.clear();
}

}  // namespace tutti::impl::distribute
