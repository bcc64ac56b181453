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
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/object.h"
#include "base/status.h"
#include "checkpoint/background_saver.h"
#include "estimator/efficiency_watch.h"
#include "estimator/estimator_state.h"
#include "estimator/hook_list.h"
#include "estimator/model_dir_lock.h"
#include "estimator/requests.h"
#include "estimator/run_state.h"

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
  /// Whether this process writes what is on disk: the first of the strategy's workers, or the only one.
  bool leads() const { return state_->strategy->workers().index == 0; }
  bool saves() const { return leads() && state_->config.saves_checkpoints(); }
  std::vector<std::string> settings() const;
  base::Status prepare_trainer();
  base::Status restore_newest(bool *has_state);
  base::Status overwrite(const checkpoint::WeightVersion &version);
  base::Status take_up(const checkpoint::WeightVersion &version, const RunState &run);
  base::Status set_goal();
  base::Status prepare_hooks();
  base::Status start_saver();
  /// A walk over the dataset from the beginning of the pass.
  base::Result<std::unique_ptr<data::Iterator>> open_pass();
  base::Status attach_pass();
  /// Leaves the pass that the run was in.
  void begin_new_pass(std::string_view why);
  void log_start();

  // Running
  base::Result<SessionReport> run_steps(const RunLimit &limit);
  base::Result<bool> run_chunk(int64_t last_step);
  int64_t chunk_steps(int64_t last_step) const;
  void account(const distribute::RunReport *report);
  base::Status end_pass();
  base::Status pump();
  base::Status stop_others();
  base::Status send(Event event);
  Event event_of(EventKind kind) const;
  /// Steps that a whole pass takes, or that the last one took where the dataset does not tell; -1 before one has ended.
  int64_t steps_of_pass() const;
  /// The step at which the run ends as far as steps asked for or the length of a pass tell; else -1.
  int64_t expected_end() const;
  bool stop_wanted() const;

  // Saving
  /// The weights of the current step, the newest ones from now on.
  base::Result<base::Ref<checkpoint::WeightVersion>> snapshot(bool with_slots);
  base::Result<base::Json> current_input();
  void refresh_state();
  base::Status save(bool finished);
  base::Status save_as(RunState saved);
  base::Status finish_saving(const base::CancelToken *cancel);

  // Ending
  base::Status finish();
  void keep_for_resuming();
  TrainResult result() const;
  void log_input_wait() const;
  void log_how_steps_ran() const;
  void log_step_shares() const;
  void release(bool keep_trainer);

  // RunControl
  base::Status save_checkpoint() override { return save(false); }
  base::Result<tensor::Tensor> get_variable(std::string_view variable) override;
  base::Status set_variable(std::string_view variable, const tensor::Tensor &value) override;
  base::Result<tensor::Tensor> gradient(std::string_view variable) override;

  const base::Ref<EstimatorState> state_;
  const TrainRequest request_;
  const base::Ref<base::CancelToken> input_cancel_;  // ends the reading when the session ends
  bool permitted_ = false;                           // holds the training permit
  ModelDirLock lock_;
  std::unique_ptr<distribute::Trainer> trainer_;
  HookList hooks_;

  RunState run_;
  bool from_checkpoint_ = false;   // run_ is what a checkpoint of model_dir says
  bool input_ended_ = false;       // the pass is complete, the next one not yet open
  bool skips_ended_pass_ = false;  // the former call ended well: a pass it left at its very end is not ours
  int64_t pass_examples_ = 0;      // rows of this pass in this session
  int64_t pass_step_ = 0;          // the step at which this pass began
  int64_t whole_pass_steps_ = -1;  // of the last pass that was whole; -1 = there was none
  std::optional<int64_t> goal_step_;
  std::optional<EndReason> reason_;
  bool hook_stop_ = false;
  bool begun_ = false;  // `begin` was sent
  base::Status failure_;
  bool closed_ = false;

  int64_t first_step_ = 0;
  int64_t examples_ = 0;                    // rows in this session
  int64_t counted_examples_ = 0;            // of the trainer's counter
  std::vector<NamedNumber> values_;         // report of the last step
  int64_t input_wait_ns_ = 0, run_ns_ = 0;  // of all runs
  EfficiencyWatch efficiency_;
  std::string how_steps_run_;  // as it was logged at the start; "" = it was not
  double secs_per_step_ = 0;   // of the last chunk; 0 = not known

  // What the newest checkpoint on disk, or on its way there, says.
  int64_t saved_step_ = -1;
  int64_t announced_step_ = -1;  // of the newest checkpoint that hooks were told of
  base::Json saved_run_, saved_input_;
  std::string graph_text_;
  std::mutex saved_mutex_;
  std::vector<std::pair<int64_t, std::string>> saved_;  // guarded by saved_mutex_: not yet sent to the hooks
  std::unique_ptr<checkpoint::BackgroundSaver> saver_;  // last: its thread uses what stands above
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_TRAIN_SESSION_H_
