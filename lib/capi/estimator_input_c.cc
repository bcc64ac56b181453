// SPDX-License-Identifier: Apache-2.0
//
// Estimators whose datasets are made by a function of the program, call by call.
#include "capi/dataset_c.h"
#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/host_call.h"
#include "capi/strategy_c.h"

namespace tutti::impl::capi {
namespace {

/// What a call in one mode reads: TUTTI_MODE_EVAL or, else, TUTTI_MODE_TRAIN.
distribute::InputPipeline pipeline_of(const EstimatorObject &object, int32_t mode) {
  return input_of_user(mode == TUTTI_MODE_EVAL ? *object.estimator().evaluation_strategy() : *object.strategy());
}

/// A dataset that a call holds on to.
class HeldDataset {
 public:
  HeldDataset() = default;
  HeldDataset(const HeldDataset &) = delete;
  HeldDataset &operator=(const HeldDataset &) = delete;
  ~HeldDataset() { unref_handle(dataset_, dataset_handles); }

  Status make(const tutti_estimator *estimator, int32_t mode, tutti_input_fn input_fn, void *user) {
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_TRY(require(reinterpret_cast<const void *>(input_fn), "input_fn"));
    const distribute::InputPipeline pipeline = pipeline_of(*object, mode);
    TUTTI_TRY(call_host("the input function", [&](tutti_error **error) {
      return input_fn(user, object->params().c_str(), pipeline.id, pipeline.count, &dataset_, error);
    }));
    if (dataset_ != nullptr) return Status();
    return base::invalid_argument("the input function succeeded, but made no dataset: *out is NULL");
  }

  const tutti_dataset *get() const { return dataset_; }

 private:
  tutti_dataset *dataset_ = nullptr;
};

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_estimator_train_fn(tutti_estimator *estimator, tutti_input_fn input_fn, void *user,
                                 const tutti_options *options, const tutti_hooks *hooks, tutti_cancel *cancel,
                                 tutti_result **result, tutti_error **err) {
  if (result != nullptr) *result = nullptr;
  HeldDataset dataset;
  const int32_t code = guard(err, [&] { return dataset.make(estimator, TUTTI_MODE_TRAIN, input_fn, user); });
  if (code != TUTTI_OK) return code;
  return tutti_estimator_train(estimator, dataset.get(), options, hooks, cancel, result, err);
}

int32_t tutti_estimator_evaluate_fn(tutti_estimator *estimator, tutti_input_fn input_fn, void *user, int64_t steps,
                                    tutti_cancel *cancel, tutti_result **result, tutti_error **err) {
  if (result != nullptr) *result = nullptr;
  HeldDataset dataset;
  const int32_t code = guard(err, [&] { return dataset.make(estimator, TUTTI_MODE_EVAL, input_fn, user); });
  if (code != TUTTI_OK) return code;
  return tutti_estimator_evaluate(estimator, dataset.get(), steps, cancel, result, err);
}

const char *tutti_estimator_get_params(const tutti_estimator *estimator) {
  const Ref<EstimatorObject> object = peek(estimator, estimator_handles);
  return object ? object->params().c_str() : nullptr;
}

int64_t tutti_estimator_get_input_pipeline_count(const tutti_estimator *estimator, int32_t mode) {
  const Ref<EstimatorObject> object = peek(estimator, estimator_handles);
  return object ? pipeline_of(*object, mode).count : -1;
}

int64_t tutti_estimator_get_input_pipeline_id(const tutti_estimator *estimator, int32_t mode) {
  const Ref<EstimatorObject> object = peek(estimator, estimator_handles);
  return object ? pipeline_of(*object, mode).id : -1;
}

int32_t tutti_estimator_set_evaluation_strategy(tutti_estimator *estimator, const tutti_strategy *strategy,
                                                tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    distribute::StrategyRef chosen;
    if (strategy != nullptr) {
      TUTTI_ASSIGN(const Ref<StrategyObject> found, find(strategy, strategy_handles, "strategy"));
      TUTTI_TRY(check_same_context(*object->core(), *found->core(), "strategy"));
      chosen = found->strategy();
    }
    object->estimator().set_evaluation_strategy(std::move(chosen));
    return Status();
  });
}
