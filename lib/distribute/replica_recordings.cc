// SPDX-License-Identifier: Apache-2.0
//
// Steps of workers with one device each, launched at once. The update is no part of that: behind the last bucket all
// workers say that they have it (Group::settle), and update all or none.
#include <utility>

#include "base/text.h"
#include "distribute/replica_contributor.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

static Status refused_elsewhere() { return base::unavailable("another worker could not record a step"); }

Status Replica::check_recording() {
  if (programs_.workers.count == 1) return base::unimplemented("there is one process");
  if (contributors_.size() > 1 || group_->size() != programs_.workers.count)
    return base::unimplemented("workers have several replicas each");
  if (device_stream() == nullptr) return base::unimplemented("memory of the devices is the host's");
  if (programs_.accumulation > 1) return base::unimplemented("steps have several micro-batches");
  TUTTI_TRY(recording_from_environment());
  return group_->check_recording();
}

int64_t Replica::program_for(const StepInput &input, const InputBinding &binding) {
  if (!recorded_.may_record() || is_traced_ || !input.status.ok() || input.count > 1) return 0;
  const Contributor &contributor = *contributors_.front();
  if (input.count == 0) {
    next_key_ = contributor.key;
    clear_key(binding.symbols().size(), next_key_);
  } else {
    const int64_t rows = rows_.share_of(input.rows[0], contributor.index, programs_.contributors).rows();
    binding.fill_key(input.batches[0], rows, next_key_);
  }
  const BoundProgram *const program = contributor.accumulate_programs->peek(next_key_);
  return program == nullptr ? 0 : program->id;
}

Status Replica::run_recorded() {
  RecordedStep *step = recorded_.find(rows_.programs());
  if (step == nullptr) {
    TUTTI_ASSIGN(step, record_step());
  }
  if (step == nullptr) return run_programs(false, true);
  Contributor &contributor = *contributors_.front();
  if (contributor.current->id != rows_.programs()[static_cast<size_t>(programs_.workers.index)])
    return base::internal_error("a program was bound anew after the workers had agreed to launch it");
  const Contributor::Arguments &with = contributor.arguments[arguments_of(micro_batch_)];
  TUTTI_TRY(contributor.current->program.set_arguments(
      0, {with.inputs.data(), with.results.data(), with.scalars.data()}, stream_));
  TUTTI_ASSIGN(last_ticket_, group_->replay(step->operations, step->recording, stream_));
  launched_ = step;
  return Status();
}

Result<RecordedStep *> Replica::record_step() {
  TUTTI_TRY(settle_building());
  has_recorded_ = true;
  all_record_ = true;
  Result<RecordedStep> recorded = record();
  TUTTI_TRY(group_->error());
  if (all_record_) TUTTI_TRY(tell_recording(recorded.ok()));
  if (all_record_) return &recorded_.add(recorded.take());
  recorded_.give_up(recorded.ok() ? refused_elsewhere() : recorded.status());
  return static_cast<RecordedStep *>(nullptr);
}

Status Replica::tell_recording(bool can_go_on) {
  int64_t all_can = can_go_on ? 1 : 0;
  void *const word = &all_can;
  TUTTI_TRY(group_->all_reduce({&word, 1}, 1, tensor::DType::i64, collective::Reduction::min, "steps are recorded"));
  all_record_ = all_can != 0;
  return Status();
}

Status Replica::go_on_recording() {
  if (!is_recording_) return Status();
  TUTTI_TRY(tell_recording(true));
  return all_record_ ? Status() : refused_elsewhere();
}

Result<RecordedStep> Replica::record() {
  TUTTI_TRY(group_->begin_recording());
  RecordedStep step;
  StreamWaits *const of_the_step = std::exchange(step_waits_, &step.waits);
  Status issued = stream_.begin_recording();
  const bool has_begun = issued.ok();
  is_recording_ = has_begun;
  if (issued.ok()) issued = issue_recorded();
  is_recording_ = false;
  step_waits_ = of_the_step;
  next_bucket_ = 0;
  last_ticket_ = -1;
  step.operations = group_->end_recording();
  if (!has_begun) return issued;
  Result<backend::Recording> recording = stream_.end_recording();
  TUTTI_TRY(issued);
  TUTTI_TRY(recording.status());
  step.recording = recording.take();
  step.programs.assign(rows_.programs().begin(), rows_.programs().end());
  return step;
}

Status Replica::issue_recorded() {
  TUTTI_TRY(run_programs(false, true));
  return wait_for_group([&]() -> Status {
    TUTTI_TRY(begin_buckets(static_cast<int32_t>(bucket_operations_.size())));
    return group_->wait(last_ticket_);
  });
}

Status Replica::await_recorded() {
  TUTTI_TRY(group_->await_done(last_ticket_));
  TUTTI_TRY(stream_.synchronize());  // it tells what is wrong with the data of this rank
  TUTTI_ASSIGN(const int64_t waited_ns, launched_->waits.sum());
  step_waits_->add(waited_ns);
  return group_->settle();
}

std::string Replica::how_memory_is_registered() const {
  std::string how = group_->registration();
  if (recorded_.are_recorded() && group_->registered_bytes() == 0)
    how += "; with steps that are launched at once the devices' library does that by itself";
  return how;
}

void Replica::drop_recordings() {
  launched_ = nullptr;
  if (!recorded_.is_empty()) (void)stream_.synchronize();  // each launch was waited for, or the group has ended
  recorded_.clear();
}

}  // namespace tutti::impl::distribute
