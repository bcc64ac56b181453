// SPDX-License-Identifier: Apache-2.0
//
// What the parts of one estimator share: its description, its models, the newest published weights, and what a training
// session leaves to the next one.
//
// Threads: all functions may be called from any thread; what stands under "session" belongs to the session that holds
// the training permit.
#ifndef TUTTI_ESTIMATOR_ESTIMATOR_STATE_H_
#define TUTTI_ESTIMATOR_ESTIMATOR_STATE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "checkpoint/reader.h"
#include "checkpoint/weight_version.h"
#include "data/dataset/dataset.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/strategy/strategy.h"
#include "distribute/train/trainer.h"
#include "estimator/dataset_parts.h"
#include "estimator/environment.h"
#include "estimator/hook.h"
#include "estimator/live_trainer.h"
#include "estimator/model_source.h"
#include "estimator/run_config.h"
#include "estimator/run_state.h"
#include "estimator/step_function_source.h"
#include "estimator/warnings_given.h"
#include "monitor/run_summaries.h"

namespace tutti::impl::estimator {

class EstimatorState : public base::Object {
 public:
  /// `whole_batches`: null, or the one device that takes the place of the strategy where a model mixes the rows of a
  /// batch, which several cannot compute.
  EstimatorState(ModelFunction function, RunConfig config, distribute::StrategyRef strategy,
                 distribute::StrategyRef whole_batches, Environment environment, std::vector<Hook> standing_hooks);

  const RunConfig config;
  const Environment environment;  // its logger is never null
  const std::vector<Hook> standing_hooks;
  ModelSource models;
  DatasetParts parts;
  /// On the first of several workers alone.
  monitor::RunSummaries summaries;
  /// Steps and evaluations show the rows of the model's summaries, or with several workers may have to, for the first.
  bool shows_rows() const;
  /// The model, without its summaries where nobody looks at them.
  graph::Model as_looked_at(graph::Model model) const;

  const distribute::StrategyRef &strategy() const {
    return uses_whole_batches_.load(std::memory_order_acquire) ? whole_batches_ : strategy_;
  }
  /// The one device to try where a trainer cannot be opened; null where there is none to try.
  distribute::StrategyRef whole_batches() const;
  /// It is the strategy from now on, and that is logged.
  void use_whole_batches();

  const base::Logger &logger() const { return *environment.logger; }
  /// Logs a warning that has not been logged before; nothing for an empty text.
  void warn_once(const std::string &text) { warnings_.warn(logger(), text); }
  ThreadShares thread_shares() const;
  /// For predictions and evaluations on these devices.
  distribute::PredictOptions predict_options(const distribute::Strategy &devices) const;
  data::IteratorContext iterator_context(base::Ref<base::CancelToken> cancel, int64_t epoch) const;

  /// FAILED_PRECONDITION while another session is open.
  base::Status begin_training();
  void end_training();

  /// Makes a version the newest one. Where there is a trainer, it is what that has now.
  void publish(base::Ref<checkpoint::WeightVersion> version);
  /// Is it the one that was published last?
  bool is_published(const base::Ref<checkpoint::WeightVersion> &version) const;
  /// The weights to evaluate and predict with: those of `path` (a checkpoint or a directory of them) when it is not
  /// empty; else the newest of this object, of the trainer's last complete step if there is one, and of model_dir.
  /// Waits for the next step boundary while steps run. FAILED_PRECONDITION when there are none.
  base::Result<base::Ref<checkpoint::WeightVersion>> weights(const std::string &path);
  /// Step of the newest checkpoint in model_dir, whether it can be read or not; -1 where there is none.
  base::Result<int64_t> step_on_disk() const;

  /// Steps of the model, as of the last session of this object and while it trains; -1 before the first one.
  std::atomic<int64_t> completed_steps{-1};

  /// One more step function, before anything was trained. FAILED_PRECONDITION afterwards, and while a session is open.
  base::Status add_step_function(StepFunctionSource source);

  /// The trainer, of the open session or left by the last one, for looks from outside.
  LiveTrainer live;

  // Session: kept between sessions so that nothing is built or read twice: a trainer with its run state, or, after a
  // failure, the version and run state to go on from in a new one.
  std::unique_ptr<distribute::Trainer> trainer;
  base::Ref<checkpoint::WeightVersion> resume_version;
  std::optional<RunState> run_state;
  std::vector<StepFunctionSource> step_functions;

 private:
  /// What this object has; null where nothing was trained or written.
  base::Result<base::Ref<checkpoint::WeightVersion>> current();

  const distribute::StrategyRef strategy_, whole_batches_;
  std::atomic<bool> uses_whole_batches_{false};
  WarningsGiven warnings_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  bool training_ = false;
  base::Ref<checkpoint::WeightVersion> published_;
  int64_t published_at_ = -1;  // LiveTrainer::changes()
};

/// Holds the estimator's permit to train, so that nothing trains meanwhile.
class TrainingPermit {
 public:
  explicit TrainingPermit(EstimatorState &state) : state_(state), status_(state.begin_training()) {}
  ~TrainingPermit() {
    if (status_.ok()) state_.end_training();
  }
  TrainingPermit(const TrainingPermit &) = delete;
  TrainingPermit &operator=(const TrainingPermit &) = delete;
  const base::Status &status() const { return status_; }

 private:
  EstimatorState &state_;
  const base::Status status_;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_ESTIMATOR_STATE_H_
