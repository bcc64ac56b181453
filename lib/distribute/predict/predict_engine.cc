// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_engine.h"

#include <atomic>
#include <utility>

#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"
#include "distribute/plan/row_buckets.h"
#include "distribute/predict/call_division.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_call.h"
#include "distribute/predict/predict_plan.h"
#include "distribute/predict/predict_programs.h"
#include "distribute/predict/predict_signature.h"
#include "distribute/predict/predict_stream.h"
#include "distribute/predict/predict_weights.h"
#include "distribute/predict/row_computation.h"
#include "distribute/predict/worker_predict_stream.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using tensor::Tensor;

class Engine : public PredictEngine, public PredictCalls {
 public:
  static Result<std::shared_ptr<PredictEngine>> open(const graph::Model &model, StrategyRef strategy,
                                                     const PredictOptions &options);

  const std::vector<std::string> &feature_names() const override { return signature_.feature_names(); }
  const std::vector<std::string> &output_names() const override { return signature_.output_names(); }
  Status set_weights(const base::Ref<checkpoint::WeightVersion> &version) override { return weights_.set(version); }
  Result<std::vector<Tensor>> run(std::span<const Tensor> features, const base::CancelToken *cancel,
                                  int64_t *step) override;
  Result<std::unique_ptr<PredictStream>> stream(std::unique_ptr<data::Iterator> iterator,
                                                base::Ref<base::CancelToken> cancel) override;
  std::string leave_map(const data::Dataset &dataset, data::IteratorContext &context) override {
    if (programs_.kinds().count() > 1) return keep_map(dataset);
    if (strategy_->backend()->has_host_memory()) return std::string();
    return maps_.leave(dataset, model_->features, 1, *programs_.devices().front(), options_.level, context);
  }
  PredictCounters counters() const override {
    return {.versions_packed = weights_.packed(), .programs_built = programs_.built(), .calls = calls_.load()};
  }
  std::string advice() const override;
  base::Json describe() const override {
    return base::JsonObject{{"strategy", strategy_->describe()}, {"executables", programs_.describe()}};
  }
  Result<base::Json> plan(int64_t rows, int64_t timed_runs, const base::CancelToken *cancel) override;

  Result<std::shared_ptr<PredictCall>> start(std::shared_ptr<const LoadedVersion> version, data::Element batch,
                                             const PredictInput &input, CallParts parts,
                                             base::Ref<base::CancelToken> reading) override;

 private:
  /// What is made before the parts that use it.
  struct Made {
    std::unique_ptr<const graph::Model> model;
    PredictPrograms programs;
    PredictSignature signature;
    std::unique_ptr<DevicePool> pool;
  };

  Engine(Made made, StrategyRef strategy, const PredictOptions &options);

  const std::unique_ptr<const graph::Model> model_;
  const StrategyRef strategy_;
  const PredictOptions options_;
  const PredictPrograms programs_;
  const PredictSignature signature_;
  PredictInput own_input_;  // features in order
  DeviceMaps maps_;
  UsualRows usual_rows_;
  std::atomic<int64_t> calls_{0};
  PredictWeights weights_;
  RowComputation rows_;
  CallDivision division_;
  const std::unique_ptr<DevicePool> pool_;  // last: its jobs use the rest
};

Engine::Engine(Made made, StrategyRef strategy, const PredictOptions &options)
    : model_(std::move(made.model)),
      strategy_(std::move(strategy)),
      options_(options),
      programs_(std::move(made.programs)),
      signature_(std::move(made.signature)),
      own_input_{signature_.binding(), nullptr, 0, nullptr, 0},
      weights_(*model_, programs_, *made.pool, static_cast<size_t>(options.program_cache_size),
               strategy_->workers().count > 1),
      rows_(programs_, signature_.output_names(), *made.pool, options_.tracer.get()),
      division_(programs_, options.level, rows_, *made.pool),
      pool_(std::move(made.pool)) {}

Result<std::shared_ptr<PredictEngine>> Engine::open(const graph::Model &model, StrategyRef strategy,
                                                    const PredictOptions &options) {
  auto own_model = std::make_unique<const graph::Model>(model);
  TUTTI_ASSIGN(PredictPrograms programs, PredictPrograms::make(*own_model, *strategy, options));
  TUTTI_ASSIGN(PredictSignature signature, PredictSignature::of(*own_model));
  std::vector<int32_t> lanes;
  // Where rows are copied to and from a device's memory, one batch is while another is computed.
  for (const backend::DeviceRef &device : programs.devices())
    lanes.push_back(device->backend().has_host_memory() ? 1 : 2);
  TUTTI_ASSIGN(std::unique_ptr<DevicePool> pool, DevicePool::create(lanes));
  return std::shared_ptr<PredictEngine>(
      new Engine({std::move(own_model), std::move(programs), std::move(signature), std::move(pool)},
                 std::move(strategy), options));
}

Result<std::shared_ptr<PredictCall>> Engine::start(std::shared_ptr<const LoadedVersion> version, data::Element batch,
                                                   const PredictInput &input, CallParts parts,
                                                   base::Ref<base::CancelToken> reading) {
  auto call = std::make_shared<PredictCall>();
  const std::shared_ptr<const InputBinding> &binding = input.binding;
  call->reading = std::move(reading);
  call->map = input.map;
  call->seed = input.seed;
  if (call->map != nullptr) TUTTI_TRY(call->map->describe(batch, call->batch));
  (call->map != nullptr ? call->unmapped : call->batch) = std::move(batch);
  TUTTI_ASSIGN(call->rows, binding->check(call->batch));
  call->usual_rows = input.batch_rows;
  // At level repeatable what came before changes no bit.
  if (call->usual_rows == 0 && options_.level != backend::Level::repeatable)
    call->usual_rows = usual_rows_.note(share_of_rows(call->rows, 0, parts.count).rows());
  call->version = std::move(version);
  TUTTI_TRY(signature_.allocate_outputs(*call, *binding));
  calls_.fetch_add(1, std::memory_order_relaxed);
  division_.submit(call, binding, parts);
  return call;
}

Result<std::vector<Tensor>> Engine::run(std::span<const Tensor> features, const base::CancelToken *cancel,
                                        int64_t *step) {
  TUTTI_TRY(base::check_not_forked());
  TUTTI_TRY(base::check(cancel));
  TUTTI_ASSIGN(std::shared_ptr<const LoadedVersion> version, weights_.current());
  TUTTI_ASSIGN(data::Element batch, signature_.element_of(features));
  if (step != nullptr) *step = version->step;
  TUTTI_ASSIGN(const std::shared_ptr<PredictCall> call,
               start(std::move(version), std::move(batch), own_input_, {programs_.device_count(), 0, true}, nullptr));
  const Status status = call->jobs.wait(cancel);
  if (!status.ok()) {
    call->abandoned.store(true);
    return status;
  }
  return std::move(call->outputs);
}

Result<std::unique_ptr<PredictStream>> Engine::stream(std::unique_ptr<data::Iterator> iterator,
                                                      base::Ref<base::CancelToken> cancel) {
  if (iterator == nullptr) return base::invalid_argument("a stream needs an iterator");
  TUTTI_TRY(base::check_not_forked());
  TUTTI_ASSIGN(std::shared_ptr<const LoadedVersion> version, weights_.current());
  TUTTI_ASSIGN(InputBinding made, InputBinding::make(model_->features, iterator->spec()));
  PredictInput input{std::make_shared<const InputBinding>(std::move(made)), nullptr, iterator->seed(),
                     input_turns(*strategy_), iterator->spec().batch_size};
  TUTTI_ASSIGN(input.map, maps_.find(*iterator));
  const int32_t depth = options_.stream_depth > 0 ? options_.stream_depth : 2 * pool_->lane_count() + 2;
  auto self = std::static_pointer_cast<Engine>(shared_from_this());
  const std::shared_ptr<InputTurns> turns = input.turns;
  std::unique_ptr<PredictStream> own =
      read_ahead(std::move(self), version, std::move(iterator), std::move(input), cancel, static_cast<size_t>(depth));
  if (strategy_->workers().count == 1) return own;
  WorkerState state{.act = "predicts", .step = version->step, .weights = version->checksum};
  state.facts = facts_of(*model_);
  if (options_.level == backend::Level::invariant)
    state.devices = rounding_of(*programs_.devices().front(), options_.level);
  return join_workers(*strategy_, options_, std::move(state), signature_.outputs(), {std::move(own), turns, cancel});
}

Result<base::Json> Engine::plan(int64_t rows, int64_t timed_runs, const base::CancelToken *cancel) {
  TUTTI_TRY(base::check_not_forked());
  TUTTI_TRY(check_plan(*model_, rows, timed_runs));
  TUTTI_ASSIGN(const std::shared_ptr<const LoadedVersion> version, weights_.current());
  return describe_predict_plan(programs_, *pool_, version, rows, timed_runs, cancel);
}

std::string Engine::advice() const {
  const int32_t slowest = pool_->speeds().hardly_helps();
  if (slowest < 0) return std::string();
  return base::concat("device ", programs_.devices()[static_cast<size_t>(slowest)]->name(),
                      " computes less than 2 % of the predictions of all devices of the strategy: it may ",
                      "cost more memory and time of the host than it saves");
}

}  // namespace

Result<std::shared_ptr<PredictEngine>> PredictEngine::open(const graph::Model &predict_model, StrategyRef strategy,
                                                           const PredictOptions &options) {
  if (strategy == nullptr) return base::invalid_argument("a predict engine needs a strategy");
  return Engine::open(predict_model, std::move(strategy), options);
}

}  // namespace tutti::impl::distribute
