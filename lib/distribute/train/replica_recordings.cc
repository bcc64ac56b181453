// SPDX-License-Identifier: Apache-2.0
//
// Steps of a process with one device, launched at once: the gradients of all micro-batches, the operations between
// workers and the update. Between workers the device waits in front of the update until all workers have said that they
// have come there (Group::settle), and all update or none.
#include <utility>

#include "base/text.h"
#include "distribute/train/replica.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

/// Micro-batches, which are so many times as large a graph.
constexpr int32_t kMostRecorded = 16;

static Status refused_elsewhere() { return base::unavailable("another worker could not record a step"); }

Status Replica::check_recording() {
  if (contributors_.size() > 1 || rank_.group().size() != rank_.programs().workers.count)
    return base::unimplemented(!rank_.has_other_workers() ? "there is one process"
                                                          : "workers have several replicas each");
  if (rank_.device_stream() == nullptr) return base::unimplemented("memory of the devices is the host's");
  if (!rank_.device()->backend().records_streams()) return base::unimplemented("the backend does not record streams");
  if (!rank_.has_other_workers() && rank_.programs().finish.empty())
    return base::unimplemented("a step is one program, launched at once");
  if (rank_.programs().accumulation > kMostRecorded)
    return base::unimplemented("steps have more than ", kMostRecorded, " micro-batches");
  TUTTI_TRY(recording_from_environment());
  return !rank_.has_other_workers() ? Status() : rank_.group().check_recording();
}

int64_t Replica::program_for(const StepInput &input, const InputBinding &binding) {
  if (!recorded_.may_record() || rank_.is_traced() || !input.status.ok()) return 0;
  if (input.count != 0 && input.count != rank_.programs().accumulation) return 0;
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
    const int64_t rows = rows_.share_of(input.rows[at], contributor.index, rank_.programs().contributors).rows();
    binding.fill_key(input.batches[at], rows, key);
    if (m > 0 && next_other_key_ != next_key_) return 0;
  }
  const BoundProgram *const program = contributor.accumulate_programs->peek(next_key_);
  return program == nullptr ? 0 : program->id;
}

Status Replica::launch() {
  const size_t turn = contributors_.turn();
  const int64_t own = rows_.programs()[static_cast<size_t>(rank_.programs().workers.index)];
  if (contributors_.front().accumulate.front()->id != own)
    return base::internal_error("a program was bound anew after the workers had agreed to launch it");
  launched_ = recorded_.find(rows_.programs(), turn);
  if (launched_ == nullptr) {
    TUTTI_ASSIGN(launched_, record_step());
    if (launched_ == nullptr) return run_micro_batches();
    recorded_.add(rows_.programs(), turn, launched_);
  }
  TUTTI_TRY(set_arguments());
  if (!rank_.has_other_workers()) return launched_->recording.replay(rank_.stream());
  TUTTI_ASSIGN(last_ticket_, rank_.group().replay(launched_->operations, launched_->recording, rank_.stream()));
  return Status();
}

Status Replica::set_arguments() {
  Contributor &contributor = contributors_.front();
  std::array<int32_t, 3> passes{};  // by position of the program
  const Contributor::Arguments *with = nullptr;
  for (int32_t m = 0; m < rows_.count(); ++m) {
    const size_t position = rank_.programs().accumulate_position(m, rows_.count());
    with = &contributors_.arguments(contributor, m);
    TUTTI_TRY(contributor.accumulate[position]->program.set_arguments(
        passes[position]++, {with->inputs.data(), with->results.data(), with->scalars.data()}, rank_.stream()));
  }
  return contributor.finish->program.set_arguments(0, {contributor.finish_inputs.data(), nullptr, with->scalars.data()},
                                                   rank_.stream());
}

Result<RecordedStepRef> Replica::record_step() {
  TUTTI_TRY(rank_.settle_building());
  has_recorded_ = true;
  all_record_ = true;
  Result<RecordedStepRef> recorded = record();
  TUTTI_TRY(rank_.group().error());
  if (all_record_) TUTTI_TRY(tell_recording(recorded.ok()));
  if (all_record_) return recorded;
  recorded_.give_up(recorded.ok() ? refused_elsewhere() : recorded.status());
  return RecordedStepRef();
}

Status Replica::tell_recording(bool can_go_on) {
  int64_t all_can = can_go_on ? 1 : 0;
  void *const word = &all_can;
  TUTTI_TRY(
      rank_.group().all_reduce({&word, 1}, 1, tensor::DType::i64, collective::Reduction::min, "steps are recorded"));
  all_record_ = all_can != 0;
  return Status();
}

Status Replica::go_on_recording() {
  if (!is_recording_) return Status();
  TUTTI_TRY(tell_recording(true));
  return all_record_ ? Status() : refused_elsewhere();
}

Result<RecordedStepRef> Replica::record() {
  const bool has_group = rank_.has_other_workers();
  if (has_group) TUTTI_TRY(rank_.group().begin_recording());
  auto step = std::make_shared<RecordedStep>();
  StreamWaits *const of_the_step = std::exchange(step_waits_, &step->waits);
  Status issued = rank_.stream().begin_recording();
  const bool has_begun = issued.ok();
  is_recording_ = has_begun;
  if (issued.ok()) issued = issue_recorded();
  is_recording_ = false;
  step_waits_ = of_the_step;
  next_bucket_ = 0;
  last_ticket_ = -1;
  if (has_group) step->operations = rank_.group().end_recording();
  if (!has_begun) return issued;
  Result<backend::Recording> recording = rank_.stream().end_recording();
  TUTTI_TRY(issued);
  TUTTI_TRY(recording.status());
  step->recording = recording.take();
  return step;
}

Status Replica::issue_recorded() {
  TUTTI_TRY(run_micro_batches());
  if (rank_.has_other_workers()) {
    TUTTI_TRY(wait_for_group([&]() -> Status {
      TUTTI_TRY(begin_buckets(static_cast<int32_t>(bucket_operations_.size())));
      TUTTI_TRY(rank_.group().wait(last_ticket_));
      return rank_.group().record_settle(rank_.stream());
    }));
  }
  return run_programs(true, true);
}

Status Replica::run_micro_batches() {
  Contributor &contributor = contributors_.front();
  for (micro_batch_ = 0; micro_batch_ < rows_.count(); ++micro_batch_) {
    contributor.current = contributor.accumulate[rank_.programs().accumulate_position(micro_batch_, rows_.count())];
    TUTTI_TRY(run_programs(false, micro_batch_ + 1 == rows_.count()));
  }
  micro_batch_ = rows_.count() - 1;
  return Status();
}

Status Replica::settle_launched() {
  if (!rank_.has_other_workers()) return Status();
  TUTTI_TRY(rank_.group().await_done(last_ticket_));
  if (!rank_.stream().has_failed()) return rank_.group().settle();
  rank_.group().withdraw();
  return rank_.stream().synchronize();  // it tells what is wrong with the data of this rank
}

std::string Replica::how_memory_is_registered() const {
  std::string how = rank_.group().registration();
  if (recorded_.are_recorded() && rank_.has_other_workers() && rank_.group().registered_bytes() == 0)
    how += "; with steps that are launched at once the devices' library does that by itself";
  return how;
}

void Replica::drop_recordings() {
  if (launched_ != nullptr || !recorded_.is_empty())
    (void)rank_.stream().synchronize();  // none waits for settle() any more
  launched_ = nullptr;
  for (IssuedStep &step : issued_steps_)
    step.launched = nullptr;
  recorded_.clear();
}

}  // namespace tutti::impl::distribute
