// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <mutex>

#include "base/exceptions.h"
#include "collective/reduction.h"
#include "distribute/evaluate/evaluation_rounds.h"
#include "distribute/evaluate/shown_rows.h"
#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/strategy/device_kinds.h"
#include "distribute/train/step_reports.h"
#include "distribute/train/train_programs.h"
#include "distribute/weights/loaded_weights.h"
#include "graph/serialize.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;

/// What the devices of one kind share.
struct KindPrograms {
  StatePlan plan;
  GraphSource write, add, finish;
  std::unique_ptr<ExecutableCache> executables;
};

/// A batch as the model sees it, dtypes and shapes alone where devices map it, and then what goes into their map.
struct EvaluatedBatch {
  data::Element batch, unmapped;
  int64_t place = 0;  // in this worker's input, from 1
};

/// Everything one evaluation needs; its jobs hold it, so that it outlives a caller who is cancelled.
struct Evaluation {
  std::vector<std::shared_ptr<LoadedWeights>> devices;
  std::vector<char> has_sums;  // per device, touched by its thread only
  ShownRows shown;
  InputBinding binding;
  std::shared_ptr<const DeviceMap> map;  // null: elements are batches
  std::vector<MappedLane> mapped;        // per device, touched by its thread only
  int64_t seed = 0;                      // of the map
  int64_t step = 0;
  int64_t first_number = 0, batch_rows = 0;  // of the first batch that is computed here; of the last
  int64_t batches_read = 0;
  JobGroup jobs;
};

/// Those that are the same whatever is evaluated.
void add_texts(const graph::Model &model, EvaluateReport &report) {
  for (const graph::SummarySpec &summary : model.summaries)
    if (summary.kind == graph::SummaryKind::text) report.summaries.push_back({summary});
}

class EvaluatorSession : public Evaluator {
 public:
  EvaluatorSession(graph::Model model, StrategyRef strategy, const PredictOptions &options)
      : model_(std::move(model)), strategy_(std::move(strategy)), options_(options) {}

  Status open();
  std::string leave_map(const data::Dataset &dataset, data::IteratorContext &context) override {
    if (kinds_.count() > 1) return keep_map(dataset);
    if (strategy_->backend()->has_host_memory()) return std::string();
    return maps_.leave(dataset, inputs(), static_cast<int32_t>(devices_.size()), *devices_.front(), options_.level,
                       context);
  }
  Result<EvaluateReport> run(const checkpoint::WeightVersion &weights, data::Iterator &iterator, int64_t max_batches,
                             const base::CancelToken *cancel) override;

 private:
  /// Features and labels.
  std::vector<graph::InputSpec> inputs() const {
    std::vector<graph::InputSpec> all = model_.features;
    all.insert(all.end(), model_.labels.begin(), model_.labels.end());
    return all;
  }
  /// Meets the other workers, if there are any: they evaluate the same.
  Result<EvaluationRounds> meet(const checkpoint::WeightVersion &weights, int64_t max_batches,
                                const base::CancelToken *cancel) const;
  Result<EvaluateReport> evaluate(const checkpoint::WeightVersion &weights, data::Iterator &iterator,
                                  EvaluationRounds &rounds, const base::CancelToken *cancel);
  /// One round; false where it was the last.
  Result<bool> run_round(const std::shared_ptr<Evaluation> &evaluation, data::Iterator &iterator,
                         EvaluationRounds &rounds, const base::CancelToken *cancel);
  Result<std::shared_ptr<Evaluation>> prepare(const checkpoint::WeightVersion &weights, const data::Iterator &iterator);
  /// The next batch with its rows; false at the end.
  Result<bool> read(Evaluation &evaluation, data::Iterator &iterator, EvaluatedBatch &batch, int64_t &rows) const;
  /// Says which batch met with an error.
  Status in_batch(const Status &status, int64_t place) const;
  void submit(const std::shared_ptr<Evaluation> &evaluation, const EvaluatedBatch &batch, int64_t rows, int64_t number);
  Status run_rows(Evaluation &evaluation, const EvaluatedBatch &batch, RowRange rows, int64_t number, int32_t device);
  Status add_up(Evaluation &evaluation, EvaluationRounds &rounds) const;
  const KindPrograms &programs_of(size_t device) const { return programs_[kinds_.of_device[device]]; }
  Status finish(Evaluation &evaluation, int64_t rows, EvaluateReport &report);
  /// Of summaries, of all devices and workers.
  static Status show_rows(Evaluation &evaluation, EvaluationRounds &rounds, EvaluateReport &report);

  const graph::Model model_;
  const StrategyRef strategy_;
  const PredictOptions options_;
  std::vector<backend::DeviceRef> devices_;
  DeviceKinds kinds_;
  std::vector<KindPrograms> programs_;  // by kind
  std::vector<std::string> metrics_, known_, reduced_summaries_, summary_rows_;
  std::vector<const backend::StateEntry *> sums_;  // of the partials of the first device's plan
  DeviceMaps maps_;
  std::unique_ptr<DevicePool> pool_;  // last: its jobs use the rest
};

Status EvaluatorSession::open() {
  StepGraphOptions graph_options;
  graph_options.contributors = strategy_->replica_count();
  graph_options.shows_rows = options_.shows_rows;
  TUTTI_ASSIGN(EvaluateGraphs graphs, make_evaluate_graphs(model_, graph_options));
  TUTTI_ASSIGN(devices_, open_devices(*strategy_));
  kinds_ = kinds_of(devices_);
  TUTTI_TRY(check_level(options_.level, kinds_, devices_));
  for (const size_t first : kinds_.first_devices) {
    KindPrograms of;
    TUTTI_ASSIGN(const auto layouts,
                 propose_layouts(*devices_[first], *graphs.accumulate_write, graphs.state, options_.typical_rows,
                                 options_.level, options_.threads_per_replica, options_.precision));
    TUTTI_ASSIGN(of.plan, StatePlan::make(graphs.state, layouts, {}));
    const auto source = [&](const graph::Graph &graph) {
      return GraphSource{graph::to_json_text(graph), of.plan.table(), options_.level, options_.threads_per_replica,
                         options_.precision};
    };
    of.write = source(*graphs.accumulate_write);
    of.add = source(*graphs.accumulate_add);
    // How many rows a device gets depends on how many devices there are.
    of.write.is_row_invariant = of.add.is_row_invariant = options_.level == backend::Level::invariant;
    of.finish = source(*graphs.finish);
    of.executables = std::make_unique<ExecutableCache>(static_cast<size_t>(options_.program_cache_size) * 2);
    programs_.push_back(std::move(of));
  }
  metrics_ = graphs.metrics;
  known_ = graphs.known;
  reduced_summaries_ = graphs.reduced_summaries;
  summary_rows_ = graphs.summary_rows;
  for (const backend::StateEntry &entry : programs_.front().plan.entries()) {
    if (entry.arena == static_cast<int32_t>(Arena::partials)) sums_.push_back(&entry);
  }
  TUTTI_ASSIGN(pool_, DevicePool::create(std::vector<int32_t>(devices_.size(), 1)));
  return Status();
}

Result<std::shared_ptr<Evaluation>> EvaluatorSession::prepare(const checkpoint::WeightVersion &weights,
                                                              const data::Iterator &iterator) {
  TUTTI_TRY(check_weights(programs_.front().plan, model_, weights));
  auto evaluation = std::make_shared<Evaluation>();
  TUTTI_ASSIGN(evaluation->binding, InputBinding::make(inputs(), iterator.spec()));
  TUTTI_ASSIGN(evaluation->map, maps_.find(iterator));
  evaluation->seed = iterator.seed();
  evaluation->mapped.resize(devices_.size());
  for (size_t device = 0; device < devices_.size(); ++device) {
    const KindPrograms &of = programs_of(device);
    TUTTI_ASSIGN(std::shared_ptr<LoadedWeights> loaded,
                 load_weights(of.plan, model_, weights, devices_[device], *of.executables,
                              static_cast<size_t>(options_.program_cache_size)));
    evaluation->devices.push_back(std::move(loaded));
  }
  evaluation->has_sums.assign(devices_.size(), 0);
  evaluation->shown = ShownRows(model_, summary_rows_, devices_.size());
  evaluation->step = weights.step();
  return evaluation;
}

Result<EvaluationRounds> EvaluatorSession::meet(const checkpoint::WeightVersion &weights, int64_t max_batches,
                                                const base::CancelToken *cancel) const {
  WorkerState state{.act = "evaluates", .step = weights.step()};
  if (strategy_->workers().count > 1) {
    TUTTI_ASSIGN(state.weights, checksum_of(weights, model_, false));
    if (options_.level == backend::Level::invariant) state.devices = rounding_of(*devices_.front(), options_.level);
    state.facts = facts_of(model_);
    for (Fact &fact : facts_of_call(*strategy_, options_.level, options_.precision))
      state.facts.push_back(std::move(fact));
    const std::string steps = max_batches < 0 ? "all" : std::to_string(max_batches);
    state.facts.push_back(Fact::of(base::concat("steps of the evaluation: ", steps)));
    for (const backend::StateEntry *sum : sums_)
      state.facts.push_back(Fact::of(base::concat(sum->name, " ", sum->dtype, " ", sum->storage_elements())));
  }
  return EvaluationRounds::begin(
      *strategy_, state, {.max_batches = max_batches, .timeout_ms = options_.collective_timeout_ms, .cancel = cancel});
}

Result<EvaluateReport> EvaluatorSession::run(const checkpoint::WeightVersion &weights, data::Iterator &iterator,
                                             int64_t max_batches, const base::CancelToken *cancel) {
  TUTTI_TRY(base::check_not_forked());
  TUTTI_ASSIGN(EvaluationRounds rounds, meet(weights, max_batches, cancel));
  Result<EvaluateReport> report = evaluate(weights, iterator, rounds, cancel);
  if (!report.ok()) rounds.leave(report.status());
  return report;
}

Result<EvaluateReport> EvaluatorSession::evaluate(const checkpoint::WeightVersion &weights, data::Iterator &iterator,
                                                  EvaluationRounds &rounds, const base::CancelToken *cancel) {
  TUTTI_ASSIGN(const std::shared_ptr<Evaluation> evaluation, prepare(weights, iterator));
  for (bool more = true; more;) {
    TUTTI_ASSIGN(more, run_round(evaluation, iterator, rounds, cancel));
  }
  TUTTI_TRY(evaluation->jobs.wait(cancel));
  if (rounds.rows() == 0) return base::invalid_argument("there are no rows to evaluate");
  TUTTI_TRY(add_up(*evaluation, rounds));
  EvaluateReport report;
  report.names = metrics_;
  report.step = weights.step();
  report.batches = rounds.batches();
  report.examples = rounds.rows();
  TUTTI_TRY(finish(*evaluation, report.examples, report));
  TUTTI_TRY(show_rows(*evaluation, rounds, report));
  add_texts(model_, report);
  return report;
}

Result<bool> EvaluatorSession::run_round(const std::shared_ptr<Evaluation> &evaluation, data::Iterator &iterator,
                                         EvaluationRounds &rounds, const base::CancelToken *cancel) {
  const bool is_part = may_be_empty_part(*strategy_);
  RoundRead round;
  while (round.batches < rounds.batches_to_read()) {
    TUTTI_TRY(base::check(cancel));
    EvaluatedBatch batch;
    int64_t rows = 0;
    TUTTI_ASSIGN(const bool more, read(*evaluation, iterator, batch, rows));
    if (!more) break;
    // A batch without rows is no batch, but may be the part of one.
    if (rows == 0 && !is_part) continue;
    if (rows > 0 && rounds.is_own(round.batches)) submit(evaluation, batch, rows, rounds.number_of(round.batches));
    round.rows += rows;
    ++round.batches;
  }
  // Two batches may be under way.
  TUTTI_TRY(evaluation->jobs.wait_below(2 * evaluation->batch_rows, cancel));
  return rounds.finish_round(round);
}

Result<bool> EvaluatorSession::read(Evaluation &evaluation, data::Iterator &iterator, EvaluatedBatch &batch,
                                    int64_t &rows) const {
  const bool is_mapped = evaluation.map != nullptr;
  const Result<bool> more = iterator.next(is_mapped ? batch.unmapped : batch.batch);
  if (more.ok() && !*more) return false;
  batch.place = ++evaluation.batches_read;
  if (!more.ok()) {
    if (base::is_interrupt(more.status())) return more.status();
    return in_batch(more.status().wrap(base::concat("reading batch ", batch.place, " of the input failed")),
                    batch.place);
  }
  if (is_mapped) TUTTI_TRY(in_batch(evaluation.map->describe(batch.unmapped, batch.batch), batch.place));
  const Result<int64_t> checked = evaluation.binding.check(batch.batch);
  if (!checked.ok()) return in_batch(checked.status(), batch.place);
  rows = *checked;
  return true;
}

Status EvaluatorSession::in_batch(const Status &status, int64_t place) const {
  const Workers &workers = strategy_->workers();
  const Status placed = status.with_detail("batch", std::to_string(place));
  return workers.count > 1 ? placed.with_detail("worker", std::to_string(workers.index)) : placed;
}

void EvaluatorSession::submit(const std::shared_ptr<Evaluation> &evaluation, const EvaluatedBatch &batch, int64_t rows,
                              int64_t number) {
  const auto run = [this, evaluation, batch, number](int32_t device, RowRange range) {
    const auto run_here = [&] { return in_batch(run_rows(*evaluation, batch, range, number, device), batch.place); };
    evaluation->jobs.done(base::without_exceptions(run_here), range.rows());
  };
  if (evaluation->batch_rows == 0) evaluation->first_number = number;
  evaluation->batch_rows = rows;
  evaluation->jobs.add(rows);
  const bool may_choose = options_.level == backend::Level::fast && evaluation->map == nullptr;
  if (may_choose && (kinds_.count() > 1 || pool_->speeds().are_uneven())) return pool_->submit_rows(rows, run);
  const auto count = static_cast<int32_t>(devices_.size());
  for (int32_t d = 0; d < count; ++d) {
    const RowRange range = share_of_rows(rows, d, count);
    if (range.rows() > 0) pool_->submit(d, [run, range](int32_t device) { run(device, range); });
  }
}

Status EvaluatorSession::run_rows(Evaluation &evaluation, const EvaluatedBatch &read, RowRange rows, int64_t number,
                                  int32_t device) {
  const data::Element &batch = read.batch;
  const bool is_mapped = evaluation.map != nullptr;
  LoadedWeights &loaded = *evaluation.devices[static_cast<size_t>(device)];
  follow_trace(loaded, options_.tracer.get(), "evaluation", device);
  const InputBinding &binding = evaluation.binding;
  ShapeKey key;
  binding.fill_key(batch, rows.rows(), key);
  const KindPrograms &of = programs_of(static_cast<size_t>(device));
  const GraphSource *sources[] = {&of.write, &of.add};
  BoundProgram *programs[2] = {};
  const int64_t built = loaded.programs->built();
  TUTTI_TRY(loaded.programs->prepare(
      sources, key, [&] { return binding.bindings(key); }, programs));
  const bool first = evaluation.has_sums[static_cast<size_t>(device)] == 0;
  BoundProgram &program = *programs[first ? 0 : 1];
  TUTTI_ASSIGN(const std::vector<int32_t> components, binding.components_of(program.description()));
  std::vector<const void *> inputs;
  MappedLane &mapped = evaluation.mapped[static_cast<size_t>(device)];
  if (is_mapped)
    TUTTI_TRY(mapped.run(evaluation.map, evaluation.seed, read.unmapped, rows, loaded.device, loaded.stream));
  for (const int32_t component : components) {
    inputs.push_back(is_mapped ? mapped.rows(component) : InputBinding::row_pointer(batch, component, rows.begin));
  }
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::step, evaluation.step)
      .set(backend::RunScalar::batch_counter, number)
      .set(backend::RunScalar::row_offset, rows.begin)
      .set(backend::RunScalar::local_rows, rows.rows())
      .set(backend::RunScalar::first_flag, number == evaluation.first_number && rows.begin == 0 ? 1 : 0);
  const base::TraceSpan span(options_.tracer.get(), "step", "evaluate");
  const auto place = is_mapped ? StagedIo::Inputs::on_device : StagedIo::Inputs::in_host_memory;
  const int64_t begin_ns = base::now_ns();
  TUTTI_ASSIGN(const std::vector<tensor::Tensor> shown, ShownRows::reserve(program.description()));
  std::vector<void *> outputs;
  for (const tensor::Tensor &result : shown)
    outputs.push_back(result.mutable_data());
  TUTTI_TRY(loaded.io->run(program.program, inputs, outputs, scalars, loaded.stream, place));
  if (!evaluation.shown.empty())
    TUTTI_TRY(evaluation.shown.add(static_cast<size_t>(device), {number, rows.begin}, program.description(), shown));
  evaluation.has_sums[static_cast<size_t>(device)] = 1;
  pool_->speeds().add(device, rows.rows(), static_cast<double>(base::now_ns() - begin_ns) * 1e-9,
                      first || loaded.programs->built() != built);
  return Status();
}

/// The sums of all devices, in order, and then of all workers, into the first device's arena.
Status EvaluatorSession::add_up(Evaluation &evaluation, EvaluationRounds &rounds) const {
  if (evaluation.devices.size() == 1 && strategy_->workers().count == 1) return Status();
  std::vector<std::vector<std::byte>> sums(evaluation.devices.size());
  for (size_t d = 0; d < sums.size(); ++d) {
    const int64_t bytes = programs_of(d).plan.arena_bytes(Arena::partials);
    sums[d].resize(static_cast<size_t>(bytes));
    TUTTI_TRY(evaluation.devices[d]->buffers->partials.read(0, sums[d].data(), bytes));
  }
  for (const backend::StateEntry *entry : sums_) {
    std::vector<void *> sources;
    for (size_t d = 0; d < sums.size(); ++d)
      sources.push_back(sums[d].data() + programs_of(d).plan.find(entry->name)->offset);
    collective::reduce_range(entry->dtype, collective::Reduction::sum, sources.data(),
                             static_cast<int32_t>(sources.size()), 0, entry->storage_elements(), sources.front());
  }
  TUTTI_TRY(rounds.add_up(sums_, known_, sums.front().data()));
  return evaluation.devices.front()->buffers->partials.write(0, sums.front().data(),
                                                             static_cast<int64_t>(sums.front().size()));
}

Status EvaluatorSession::finish(Evaluation &evaluation, int64_t rows, EvaluateReport &report) {
  LoadedWeights &first = *evaluation.devices.front();
  const GraphSource *source = &programs_.front().finish;
  BoundProgram *program = nullptr;
  const auto no_symbols = [] { return graph::SymbolBindings(); };
  TUTTI_TRY(first.finish_programs->prepare({&source, 1}, {}, no_symbols, {&program, 1}));
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::step, evaluation.step)
      .set(backend::RunScalar::local_rows, rows)
      .set(backend::RunScalar::step_rows, rows);
  TUTTI_TRY(first.stream.finish(program->program.run(0, {nullptr, nullptr, scalars.data()}, first.stream)));
  for (const std::string &name : metrics_) {
    const backend::StateEntry *entry =
        programs_.front().plan.find(name == "loss" ? "report/loss" : "report/metric/" + name);
    TUTTI_ASSIGN(tensor::Tensor value, read_entry(first.buffers->report, *entry));
    const bool is_number = entry->dims.empty();
    report.values.push_back(is_number ? number_at(value.data(), value.dtype())
                                      : std::numeric_limits<double>::quiet_NaN());
    report.elements.push_back(is_number ? tensor::Tensor() : std::move(value));
  }
  for (const std::string &name : reduced_summaries_) {
    const backend::StateEntry *const entry = programs_.front().plan.find("report/" + summary_entry(name));
    TUTTI_ASSIGN(const tensor::Tensor value, read_entry(first.buffers->report, *entry));
    TUTTI_TRY(report.summaries.emplace_back(monitor::ShownSummary{*model_.find_summary(name)}).add(value));
  }
  return Status();
}

Status EvaluatorSession::show_rows(Evaluation &evaluation, EvaluationRounds &rounds, EvaluateReport &report) {
  TUTTI_ASSIGN(std::vector<monitor::ShownSummary> shown, evaluation.shown.collect());
  for (monitor::ShownSummary &one : shown) {
    if (one.spec.kind == graph::SummaryKind::histogram) {
      TUTTI_ASSIGN(const std::vector<double> states, rounds.gather(one.histogram.state()));
      const size_t size = one.histogram.state().size();
      one.histogram = {};
      for (size_t begin = 0; begin < states.size(); begin += size) {
        TUTTI_ASSIGN(const monitor::Histogram other,
                     monitor::Histogram::from_state(std::span(states).subspan(begin, size)));
        one.histogram.add(other);
      }
    }
    report.summaries.push_back(std::move(one));
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Evaluator>> Evaluator::open(const graph::Model &evaluate_model, StrategyRef strategy,
                                                   const PredictOptions &options) {
  if (strategy == nullptr) return base::invalid_argument("an evaluator needs a strategy");
  auto evaluator = std::make_unique<EvaluatorSession>(evaluate_model, std::move(strategy), options);
  TUTTI_TRY(evaluator->open());
  return std::unique_ptr<Evaluator>(std::move(evaluator));
}

}  // namespace tutti::impl::distribute
