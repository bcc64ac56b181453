// SPDX-License-Identifier: Apache-2.0
//
// Records steps of a process with one device, and launches them at once (recorded_steps.h): the gradients of all
// micro-batches, the operations between workers and the update. Between workers the device waits in front of the update
// until all workers have said that they have come there (Group::settle), and all update or none.
//
//   recorder.begin_step();
//   ...                                     // the programs of all micro-batches are prepared
//   TUTTI_TRY(recorder.launch(rows));
//   if (recorder.launched() != nullptr) return recorder.settle_launched();
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEP_RECORDER_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEP_RECORDER_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "distribute/input/input_binding.h"
#include "distribute/input/step_feeder.h"
#include "distribute/input/step_rows.h"
#include "distribute/train/contributors.h"
#include "distribute/train/gradient_buckets.h"
#include "distribute/train/program_runner.h"
#include "distribute/train/rank.h"
#include "distribute/train/recorded_steps.h"
#include "distribute/train/recording_agreement.h"
#include "distribute/train/step_clock.h"

namespace tutti::impl::distribute {

class StepRecorder {
 public:
  StepRecorder(Rank &rank, Contributors &contributors, GradientBuckets &buckets, ProgramRunner &runner,
               StepClock &clock, RecordingAgreement &agreement)
      : rank_(rank),
        contributors_(contributors),
        buckets_(buckets),
        runner_(runner),
        clock_(clock),
        agreement_(agreement) {}

  /// For a new group; nothing is recorded yet.
  void open() { recorded_.open(check_recording()); }
  /// Forgets all steps, when the stream has done what was launched.
  void drop();

  /// What this worker publishes for a step: the program that it would begin with, if it may be launched as it was
  /// recorded: its micro-batches are all there, or none is, and of one shape.
  int64_t program_for(const StepInput &input, const InputBinding &binding, const StepRows &rows);
  /// Whether all workers have published one.
  bool is_launched_at_once(const StepRows &rows) const { return !rows.programs().empty() && !rank_.is_traced(); }

  /// A step begins, of which nothing is launched or recorded.
  void begin_step();
  /// Programs of a step run in pieces.
  void note_pieces() { recorded_.note_pieces(); }
  /// A step whose micro-batches have been prepared; in pieces, but for the update, where it cannot be recorded.
  base::Status launch(const StepRows &rows);
  /// Settles what was launched: nobody updates before all have come so far, with data that are good.
  base::Status settle_launched();

  /// Of the step under way: what was launched, null where it runs in pieces; the ticket of its operations, or -1;
  /// whether it was recorded.
  const RecordedStepRef &launched() const { return launched_; }
  collective::Ticket last_ticket() const { return last_ticket_; }
  bool has_recorded() const { return has_recorded_; }

  /// How steps run, for people, and what became of the memory of their gradients.
  std::string describe() const { return recorded_.describe(); }
  std::string describe_memory() const;

 private:
  /// Ok where steps of the group may be recorded.
  base::Status check_recording();
  /// Tells the programs what the step runs with.
  base::Status set_arguments(const StepRows &rows);
  /// Null where some worker cannot.
  base::Result<RecordedStepRef> record_step(int32_t micro_batches);
  base::Result<RecordedStepRef> record(int32_t micro_batches);
  /// What is recorded of a step.
  base::Status issue(int32_t micro_batches);

  Rank &rank_;
  Contributors &contributors_;
  GradientBuckets &buckets_;
  ProgramRunner &runner_;
  StepClock &clock_;
  RecordingAgreement &agreement_;
  RecordedSteps recorded_;
  RecordedStepRef launched_;
  collective::Ticket last_ticket_ = -1;
  bool has_recorded_ = false;
  ShapeKey next_key_, next_other_key_;  // of the step that comes
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEP_RECORDER_H_
