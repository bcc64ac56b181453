// SPDX-License-Identifier: Apache-2.0
#include "estimator/estimator_state.h"

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

}  // namespace

EstimatorState::EstimatorState(ModelFunction function, RunConfig run_config, distribute::StrategyRef chosen_strategy,
                               Environment chosen_environment, std::vector<Hook> hooks)
    : config(std::move(run_config)),
      strategy(std::move(chosen_strategy)),
      environment(with_logger(std::move(chosen_environment))),
      standing_hooks(std::move(hooks)),
      models(std::move(function)) {}

ThreadShares EstimatorState::thread_shares() const {
  return share_threads(environment, strategy->replica_count(), config.threads_per_replica);
}

distribute::PredictOptions EstimatorState::predict_options() const {
  distribute::PredictOptions options;
  options.level = config.level;
  options.threads_per_replica = thread_shares().per_device;
  options.precision = config.precision;
  options.program_cache_size = static_cast<int32_t>(config.program_cache_size);
  options.tracer = environment.tracer;
  options.collective_timeout_ms = config.collective_timeout_ms;
  return options;
}

data::IteratorContext EstimatorState::iterator_context(Ref<base::CancelToken> cancel, int64_t epoch) const {
  data::IteratorContext context;
  context.cancel = std::move(cancel);
  context.seed = config.seed;
  context.epoch = epoch;
  context.threads = thread_shares().pipeline;
  context.graphs = environment.graphs;
  return context;
}

Status EstimatorState::begin_training() {
  std::lock_guard lock(mutex_);
  if (training_) return base::failed_precondition("this estimator is training already; one training at a time");
  training_ = true;
  return Status();
}

void EstimatorState::end_training() {
  std::lock_guard lock(mutex_);
  training_ = false;
}

void EstimatorState::publish(Ref<WeightVersion> version) {
  std::lock_guard lock(mutex_);
  published_.swap(version);
}

Result<Ref<WeightVersion>> EstimatorState::weights(const std::string &path) const {
  checkpoint::ReadOptions options;
  options.slots = false;
  if (!path.empty()) {
    TUTTI_ASSIGN(checkpoint::Checkpoint read, checkpoint::read_checkpoint_or_newest(path, options, logger()));
    return std::move(read.state);
  }
  Ref<WeightVersion> version;
  {
    std::lock_guard lock(mutex_);
    version = published_;
  }
  if (!config.model_dir.empty()) {
    TUTTI_ASSIGN(const auto names, checkpoint::list_checkpoints(config.model_dir));
    if (!names.empty() && (!version || names.back().step > version->step())) {
      Result<checkpoint::Checkpoint> read = checkpoint::read_newest_checkpoint(config.model_dir, options, logger());
      if (read.ok() && (!version || read->state->step() > version->step())) return std::move(read->state);
      if (!version) return read.status();
    }
  }
  if (version) return version;
  return base::failed_precondition(
      "there are no weights: train first, or name a checkpoint",
      config.model_dir.empty() ? std::string() : base::concat("; '", config.model_dir, "' has none"));
}

}  // namespace tutti::impl::estimator
