// SPDX-License-Identifier: Apache-2.0
#include "estimator/estimator_state.h"

#include <algorithm>

#include <utility>

namespace tutti::impl::estimator {

using base::Ref;
using base::Result;
using base::Status;
using checkpoint::WeightVersion;

namespace {

Environment with_logger(Environment environment) {
  if (!environment.logger) environment.logger = base::make_ref<base::Logger>();
  return environment;
}

monitor::RunSummaryOptions summary_options(const RunConfig &config, const distribute::Strategy &strategy) {
  return {.folder = strategy.workers().index == 0 ? config.summary_folder() : std::string(),
          .flush_secs = static_cast<double>(config.summary_flush_secs)};
}

}  // namespace

EstimatorState::EstimatorState(ModelFunction function, RunConfig run_config, distribute::StrategyRef strategy,
                               distribute::StrategyRef whole_batches, Environment chosen_environment,
                               std::vector<Hook> hooks)
    : config(std::move(run_config)),
      environment(with_logger(std::move(chosen_environment))),
      standing_hooks(std::move(hooks)),
      models(std::move(function)),
      summaries(summary_options(config, *strategy), environment.logger),
      strategy_(std::move(strategy)),
      whole_batches_(std::move(whole_batches)) {}

distribute::StrategyRef EstimatorState::whole_batches() const {
  return uses_whole_batches_.load(std::memory_order_acquire) ? nullptr : whole_batches_;
}

void EstimatorState::use_whole_batches() {
  uses_whole_batches_.store(true, std::memory_order_release);
  logger().info("the model mixes the rows of a batch, so one device computes it: ", strategy_->replica_count(),
                " could not");
}

bool EstimatorState::shows_rows() const {
  return config.save_summary_steps > 0 && (summaries.is_on() || strategy_->workers().count > 1);
}

graph::Model EstimatorState::as_looked_at(graph::Model model) const {
  if (!shows_rows()) model.summaries.clear();
  return model;
}

ThreadShares EstimatorState::thread_shares() const {
  const int32_t chosen = strategy() == whole_batches_ ? whole_batches_->threads_per_replica() : 0;
  return share_threads(environment, strategy()->replica_count(), std::max<int64_t>(chosen, config.threads_per_replica));
}

distribute::PredictOptions EstimatorState::predict_options(const distribute::Strategy &devices) const {
  distribute::PredictOptions options;
  options.level = config.level;
  options.threads_per_replica =
      share_threads(environment, devices.replica_count(), config.threads_per_replica).per_device;
  options.precision = config.precision;
  options.program_cache_size = static_cast<int32_t>(config.program_cache_size);
  options.tracer = environment.tracer;
  options.collective_timeout_ms = config.collective_timeout_ms;
  options.shows_rows = shows_rows();
  return options;
}

data::IteratorContext EstimatorState::iterator_context(Ref<base::CancelToken> cancel, int64_t epoch) const {
  data::IteratorContext context;
  context.cancel = std::move(cancel);
  context.seed = config.seed;
  context.epoch = epoch;
  context.threads = thread_shares().pipeline;
  context.graphs = environment.graphs;
  context.logger = environment.logger;
  return context;
}

Status EstimatorState::begin_training() {
  std::lock_guard lock(mutex_);
  if (training_)
    return base::failed_precondition("this estimator is already training; it can run only one training at a time");
  training_ = true;
  return Status();
}

void EstimatorState::end_training() {
  std::lock_guard lock(mutex_);
  training_ = false;
}

Status EstimatorState::add_step_function(StepFunctionSource source) {
  const TrainingPermit permit(*this);
  TUTTI_TRY(permit.status());
  if (trainer != nullptr || resume_version)
    return base::failed_precondition("step functions are added before the first training of the estimator");
  const auto has_its_name = [&](const StepFunctionSource &known) { return known.name == source.name; };
  if (std::ranges::any_of(step_functions, has_its_name))
    return base::already_exists("there is a step function '", source.name, "' already");
  step_functions.push_back(std::move(source));
  return Status();
}

void EstimatorState::publish(Ref<WeightVersion> version) {
  std::lock_guard lock(mutex_);
  published_.swap(version);
  published_at_ = live.changes();
}

bool EstimatorState::is_published(const Ref<WeightVersion> &version) const {
  std::lock_guard lock(mutex_);
  return version == published_;
}

Result<Ref<WeightVersion>> EstimatorState::current() {
  const auto published = [&](bool is_of_now) {
    std::lock_guard lock(mutex_);
    return !is_of_now || published_at_ == live.changes() ? published_ : Ref<WeightVersion>();
  };
  TUTTI_ASSIGN(const bool found, live.look([&](distribute::Trainer &trainer, bool) -> Status {
    if (published(true)) return Status();
    TUTTI_ASSIGN(Ref<WeightVersion> version, trainer.publish_weights(false));
    publish(std::move(version));
    return Status();
  }));
  (void)found;
  return published(false);
}

Result<int64_t> EstimatorState::step_on_disk() const {
  if (config.model_dir.empty()) return -1;
  TUTTI_ASSIGN(const auto names, checkpoint::list_checkpoints(config.model_dir));
  return names.empty() ? -1 : names.back().step;
}

Result<Ref<WeightVersion>> EstimatorState::weights(const std::string &path) {
  checkpoint::ReadOptions options;
  options.slots = false;
  if (!path.empty()) {
    TUTTI_ASSIGN(checkpoint::Checkpoint read, checkpoint::read_checkpoint_or_newest(path, options, logger()));
    return std::move(read.state);
  }
  TUTTI_ASSIGN(Ref<WeightVersion> version, current());
  TUTTI_ASSIGN(const int64_t on_disk, step_on_disk());
  if (on_disk > (version ? version->step() : -1)) {
    Result<checkpoint::Checkpoint> read = checkpoint::read_newest_checkpoint(config.model_dir, options, logger());
    if (read.ok() && (!version || read->state->step() > version->step())) return std::move(read->state);
    if (!version) return read.status();
  }
  if (version) return version;
  if (config.model_dir.empty())
    return base::failed_precondition(
        "there are no weights: train first, set model_dir or call tutti_estimator_initialize");
  return base::failed_precondition("there are no weights: train first or call tutti_estimator_initialize; model_dir '",
                                   config.model_dir, "' has no checkpoint");
}

}  // namespace tutti::impl::estimator
