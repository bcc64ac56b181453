// SPDX-License-Identifier: Apache-2.0
#include "estimator/predictor/predictor.h"

#include <algorithm>
#include <utility>

#include "base/name_suggestions.h"
#include "base/thread.h"
#include "checkpoint/averaged_version.h"
#include "checkpoint/layout.h"
#include "checkpoint/reader.h"
#include "graph/serialize.h"

namespace tutti::impl::estimator::predictor {

using base::invalid_argument;
using base::Ref;
using base::Result;
using base::Status;
using checkpoint::WeightVersion;
using data::NamedTensor;
using tensor::Tensor;

struct Predictor::Loaded {
  std::shared_ptr<distribute::PredictEngine> engine;
  std::vector<graph::InputSpec> features;  // in the order of the engine
  std::shared_ptr<const std::vector<std::string>> outputs;
  std::vector<graph::InputSpec> output_specs;  // of the same
  std::string graph_text;                      // of a checkpoint; empty for an estimator's
  Ref<WeightVersion> version;
};

namespace {

Environment with_logger(Environment environment) {
  if (!environment.logger) environment.logger = base::make_ref<base::Logger>();
  return environment;
}

// Leaves only the outputs that are wanted, and what they need.
Result<graph::Model> select_outputs(graph::Model model, const std::vector<std::string> &wanted) {
  if (wanted.empty()) return model;
  std::vector<std::string> known;
  for (const auto &[output, value] : model.outputs)
    known.push_back(output);
  std::map<std::string, graph::ValueId, std::less<>> selected;
  for (const std::string &output : wanted) {
    const auto found = model.outputs.find(output);
    if (found == model.outputs.end()) {
      return invalid_argument("the model has no output '", output, "'", base::but_there_are(output, known));
    }
    selected.insert(*found);
  }
  model.outputs = std::move(selected);
  return graph::predict_model(model);
}

// What calls must give and what they get, as one text.
std::string signature_text(const std::vector<graph::InputSpec> &features, std::vector<std::string> outputs) {
  std::vector<std::string> inputs;
  for (const graph::InputSpec &spec : features)
    inputs.push_back(base::concat("'", spec.name, "' ", spec.dtype, " ", spec.dims));
  std::sort(inputs.begin(), inputs.end());
  std::sort(outputs.begin(), outputs.end());
  std::string text = "takes";
  for (const std::string &input : inputs)
    text += " " + input + ",";
  text += " gives";
  for (const std::string &output : outputs)
    text += " '" + output + "'";
  return text;
}

Status check_feature(const graph::InputSpec &spec, const Tensor &tensor, int64_t rows) {
  const auto expected = [&] { return base::concat(spec.dtype, " ", spec.dims); };
  if (tensor.empty()) return invalid_argument("feature '", spec.name, "' is missing, expected ", expected());
  bool fits =
      tensor.dtype() == spec.dtype && tensor.rank() == static_cast<int32_t>(spec.dims.size()) && tensor.rank() > 0;
  for (int32_t axis = 1; fits && axis < tensor.rank(); ++axis) {
    const graph::Dim &dim = spec.dims[static_cast<size_t>(axis)];
    fits = !dim.is_constant() || dim.constant() == tensor.shape()[axis];
  }
  if (!fits) return invalid_argument("feature '", spec.name, "' is ", tensor.describe(), ", expected ", expected());
  if (tensor.rows() == rows) return Status();
  return invalid_argument("feature '", spec.name, "' has ", tensor.rows(), " rows where another has ", rows);
}

// The tensors in the order of the model's features.
Result<std::vector<Tensor>> in_order(const std::vector<graph::InputSpec> &specs,
                                     const std::vector<NamedTensor> &features) {
  std::vector<std::string> known;
  for (const graph::InputSpec &spec : specs)
    known.push_back(spec.name);
  std::vector<Tensor> ordered(specs.size());
  for (const NamedTensor &feature : features) {
    size_t at = 0;
    while (at < specs.size() && specs[at].name != feature.name)
      ++at;
    if (at == specs.size()) {
      return invalid_argument("the model has no feature '", feature.name, "'",
                              base::but_there_are(feature.name, known));
    }
    if (!ordered[at].empty()) return invalid_argument("feature '", feature.name, "' is given twice");
    ordered[at] = feature.tensor;
  }
  const int64_t rows = !ordered.empty() && !ordered.front().empty() ? ordered.front().rows() : 0;
  for (size_t i = 0; i < specs.size(); ++i)
    TUTTI_TRY(check_feature(specs[i], ordered[i], rows));
  return ordered;
}

}  // namespace

Status PredictorOptions::check() const {
  TUTTI_TRY(backend::check_precision(precision, level));
  if (threads_per_device < 1 || threads_per_device > 4096) {
    return invalid_argument("threads_per_device is ", threads_per_device, ", expected 1 to 4096");
  }
  if (program_cache_size < 1 || program_cache_size > (1 << 20)) {
    return invalid_argument("program_cache_size is ", program_cache_size, ", expected 1 to ", 1 << 20);
  }
  if (look_ahead < 0 || look_ahead > (1 << 20)) {
    return invalid_argument("look_ahead is ", look_ahead, ", expected 0 to ", 1 << 20);
  }
  if (collective_timeout_ms.value_or(1) < 1) {
    return invalid_argument("collective_timeout_ms is ", *collective_timeout_ms, ", expected at least 1");
  }
  return Status();
}

ResultStream::ResultStream(std::unique_ptr<distribute::PredictStream> stream, Ref<base::CancelToken> cancel,
                           std::shared_ptr<const std::vector<std::string>> names)
    : cancel_(std::move(cancel)), names_(std::move(names)), stream_(std::move(stream)) {}

ResultStream::~ResultStream() { cancel_->cancel(); }

Result<bool> ResultStream::next(ResultBatch &batch) {
  distribute::PredictBatch computed;
  TUTTI_ASSIGN(const bool more, stream_->next(computed));
  if (!more) return false;
  batch.names = names_;
  batch.tensors = std::move(computed.outputs);
  batch.first_row = computed.first_row;
  batch.row_count = computed.rows;
  batch.step = computed.step;
  return true;
}

Predictor::Predictor(distribute::StrategyRef strategy, PredictorOptions options, Environment environment)
    : strategy_(std::move(strategy)), options_(std::move(options)), environment_(with_logger(std::move(environment))) {}

ThreadShares Predictor::thread_shares() const {
  return share_threads(environment_, strategy_->replica_count(), options_.threads_per_device);
}

Result<Ref<Predictor>> Predictor::open(const std::string &path, distribute::StrategyRef strategy,
                                       const PredictorOptions &options, const Environment &environment) {
  TUTTI_TRY(options.check());
  TUTTI_TRY(base::check_not_forked());
  if (!strategy) return invalid_argument("a predictor needs a strategy");
  Ref<Predictor> predictor = base::make_ref<Predictor>(std::move(strategy), options, environment);
  predictor->path_ = path;
  TUTTI_ASSIGN(predictor->loaded_, predictor->load_checkpoint(path, nullptr));
  return predictor;
}

Result<Ref<Predictor>> Predictor::from_estimator(Estimator &estimator, const data::ElementSpec &spec,
                                                 const PredictorOptions &options, const std::string &checkpoint_path) {
  TUTTI_TRY(options.check());
  TUTTI_TRY(base::check_not_forked());
  EstimatorState &state = estimator.state();
  TUTTI_ASSIGN(Ref<WeightVersion> version, state.weights(checkpoint_path));
  TUTTI_ASSIGN(const ModelRef model, state.models.get(Mode::predict, spec));
  PredictorOptions resolved = options;
  resolved.raw_weights |= state.config.raw_weights;
  if (!resolved.collective_timeout_ms) resolved.collective_timeout_ms = state.config.collective_timeout_ms;
  Ref<Predictor> predictor = base::make_ref<Predictor>(state.strategy(), std::move(resolved), state.environment);
  predictor->estimator_ = Ref<EstimatorState>::share(&state);
  TUTTI_ASSIGN(predictor->loaded_, predictor->load(*model, "", std::move(version)));
  return predictor;
}

Ref<WeightVersion> Predictor::used_of(const Ref<WeightVersion> &version) const {
  return options_.raw_weights ? version : checkpoint::with_averages(version);
}

Result<Predictor::LoadedRef> Predictor::load(graph::Model model, std::string graph_text,
                                             Ref<WeightVersion> version) const {
  TUTTI_ASSIGN(const graph::Model selected, select_outputs(std::move(model), options_.outputs));
  distribute::PredictOptions options;
  options.level = options_.level;
  options.threads_per_replica = thread_shares().per_device;
  options.precision = options_.precision;
  options.program_cache_size = static_cast<int32_t>(options_.program_cache_size);
  options.stream_depth = static_cast<int32_t>(options_.look_ahead);
  options.tracer = environment_.tracer;
  options.worker_rows = options_.worker_rows;
  options.collective_timeout_ms = options_.collective_timeout_ms.value_or(options.collective_timeout_ms);
  Loaded loaded;
  TUTTI_ASSIGN(loaded.engine, distribute::PredictEngine::open(selected, strategy_, options));
  TUTTI_TRY(loaded.engine->set_weights(used_of(version)));
  for (const std::string &feature : loaded.engine->feature_names()) {
    const graph::InputSpec *spec = selected.find_feature(feature);
    if (spec == nullptr) return base::internal_error("the engine takes an unknown feature '", feature, "'");
    loaded.features.push_back(*spec);
  }
  loaded.outputs = std::make_shared<const std::vector<std::string>>(loaded.engine->output_names());
  for (const std::string &output : *loaded.outputs) {
    const graph::ValueInfo &info = selected.graph.value(selected.outputs.at(output));
    loaded.output_specs.push_back({output, info.dtype, info.dims});
  }
  loaded.graph_text = std::move(graph_text);
  loaded.version = std::move(version);
  return std::make_shared<const Loaded>(std::move(loaded));
}

// With `current`: its engine is used again when the graph is the same; callers must not notice another one.
Result<Predictor::LoadedRef> Predictor::load_checkpoint(const std::string &path, const Loaded *current) const {
  checkpoint::ReadOptions read;
  read.slots = false;
  TUTTI_ASSIGN(checkpoint::Checkpoint checkpoint,
               checkpoint::read_checkpoint_or_newest(path, read, *environment_.logger));
  if (checkpoint.graph_text.empty()) {
    return base::failed_precondition("checkpoint '", checkpoint.path, "' contains no graph for predictions");
  }
  if (current != nullptr && current->graph_text == checkpoint.graph_text) {
    Loaded loaded = *current;
    TUTTI_TRY(loaded.engine->set_weights(used_of(checkpoint.state)));
    loaded.version = std::move(checkpoint.state);
    return std::make_shared<const Loaded>(std::move(loaded));
  }
  const auto read_graph = [&]() -> Result<graph::Model> {
    TUTTI_ASSIGN(const base::Json json, base::Json::parse(checkpoint.graph_text));
    return graph::model_from_json(json);
  };
  const auto load_graph = [&]() -> Result<LoadedRef> {
    Result<graph::Model> model = read_graph();
    if (!model.ok())
      return model.status().wrap(base::concat("cannot use '", checkpoint.path, "/", checkpoint::kGraphFile, "'"));
    return load(model.take(), std::move(checkpoint.graph_text), std::move(checkpoint.state));
  };
  const Result<LoadedRef> loaded = load_graph();
  Status status = loaded.status();
  if (status.ok() && current != nullptr) {
    const std::string found = signature_text((*loaded)->features, *(*loaded)->outputs);
    const std::string wanted = signature_text(current->features, *current->outputs);
    if (found != wanted)
      status = base::failed_precondition("it belongs to another model, which ", found, "; this predictor ", wanted);
  }
  if (status.ok()) return loaded;
  return status.wrap(base::concat("cannot predict with checkpoint '", checkpoint.path, "'"));
}

Predictor::LoadedRef Predictor::loaded() const {
  std::lock_guard lock(mutex_);
  return loaded_;
}

void Predictor::replace(LoadedRef loaded) {
  std::lock_guard lock(mutex_);
  loaded_.swap(loaded);
}

Result<ResultBatch> Predictor::run(const std::vector<NamedTensor> &features, const base::CancelToken *cancel) const {
  const LoadedRef current = loaded();
  TUTTI_ASSIGN(const std::vector<Tensor> ordered, in_order(current->features, features));
  ResultBatch batch;
  TUTTI_ASSIGN(batch.tensors, current->engine->run(ordered, cancel, &batch.step));
  batch.names = current->outputs;
  batch.row_count = ordered.empty() ? 0 : ordered.front().rows();
  return batch;
}

Result<std::unique_ptr<ResultStream>> Predictor::stream(const data::DatasetRef &dataset,
                                                        Ref<base::CancelToken> cancel) const {
  if (!dataset) return invalid_argument("there is no dataset to predict");
  if (!dataset->spec().is_batched()) {
    return invalid_argument("the dataset's elements ", dataset->spec(), " are single examples; add batch()");
  }
  const LoadedRef current = loaded();
  Ref<base::CancelToken> own = base::CancelToken::create_child(std::move(cancel));
  data::IteratorContext context;
  context.cancel = own;
  context.threads = thread_shares().pipeline;
  context.graphs = environment_.graphs;
  warnings_.warn(*environment_.logger, current->engine->leave_map(*dataset, context));
  warnings_.warn(*environment_.logger, current->engine->advice());
  TUTTI_ASSIGN(auto iterator, dataset->make_iterator(context));
  TUTTI_ASSIGN(auto computing, current->engine->stream(std::move(iterator), own));
  return std::make_unique<ResultStream>(std::move(computing), std::move(own), current->outputs);
}

Result<ResultBatch> Predictor::run_all(const data::DatasetRef &dataset, Ref<base::CancelToken> cancel) const {
  if (dataset && dataset->cardinality().is_infinite()) {
    return invalid_argument("the dataset to predict never ends: use a stream");
  }
  const bool has_gaps = strategy_->workers().count > 1 && strategy_->worker_input() != distribute::WorkerInput::own;
  if (has_gaps && options_.worker_rows == distribute::WorkerRows::own) {
    return invalid_argument(
        "the rows of one of several workers have gaps between them: use a stream, or worker_rows all");
  }
  TUTTI_ASSIGN(const std::unique_ptr<ResultStream> results, stream(dataset, cancel));
  std::vector<ResultBatch> batches;
  for (;;) {
    ResultBatch batch;
    TUTTI_ASSIGN(const bool more, results->next(batch));
    if (!more) break;
    if (batch.row_count > 0) batches.push_back(std::move(batch));
  }
  if (!batches.empty()) return concatenate(batches);
  const LoadedRef current = loaded();
  ResultBatch none;
  TUTTI_ASSIGN(const std::vector<Tensor> features, zero_rows(*current));
  TUTTI_ASSIGN(none.tensors, current->engine->run(features, cancel.get(), &none.step));
  none.names = current->outputs;
  return none;
}

Result<std::vector<Tensor>> Predictor::zero_rows(const Loaded &loaded) const {
  std::vector<Tensor> features;
  for (const graph::InputSpec &spec : loaded.features) {
    std::vector<int64_t> dims;
    for (const graph::Dim &dim : spec.dims)
      dims.push_back(dim.is_constant() ? dim.constant() : 0);
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
    TUTTI_ASSIGN(Tensor tensor, Tensor::zeros(spec.dtype, shape));
    features.push_back(std::move(tensor));
  }
  return features;
}

Result<bool> Predictor::reload() {
  std::lock_guard reloading(reload_mutex_);
  const LoadedRef current = loaded();
  if (estimator_) {
    TUTTI_ASSIGN(Ref<WeightVersion> version, estimator_->weights(""));
    // One that was read again from a checkpoint is the same at the same step; one of a trainer need not be.
    if (version == current->version ||
        (version->step() == current->version->step() && !estimator_->is_published(version)))
      return false;
    TUTTI_TRY(current->engine->set_weights(used_of(version)));
    Loaded next = *current;
    next.version = std::move(version);
    replace(std::make_shared<const Loaded>(std::move(next)));
    return true;
  }
  TUTTI_ASSIGN(const auto names, checkpoint::list_checkpoints(path_));
  if (names.empty() || names.back().step == current->version->step()) return false;
  TUTTI_ASSIGN(LoadedRef next, load_checkpoint(path_, current.get()));
  const bool newer = next->version->step() != current->version->step();
  replace(std::move(next));
  return newer;
}

Status Predictor::reload_from(const std::string &path) {
  std::lock_guard reloading(reload_mutex_);
  const LoadedRef current = loaded();
  TUTTI_ASSIGN(LoadedRef next, load_checkpoint(path, current.get()));
  replace(std::move(next));
  return Status();
}

std::vector<std::string> Predictor::output_names() const { return *loaded()->outputs; }

std::vector<graph::InputSpec> Predictor::features() const { return loaded()->features; }

std::vector<graph::InputSpec> Predictor::outputs() const { return loaded()->output_specs; }

int64_t Predictor::step() const { return loaded()->version->step(); }

distribute::PredictCounters Predictor::counters() const { return loaded()->engine->counters(); }

Result<base::Json> Predictor::plan(int64_t rows, int64_t timed_runs, const base::CancelToken *cancel) const {
  return loaded()->engine->plan(rows, timed_runs, cancel);
}

}  // namespace tutti::impl::estimator::predictor
