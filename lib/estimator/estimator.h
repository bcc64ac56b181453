// SPDX-License-Identifier: Apache-2.0
//
// An estimator: a model function, how to run it, and on which devices.
//
//   TUTTI_ASSIGN(auto estimator, Estimator::create(model_function, config, strategy, environment,
//   standing_hooks(config))); TUTTI_ASSIGN(TrainResult trained, estimator->train({.dataset = train_set, .epochs = 3}));
//   TUTTI_ASSIGN(EvaluateResult metrics, estimator->evaluate({.dataset = test_set}));
//   TUTTI_ASSIGN(auto predictor, predictor::Predictor::from_estimator(*estimator, test_set->spec(), {}));
//
// State lives in the object and, with a model_dir, on disk: training goes on from the newest checkpoint there, in the
// middle of a pass too. Evaluating and predicting without weights is an error.
//
// Threads: all functions may be called from any thread; one training at a time (a second is FAILED_PRECONDITION), any
// number of evaluations and predictions beside it. Model function and hooks run on the calling thread.
#ifndef TUTTI_ESTIMATOR_ESTIMATOR_H_
#define TUTTI_ESTIMATOR_ESTIMATOR_H_

#include <memory>
#include <mutex>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "distribute/predict/predict_engine.h"
#include "estimator/estimator_state.h"
#include "estimator/requests.h"
#include "estimator/saving.h"
#include "estimator/train_session.h"

namespace tutti::impl::estimator {

class Estimator : public base::Object {
 public:
  /// `standing_hooks` take part in every training, before those of the request; hooks/standing_hooks.h makes the usual
  /// ones: periodic checkpoints and the log. `whole_batches`: see EstimatorState.
  static base::Result<base::Ref<Estimator>> create(ModelFunction function, RunConfig config,
                                                   distribute::StrategyRef strategy, Environment environment,
                                                   std::vector<Hook> standing_hooks,
                                                   distribute::StrategyRef whole_batches = nullptr);

  base::Result<TrainResult> train(TrainRequest request);
  base::Result<std::unique_ptr<TrainSession>> open_session(TrainRequest request);
  /// Makes the variables without a step, for batches of the dataset: initial values or those of the newest checkpoint,
  /// then, unless the path is empty, those of a checkpoint, of a directory of checkpoints or of a file of safetensors.
  base::Status initialize(data::DatasetRef dataset, const std::string &weights_path,
                          base::Ref<base::CancelToken> cancel);
  base::Result<EvaluateResult> evaluate(const EvaluateRequest &request);
  /// Evaluations from now on are on these devices; null: on those that train.
  void set_evaluation_strategy(distribute::StrategyRef strategy);
  distribute::StrategyRef evaluation_strategy() const;
  base::Result<TrainAndEvaluateResult> train_and_evaluate(TrainAndEvaluateRequest request);

  /// The weights of `path`, or the newest; see EstimatorState::weights.
  base::Result<base::Ref<checkpoint::WeightVersion>> weights(const std::string &path) const {
    return state_->weights(path);
  }
  /// See saving.h.
  base::Status save(const std::string &directory, const data::ElementSpec &spec, const base::CancelToken *cancel) {
    return estimator::save(*state_, directory, spec, cancel);
  }
  /// Completed steps, of a training under way too; before the first one those of the newest weights, 0 without any.
  int64_t global_step() const;
  const RunConfig &config() const { return state_->config; }
  EstimatorState &state() { return *state_; }

 private:
  explicit Estimator(base::Ref<EstimatorState> state) : state_(std::move(state)) {}
  template <typename T, typename... A>
  friend base::Ref<T> base::make_ref(A &&...);

  base::Result<EvaluateResult> evaluate_version(const base::Ref<checkpoint::WeightVersion> &version,
                                                const EvaluateRequest &request);
  /// `begin_ns`: of the clock of base::now_ns().
  void write_summary(const EvaluateResult &result, std::span<const monitor::ShownSummary> shown, int64_t begin_ns);
  /// One evaluation's, with the devices that it is for.
  struct Evaluating {
    distribute::StrategyRef strategy;
    std::unique_ptr<distribute::Evaluator> evaluator;
  };
  base::Result<Evaluating> take_evaluator(const data::ElementSpec &spec);
  void give_back(Evaluating evaluating);

  const base::Ref<EstimatorState> state_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  distribute::StrategyRef evaluation_strategy_;       // null: the one that trains
  std::unique_ptr<distribute::Evaluator> evaluator_;  // one that is not in use, for
  distribute::StrategyRef evaluator_strategy_;        // these devices
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_ESTIMATOR_H_
