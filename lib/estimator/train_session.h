// SPDX-License-Identifier: Apache-2.0
//
// Training in pieces: open, run as many times as wanted, close. Estimator::train is open, one run to the goal, close.
//
//   TUTTI_ASSIGN(auto session, TrainSession::open(state, request));      // builds, restores, sends begin
//   TUTTI_ASSIGN(SessionReport report, session->run({.steps = 100}));
//   TUTTI_ASSIGN(TrainResult result, session->close());                  // final checkpoint, sends end
//
// The thread that calls run sleeps while the replicas work, and wakes when a hook is due, at least about twice a
// second: then it sends events, hands snapshots to the saver and looks for stops. Which steps it wakes at decides
// nothing but when hooks and logs come.
//
// A run that fails writes the final checkpoint (of the last complete step) and sends `error` before it returns; after a
// CANCEL neither waits for the disk. A session that is destroyed without close writes nothing more; the next one,
// and whoever evaluates, go on from its last step all the same.
//
// With a strategy of several workers each has a session, opened with the same request; all restore the same checkpoint,
// the first worker writes the next ones, and a goal, a stop or an end of input ends the runs of all at the same step. A
// session that fails takes the others' runs with it, which tell the cause.
//
// Threads: one at a time. Hooks and the model function run on the calling thread.
#ifndef TUTTI_ESTIMATOR_TRAIN_SESSION_H_
#define TUTTI_ESTIMATOR_TRAIN_SESSION_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "base/trace.h"
#include "estimator/estimator_state.h"
#include "estimator/hook_list.h"
#include "estimator/input_passes.h"
#include "estimator/requests.h"
#include "estimator/run_state.h"
#include "estimator/session_checkpoints.h"
#include "estimator/session_log.h"
#include "estimator/session_statistics.h"
#include "estimator/session_trainer.h"
#include "estimator/training_goal.h"

namespace tutti::impl::estimator {

/// When a run() ends, if not earlier.
struct RunLimit {
  int64_t steps = -1;  // negative: no limit
  bool until_epoch_end = false;
};

struct SessionReport {
  std::optional<EndReason> reason;  // set: the run has reached its goal or was stopped, there is no more to do
  int64_t step = 0;
  int64_t steps = 0;                   // of this run()
  int64_t examples = 0;                // of this run()
  double loss = 0;                     // of the last step
  double input_wait_seconds = 0;       // of this run()
  std::vector<NamedNumber> metrics{};  // of the last step
};

class TrainSession : private RunControl {
 public:
  static base::Result<std::unique_ptr<TrainSession>> open(base::Ref<EstimatorState> state, TrainRequest request);
  ~TrainSession() override;

  /// Up to the limit, the goal of the request, a stop, or the end of the input.
  base::Result<SessionReport> run(const RunLimit &limit);
  /// One step of a step function on a batch. A failure leaves the session as it was.
  base::Result<distribute::StepFunctionReport> run_step_function(std::string_view function,
                                                                 std::vector<tensor::Tensor> batch);
  /// The rows of an output of its last step, for each replica of this process; empty tensors where it had none.
  base::Result<std::vector<tensor::Tensor>> step_output(std::string_view function, std::string_view output);
  /// What the replicas of all workers have; all workers call it at the same point.
  base::Result<std::vector<tensor::Tensor>> pieces_of_all(std::span<const tensor::Tensor> own);
  /// The outputs that it sets. NOT_FOUND names the functions there are.
  base::Result<std::vector<std::string>> step_outputs(std::string_view function) const;
  /// The weights of the current step.
  base::Result<base::Ref<checkpoint::WeightVersion>> publish();
  /// Sends `evaluated`; a hook that wants to stop ends the next run() before its first step.
  base::Status send_evaluated(const EvaluateResult &result);
  /// Ends it as a run that fails does, because of what happened between runs; returns the status.
  base::Status fail(base::Status status);
  /// The final checkpoint, everything on disk, `end`. Returns the error of a run that failed.
  base::Result<TrainResult> close();
  /// Ends a session of `variables_only`: what there is is on disk, where it was not yet or has been `changed`. The run
  /// that a checkpoint was in the middle of stays what it was.
  base::Status close_variables(bool changed);

  int64_t step() const { return trainer_->step(); }
  /// FAILED_PRECONDITION when a run has failed.
  base::Status set_host_scalar(std::string_view scalar, double value) override;

 private:
  TrainSession(base::Ref<EstimatorState> state, TrainRequest request);

  // Opening
  base::Status start();
  void give_up_start(const base::Status &cause);
  /// The trainer and what it goes on from; what the newest checkpoint says.
  base::Result<SavedRun> restore();
  std::vector<std::string> settings() const;
  void begin_summaries();

  // Running
  base::Result<SessionReport> run_steps(const RunLimit &limit);
  base::Result<bool> run_chunk(int64_t last_step);
  int64_t chunk_steps(int64_t last_step) const;
  base::Status account(const distribute::RunReport *report);
  /// Summaries of the steps that were sampled in a run, before which the session had these rows and waits for input.
  void write_summaries(int64_t examples, int64_t input_wait_ns);
  void write_histograms();
  /// Of each device, about once a second: the share of time in which it computed, and its memory.
  void write_device_use();
  /// Whether the run that begins is of one step that the model is looked at in; tells the trainer.
  bool begin_showing();
  /// What the model shows of itself in the step that has just ended, with what other workers have of it.
  base::Status write_shown();
  base::Result<std::vector<monitor::ShownSummary>> look_at_step();
  base::Status add_other_workers(std::span<monitor::ShownSummary> shown);
  /// The next step is one that the model is looked at in.
  bool is_shown_next() const { return step() + 1 == next_shown_; }
  /// What is trained and how, for people.
  base::JsonObject summary_settings() const;
  /// Of these what the program said of batches and optimizer.
  base::Json model_settings() const;
  /// A line of the run's record; `failure`: why the session ends, if it fails.
  void write_record(const base::Status &failure);
  base::Status end_pass();
  base::Status pump();
  base::Status stop(EndReason reason);
  base::Status send(const Event &event);
  Event event_of(EventKind kind) const;
  /// Why it is to end before its goal.
  std::optional<EndReason> stop_wanted() const;
  double secs_left() const;

  // Saving
  /// As of the current step; `input` as of the beginning of the session or of the pass.
  RunState run_state() const;
  base::Status save(bool finished);
  base::Status finish_saving();

  // Ending
  base::Status finish();
  void keep_for_resuming();
  /// What the next session may go on from with this trainer; none where it failed.
  std::optional<RunState> resumable() const;
  /// Gives back what belongs to the estimator, with a run the trainer too.
  void release(std::optional<RunState> run);

  // RunControl
  base::Status save_checkpoint() override { return save(false); }
  base::Result<tensor::Tensor> get_variable(std::string_view variable) override {
    return trainer_.get_variable(variable);
  }
  base::Ref<monitor::SummaryWriter> summary_writer() override;
  base::Status set_variable(std::string_view variable, const tensor::Tensor &value) override {
    return trainer_.set_variable(variable, value);
  }
  base::Result<tensor::Tensor> gradient(std::string_view variable) override { return trainer_.gradient(variable); }

  const base::Ref<EstimatorState> state_;
  const TrainRequest request_;
  const int64_t opened_ns_ = base::now_ns();
  bool permitted_ = false;  // holds the training permit
  SessionTrainer trainer_;
  InputPasses passes_;
  TrainingGoal goal_;
  HookList hooks_;
  bool hook_stop_ = false;
  int64_t next_histogram_ = INT64_MAX;                              // the step whose distributions are written next
  std::vector<distribute::StepTimes> device_times_;                 // since they were written
  int64_t devices_seen_ns_ = 0;                                     // of the clock of base::now_ns(); 0: never
  int64_t next_shown_ = INT64_MAX;                                  // the step whose images are
  double deadline_secs_ = std::numeric_limits<double>::infinity();  // of the clock of base::now_ns()
  SessionStatistics statistics_;
  SessionLog log_;
  std::optional<RunState> run_before_;  // this session; none: not restored yet
  bool begun_ = false;                  // `begin` was sent
  base::Status failure_;
  bool closed_ = false;
  SessionCheckpoints checkpoints_;  // last: what its thread uses goes with it
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_TRAIN_SESSION_H_
