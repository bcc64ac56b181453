// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_engine.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/exceptions.h"
#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"
#include "distribute/plan/row_buckets.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_plan.h"
#include "distribute/predict/predict_stream.h"
#include "distribute/predict/worker_predict_stream.h"
#include "distribute/strategy/device_kinds.h"
#include "distribute/train/train_programs.h"
#include "distribute/weights/loaded_weights.h"
#include "graph/serialize.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using tensor::Tensor;

/// What the devices of one kind share.
struct KindPrograms {
  StatePlan plan;
  GraphSource source;
  std::optional<GraphSource> prepare;  ///< computes derived entries, when there are any
  std::unique_ptr<ExecutableCache> executables;
  bool rounds_rows = false;  ///< numbers of rows are rounded up (row_buckets.h)
};

/// How the rows of calls are divided among the devices.
enum class Division : uint8_t {
  equal,     ///< a part for each device, or a whole batch of a stream, to whichever is free
  fixed,     ///< the same parts, each to a certain device: the bits of a row do not depend on which is free
  by_speed,  ///< pieces as large as suits who takes them
};

class Engine : public PredictEngine, public PredictCalls {
 public:
  Engine(graph::Model model, StrategyRef strategy, const PredictOptions &options)
      : model_(std::move(model)), strategy_(std::move(strategy)), options_(options) {}

  Status open();

  const std::vector<std::string> &feature_names() const override { return feature_names_; }
  const std::vector<std::string> &output_names() const override { return output_names_; }
  Status set_weights(const base::Ref<checkpoint::WeightVersion> &version) override;
  Result<std::vector<Tensor>> run(std::span<const Tensor> features, const base::CancelToken *cancel,
                                  int64_t *step) override;
  Result<std::unique_ptr<PredictStream>> stream(std::unique_ptr<data::Iterator> iterator,
                                                base::Ref<base::CancelToken> cancel) override;
  std::string leave_map(const data::Dataset &dataset, data::IteratorContext &context) override {
    if (kinds_.count() > 1) return keep_map(dataset);
    if (strategy_->backend()->has_host_memory()) return std::string();
    return maps_.leave(dataset, model_.features, 1, *devices_.front(), options_.level, context);
  }
  PredictCounters counters() const override;
  std::string advice() const override;
  base::Json describe() const override {
    base::JsonArray executables;
    for (const KindPrograms &of : programs_) {
      base::Json described = of.executables->describe();
      std::ranges::move(described.array(), std::back_inserter(executables));
    }
    return base::JsonObject{{"strategy", strategy_->describe()}, {"executables", std::move(executables)}};
  }
  Result<base::Json> plan(int64_t rows, int64_t timed_runs, const base::CancelToken *cancel) override;

  int32_t device_count() const { return static_cast<int32_t>(devices_.size()); }
  int32_t lane_count() const { return pool_->lane_count(); }
  Result<std::shared_ptr<const LoadedVersion>> current() const;
  Result<std::shared_ptr<PredictCall>> start(std::shared_ptr<const LoadedVersion> version, data::Element batch,
                                             const PredictInput &input, CallParts parts,
                                             base::Ref<base::CancelToken> reading) override;

 private:
  Status compute_derived_on_devices(const LoadedVersion &version);
  Status allocate_outputs(PredictCall &call, const InputBinding &binding) const;
  Status make_programs();
  Division division(const PredictCall &call) const;
  void submit(const std::shared_ptr<PredictCall> &call, const std::shared_ptr<const InputBinding> &binding,
              CallParts parts);
  /// 0 unless devices get several parts each.
  int64_t rows_of_part(const PredictCall &call) const;
  Status run_rows(PredictCall &call, const InputBinding &binding, RowRange rows, int32_t lane);
  Status run_rows(PredictCall &call, const InputBinding &binding, RowRange rows, int64_t computed, int32_t lane);
  Result<base::Json> plan_on(int32_t device, const std::shared_ptr<const LoadedVersion> &version,
                             graph::SymbolBindings bindings, int64_t rows, int64_t timed_runs,
                             const base::CancelToken *cancel);
  const KindPrograms &programs_of(int32_t device) const {
    return programs_[kinds_.of_device[static_cast<size_t>(device)]];
  }

  const graph::Model model_;
  const StrategyRef strategy_;
  const PredictOptions options_;
  std::vector<std::string> feature_names_, output_names_;
  std::vector<OutputSpec> outputs_;
  std::vector<backend::DeviceRef> devices_;
  DeviceKinds kinds_;
  std::vector<KindPrograms> programs_;  // by kind
  PredictInput own_input_;              // features in order
  DeviceMaps maps_;
  std::vector<MappedLane> mapped_;  // by lane, touched by its thread only
  bool rows_stand_alone_ = false;
  UsualRows usual_rows_;
  mutable std::mutex mutex_;
  std::shared_ptr<const LoadedVersion> current_;  // guarded by mutex_
  std::atomic<int64_t> packed_{0}, calls_{0};
  std::unique_ptr<DevicePool> pool_;  // last: its jobs use the rest
};

Status Engine::make_programs() {
  StepGraphOptions graph_options;
  graph_options.contributors = 2;  // rows are always free to be computed apart
  TUTTI_ASSIGN(PredictGraph graphs, make_predict_graph(model_, graph_options));
  rows_stand_alone_ = graphs.rows_stand_alone;
  for (const size_t first : kinds_.first_devices) {
    KindPrograms of;
    TUTTI_ASSIGN(const auto layouts,
                 propose_layouts(*devices_[first], *graphs.forward, graphs.state, options_.typical_rows, options_.level,
                                 options_.threads_per_replica, options_.precision));
    TUTTI_ASSIGN(of.plan, StatePlan::make(graphs.state, layouts, {}));
    of.source = {graph::to_json_text(*graphs.forward), of.plan.table(),    options_.level,
                 options_.threads_per_replica,         options_.precision, options_.level == backend::Level::invariant};
    if (graphs.prepare != nullptr) {
      of.prepare = GraphSource{graph::to_json_text(*graphs.prepare), of.plan.table(), options_.level,
                               options_.threads_per_replica};
    }
    of.executables = std::make_unique<ExecutableCache>(static_cast<size_t>(options_.program_cache_size) * 2);
    of.rounds_rows = rows_stand_alone_ && !devices_[first]->backend().has_host_memory();
    programs_.push_back(std::move(of));
  }
  return Status();
}

Status Engine::open() {
  TUTTI_ASSIGN(devices_, open_devices(*strategy_));
  kinds_ = kinds_of(devices_);
  TUTTI_TRY(check_level(options_.level, kinds_, devices_));
  TUTTI_TRY(make_programs());
  for (const auto &[name, value] : model_.outputs) {
    const graph::ValueInfo &info = model_.graph.value(value);
    output_names_.push_back(name);
    outputs_.push_back({name, info.dtype, info.dims});
  }
  data::ElementSpec spec;
  for (const graph::InputSpec &feature : model_.features) {
    feature_names_.push_back(feature.name);
    spec.components.push_back({feature.name, data::Role::feature, feature.dtype, feature.dims});
  }
  TUTTI_ASSIGN(InputBinding binding, InputBinding::make(model_.features, spec));
  own_input_.binding = std::make_shared<const InputBinding>(std::move(binding));
  std::vector<int32_t> lanes;
  // Where rows are copied to and from a device's memory, one batch is while another is computed.
  for (const backend::DeviceRef &device : devices_)
    lanes.push_back(device->backend().has_host_memory() ? 1 : 2);
  mapped_.resize(static_cast<size_t>(std::accumulate(lanes.begin(), lanes.end(), 0)));
  TUTTI_ASSIGN(pool_, DevicePool::create(lanes));
  return Status();
}

Status Engine::set_weights(const base::Ref<checkpoint::WeightVersion> &version) {
  if (version == nullptr) return base::invalid_argument("set_weights needs a version");
  TUTTI_TRY(check_weights(programs_.front().plan, model_, *version));
  auto loaded = std::make_shared<LoadedVersion>();
  loaded->step = version->step();
  if (strategy_->workers().count > 1) {
    TUTTI_ASSIGN(loaded->checksum, checksum_of(*version, model_, false));
  }
  const auto cache_size = static_cast<size_t>(options_.program_cache_size);
  for (int32_t device = 0; device < device_count(); ++device) {
    TUTTI_ASSIGN(std::shared_ptr<LoadedWeights> weights,
                 load_weights(programs_of(device).plan, model_, *version, devices_[static_cast<size_t>(device)],
                              *programs_of(device).executables, cache_size));
    loaded->lanes.push_back(std::move(weights));
    packed_.fetch_add(1, std::memory_order_relaxed);
  }
  for (int32_t lane = device_count(); lane < lane_count(); ++lane) {
    const int32_t device = pool_->device_of(lane);
    const LoadedWeights &first = *loaded->lanes[static_cast<size_t>(device)];
    TUTTI_ASSIGN(std::shared_ptr<LoadedWeights> another,
                 make_lane(first, *programs_of(device).executables, cache_size));
    loaded->lanes.push_back(std::move(another));
  }
  TUTTI_TRY(compute_derived_on_devices(*loaded));
  std::lock_guard lock(mutex_);
  current_ = std::move(loaded);
  return Status();
}

Status Engine::compute_derived_on_devices(const LoadedVersion &version) {
  if (!programs_.front().prepare) return Status();
  JobGroup jobs;
  jobs.add(device_count());
  for (int32_t device = 0; device < device_count(); ++device) {
    pool_->submit(device, [&, device](int32_t lane) {
      const KindPrograms &of = programs_of(device);
      jobs.done(base::without_exceptions(
          [&] { return compute_derived(*of.prepare, *of.executables, *version.lanes[static_cast<size_t>(lane)]); }));
    });
  }
  return jobs.wait(nullptr);
}

Result<std::shared_ptr<const LoadedVersion>> Engine::current() const {
  std::lock_guard lock(mutex_);
  if (current_ == nullptr) return base::failed_precondition("there are no weights to predict with: call set_weights");
  return current_;
}

Status Engine::allocate_outputs(PredictCall &call, const InputBinding &binding) const {
  std::vector<int64_t> key;
  binding.fill_key(call.batch, call.rows, key);
  const graph::SymbolBindings bindings = binding.bindings(key);
  for (const OutputSpec &output : outputs_) {
    TUTTI_ASSIGN(const std::vector<int64_t> dims, graph::evaluate(output.dims, bindings));
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
    TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(output.dtype, shape));
    call.outputs.push_back(std::move(tensor));
  }
  return Status();
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
  TUTTI_TRY(allocate_outputs(*call, *binding));
  calls_.fetch_add(1, std::memory_order_relaxed);
  submit(call, binding, parts);
  return call;
}

Division Engine::division(const PredictCall &call) const {
  // A map on devices is compiled for whole batches.
  if (device_count() == 1 || call.map != nullptr) return Division::equal;
  if (kinds_.count() > 1) return options_.level == backend::Level::fast ? Division::by_speed : Division::fixed;
  return options_.level == backend::Level::fast && pool_->speeds().are_uneven() ? Division::by_speed : Division::equal;
}

void Engine::submit(const std::shared_ptr<PredictCall> &call, const std::shared_ptr<const InputBinding> &binding,
                    CallParts parts) {
  const auto run = [this, call, binding](int32_t lane, RowRange rows, int64_t jobs) {
    const bool wanted = !call->abandoned.load();
    const Status status = base::without_exceptions(
        [&] { return wanted ? run_rows(*call, *binding, rows, lane) : base::cancelled("the call was abandoned"); });
    call->jobs.done(status, jobs);
    if (!status.ok()) call->abandoned.store(true);
    if (call->reading != nullptr && call->jobs.is_done()) call->reading->set_deadline(base::Deadline::after_ms(0));
  };
  const Division division = this->division(*call);
  if (division == Division::by_speed) {
    call->jobs.add(call->rows);
    pool_->submit_rows(call->rows, [run](int32_t lane, RowRange rows) { run(lane, rows, rows.rows()); });
    return;
  }
  const int64_t cut = division == Division::equal && parts.is_alone ? rows_of_part(*call) : 0;
  const auto count =
      static_cast<int32_t>(cut > 0 ? (call->rows + cut - 1) / cut : std::min<int64_t>(parts.count, call->rows));
  call->jobs.add(count);
  for (int32_t part = 0; part < count; ++part) {
    const RowRange rows =
        cut > 0 ? RowRange{part * cut, std::min(call->rows, (part + 1) * cut)} : share_of_rows(call->rows, part, count);
    const auto device = static_cast<int32_t>((parts.first_device + part) % device_count());
    pool_->submit(division == Division::fixed ? device : DevicePool::any_device,
                  [run, rows](int32_t lane) { run(lane, rows, 1); });
  }
}

int64_t Engine::rows_of_part(const PredictCall &call) const {
  if (lane_count() == device_count() || !rows_stand_alone_) return 0;
  int64_t bytes = call.batch.size_bytes();
  for (const Tensor &output : call.outputs)
    bytes += output.size_bytes();
  return distribute::rows_of_part(call.rows, bytes, device_count());
}

Status Engine::run_rows(PredictCall &call, const InputBinding &binding, RowRange rows, int32_t lane) {
  // What a map on devices gives has room for whole batches.
  const bool is_exact = call.map != nullptr || !programs_of(pool_->device_of(lane)).rounds_rows;
  const int64_t computed = rows_to_compute(rows.rows(), is_exact ? rows.rows() : call.usual_rows);
  const Status status = run_rows(call, binding, rows, computed, lane);
  // There may be memory for these rows where there is none for more.
  if (status.code() != base::Code::resource_exhausted || computed == rows.rows()) return status;
  return run_rows(call, binding, rows, rows.rows(), lane);
}

Status Engine::run_rows(PredictCall &call, const InputBinding &binding, RowRange rows, int64_t computed, int32_t lane) {
  LoadedWeights &loaded = *call.version->lanes[static_cast<size_t>(lane)];
  follow_trace(loaded, options_.tracer.get(), "predictions", lane);
  ShapeKey key;
  binding.fill_key(call.batch, computed, key);
  const int32_t device = pool_->device_of(lane);
  const GraphSource *source = &programs_of(device).source;
  BoundProgram *program = nullptr;
  const int64_t built = loaded.programs->built();
  TUTTI_TRY(loaded.programs->prepare({&source, 1}, key, [&] { return binding.bindings(key); }, {&program, 1}));
  TUTTI_ASSIGN(const std::vector<int32_t> components, binding.components_of(program->description()));
  std::vector<const void *> inputs;
  MappedLane &mapped = mapped_[static_cast<size_t>(lane)];
  if (call.map != nullptr)
    TUTTI_TRY(mapped.run(call.map, call.seed, call.unmapped, rows, loaded.device, loaded.stream));
  for (const int32_t component : components) {
    inputs.push_back(call.map != nullptr ? mapped.rows(component)
                                         : InputBinding::row_pointer(call.batch, component, rows.begin));
  }
  std::vector<void *> outputs;
  for (const backend::PortDescription &port : program->description().outputs) {
    const auto at = std::find(output_names_.begin(), output_names_.end(), port.name) - output_names_.begin();
    const Tensor &tensor = call.outputs[static_cast<size_t>(at)];
    const int64_t row_bytes = tensor.rows() == 0 ? 0 : tensor.size_bytes() / call.rows;
    outputs.push_back(tensor.mutable_data_as<std::byte>() + rows.begin * row_bytes);
  }
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::step, call.version->step)
      .set(backend::RunScalar::row_offset, rows.begin)
      .set(backend::RunScalar::local_rows, rows.rows())
      .set(backend::RunScalar::step_rows, call.rows);
  const base::TraceSpan span(options_.tracer.get(), "step", "predict");
  const auto place = call.map != nullptr ? DevicePorts::Inputs::on_device : DevicePorts::Inputs::in_host_memory;
  const int64_t begin_ns = base::now_ns();
  TUTTI_TRY(
      loaded.ports->run(program->program, inputs, outputs, scalars, loaded.stream, place, {computed, rows.rows()}));
  pool_->speeds().add(device, rows.rows(), static_cast<double>(base::now_ns() - begin_ns) * 1e-9,
                      loaded.programs->built() != built);
  return Status();
}

Result<std::vector<Tensor>> Engine::run(std::span<const Tensor> features, const base::CancelToken *cancel,
                                        int64_t *step) {
  TUTTI_TRY(base::check_not_forked());
  TUTTI_TRY(base::check(cancel));
  TUTTI_ASSIGN(std::shared_ptr<const LoadedVersion> version, current());
  if (features.size() != feature_names_.size()) {
    return base::invalid_argument("the model has ", feature_names_.size(), " features ", feature_names_, ", got ",
                                  features.size(), " tensors");
  }
  data::Element batch;
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].dtype() != model_.features[i].dtype) {
      return base::invalid_argument("feature '", feature_names_[i], "' is ", tensor::name(model_.features[i].dtype),
                                    graph::to_string(model_.features[i].dims), ", got ", features[i].describe());
    }
    batch.components.push_back(features[i]);
  }
  if (step != nullptr) *step = version->step;
  TUTTI_ASSIGN(const std::shared_ptr<PredictCall> call,
               start(std::move(version), std::move(batch), own_input_, {device_count(), 0, true}, nullptr));
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
  TUTTI_ASSIGN(std::shared_ptr<const LoadedVersion> version, current());
  TUTTI_ASSIGN(InputBinding made, InputBinding::make(model_.features, iterator->spec()));
  PredictInput input{std::make_shared<const InputBinding>(std::move(made)), nullptr, iterator->seed(),
                     input_turns(*strategy_), iterator->spec().batch_size};
  TUTTI_ASSIGN(input.map, maps_.find(*iterator));
  const int32_t depth = options_.stream_depth > 0 ? options_.stream_depth : 2 * lane_count() + 2;
  auto self = std::static_pointer_cast<Engine>(shared_from_this());
  const std::shared_ptr<InputTurns> turns = input.turns;
  std::unique_ptr<PredictStream> own =
      read_ahead(std::move(self), version, std::move(iterator), std::move(input), cancel, static_cast<size_t>(depth));
  if (strategy_->workers().count == 1) return own;
  WorkerState state{.act = "predicts", .step = version->step, .weights = version->checksum};
  state.facts = facts_of(model_);
  if (options_.level == backend::Level::invariant) state.devices = rounding_of(*devices_.front(), options_.level);
  return join_workers(*strategy_, options_, std::move(state), outputs_, {std::move(own), turns, cancel});
}

Result<base::Json> Engine::plan(int64_t rows, int64_t timed_runs, const base::CancelToken *cancel) {
  TUTTI_TRY(base::check_not_forked());
  if (rows < 1 || timed_runs < 0)
    return base::invalid_argument("a plan is for 1 row or more, got ", rows, ", with 0 timed runs or more, got ",
                                  timed_runs);
  const graph::SymbolBindings bindings = {{std::string(graph::kBatchSymbol), rows}};
  for (const graph::InputSpec &feature : model_.features) {
    const auto dims = graph::evaluate(feature.dims, bindings);
    if (!dims.ok()) return dims.status().wrap(base::concat("feature '", feature.name, "'"));
  }
  TUTTI_ASSIGN(const std::shared_ptr<const LoadedVersion> version, current());
  base::Json whole = base::JsonObject{{"step", version->step}, {"rows", rows}};
  base::JsonArray others;
  for (const size_t first : kinds_.first_devices) {
    TUTTI_ASSIGN(base::Json plan, plan_on(static_cast<int32_t>(first), version, bindings, rows, timed_runs, cancel));
    if (first > 0) {
      others.push_back(std::move(plan));
      continue;
    }
    for (auto &[key, value] : plan.object())
      whole.set(key, std::move(value));
  }
  if (!others.empty()) whole.set("others", std::move(others));
  return whole;
}

Result<base::Json> Engine::plan_on(int32_t device, const std::shared_ptr<const LoadedVersion> &version,
                                   graph::SymbolBindings bindings, int64_t rows, int64_t timed_runs,
                                   const base::CancelToken *cancel) {
  const int64_t computed = rows_to_compute(rows, programs_of(device).rounds_rows ? 0 : rows);
  bindings[std::string(graph::kBatchSymbol)] = computed;
  struct Answer {
    JobGroup job;
    base::Json plan;
  };
  const auto answer = std::make_shared<Answer>();
  answer->job.add(1);
  pool_->submit(device, [this, version, answer, bindings, rows, timed_runs](int32_t lane) {
    LoadedWeights &loaded = *version->lanes[static_cast<size_t>(lane)];
    const GraphSource &source = programs_of(pool_->device_of(lane)).source;
    Result<base::Json> plan = describe_predict_plan(source, bindings, loaded, rows, timed_runs);
    if (plan.ok()) answer->plan = std::move(plan).value();
    answer->job.done(plan.status());
  });
  TUTTI_TRY(answer->job.wait(cancel));
  base::Json whole =
      base::JsonObject{{"device", devices_[static_cast<size_t>(device)]->name()}, {"computed_rows", computed}};
  for (auto &[key, value] : answer->plan.object())
    whole.set(key, std::move(value));
  return whole;
}

std::string Engine::advice() const {
  const int32_t slowest = pool_->speeds().hardly_helps();
  if (slowest < 0) return std::string();
  return base::concat("device ", devices_[static_cast<size_t>(slowest)]->name(),
                      " computes less than a fiftieth of what the devices of the strategy predict together: it may ",
                      "cost more, in memory and time of the host, than it gives");
}

PredictCounters Engine::counters() const {
  PredictCounters counters;
  counters.versions_packed = packed_.load();
  for (const KindPrograms &of : programs_)
    counters.programs_built += of.executables->built();
  counters.calls = calls_.load();
  return counters;
}

}  // namespace

Result<std::shared_ptr<PredictEngine>> PredictEngine::open(const graph::Model &predict_model, StrategyRef strategy,
                                                           const PredictOptions &options) {
  if (strategy == nullptr) return base::invalid_argument("a predict engine needs a strategy");
  auto engine = std::make_shared<Engine>(predict_model, std::move(strategy), options);
  TUTTI_TRY(engine->open());
  return std::shared_ptr<PredictEngine>(std::move(engine));
}

}  // namespace tutti::impl::distribute
