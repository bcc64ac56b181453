// SPDX-License-Identifier: Apache-2.0
//
// A replica: one rank of the group on one device, with the contributors it runs (one, or several logical replicas). It
// executes whole steps: accumulate for each micro-batch, buckets, finish. Internal to this folder.
//
// It puts together what each part of a step has a class for, all of which share the Rank:
//
//   Contributors     memory and programs of the logical replicas
//   StepAgreement    what all ranks agree on before a step
//   BatchPrograms    programs for the shape of a batch, and what they read and write
//   ProgramRunner    runs them, segment by segment
//   GradientBuckets  reduces what they leave
//   WeightHandout    gives the weights of a central update to all
//   StepRecorder     launches all that at once, where it can be recorded
//   StepsInFlight    finds out what became of the steps
//   StepClock        where their time goes
//
// Threads: run_steps() on the replica's own thread; everything else while no steps run.
#ifndef TUTTI_DISTRIBUTE_TRAIN_REPLICA_H_
#define TUTTI_DISTRIBUTE_TRAIN_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "collective/group.h"
#include "distribute/input/step_feeder.h"
#include "distribute/train/batch_programs.h"
#include "distribute/train/contributors.h"
#include "distribute/train/factor_memory.h"
#include "distribute/train/gradient_buckets.h"
#include "distribute/train/program_runner.h"
#include "distribute/train/rank.h"
#include "distribute/train/recording_agreement.h"
#include "distribute/train/run_command.h"
#include "distribute/train/step_agreement.h"
#include "distribute/train/step_clock.h"
#include "distribute/train/step_functions.h"
#include "distribute/train/step_history.h"
#include "distribute/train/step_recorder.h"
#include "distribute/train/steps_in_flight.h"
#include "distribute/train/storage_update.h"
#include "distribute/train/train_program_set.h"
#include "distribute/train/weight_handout.h"

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
  void share_factors(FactorMemory &memory) {
    batch_programs_.share_factors(memory);
    buckets_.gather_in(memory);
  }
  /// That makes the updates instead of this replica, the first one, and outlives it. Before the first run.
  void update_with(StorageUpdate &storage);
  /// The group of the runs to come; the old one is dropped.
  void set_group(std::unique_ptr<collective::Group> group);
  /// Of its gradients, which the group works on in place, as memory that was registered with the devices' library.
  int64_t registered_bytes() const { return rank_.group().registered_bytes(); }
  /// Before the memory of any replica goes.
  void drop_group();
  collective::Group &group() { return rank_.group(); }
  /// How its steps run, for people, and what became of the memory of its gradients.
  std::string how_steps_run() const;
  std::string how_memory_is_registered() const { return recorder_.describe_memory(); }

  /// Runs steps. On failure the group has been aborted with the cause; the feeder then has to hear of the steps that
  /// have begun, by conclude().
  base::Status run_steps(const RunCommand &command, StepFeeder &feeder, const RunSignals &signals, StepHistory &history,
                         RunOutcome &outcome);

  /// Steps of the last run that changed this replica's weights as they should, judged or not. Some ranks of a group may
  /// have one more than others.
  int64_t applied_steps() const { return steps_.applied(); }
  /// After a run that failed, on the first replica, while no steps run: counts the steps that `ahead` has applied. The
  /// feeder passes over the batches of the step that failed, if they are why; else it gives them again, like those of
  /// the steps behind.
  base::Status conclude(const Replica &ahead, const base::Status &failure, const RunCommand &command,
                        StepFeeder &feeder, StepHistory &history, RunOutcome &outcome);

  /// A scalar of the report of the last step.
  base::Result<double> report_value(const backend::StateEntry &entry) const {
    return contributors_.report_value(entry);
  }
  base::Result<tensor::Tensor> report_tensor(const backend::StateEntry &entry) const {
    return contributors_.report_tensor(entry);
  }
  /// Bytes of the partials of one of its contributors.
  base::Status read_partials(int32_t part, int64_t offset, int64_t bytes, void *destination) const {
    return contributors_.read_partials(part, offset, bytes, destination);
  }
  int64_t programs_built() const { return contributors_.programs_built(); }
  /// Outputs of the last step that was issued, of its contributors in order, which need keeps_outputs, and rows of
  /// summaries, where the run was to show them; its micro-batches.
  std::vector<const KeptOutputs *> kept_outputs() const { return contributors_.kept_outputs(); }
  int32_t kept_batches() const { return kept_batches_; }
  /// What samples of its steps have.
  std::vector<std::string> sampled_names() const;

 private:
  Replica(const TrainProgramSet &programs, const StatePlan &plan, backend::DeviceRef device, backend::Stream stream,
          size_t place);

  base::Status begin_run(const RunCommand &command);
  /// An error that the other ranks do not meet as well ends the group: they, and their devices, would wait for this
  /// one.
  base::Status of_this_rank(base::Status status);
  base::Status run_steps(Run &run, const RunSignals &signals);
  /// Whether step n of the feeder runs, or one without it where other workers have rows; where not, the steps before it
  /// have been judged.
  base::Result<bool> agree(int64_t n, const RunSignals &signals, Run &run);
  /// What this replica has to say of it.
  base::Result<StepProposal> propose(int64_t n, const RunSignals &signals, Run &run);
  /// From the next step on kernels are traced, or not any more: programs are built again. On all ranks at once.
  base::Status set_traced(bool traced);
  /// Issues a step, and judges those before it that the device need not be kept waiting for. `built`: programs before
  /// it began; the time of a step that builds some does not count.
  base::Status advance(IssuedStep &step, int64_t built, Run &run);
  /// On the first replica: a sample of the step that was issued last, if one is due.
  base::Status sample(Run &run);
  base::Status run_step(const StepInput &input, StepFeeder &feeder, const LossScaleState &scale);
  /// All ranks run the step under way together, as one program.
  bool is_whole_step() const;
  base::Status run_micro_batch(const StepInput &input, int32_t m, const StepFeeder &feeder);
  /// Of the contributors' rows of micro-batch m.
  void set_scalars(int32_t m);
  base::Status finish(const StepInput &input);
  /// Central storage: the weights of the first replica's update for all.
  base::Status hand_out();

  Rank rank_;
  Contributors contributors_{rank_};
  BatchPrograms batch_programs_{rank_, contributors_};
  StepClock clock_{rank_};
  RecordingAgreement recording_{rank_};
  GradientBuckets buckets_{rank_, clock_, recording_};
  ProgramRunner runner_{rank_, contributors_, buckets_, clock_, recording_};
  WeightHandout handout_{rank_, clock_};
  StepRecorder recorder_{rank_, contributors_, buckets_, runner_, clock_, recording_};
  StepsInFlight steps_{rank_, contributors_, clock_, recorder_};
  StepAgreement agreement_{rank_};
  StorageUpdate *storage_ = nullptr;      // null: this replica makes its updates itself, if any
  bool shows_rows_ = false;               // of summaries, in this run
  bool plan_agreed_ = false;              // all ranks of the group have the same plan
  int64_t step_ = 0, batch_counter_ = 0;  // what was issued
  int64_t iteration_ = 0;                 // number of the update under way: skipped steps do not count
  int32_t kept_batches_ = 0;              // of the last step
  std::vector<ReportEntry> reported_;     // the numbers among it, as samples have them
};

/// What the last step reported: loss, learning rate and metrics by name.
base::Result<std::vector<NamedNumber>> report_values(const StatePlan &plan, const Replica &replica);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_REPLICA_H_
