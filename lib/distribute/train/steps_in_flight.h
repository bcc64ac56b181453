// SPDX-License-Identifier: Apache-2.0
//
// The steps of a run that were given to the device, until it is known what became of them. They are judged in their
// order, oldest first, each by its report; while one is judged the device may be at those behind it.
//
//   IssuedStep &step = steps.begin(run, {...});
//   ...                                      // its work is issued
//   TUTTI_TRY(steps.issue_report(run));      // else return steps.fail_under_way(status, run)
//   ++run.issued;
//   TUTTI_TRY(steps.judge(1, run));          // one may be left in flight
//
// A step that went wrong ends the group, and none behind it has happened. Where an update is guarded on the device
// (Rank::is_on_devices) some ranks may then have applied one more than others.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STEPS_IN_FLIGHT_H_
#define TUTTI_DISTRIBUTE_TRAIN_STEPS_IN_FLIGHT_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "collective/group.h"
#include "distribute/input/step_feeder.h"
#include "distribute/train/contributors.h"
#include "distribute/train/rank.h"
#include "distribute/train/run_command.h"
#include "distribute/train/step_clock.h"
#include "distribute/train/step_history.h"
#include "distribute/train/step_recorder.h"
#include "distribute/train/step_reports.h"
#include "distribute/train/stream_waits.h"

namespace tutti::impl::distribute {

/// A run under way. Steps of it count from 0.
struct Run {
  const RunCommand &command;
  StepFeeder &feeder;
  StepHistory &history;
  RunOutcome &outcome;  ///< of the steps that were judged
  int64_t issued = 0;   ///< steps that the device was given

  int64_t in_flight() const { return issued - outcome.steps; }
};

/// A step of a run that was issued.
struct IssuedStep {
  int64_t feeder_step = 0;
  bool has_input = false;  ///< of this worker
  int64_t rows = 0;        ///< of all workers
  int32_t batches = 0;
  bool is_counted = false;              ///< its time
  bool is_together = false;             ///< as one program of all ranks
  collective::Ticket last_ticket = -1;  ///< of the group's operations
  RecordedStepRef launched{};           ///< null: it ran in pieces
};

class StepsInFlight {
 public:
  StepsInFlight(Rank &rank, Contributors &contributors, StepClock &clock, StepRecorder &recorder)
      : rank_(rank),
        contributors_(contributors),
        clock_(clock),
        recorder_(recorder),
        scale_entry_(rank.plan().find(loss_scale_entry)) {}

  base::Status open();
  /// The steps' reports come from there, a device's that updates in place of the rank's. Both outlive it.
  void report_from(const backend::Buffer &report, backend::Stream &stream) {
    report_ = &report;
    report_stream_ = &stream;
  }
  /// That may be in flight.
  int32_t most() const { return reports_.in_flight(); }

  base::Status begin_run();
  /// The next step of the run begins.
  IssuedStep &begin(const Run &run, IssuedStep step);
  /// Lets it report behind its work.
  base::Status issue_report(const Run &run);
  /// Whether the step that was issued last is still to be judged, and its time counts.
  bool counts_last(const Run &run) { return run.in_flight() > 0 && issued_step(run.issued - 1).is_counted; }
  /// Judges steps, oldest first, until so many are left in flight.
  base::Status judge(int64_t left, Run &run);
  /// Ends the group because a step of the run went wrong; those behind it have not happened.
  base::Status fail(int64_t number, base::Status status, Run &run);
  /// The same where the step under way could not be issued: because of it, or of what one before met with.
  base::Status fail_under_way(base::Status status, Run &run);
  /// Nothing that was recorded is launched any more.
  void drop_recordings();

  /// Steps of the last run that changed this rank's weights as they should, judged or not.
  int64_t applied() const { return applied_; }
  /// After a run that failed: counts the steps that `ahead` has applied; says what becomes of the batches of others.
  base::Status conclude(const StepsInFlight &ahead, const base::Status &failure, Run &run);

 private:
  backend::Stream &report_stream() { return report_stream_ != nullptr ? *report_stream_ : rank_.stream(); }
  static size_t ring_place(int64_t number) { return static_cast<size_t>(number % StepReports::kMostInFlight); }
  IssuedStep &issued_step(int64_t number) { return issued_steps_[ring_place(number)]; }
  /// Waits until the device has done the oldest step, and adds what it was; or says why it counts for nothing.
  base::Status judge_oldest(Run &run);
  /// How long the device waited in a step that it has done.
  base::Result<int64_t> take_waits(int64_t number);
  /// Adds the oldest step, which reports this.
  base::Status count(const StepReport &report, Run &run);
  /// OUT_OF_RANGE, or the scale of the next step.
  base::Status check_report(const StepReport &report, int64_t step, Run &run);
  /// Why the oldest step, which is done, is not as it should be.
  base::Status what_went_wrong(const StepReport &report, const Run &run);
  /// Finds out which of the steps that nobody judged were applied. `bad`: what the stream says of the data.
  base::Status look_back(base::Status status, const base::Status &bad, const Run &run);
  bool may_be_of(int64_t number) const;
  base::Status with_place(const base::Status &status, int64_t number, const Run &run) const;

  Rank &rank_;
  Contributors &contributors_;
  StepClock &clock_;
  StepRecorder &recorder_;
  const backend::StateEntry *const scale_entry_;
  StepReports reports_;
  const backend::Buffer *report_ = nullptr;  // null: the first contributor's, on the rank's stream
  backend::Stream *report_stream_ = nullptr;
  std::array<StreamWaits, StepReports::kMostInFlight> stream_waits_;
  std::array<IssuedStep, StepReports::kMostInFlight> issued_steps_;
  int64_t begun_ = 0, applied_ = 0;  // of this run
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STEPS_IN_FLIGHT_H_
