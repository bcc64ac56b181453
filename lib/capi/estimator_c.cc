// SPDX-License-Identifier: Apache-2.0
#include "capi/estimator_c.h"

#include <tutti/version.h>

#include "base/function_token.h"
#include "base/text.h"
#include "capi/cancel_c.h"
#include "capi/dataset_c.h"
#include "capi/graph_c.h"
#include "capi/guard.h"
#include "capi/host_call.h"
#include "capi/options_c.h"
#include "capi/result_c.h"
#include "capi/strategy_c.h"
#include "estimator/hooks/early_stopping_hook.h"
#include "estimator/hooks/plateau_hook.h"
#include "estimator/hooks/standing_hooks.h"
#include "estimator/memory_need.h"

namespace tutti::impl::capi {

constinit HandleType<EstimatorObject> estimator_handles{"estimator"};

void EstimatorObject::remember(const data::ElementSpec &spec) {
  const std::lock_guard lock(mutex_);
  spec_ = spec;
}

const char *EstimatorObject::lend(std::string text) {
  const std::lock_guard lock(mutex_);
  lent_ = std::move(text);
  return lent_.c_str();
}

Result<data::ElementSpec> EstimatorObject::spec() const {
  const std::lock_guard lock(mutex_);
  if (spec_) return *spec_;
  return base::failed_precondition(
      "the estimator has seen no dataset yet: train or evaluate first, or open a checkpoint");
}

estimator::Environment environment_of(const ContextCore &core) {
  return {core.logger, core.graph_runner, core.threads, core.profile->tracer, tutti_version()};
}

backend::Level level_of(std::string_view determinism) {
  if (determinism == "invariant") return backend::Level::invariant;
  return determinism == "repeatable" ? backend::Level::repeatable : backend::Level::fast;
}

namespace {

Result<distribute::StrategyRef> strategy_of(const ContextObject &context, const tutti_strategy *strategy,
                                            const ResolvedOptions &run) {
  const int64_t gpus = run.i64("num_gpus");
  const bool is_invariant = level_of(run.text("determinism")) == backend::Level::invariant;
  if (gpus == 0) return choose_strategy(context, strategy, is_invariant ? run.i64("logical_replicas") : 0);
  if (strategy == nullptr) return strategy_over_gpus(context, gpus);
  return base::invalid_argument("num_gpus is ", gpus, ", but the estimator has a strategy: set only one");
}

/// Where the devices of an estimator were chosen for it: the one for models that several cannot train.
Result<distribute::StrategyRef> whole_batches(const ContextObject &context, const tutti_strategy *strategy,
                                              const ResolvedOptions &run, const distribute::Strategy &chosen) {
  const bool is_chosen = strategy == nullptr && context.strategy() == nullptr && run.i64("num_gpus") == 0;
  if (!is_chosen || chosen.replica_count() == 1) return distribute::StrategyRef();
  return distribute::Strategy::mirrored({chosen.devices().front()}, context.core()->threads);
}

Result<estimator::RunConfig> run_config(const ResolvedOptions &options) {
  estimator::RunConfig config;
  config.model_dir = options.text("model_dir");
  config.seed = options.i64("seed");
  if (options.was_set("save_checkpoints_steps")) config.save_checkpoints_steps = options.i64("save_checkpoints_steps");
  if (options.was_set("save_checkpoints_secs"))
    config.save_checkpoints_secs = static_cast<double>(options.i64("save_checkpoints_secs"));
  config.keep_checkpoint_max = options.i64("keep_checkpoint_max");
  config.log_step_count_steps = options.i64("log_step_count_steps");
  config.save_summary_steps = options.i64("save_summary_steps");
  config.summary_dir = options.text("summary_dir");
  config.save_histogram_steps = options.i64("save_histogram_steps");
  config.summary_flush_secs = options.i64("summary_flush_secs");
  config.metrics_file = options.text("metrics_file");
  config.metrics_file_steps = options.i64("metrics_file_steps");
  config.level = level_of(options.text("determinism"));
  config.precision = backend::precision_of(options.text("precision"));
  config.accumulation = options.i64("accumulation_steps");
  config.device_prefetch = options.i64("device_prefetch");
  config.logical_replicas = options.i64("logical_replicas");
  config.threads_per_replica = options.i64("threads_per_replica");
  config.collective_timeout_ms = options.i64("collective_timeout_ms");
  config.keep_gradients = options.flag("keep_gradients");
  config.keep_outputs = options.flag("keep_outputs");
  config.raw_weights = options.flag("raw_weights");
  config.without_predictions = options.flag("without_predictions");
  TUTTI_ASSIGN(config.all_reduce, distribute::all_reduce_choice(options.text("all_reduce")));
  if (options.text("gradient_dtype") == "bf16") config.gradient_dtype = tensor::DType::bf16;
  TUTTI_TRY(config.check());
  return config;
}

Result<Ref<DatasetObject>> find_dataset(const EstimatorObject &object, const tutti_dataset *dataset,
                                        std::string_view argument) {
  TUTTI_ASSIGN(Ref<DatasetObject> found, find(dataset, dataset_handles, argument));
  TUTTI_TRY(check_same_context(*object.core(), *found->core(), argument));
  TUTTI_TRY(check_distributed_by(*found, *object.strategy(), argument));
  return found;
}

Result<estimator::EvaluateRequest> evaluate_request(EstimatorObject &object, const tutti_dataset *dataset,
                                                    std::string_view argument, int64_t steps) {
  TUTTI_ASSIGN(const Ref<DatasetObject> data, find_dataset(object, dataset, argument));
  if (steps < 0) return base::invalid_argument("argument 'steps' must be 0 or more, got ", steps);
  estimator::EvaluateRequest request;
  request.dataset = data->dataset();
  if (steps > 0) request.steps = steps;
  return request;
}

/// The hook that ends a training early, where the options ask for one.
Status add_early_stopping(const ResolvedOptions &options, Evaluations evaluations,
                          std::vector<estimator::Hook> &hooks) {
  estimator::hooks::EarlyStoppingOptions early;
  early.value = options.text("early_stopping");
  early.higher_is_better = options.flag("early_stopping_higher_is_better");
  early.patience_steps = options.i64("early_stopping_patience_steps");
  early.min_steps = options.i64("early_stopping_min_steps");
  early.every_steps = options.i64("early_stopping_every_steps");
  if (early.value.empty()) {
    if (early.patience_steps == 0 && early.min_steps == 0 && early.every_steps == 0) return Status();
    return base::invalid_argument(
        "the early stopping options need the option early_stopping, the name of the value to monitor");
  }
  if (early.every_steps == 0 && evaluations == Evaluations::none) {
    return base::invalid_argument(
        "early_stopping monitors evaluations, but this training has none: set "
        "early_stopping_every_steps, or train and evaluate in one call");
  }
  TUTTI_ASSIGN(estimator::Hook hook, estimator::hooks::early_stopping_hook(std::move(early)));
  hooks.push_back(std::move(hook));
  return Status();
}

/// The hook that reduces the learning rate, where the options ask for one.
Status add_plateau(const ResolvedOptions &options, Evaluations evaluations, const base::Ref<base::Logger> &logger,
                   estimator::TrainRequest &request) {
  estimator::hooks::PlateauOptions plateau;
  plateau.value = options.text("plateau_metric");
  if (plateau.value.empty()) {
    for (const char *const key :
         {"plateau_higher_is_better", "plateau_every_steps", "plateau_patience", "plateau_cooldown", "plateau_factor",
          "plateau_threshold", "plateau_minimum_factor"}) {
      if (!options.was_set(key)) continue;
      return base::invalid_argument("the option ", key,
                                    " needs the option plateau_metric, the name of the value to monitor");
    }
    return Status();
  }
  plateau.higher_is_better = options.flag("plateau_higher_is_better");
  plateau.every_steps = options.i64("plateau_every_steps");
  plateau.patience = options.i64("plateau_patience");
  plateau.cooldown = options.i64("plateau_cooldown");
  plateau.reduction = options.f64("plateau_factor");
  plateau.threshold = options.f64("plateau_threshold");
  plateau.minimum_factor = options.f64("plateau_minimum_factor");
  if (plateau.every_steps == 0 && evaluations == Evaluations::none) {
    return base::invalid_argument(
        "plateau_metric monitors evaluations, but this training has none: set plateau_every_steps, or train and "
        "evaluate in one call");
  }
  TUTTI_ASSIGN(estimator::Hook hook, estimator::hooks::plateau_hook(std::move(plateau), logger));
  request.hooks.push_back(std::move(hook));
  request.has_rate_factor = true;
  return Status();
}

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

estimator::ModelFunction model_function(tutti_model_fn function, std::shared_ptr<UserPointer> user,
                                        std::shared_ptr<TrainableRules> rules, std::string params) {
  return [function, user = std::move(user), rules = std::move(rules), params = std::move(params)](
             graph::GraphBuilder &builder, estimator::Mode mode) {
    const int32_t number = static_cast<int32_t>(mode);
    TUTTI_TRY(with_graph(builder, number, params, [&](tutti_graph *graph) {
      // The estimator says that it failed, with the mode.
      return call_host(
          "the model function", [&](tutti_error **error) { return function(graph, number, user->get(), error); },
          Teller::caller);
    }));
    const std::lock_guard lock(rules->mutex);
    for (const auto &[pattern, trainable] : rules->rules)
      builder.set_trainable(pattern, trainable);
    return Status();
  };
}

Result<estimator::TrainRequest> train_request(EstimatorObject &object, const tutti_dataset *dataset,
                                              const tutti_options *options, const tutti_hooks *hooks,
                                              tutti_cancel *cancel, Evaluations evaluations) {
  TUTTI_ASSIGN(const Ref<DatasetObject> data, find_dataset(object, dataset, "dataset"));
  TUTTI_ASSIGN(const ResolvedOptions resolved, resolve(options, "train"));
  TUTTI_ASSIGN(const std::vector<HookEntry> entries, find_hooks(hooks));
  estimator::TrainRequest request;
  request.dataset = data->dataset();
  if (resolved.i64("steps") > 0) request.steps = resolved.i64("steps");
  if (resolved.i64("max_steps") > 0) request.max_steps = resolved.i64("max_steps");
  if (resolved.i64("epochs") > 0) request.epochs = resolved.i64("epochs");
  if (resolved.f64("max_seconds") > 0) request.max_seconds = resolved.f64("max_seconds");
  request.hooks = to_hooks(entries, object.core()->logger);
  TUTTI_TRY(add_early_stopping(resolved, evaluations, request.hooks));
  TUTTI_TRY(add_plateau(resolved, evaluations, object.core()->logger, request));
  TUTTI_ASSIGN(request.cancel, call_token(cancel));
  object.remember(data->dataset()->spec());
  return request;
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_estimator_create(tutti_context *context, tutti_model_fn model_fn, void *user, tutti_destroy_fn destroy,
                               const tutti_strategy *strategy, const tutti_options *run_options, tutti_estimator **out,
                               tutti_error **err) {
  return guard(err, [&]() -> Status {
    auto owner = std::make_shared<UserPointer>(user, destroy);
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> home, find_context(context));
    TUTTI_ASSIGN(const ResolvedOptions run, resolve(run_options, "run"));
    TUTTI_ASSIGN(const distribute::StrategyRef chosen, strategy_of(*home, strategy, run));
    TUTTI_ASSIGN(estimator::RunConfig config, run_config(run));
    if (!run.was_set("threads_per_replica") && chosen->threads_per_replica() > 0)
      config.threads_per_replica = chosen->threads_per_replica();
    if (chosen->workers().index > 0) config.metrics_file.clear();
    config.options = run.to_json();
    for (const std::string_view path : {"model_dir", "summary_dir", "metrics_file"})
      std::erase_if(config.options.object(), [&](const auto &option) { return option.first == path; });
    TUTTI_TRY(require(reinterpret_cast<const void *>(model_fn), "model_fn"));
    home->core()->logger->info("run options: ", run.to_text());
    auto rules = std::make_shared<TrainableRules>();
    TUTTI_ASSIGN(distribute::StrategyRef whole, whole_batches(*home, strategy, run, *chosen));
    std::vector<estimator::Hook> standing = estimator::hooks::standing_hooks(config, home->core()->logger);
    TUTTI_ASSIGN(Ref<estimator::Estimator> made,
                 estimator::Estimator::create(model_function(model_fn, std::move(owner), rules, run.text("params")),
                                              std::move(config), chosen, environment_of(*home->core()),
                                              std::move(standing), std::move(whole)));
    return emit(
        base::make_ref<EstimatorObject>(home->core(), std::move(made), chosen, std::move(rules), run.text("params")),
        estimator_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(estimator, estimator_handles)

int32_t tutti_estimator_train(tutti_estimator *estimator, const tutti_dataset *dataset, const tutti_options *options,
                              const tutti_hooks *hooks, tutti_cancel *cancel, tutti_result **result,
                              tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (result != nullptr) *result = nullptr;
    const Stopwatch stopwatch;
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_ASSIGN(estimator::TrainRequest request,
                 train_request(*object, dataset, options, hooks, cancel, Evaluations::none));
    const Ref<base::CancelToken> token = request.cancel;
    const base::FunctionToken functions(token);
    TUTTI_ASSIGN(const estimator::TrainResult trained, object->estimator().train(std::move(request)));
    return emit_result(base::make_ref<ResultObject>(trained, stopwatch.seconds()), result);
  });
}

int32_t tutti_estimator_initialize(tutti_estimator *estimator, const tutti_dataset *dataset, const char *weights,
                                   tutti_cancel *cancel, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_ASSIGN(const Ref<DatasetObject> data, find_dataset(*object, dataset, "dataset"));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, call_token(cancel));
    object->remember(data->dataset()->spec());
    const base::FunctionToken functions(token);
    return object->estimator().initialize(data->dataset(), weights != nullptr ? weights : "", token);
  });
}

int32_t tutti_estimator_evaluate(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t steps,
                                 tutti_cancel *cancel, tutti_result **result, tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (result != nullptr) *result = nullptr;
    const Stopwatch stopwatch;
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_ASSIGN(estimator::EvaluateRequest request, evaluate_request(*object, dataset, "dataset", steps));
    TUTTI_ASSIGN(request.cancel, wait_token(cancel));
    object->remember(request.dataset->spec());
    const base::FunctionToken functions(request.cancel);
    TUTTI_ASSIGN(const estimator::EvaluateResult evaluated, object->estimator().evaluate(request));
    return emit_result(base::make_ref<ResultObject>(evaluated, stopwatch.seconds()), result);
  });
}

int32_t tutti_estimator_train_and_evaluate(tutti_estimator *estimator, const tutti_dataset *dataset,
                                           const tutti_dataset *evaluation, int64_t every_steps,
                                           const tutti_options *options, const tutti_hooks *hooks, tutti_cancel *cancel,
                                           tutti_result **result, tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (result != nullptr) *result = nullptr;
    const Stopwatch stopwatch;
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    if (every_steps < 0) return base::invalid_argument("argument 'every_steps' must be 0 or more, got ", every_steps);
    estimator::TrainAndEvaluateRequest request;
    request.every_steps = every_steps;
    TUTTI_ASSIGN(request.train, train_request(*object, dataset, options, hooks, cancel, Evaluations::between_steps));
    TUTTI_ASSIGN(request.evaluate, evaluate_request(*object, evaluation, "evaluation", 0));
    request.evaluate.cancel = request.train.cancel;
    const Ref<base::CancelToken> token = request.train.cancel;
    const base::FunctionToken functions(token);
    TUTTI_ASSIGN(const estimator::TrainAndEvaluateResult both,
                 object->estimator().train_and_evaluate(std::move(request)));
    Ref<ResultObject> evaluated = base::make_ref<ResultObject>(both.evaluate, stopwatch.seconds());
    evaluated->reason = static_cast<int32_t>(both.train.reason);
    return emit_result(std::move(evaluated), result);
  });
}

int32_t tutti_estimator_save(tutti_estimator *estimator, const char *directory, tutti_cancel *cancel,
                             tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_TRY(require(directory, "directory"));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_TRY(object->estimator().weights("").status());
    TUTTI_ASSIGN(const data::ElementSpec spec, object->spec());
    return object->estimator().save(directory, spec, token.get());
  });
}

int64_t tutti_estimator_get_global_step(const tutti_estimator *estimator) {
  return guard_value<int64_t>(-1, [&]() -> int64_t {
    const Ref<EstimatorObject> object = peek_shared(estimator, estimator_handles);
    return object ? object->estimator().global_step() : -1;
  });
}

int32_t tutti_estimator_set_trainable(tutti_estimator *estimator, const char *pattern, uint8_t trainable,
                                      tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_TRY(require(pattern, "pattern"));
    if (object->spec().ok())
      return base::failed_precondition("variables must be frozen or unfrozen before the estimator is used");
    const std::lock_guard lock(object->rules().mutex);
    object->rules().rules.emplace_back(pattern, trainable != 0);
    return Status();
  });
}

int32_t tutti_estimator_estimate_memory(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t batch_size,
                                        const char **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_ASSIGN(const Ref<DatasetObject> data, find_dataset(*object, dataset, "dataset"));
    if (batch_size < 0) return base::invalid_argument("argument 'batch_size' must be 0 or more, got ", batch_size);
    TUTTI_ASSIGN(const distribute::MemoryEstimate estimate,
                 estimator::estimate_memory(object->estimator().state(), *data->dataset(), batch_size));
    *out = object->lend(estimate.to_json().dump());
    return Status();
  });
}

int32_t tutti_estimator_find_batch_size(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t most,
                                        int64_t *batch_size, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(require(batch_size, "batch_size"));
    *batch_size = 0;
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_ASSIGN(const Ref<DatasetObject> data, find_dataset(*object, dataset, "dataset"));
    if (most < 1) return base::invalid_argument("argument 'most' must be 1 or more, got ", most);
    TUTTI_ASSIGN(*batch_size, estimator::find_batch_size(object->estimator().state(), *data->dataset(), most));
    return Status();
  });
}
