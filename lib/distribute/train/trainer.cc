// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/trainer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <new>
#include <optional>

#include "distribute/strategy/device_kinds.h"
#include "distribute/train/kept_gradients.h"
#include "distribute/train/replica_set.h"
#include "distribute/train/step_function_set.h"
#include "distribute/train/storage_update.h"
#include "distribute/train/train_programs.h"
#include "distribute/weights/initial_values.h"
#include "distribute/weights/variable_store.h"
#include "distribute/workers/worker_agreement.h"
#include "distribute/workers/worker_exchange.h"

namespace tutti::impl::distribute {
namespace {

using backend::StateEntry;
using base::Result;
using base::Status;
using tensor::Tensor;

constexpr size_t history_capacity = 65536;

/// Holds a flag while in scope.
class Busy {
 public:
  explicit Busy(std::atomic<bool> &flag) : flag_(flag), taken_(!flag.exchange(true)) {}
  ~Busy() {
    if (taken_) flag_.store(false);
  }
  bool taken() const { return taken_; }

 private:
  std::atomic<bool> &flag_;
  const bool taken_;
};

class TrainerSession : public Trainer {
 public:
  TrainerSession(graph::Model model, StrategyRef strategy, const TrainerOptions &options, const WeightShare *share)
      : model_(std::move(model)),
        strategy_(std::move(strategy)),
        options_(options),
        share_(share != nullptr ? std::optional(*share) : std::nullopt),
        executables_(static_cast<size_t>(options.program_cache_size) * 2 + 64),
        step_functions_(strategy_, options_) {}

  Status open();

  Status initialize() override;
  Status restore(const checkpoint::WeightVersion &version) override;
  std::string leave_map(const data::Dataset &dataset, data::IteratorContext &context) override;
  Status attach_input(std::unique_ptr<data::Iterator> iterator) override;
  Result<base::Json> input_state() override { return feeder_->state(); }
  base::Json input_report() const override { return feeder_->report(); }
  Result<RunReport> run(int64_t steps, const base::CancelToken *cancel) override;
  void request_stop() override { replicas_->request_stop(*feeder_); }
  Status stop_workers(const base::CancelToken *cancel) override;
  Status check_workers(const std::vector<std::string> &settings, const base::CancelToken *cancel) override;
  Result<std::vector<std::vector<std::byte>>> exchange_with_workers(std::span<const std::byte> own,
                                                                    const base::CancelToken *cancel) override;
  void leave_workers(const Status &cause) override {
    if (!spans_workers()) return;
    replicas_->replica(0).group().abort(cause);
    step_functions_.leave_workers(cause);
  }

  Status add_step_function(const StepFunction &function) override;
  Result<StepFunctionReport> run_step_function(std::string_view name, std::vector<Tensor> batch,
                                               const base::CancelToken *cancel) override;
  Result<std::vector<std::string>> step_outputs(std::string_view name) const override {
    return step_functions_.outputs(name);
  }
  Result<Tensor> step_output(std::string_view name, std::string_view output, int32_t replica) override {
    return step_functions_.output(name, output, replica);
  }
  StepFunctionStates step_function_states() const override { return step_functions_.states(); }
  void set_step_function_states(const StepFunctionStates &states) override { step_functions_.set_states(states); }

  int64_t step() const override { return step_; }
  void set_step(int64_t step) override { step_ = step; }
  int64_t batch_counter() const override { return batch_counter_; }
  void set_batch_counter(int64_t counter) override { batch_counter_ = counter; }
  LossScaleState loss_scale() const override { return loss_scale_; }
  void set_loss_scale(const LossScaleState &state) override {
    if (loss_scale_.scale != 0 && state.scale != 0) loss_scale_ = state;
  }
  Result<std::vector<NamedNumber>> report() const override;
  std::vector<double> loss_history() const override { return replicas_->losses(); }
  StepSamples *samples() override { return &replicas_->samples(); }

  Result<base::Ref<checkpoint::WeightVersion>> publish_weights(bool with_slots) override;
  Result<Tensor> get_variable(std::string_view name) override {
    return variables().read(variables().kind_of(name), name);
  }
  Status set_variable(std::string_view name, const Tensor &value) override;
  Result<Tensor> get_slot(std::string_view variable, std::string_view slot) override {
    return variables().read(StoredKind::slot, base::concat(variable, "/", slot));
  }
  Result<Tensor> gradient(std::string_view variable) override;
  Result<Tensor> output(std::string_view name) override;
  Result<Tensor> replica_output(std::string_view name, int32_t replica) override;
  void show_rows(bool shows) override { shows_rows_ = shows; }
  Result<std::vector<Tensor>> summary(const graph::SummarySpec &summary) override;
  Status set_host_scalar(std::string_view name, double value) override {
    return variables().write_host_scalar(name, value);
  }
  Result<double> host_scalar(std::string_view name) override {
    TUTTI_ASSIGN(const Tensor value, variables().read(StoredKind::host_scalar, name));
    return number_at(value.data(), value.dtype());
  }

  const graph::Model &model() const override { return model_; }
  const StatePlan &plan() const override { return setup_->plan; }
  Result<bool> replicas_are_identical() override { return weights_.copies_are_identical(); }
  TrainerCounters counters() const override;
  std::vector<NamedNumber> memory_in_use() const override { return memory_of(setup_->devices); }
  std::vector<std::string> device_names() const override { return names_of(setup_->devices); }
  base::Json describe() const override;

 private:
  Status open_replicas();
  ArenaPointers arenas_of(size_t copy) const;
  void connect(std::span<const std::unique_ptr<Replica>> replicas);
  Status open_device_inputs();
  Status renew_groups(const base::CancelToken *cancel);
  /// After a run that failed: replicas that have not applied the last step get the weights of one that has.
  Status catch_up();
  /// Weights of these copies, and slots, become those of copy `from`.
  Status copy_weights(size_t from, std::span<const size_t> to);
  /// The command of a run from here on.
  RunCommand next_command(int64_t steps);
  bool has_failed() const { return !replicas_->replica(0).group().error().ok(); }
  std::vector<collective::Group *> groups();
  bool spans_workers() const { return strategy_->workers().count > 1; }
  /// Contributors that share a batch of this worker's input.
  int32_t contributors_of_batch() const { return setup_->programs.contributors / strategy_->input_pipeline().count; }
  /// Features and labels.
  std::vector<graph::InputSpec> inputs() const {
    std::vector<graph::InputSpec> all = model_.features;
    all.insert(all.end(), model_.labels.begin(), model_.labels.end());
    return all;
  }
  VariableStore variables() { return {model_, setup_->plan, weights_, share_ ? share_->name : std::string_view()}; }
  std::vector<const KeptOutputs *> kept_outputs(size_t first_replica, size_t replicas) const;
  Result<Tensor> gather(std::string_view name, size_t first_replica, size_t replicas) const {
    return gather_output(kept_outputs(first_replica, replicas), replicas_->replica(0).kept_batches(), name);
  }
  /// Steps of this model alone: those that schedules and optimizers count.
  int64_t own_steps() const { return step_ - step_functions_.trained_steps(); }
  /// With shared weights: those of a version, or as optimizers begin.
  Status take_slots(const checkpoint::WeightVersion *version);
  /// Weights are there, of that many steps.
  void begin_at(int64_t step);

  const graph::Model model_;
  const StrategyRef strategy_;
  const TrainerOptions options_;
  const std::optional<WeightShare> share_;  // none: the weights are its own
  std::unique_ptr<TrainSetup> setup_;
  ExecutableCache executables_;
  WeightStore weights_;
  backend::HostMemory signal_;             // that arena, where finish is guarded
  std::atomic<uint8_t> *alive_ = nullptr;  // there
  DeviceMaps maps_;
  std::vector<std::unique_ptr<FactorMemory>> factors_;  // one for all replicas, or one for each
  std::unique_ptr<StorageUpdate> storage_update_;       // null where replicas make the updates
  std::unique_ptr<StepFeeder> feeder_;
  std::unique_ptr<ReplicaSet> replicas_;
  StepFunctionSet step_functions_;
  std::string group_description_;
  std::atomic<bool> running_{false};
  bool has_weights_ = false, has_outputs_ = false, shows_rows_ = false;
  int64_t step_ = 0, batch_counter_ = 0, steps_run_ = 0, examples_run_ = 0, skipped_steps_ = 0;
  LossScaleState loss_scale_;
};

Status TrainerSession::open() {
  TUTTI_ASSIGN(setup_, set_up_training(model_, *strategy_, options_, share_ ? &*share_ : nullptr));
  std::vector<backend::DeviceRef> owners = setup_->devices;
  if (setup_->shared_weights) owners.resize(1);
  if (setup_->storage != nullptr) owners.insert(owners.begin(), setup_->storage);
  TUTTI_ASSIGN(weights_, WeightStore::create(setup_->plan, owners,
                                             setup_->programs.is_central ? WeightStore::Slots::with_the_first
                                                                         : WeightStore::Slots::with_each_copy,
                                             share_ ? share_->memory : nullptr));
  for (const graph::HostScalarSpec &scalar : model_.host_scalars) {
    TUTTI_TRY(set_host_scalar(scalar.name, scalar.initial));
  }
  TUTTI_ASSIGN(feeder_, StepFeeder::create({.accumulation = options_.accumulation,
                                            .depth = options_.device_prefetch,
                                            .in_flight = setup_->programs.steps_in_flight,
                                            .keeps_empty = may_be_empty_part(*strategy_)}));
  if (setup_->plan.find(alive_entry) != nullptr) {
    TUTTI_ASSIGN(signal_, setup_->devices.front()->allocate_host(setup_->plan.arena_bytes(Arena::signal)));
    alive_ = new (signal_.data() + setup_->plan.find(alive_entry)->offset) std::atomic<uint8_t>(1);
  }
  TUTTI_TRY(open_replicas());
  if (strategy_->backend()->has_host_memory() && !options_.copies_input) return Status();
  return open_device_inputs();
}

Status TrainerSession::open_device_inputs() {
  std::vector<DeviceInputs::Target> targets;
  const int32_t contributors = contributors_of_batch();
  for (size_t r = 0; r < setup_->devices.size(); ++r)
    targets.push_back({setup_->devices[r], replicas_->replica(r).group().rank() * setup_->parts % contributors});
  TUTTI_ASSIGN(auto inputs, DeviceInputs::create(targets, setup_->parts, contributors,
                                                 {.slots = feeder_->slots(), .batches = options_.accumulation}));
  feeder_->set_device_inputs(std::move(inputs));
  return Status();
}

Status TrainerSession::open_replicas() {
  std::vector<std::unique_ptr<Replica>> replicas;
  for (size_t r = 0; r < setup_->devices.size(); ++r) {
    const ArenaPointers arenas = arenas_of(setup_->copy_of(r));
    TUTTI_ASSIGN(std::unique_ptr<Replica> replica,
                 Replica::create(setup_->programs, setup_->plan, executables_, setup_->devices[r], r, arenas,
                                 setup_->parts, static_cast<size_t>(options_.program_cache_size)));
    replicas.push_back(std::move(replica));
  }
  connect(replicas);
  if (setup_->storage != nullptr) {
    TUTTI_ASSIGN(storage_update_,
                 StorageUpdate::open(setup_->programs, setup_->plan, executables_, setup_->storage, arenas_of(0),
                                     weights_.weight_buffer(0), weights_.weight_buffer(setup_->copy_of(0))));
    replicas.front()->update_with(*storage_update_);
  }
  TUTTI_ASSIGN(replicas_, ReplicaSet::start(std::move(replicas), history_capacity));
  return renew_groups(options_.cancel);
}

ArenaPointers TrainerSession::arenas_of(size_t copy) const {
  ArenaPointers arenas{};
  arenas[static_cast<size_t>(Arena::weights)] = weights_.weights(copy);
  arenas[static_cast<size_t>(Arena::slots)] = weights_.slots(copy);
  arenas[static_cast<size_t>(Arena::host)] = weights_.host(copy);
  arenas[static_cast<size_t>(Arena::signal)] = signal_.data();
  return arenas;
}

/// Lets replicas see what others leave for their finish programs.
void TrainerSession::connect(std::span<const std::unique_ptr<Replica>> replicas) {
  const TrainProgramSet &programs = setup_->programs;
  factors_.clear();
  for (size_t r = 0; !programs.factors.empty() && r < replicas.size(); ++r) {
    if (r == 0 || programs.gathers_factors)
      factors_.push_back(std::make_unique<FactorMemory>(programs.factors, programs.contributors));
    replicas[r]->share_factors(*factors_.back());
  }
  if (!setup_->programs.sums_in_finish) return;
  std::vector<void *> partials;
  for (const auto &replica : replicas) {
    const std::vector<void *> own = replica->partials();
    partials.insert(partials.end(), own.begin(), own.end());
  }
  for (const auto &replica : replicas)
    replica->see_partials(partials);
}

Status TrainerSession::renew_groups(const base::CancelToken *cancel) {
  TUTTI_ASSIGN(ReplicaGroups groups,
               strategy_->make_groups(setup_->devices, {.parts = setup_->parts,
                                                        .timeout_ms = options_.collective_timeout_ms,
                                                        .level = options_.level,
                                                        .all_reduce = options_.all_reduce,
                                                        .alive = alive_,
                                                        .cancel = cancel}));
  group_description_ = std::move(groups.description);
  for (size_t r = 0; r < replicas_->size(); ++r)
    replicas_->replica(r).set_group(std::move(groups.ranks[r]));
  if (alive_ != nullptr) alive_->store(1, std::memory_order_seq_cst);  // the old group has ended
  return Status();
}

Status TrainerSession::catch_up() {
  std::vector<size_t> behind;
  if (setup_->programs.is_central) {
    for (size_t copy = 1; copy < weights_.copies(); ++copy)
      behind.push_back(copy);
    return copy_weights(0, behind);
  }
  if (!replicas_->replica(0).group().signals_end()) return Status();  // all pass an update, or none
  const std::vector<int64_t> applied = replicas_->applied_steps();
  const auto ahead = std::max_element(applied.begin(), applied.end());
  for (size_t r = 0; r < applied.size(); ++r) {
    if (applied[r] != *ahead) behind.push_back(r);
  }
  return copy_weights(static_cast<size_t>(ahead - applied.begin()), behind);
}

Status TrainerSession::copy_weights(size_t from, std::span<const size_t> to) {
  for (const size_t copy : to) {
    has_weights_ = false;  // unless this succeeds
    TUTTI_TRY(weights_.copy(from, copy).wrap("weights of a replica that failed cannot be set to those of the others"));
    has_weights_ = true;
  }
  return Status();
}

// ---- state ----

Status TrainerSession::set_variable(std::string_view name, const Tensor &value) {
  const bool begins_average = own_steps() - loss_scale_.skipped_steps <= model_.train->average.start;
  return variables().write(variables().kind_of(name), name, value, begins_average);
}

void TrainerSession::begin_at(int64_t step) {
  step_ = step;
  batch_counter_ = step * options_.accumulation;
  loss_scale_ = first_loss_scale(setup_->programs.loss_scale);
  has_weights_ = true;
}

Status TrainerSession::take_slots(const checkpoint::WeightVersion *version) {
  TUTTI_TRY(variables().write_slots(version));
  begin_at(0);
  return Status();
}

Status TrainerSession::initialize() {
  if (share_) return take_slots(nullptr);
  TUTTI_TRY(step_functions_.initialize());
  backend::DeviceRef device = setup_->devices.front();
  if (options_.initializer_backend != nullptr) {
    TUTTI_ASSIGN(device, options_.initializer_backend->open_device(0));
  }
  TUTTI_ASSIGN(const std::vector<Tensor> values, initial_values(model_.variables, options_.seed, *device));
  TUTTI_TRY(variables().write_initial(values));
  begin_at(0);
  return Status();
}

Status TrainerSession::restore(const checkpoint::WeightVersion &version) {
  if (share_) return take_slots(&version);
  TUTTI_TRY(variables().write_version(version));
  TUTTI_TRY(step_functions_.restore(version));
  begin_at(version.step());
  return Status();
}

Result<Tensor> TrainerSession::gradient(std::string_view variable) {
  if (!options_.keep_gradients)
    return base::failed_precondition("gradients are kept only with the run option keep_gradients");
  if (steps_run_ == 0) return base::failed_precondition("there is no gradient before the first step");
  TUTTI_ASSIGN(const StateEntry *weight, variables().find(StoredKind::variable, variable));
  return gather_gradient(*setup_, *strategy_->backend(), *replicas_, *weight, variable);
}

Result<Tensor> TrainerSession::output(std::string_view name) {
  if (!options_.keep_outputs)
    return base::failed_precondition("outputs are kept only with the run option keep_outputs");
  if (!has_outputs_) return base::failed_precondition("there are no outputs: no step was run, or the last run failed");
  TUTTI_ASSIGN(Tensor rows, gather(name, 0, replicas_->size()));
  if (rows.empty()) return base::failed_precondition("this process had no rows in the last step");
  return rows;
}

Result<Tensor> TrainerSession::replica_output(std::string_view name, int32_t replica) {
  if (!options_.keep_outputs || !has_outputs_) return output(name);  // the error
  if (replica < 0 || static_cast<size_t>(replica) >= replicas_->size())
    return base::invalid_argument("there is no replica ", replica, ", but ", replicas_->size());
  return gather(name, static_cast<size_t>(replica), 1);
}

std::vector<const KeptOutputs *> TrainerSession::kept_outputs(size_t first_replica, size_t replicas) const {
  std::vector<const KeptOutputs *> parts;
  for (size_t r = first_replica; r < first_replica + replicas; ++r)
    std::ranges::copy(replicas_->replica(r).kept_outputs(), std::back_inserter(parts));
  return parts;
}

Result<std::vector<Tensor>> TrainerSession::summary(const graph::SummarySpec &summary) {
  const std::string result = summary_entry(summary.name);
  if (!has_outputs_) return base::failed_precondition("there is no summary: no step was run, or the last run failed");
  const std::vector<const KeptOutputs *> parts = kept_outputs(0, replicas_->size());
  if (summary.is_known) return read_pieces(std::span(parts).first(1), 1, result);
  if (summary.has_rows) return read_pieces(parts, replicas_->replica(0).kept_batches(), result);
  TUTTI_ASSIGN(Tensor value, replicas_->replica(0).report_tensor(*setup_->plan.find("report/" + result)));
  return std::vector<Tensor>{std::move(value)};
}

Result<base::Ref<checkpoint::WeightVersion>> TrainerSession::publish_weights(bool with_slots) {
  if (share_) return make_packed_slots(setup_->plan, strategy_->backend(), weights_, share_->name);
  TUTTI_ASSIGN(base::Ref<checkpoint::WeightVersion> version,
               make_packed_version(setup_->plan, strategy_->backend(), weights_, step_, with_slots));
  return with_slots ? step_functions_.with_slots(std::move(version)) : version;
}

// ---- running ----

std::string TrainerSession::leave_map(const data::Dataset &dataset, data::IteratorContext &context) {
  if (feeder_->device_inputs() == nullptr) return std::string();
  return maps_.leave(dataset, inputs(), contributors_of_batch(), *setup_->devices.front(), options_.level, context);
}

Status TrainerSession::attach_input(std::unique_ptr<data::Iterator> iterator) {
  Busy busy(running_);
  if (!busy.taken()) return base::failed_precondition("the trainer is running");
  if (iterator == nullptr) return feeder_->attach(nullptr, InputBinding());
  TUTTI_ASSIGN(InputBinding binding, InputBinding::make(inputs(), iterator->spec()));
  TUTTI_ASSIGN(const std::shared_ptr<const DeviceMap> map, maps_.find(*iterator));
  return feeder_->attach(std::move(iterator), std::move(binding), map);
}

Result<RunReport> TrainerSession::run(int64_t steps, const base::CancelToken *cancel) {
  Busy busy(running_);
  if (!busy.taken()) return base::failed_precondition("the trainer is running already");
  if (!has_weights_) return base::failed_precondition("the trainer has no weights: call initialize or restore first");
  if (!feeder_->has_input()) return base::failed_precondition("the trainer has no input: call attach_input first");
  TUTTI_TRY(base::check_not_forked());
  TUTTI_TRY(base::check(cancel));
  const auto begin = std::chrono::steady_clock::now();
  if (spans_workers() && has_failed()) TUTTI_TRY(renew_groups(cancel));
  const RunCommand command = next_command(steps);
  feeder_->allow(command.feeder_step + command.max_steps);
  RunOutcome outcome;
  const Status status = replicas_->run(command, *feeder_, cancel, outcome);
  has_outputs_ = status.ok() && (has_outputs_ || outcome.steps > 0);
  feeder_->allow(feeder_->next_step());
  step_ += outcome.steps;
  steps_run_ += outcome.steps;
  examples_run_ += outcome.examples;
  batch_counter_ += outcome.batches;
  const int64_t skipped = outcome.loss_scale.skipped_steps - loss_scale_.skipped_steps;
  skipped_steps_ += skipped;
  loss_scale_ = outcome.loss_scale;
  Status caught_up, renewed;
  if (has_failed()) caught_up = catch_up();
  // Other workers may be gone for good: they meet again at the next run, if there is one.
  if (has_failed() && !spans_workers()) renewed = renew_groups(nullptr);
  TUTTI_TRY(caught_up);
  TUTTI_TRY(status);
  TUTTI_TRY(renewed);
  RunReport report;
  report.reason = outcome.reason;
  report.steps = outcome.steps;
  report.examples = outcome.examples;
  report.skipped_steps = skipped;
  report.step = step_;
  report.input_wait_ns = outcome.input_wait_ns;
  report.times = replicas_->times();
  report.total_ns = (std::chrono::steady_clock::now() - begin).count();
  TUTTI_ASSIGN(report.loss, replicas_->replica(0).report_value(*setup_->plan.find("report/loss")));
  return report;
}

RunCommand TrainerSession::next_command(int64_t steps) {
  RunCommand command;
  command.feeder_step = feeder_->next_step();
  command.max_steps = steps < 0 ? INT64_MAX / 2 : steps;
  command.step = own_steps();
  command.other_steps = step_ - command.step;
  command.batch_counter = batch_counter_;
  command.seed = options_.seed;
  command.loss_scale = loss_scale_;
  command.cancel_grace_ms = options_.cancel_grace_ms;
  command.completed_steps = options_.completed_steps;
  command.shows_rows = shows_rows_;
  return command;
}

Status TrainerSession::stop_workers(const base::CancelToken *cancel) {
  Busy busy(running_);
  if (!busy.taken()) return base::failed_precondition("the trainer is running already");
  if (!spans_workers() || has_failed()) return Status();
  RunCommand command = next_command(0);
  command.stops = true;
  RunOutcome outcome;
  return replicas_->run(command, *feeder_, cancel, outcome);
}

Status TrainerSession::add_step_function(const StepFunction &function) {
  if (has_weights_ || share_) return base::failed_precondition("step functions are added before there are weights");
  return step_functions_.add(function, share_of(setup_->plan, weights_, function.name));
}

Result<StepFunctionReport> TrainerSession::run_step_function(std::string_view name, std::vector<Tensor> batch,
                                                             const base::CancelToken *cancel) {
  Busy busy(running_);
  if (!busy.taken()) return base::failed_precondition("the trainer is running already");
  if (!has_weights_) return base::failed_precondition("the trainer has no weights: call initialize or restore first");
  bool trained = false;
  Result<StepFunctionReport> report = step_functions_.run(name, std::move(batch), cancel, trained);
  if (trained) ++step_;
  return report;
}

Status TrainerSession::check_workers(const std::vector<std::string> &settings, const base::CancelToken *cancel) {
  if (!spans_workers()) return Status();
  Busy busy(running_);
  if (!busy.taken()) return base::failed_precondition("the trainer is running");
  if (has_failed()) TUTTI_TRY(renew_groups(cancel));
  TUTTI_ASSIGN(const auto version, publish_weights(true));
  TUTTI_ASSIGN(const uint64_t weights, checksum_of(*version, model_, true));
  std::vector<Fact> facts = facts_of(model_);
  for (const std::string &setting : settings)
    facts.push_back(Fact::of(setting));
  TUTTI_TRY(check_same_state(groups(), strategy_->workers(), setup_->parts,
                             {.step = step_,
                              .weights = weights,
                              .facts = std::move(facts),
                              .devices = rounding_of(*setup_->devices.front(), options_.level)},
                             cancel));
  return step_functions_.check_workers(cancel);
}

std::vector<collective::Group *> TrainerSession::groups() {
  std::vector<collective::Group *> all;
  for (size_t r = 0; r < replicas_->size(); ++r)
    all.push_back(&replicas_->replica(r).group());
  return all;
}

Result<std::vector<std::vector<std::byte>>> TrainerSession::exchange_with_workers(std::span<const std::byte> own,
                                                                                  const base::CancelToken *cancel) {
  if (!spans_workers()) return Trainer::exchange_with_workers(own, cancel);
  Busy busy(running_);
  if (!busy.taken()) return base::failed_precondition("the trainer is running");
  if (has_failed()) TUTTI_TRY(renew_groups(cancel));
  const std::vector<collective::Group *> all = groups();
  return exchange_bytes({all, setup_->parts, strategy_->workers()}, own);
}

Result<std::vector<NamedNumber>> TrainerSession::report() const {
  TUTTI_ASSIGN(std::vector<NamedNumber> numbers, report_values(setup_->plan, replicas_->replica(0)));
  if (loss_scale_.scale != 0) numbers.push_back({"skipped_steps", static_cast<double>(loss_scale_.skipped_steps)});
  return numbers;
}

TrainerCounters TrainerSession::counters() const {
  TrainerCounters counters;
  for (size_t r = 0; r < replicas_->size(); ++r)
    counters.programs_built += replicas_->replica(r).programs_built();
  counters.programs_built += step_functions_.programs_built();
  counters.executables_built = executables_.built();
  counters.cache_evictions = executables_.evicted();
  counters.steps = steps_run_;
  counters.examples = examples_run_;
  counters.late_steps = feeder_->late_steps();
  counters.skipped_steps = skipped_steps_;
  if (feeder_->device_inputs() != nullptr) counters.device_inputs = feeder_->device_inputs()->counters();
  return counters;
}

base::Json TrainerSession::describe() const {
  base::JsonArray arenas;
  for (int32_t a = 0; a < arena_count; ++a) {
    const auto arena = static_cast<Arena>(a);
    arenas.push_back(base::JsonObject{{"arena", std::string(name(arena))}, {"bytes", setup_->plan.arena_bytes(arena)}});
  }
  int64_t registered_bytes = 0;
  for (size_t r = 0; r < replicas_->size(); ++r)
    registered_bytes += replicas_->replica(r).registered_bytes();
  const DeviceInputCounters inputs = counters().device_inputs;
  return base::JsonObject{{"strategy", strategy_->describe()},
                          {"group", group_description_},
                          {"gradients", how_gradients_are_added_up(setup_->programs, group_description_)},
                          {"registered_bytes", registered_bytes},
                          {"registration", replicas_->replica(0).how_memory_is_registered()},
                          {"steps", replicas_->replica(0).how_steps_run()},
                          {"contributors", setup_->programs.contributors},
                          {"device_prefetch", int64_t{options_.device_prefetch}},
                          {"late_steps", feeder_->late_steps()},
                          {"steps_in_flight", int64_t{setup_->programs.steps_in_flight}},
                          {"copies_input", feeder_->device_inputs() != nullptr},
                          {"input_batches_copied", inputs.batches},
                          {"input_bytes_copied", inputs.bytes},
                          {"input_bytes_staged", inputs.staged_bytes},
                          {"input_batches_in_time", inputs.in_time},
                          {"input_batches_mapped", inputs.mapped},
                          {"shared_weights", setup_->shared_weights},
                          {"variables", how_variables_are_kept(*strategy_, *setup_)},
                          {"gradient_sets", setup_->graphs.gradient_sets},
                          {"buckets", static_cast<int64_t>(setup_->plan.buckets().size())},
                          {"bucket_bytes", bucket_bytes(setup_->plan)},
                          {"arenas", std::move(arenas)},
                          {"executables", executables_.describe()}};
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::open(const graph::Model &train_model, StrategyRef strategy,
                                               const TrainerOptions &options, const WeightShare *share) {
  if (strategy == nullptr) return base::invalid_argument("a trainer needs a strategy");
  auto trainer = std::make_unique<TrainerSession>(train_model, std::move(strategy), options, share);
  TUTTI_TRY(trainer->open());
  return std::unique_ptr<Trainer>(std::move(trainer));
}

}  // namespace tutti::impl::distribute
