// SPDX-License-Identifier: Apache-2.0
//
// Estimators and training sessions behind handles.
#ifndef TUTTI_CAPI_ESTIMATOR_C_H_
#define TUTTI_CAPI_ESTIMATOR_C_H_

#include <tutti/estimator.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/context_c.h"
#include "capi/guard.h"
#include "capi/hook_c.h"
#include "data/element/element.h"
#include "estimator/estimator.h"

namespace tutti::impl::capi {

/// Which variables the host froze or freed, in order.
struct TrainableRules {
  mutable std::mutex mutex;
  std::vector<std::pair<std::string, bool>> rules;  // guarded by mutex
};

class EstimatorObject : public base::Object {
 public:
  EstimatorObject(std::shared_ptr<ContextCore> core, Ref<estimator::Estimator> estimator,
                  distribute::StrategyRef strategy, std::shared_ptr<TrainableRules> rules, std::string params)
      : core_(std::move(core)),
        estimator_(std::move(estimator)),
        strategy_(std::move(strategy)),
        rules_(std::move(rules)),
        params_(std::move(params)) {}

  const std::shared_ptr<ContextCore> &core() const { return core_; }
  estimator::Estimator &estimator() const { return *estimator_; }
  const distribute::StrategyRef &strategy() const { return strategy_; }
  TrainableRules &rules() const { return *rules_; }
  const std::shared_ptr<TrainableRules> &shared_rules() const { return rules_; }
  const std::string &params() const { return params_; }

  /// The spec of the dataset last used, which declares the inputs of a model for prediction.
  void remember(const data::ElementSpec &spec);
  Result<data::ElementSpec> spec() const;
  /// Keeps a text that is lent until the next one.
  const char *lend(std::string text);
  /// The names of the variables of the newest weights; lent until the next call.
  const std::vector<std::string> &variable_names();
  /// The names of those that are trained; lent for good, for they do not change once they are known.
  const std::vector<std::string> &trainable_names();

 private:
  const std::shared_ptr<ContextCore> core_;
  const Ref<estimator::Estimator> estimator_;
  const distribute::StrategyRef strategy_;
  const std::shared_ptr<TrainableRules> rules_;
  const std::string params_;
  mutable std::mutex mutex_;
  std::optional<data::ElementSpec> spec_;     // guarded by mutex_
  std::vector<std::string> variable_names_;   // guarded by mutex_
  std::vector<std::string> trainable_names_;  // guarded by mutex_
  std::string lent_;                          // guarded by mutex_
};

class SessionObject : public base::Object {
 public:
  SessionObject(Ref<EstimatorObject> owner, std::unique_ptr<estimator::TrainSession> session)
      : owner_(std::move(owner)), session_(std::move(session)), begin_(std::chrono::steady_clock::now()) {}

  /// Null after close.
  std::unique_ptr<estimator::TrainSession> &session() { return session_; }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  BusyFlag &busy() { return busy_; }
  int32_t replica_count() const { return owner_->strategy()->replica_count(); }
  /// What the replicas of all workers have, of which these are this one's; all workers call it at the same point.
  Result<std::vector<tensor::Tensor>> pieces_of_all(const std::vector<tensor::Tensor> &own);

 private:
  const Ref<EstimatorObject> owner_;
  std::unique_ptr<estimator::TrainSession> session_;  // of whoever holds busy_
  BusyFlag busy_;
  const std::chrono::steady_clock::time_point begin_;
};

extern constinit HandleType<EstimatorObject> estimator_handles;
extern constinit HandleType<SessionObject> session_handles;

/// What the estimator's floor needs from the context.
estimator::Environment environment_of(const ContextCore &core);

/// The host's model function as the estimator's floor knows it.
estimator::ModelFunction model_function(tutti_model_fn function, std::shared_ptr<UserPointer> user,
                                        std::shared_ptr<TrainableRules> rules, std::string params);

/// "fast", "repeatable", "invariant".
backend::Level level_of(std::string_view determinism);

/// What hooks see of a training beside its steps.
enum class Evaluations { none, between_steps };

/// A request from the arguments of train, train_and_evaluate and session_open.
Result<estimator::TrainRequest> train_request(EstimatorObject &object, const tutti_dataset *dataset,
                                              const tutti_options *options, const tutti_hooks *hooks,
                                              tutti_cancel *cancel, Evaluations evaluations);

/// The host's hooks as the estimator's floor knows them.
std::vector<estimator::Hook> to_hooks(const std::vector<HookEntry> &entries, const Ref<base::Logger> &logger);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_ESTIMATOR_C_H_
