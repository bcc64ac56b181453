// SPDX-License-Identifier: Apache-2.0
//
// A replica: one rank of the group on one device, with the contributors it runs (one, or several logical replicas). It
// executes whole steps: accumulate for each micro-batch, buckets, finish. Internal to this folder.
//
// Threads: run_steps() on the replica's own thread; everything else while no steps run.
#ifndef TUTTI_DISTRIBUTE_TRAIN_REPLICA_H_
#define TUTTI_DISTRIBUTE_TRAIN_REPLICA_H_

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "collective/group.h"
#include "distribute/input/step_feeder.h"
#include "distribute/input/step_rows.h"
#include "distribute/plan/state_plan.h"
#include "distribute/train/batch_programs.h"
#include "distribute/train/contributors.h"
#include "distribute/train/factor_memory.h"
#include "distribute/train/gradient_buckets.h"
#include "distribute/train/loss_history.h"
#include "distribute/train/program_runner.h"
#include "distribute/train/rank.h"
#include "distribute/train/recorded_steps.h"
#include "distribute/train/recording_agreement.h"
#include "distribute/train/run_command.h"
#include "distribute/train/step_clock.h"
#include "distribute/train/step_recorder.h"
#include "distribute/train/step_reports.h"
#include "distribute/train/step_times.h"
#include "distribute/train/stream_waits.h"
#include "distribute/train/train_program_set.h"

namespace tutti::impl::distribute {

class Replica {
 public:
  /// `place`: its position among the replicas of this process. `arenas`: weights, slots and host of the device; the
  /// replica adds partials and report of each contributor.
  static base::Result<std::unique_ptr<Replica>> create(const TrainProgramSet &programs, const StatePlan &plan,
                                                       ExecutableCache &executables, backend::DeviceRef device,
                                                       size_t place, const ArenaPointers &arenas, int32_t parts,
                                                       size_t cache_capacity);

  ~Replica();

  /// Partials of its contributors, in order.
  std::vector<void *> partials() const { return contributors_.partials(); }
  /// Those of all contributors of the group, which finish programs read (sums_in_finish). Before the first run.
  void see_partials(std::span<void *const> partials) { contributors_.see_partials(partials); }
  /// Where all replicas leave their factors, if they share any. Before the first run.
  void share_factors(FactorMemory &memory) { batch_programs_.share_factors(memory); }
  /// The group of the runs to come; the old one is dropped.
  void set_group(std::unique_ptr<collective::Group> group);
  /// Of its gradients, which the group works on in place, as memory that was registered with the devices' library.
  int64_t registered_bytes() const { return rank_.group().registered_bytes(); }
  /// Before the memory of any replica goes.
  void drop_group() {
    drop_recordings();
    rank_.set_group(nullptr);
  }
  collective::Group &group() { return rank_.group(); }
  /// How its steps run, for people, and what became of the memory of its gradients.
  std::string how_steps_run() const { return recorder_.describe(); }
  std::string how_memory_is_registered() const { return recorder_.describe_memory(); }

  /// Runs steps. On failure the group has been aborted with the cause; the feeder then has to hear of the steps that
  /// have begun, by conclude().
  base::Status run_steps(const RunCommand &command, StepFeeder &feeder, const RunSignals &signals, LossHistory &losses,
                         RunOutcome &outcome);

  /// Steps of the last run that changed this replica's weights as they should, judged or not. Some ranks of a group may
  /// have one more than others.
  int64_t applied_steps() const { return applied_; }
  /// After a run that failed, on the first replica, while no steps run: counts the steps that `ahead` has applied. The
  /// feeder passes over the batches of the step that failed, if they are why; else it gives them again, like those of
  /// the steps behind.
  base::Status conclude(const Replica &ahead, const base::Status &failure, const RunCommand &command,
                        StepFeeder &feeder, LossHistory &losses, RunOutcome &outcome);

  /// A scalar of the report of the last step.
  base::Result<double> report_value(const backend::StateEntry &entry) const {
    return contributors_.report_value(entry);
  }
  /// Bytes of the partials of one of its contributors.
  base::Status read_partials(int32_t part, int64_t offset, int64_t bytes, void *destination) const {
    return contributors_.read_partials(part, offset, bytes, destination);
  }
  int64_t programs_built() const { return contributors_.programs_built(); }
  /// Outputs of the last step that was issued, of its contributors in order, which need keeps_outputs; its
  /// micro-batches.
  std::vector<const KeptOutputs *> kept_outputs() const { return contributors_.kept_outputs(); }
  int32_t kept_batches() const { return kept_batches_; }

 private:
  /// Control words that replicas combine (maximum) at a step boundary; those of all workers' rows follow.
  enum Word : int64_t { word_stop = 0, word_limit, word_error, word_trace, word_count };

  Replica(const TrainProgramSet &programs, const StatePlan &plan, backend::DeviceRef device, backend::Stream stream,
          size_t place);
  void open_words();

  /// What run_steps() was called with.
  struct Run {
    const RunCommand &command;
    StepFeeder &feeder;
    LossHistory &losses;
    RunOutcome &outcome;  // of the steps that were judged
    int64_t issued = 0;   // steps that the device was given

    int64_t in_flight() const { return issued - outcome.steps; }
  };
  /// A step of a run that was issued.
  struct IssuedStep {
    int64_t feeder_step = 0;
    bool has_input = false;  // of this worker
    int64_t rows = 0;        // of all workers
    int32_t batches = 0;
    bool is_counted = false;              // its time
    collective::Ticket last_ticket = -1;  // of the group's operations
    RecordedStepRef launched{};           // null: it ran in pieces
  };

  base::Status begin_run(const RunCommand &command);
  /// Issues the next step, and judges those before it that the device need not be kept waiting for. `built`: programs
  /// before it began; the time of a step that builds some does not count.
  base::Status advance(int64_t built, Run &run);
  /// Judges steps, oldest first, until so many are left in flight.
  base::Status judge(int64_t left, Run &run);
  /// Waits until the device has done the oldest step, and adds what it was; or says why it counts for nothing.
  base::Status judge_oldest(Run &run);
  /// Adds the oldest step, which reports this.
  base::Status count(const StepReport &report, Run &run);
  /// Why the oldest step, which is done, is not as it should be.
  base::Status what_went_wrong(const StepReport &report, const Run &run);
  /// Ends the group because a step of the run, counted from 0, went wrong; those behind it have not happened.
  base::Status fail(int64_t number, base::Status status, Run &run);
  base::Status run_steps(Run &run, const RunSignals &signals);
  /// Finds out which of the steps that nobody judged were applied. `bad`: what the stream says of the data.
  base::Status look_back(base::Status status, const base::Status &bad, const Run &run);
  bool may_be_of(int64_t number) const;
  base::Status with_place(const base::Status &status, int64_t number, const Run &run) const;
  /// From the next step on kernels are traced, or not any more: programs are built again. On all ranks at once.
  base::Status set_traced(bool traced);
  /// Whether step n of the feeder runs, or one without it where other workers have rows; where not, the steps before it
  /// have been judged. `is_last`: it may not.
  base::Result<bool> agree(int64_t n, bool is_last, const RunSignals &signals, Run &run);
  /// The same by the words of all.
  base::Result<bool> conclude(int64_t n, Run &run);
  /// The control words of this replica.
  base::Status fill_words(int64_t n, bool is_last, const RunSignals &signals, Run &run);
  base::Status run_step(const StepInput &input, StepFeeder &feeder, const LossScaleState &scale);
  base::Status run_micro_batch(const StepInput &input, int32_t m, const StepFeeder &feeder);
  void set_scalars(int32_t m);
  void drop_recordings();
  base::Status finish(const StepInput &input);
  /// Judges a step by its report: OUT_OF_RANGE, or the scale of the next one.
  base::Status check_report(const StepReport &report, int64_t step, LossHistory &losses, LossScaleState &scale);
  static size_t ring_place(int64_t number) { return static_cast<size_t>(number % StepReports::kMostInFlight); }
  IssuedStep &issued_step(int64_t number) { return issued_steps_[ring_place(number)]; }

  Rank rank_;
  Contributors contributors_{rank_};
  BatchPrograms batch_programs_{rank_, contributors_};

  StepClock clock_{rank_};
  RecordingAgreement recording_{rank_};
  GradientBuckets buckets_{rank_, clock_, recording_};
  ProgramRunner runner_{rank_, contributors_, buckets_, clock_, recording_};
  StepRecorder recorder_{rank_, contributors_, buckets_, runner_, clock_, recording_};
  bool plan_agreed_ = false;  // all ranks of the group have the same plan

  std::vector<int64_t> words_;  // control words, one group per contributor
  std::vector<void *> word_pointers_;
  int64_t words_per_part_ = 0;
  StepRows rows_;  // of the step under way
  StepReports reports_;
  int64_t step_ = 0, batch_counter_ = 0;  // what was issued
  int64_t begun_ = 0, applied_ = 0;       // steps of this run
  int64_t iteration_ = 0;                 // number of the update under way: skipped steps do not count
  int32_t kept_batches_ = 0;              // of the last step
  std::array<StreamWaits, StepReports::kMostInFlight> stream_waits_;  // of steps in flight
  std::array<IssuedStep, StepReports::kMostInFlight> issued_steps_;   // by number in the run
  const backend::StateEntry *scale_entry_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_REPLICA_H_
