// SPDX-License-Identifier: Apache-2.0
//
// Opening a training session, and what it writes for people to see.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/exceptions.h"
#include "base/trace.h"
#include "estimator/restored_run.h"
#include "estimator/train_session.h"
#include "graph/rate_factor.h"
#include "monitor/process_memory.h"
#include "tensor/packed_pieces.h"

namespace tutti::impl::estimator {

using base::Json;
using base::JsonObject;
using base::Ref;
using base::Result;
using base::Status;

namespace {

/// Those that remember something come first: a checkpoint of a step has what they know of it.
std::vector<Hook> joined(const std::vector<Hook> &standing, const std::vector<Hook> &requested) {
  std::vector<Hook> all = standing;
  all.insert(all.end(), requested.begin(), requested.end());
  std::ranges::stable_partition(all, [](const Hook &hook) { return hook.save != nullptr; });
  return all;
}

graph::Model with_rate_factor(graph::Model model) {
  graph::add_rate_factor(model);
  return model;
}

std::vector<std::string> value_names(const distribute::Trainer &trainer) {
  std::vector<std::string> names = {"loss", "learning_rate"};
  if (trainer.loss_scale().scale != 0) names.insert(names.end(), {"loss_scale", "skipped_steps"});
  // Tensors are in results only.
  for (const auto &[metric, value] : trainer.model().metrics)
    if (trainer.model().graph.value(value).dims.empty()) names.push_back(metric);
  return names;
}

// Every so many steps from `next` on: the first one that is still to come.
int64_t next_step_behind(int64_t next, int64_t every, int64_t step) {
  return next + every * std::max<int64_t>(1, (step - next) / every + 1);
}

/// Lasts longer than the run, if somebody keeps it.
class RunWriter : public monitor::SummaryWriter {
 public:
  explicit RunWriter(Ref<EstimatorState> state) : state_(std::move(state)) {}

  const std::string &folder() const override { return state_->summaries.folder(); }
  void add(int64_t step, const monitor::Summary &summary) override { state_->summaries.add(step, summary); }
  void flush() override { state_->summaries.flush(); }

 private:
  const Ref<EstimatorState> state_;
};

// For people: what is neither number nor truth value as text.
Json setting_of(const graph::Attribute &attribute) {
  if (const auto *flag = std::get_if<bool>(&attribute)) return *flag;
  if (const auto *integer = std::get_if<int64_t>(&attribute)) return *integer;
  if (const auto *number = std::get_if<double>(&attribute)) return *number;
  return graph::to_string(attribute);
}

Json environment_of(const distribute::Strategy &strategy, const Environment &environment) {
  base::JsonArray devices;
  for (const distribute::DeviceChoice &device : strategy.devices()) {
    if (device.backend == nullptr) continue;
    const Result<backend::DeviceDescription> described = device.backend->describe_device(device.index);
    if (!described.ok()) continue;
    Json one;
    one.set("device", described->name);
    one.set("description", described->description);
    one.set("memory_bytes", described->memory_bytes);
    devices.push_back(std::move(one));
  }
  Json all;
  all.set("version", environment.version);
  all.set("strategy", strategy.name());
  all.set("replicas", strategy.replicas_in_all());
  all.set("workers", strategy.workers().count);
  all.set("threads", environment.threads);
  all.set("devices", std::move(devices));
  return all;
}

base::JsonArray variables_of(const graph::Model &model) {
  base::JsonArray variables;
  for (const graph::VariableSpec &variable : model.variables) {
    int64_t parameters = 1;
    for (const int64_t dim : variable.dims)
      parameters *= dim;
    Json one;
    one.set("name", variable.name);
    one.set("dtype", tensor::name(variable.dtype));
    one.set("shape", variable.dims);
    one.set("parameters", parameters);
    one.set("trainable", variable.trainable);
    variables.push_back(std::move(one));
  }
  return variables;
}

/// Bytes: those of the process, and what a copy of the model's state and the largest program's results take.
Json memory_of(const Json &trainer) {
  const int64_t resident = monitor::resident_bytes();  // the system counts both in ways of their own
  Json memory;
  memory.set("resident", resident);
  memory.set("most_resident", std::max(resident, monitor::most_resident_bytes()));
  const Json *const arenas = trainer.find("arenas"), *const programs = trainer.find("executables");
  if (arenas == nullptr || programs == nullptr) return memory;
  for (const Json &arena : arenas->array())
    memory.set(arena.find("arena")->string(), *arena.find("bytes"));
  int64_t workspace = 0;
  for (const Json &program : programs->array())
    workspace = std::max(workspace, program.find("workspace_bytes")->integer());
  memory.set("workspace", workspace);
  return memory;
}

}  // namespace

TrainSession::TrainSession(Ref<EstimatorState> state, TrainRequest request)
    : state_(std::move(state)),
      request_(std::move(request)),
      trainer_(*state_),
      passes_(*state_, request_),
      log_(state_->logger()),
      checkpoints_(*state_) {
  if (request_.max_seconds) deadline_secs_ = 1e-9 * static_cast<double>(base::now_ns()) + *request_.max_seconds;
}

Result<std::unique_ptr<TrainSession>> TrainSession::open(Ref<EstimatorState> state, TrainRequest request) {
  TUTTI_TRY(check(request));
  TUTTI_TRY(base::check_not_forked());
  TUTTI_TRY(state->begin_training());
  std::unique_ptr<TrainSession> session(new TrainSession(std::move(state), std::move(request)));
  session->permitted_ = true;
  if (const Status status = base::without_exceptions([&] { return session->start(); }); !status.ok()) {
    session->give_up_start(status);
    return status;
  }
  return session;
}

// What could not start has changed nothing: the next session goes on from where this one should have.
void TrainSession::give_up_start(const Status &cause) {
  if (trainer_.is_open()) trainer_->leave_workers(cause);
  const bool has_former_steps = trainer_.is_taken_over() && run_before_;
  if (!has_former_steps || state_->strategy()->workers().count == 1)
    return release(has_former_steps ? run_before_ : std::nullopt);
  // Other workers may run already: that this one does not come they see by its trainer's end.
  if (Result<Ref<checkpoint::WeightVersion>> version = trainer_.publish(true); version.ok()) {
    state_->resume_version = version.take();
    state_->run_state = run_before_;
  }
  release(std::nullopt);
}

Status TrainSession::start() {
  TUTTI_ASSIGN(hooks_, HookList::make(joined(state_->standing_hooks, request_.hooks)));
  if (!request_.variables_only) TUTTI_TRY(passes_.find_part());
  TUTTI_TRY(checkpoints_.lock());
  TUTTI_ASSIGN(SavedRun newest, restore());
  if (!request_.variables_only) TUTTI_TRY(goal_.set(request_, step(), passes_));
  TUTTI_TRY(trainer_->check_workers(settings(), request_.cancel.get()));
  TUTTI_TRY(hooks_.check_values(value_names(*trainer_)));
  TUTTI_TRY(hooks_.restore(run_before_->hooks));
  TUTTI_TRY(statistics_.restore(*run_before_));
  if (request_.variables_only) return checkpoints_.start(std::move(newest));
  TUTTI_TRY(publish());
  if (goal_.reason()) {
    state_->logger().info("nothing to train: the model is already at step ", step(), ", max_steps is ",
                          *request_.max_steps);
    return Status();
  }
  TUTTI_TRY(passes_.attach(*trainer_));
  TUTTI_TRY(checkpoints_.start(std::move(newest)));
  log_.begin(*trainer_, *state_->strategy(), request_.dataset->spec().batch_size);
  begin_summaries();
  begun_ = true;
  TUTTI_TRY(send(event_of(EventKind::begin)));
  return checkpoints_.newest_step() == step() ? Status() : save(false);
}

void TrainSession::begin_summaries() {
  if (distribute::StepSamples *samples = trainer_->samples(); samples != nullptr)
    samples->start(step() + 1, state_->summaries.is_on() ? state_->config.save_summary_steps : 0);
  if (state_->summaries.is_on() && state_->config.save_histogram_steps > 0) next_histogram_ = step() + 1;
  const auto is_looked_at = [](const graph::SummarySpec &summary) {
    return summary.kind == graph::SummaryKind::histogram || summary.kind == graph::SummaryKind::image;
  };
  next_shown_ = INT64_MAX;
  if (state_->shows_rows() && std::ranges::any_of(trainer_->model().summaries, is_looked_at)) next_shown_ = step() + 1;
  state_->summaries.begin(step());
  monitor::Summary texts;
  for (const graph::SummarySpec &summary : trainer_->model().summaries)
    if (summary.kind == graph::SummaryKind::text) texts.add_text(summary.name, summary.text);
  if (!texts.is_empty()) state_->summaries.add(step(), texts);
}

base::Ref<monitor::SummaryWriter> TrainSession::summary_writer() {
  if (!state_->summaries.is_on()) return {};
  return base::make_ref<RunWriter>(state_);
}

bool TrainSession::begin_showing() {
  // Step functions make steps, too.
  if (next_shown_ <= step()) next_shown_ = next_step_behind(next_shown_, state_->config.save_summary_steps, step());
  trainer_->show_rows(is_shown_next());
  return is_shown_next();
}

Status TrainSession::write_shown() {
  next_shown_ += state_->config.save_summary_steps;
  Result<std::vector<monitor::ShownSummary>> shown = look_at_step();
  const bool is_alone = state_->strategy()->workers().count == 1;
  if (!shown.ok() && is_alone) {
    state_->warn_once(base::concat("a summary for TensorBoard is missing: ", shown.status().to_string()));
    return Status();
  }
  TUTTI_TRY(shown);
  TUTTI_TRY(add_other_workers(*shown));
  monitor::Summary summary;
  for (const monitor::ShownSummary &one : *shown)
    one.write(summary);
  if (!summary.is_empty()) state_->summaries.add(step(), summary);
  return Status();
}

// Of this worker.
Result<std::vector<monitor::ShownSummary>> TrainSession::look_at_step() {
  std::vector<monitor::ShownSummary> all;
  for (const graph::SummarySpec &spec : trainer_->model().summaries) {
    if (spec.kind == graph::SummaryKind::scalar || spec.kind == graph::SummaryKind::text) continue;
    monitor::ShownSummary &shown = all.emplace_back(monitor::ShownSummary{spec});
    TUTTI_ASSIGN(const std::vector<tensor::Tensor> pieces, trainer_->summary(spec));
    for (const tensor::Tensor &piece : pieces)
      TUTTI_TRY(shown.add(piece));
  }
  return all;
}

Status TrainSession::add_other_workers(std::span<monitor::ShownSummary> shown) {
  const distribute::Workers &workers = state_->strategy()->workers();
  if (workers.count == 1) return Status();
  std::vector<tensor::Tensor> own;
  for (const monitor::ShownSummary &one : shown)
    if (one.spec.has_rows) TUTTI_TRY(one.put(own));
  TUTTI_ASSIGN(const auto all, trainer_.exchange_with_workers(tensor::pieces_to_bytes(own), request_.cancel.get()));
  for (size_t w = 0; w < all.size(); ++w) {
    if (w == static_cast<size_t>(workers.index)) continue;
    std::vector<tensor::Tensor> sent;
    TUTTI_TRY(tensor::pieces_from_bytes(all[w], sent));
    std::span<const tensor::Tensor> left(sent);
    for (monitor::ShownSummary &one : shown)
      if (one.spec.has_rows) TUTTI_TRY(one.take(left));
  }
  return Status();
}

void TrainSession::write_summaries(int64_t examples, int64_t input_wait_ns) {
  distribute::StepSamples *const samples = trainer_->samples();
  if (samples == nullptr || !state_->summaries.is_on()) return;
  std::vector<monitor::SeenStep> steps;
  steps.reserve(samples->size());
  if (samples->size() > 0 && !state_->summaries.is_described()) {
    const distribute::SampleMoment &first = samples->moment(0);
    state_->summaries.describe(first.time_ns, first.step - 1, trainer_->model().graph, summary_settings(),
                               samples->names());
  }
  for (size_t i = 0; i < samples->size(); ++i) {
    const distribute::SampleMoment &moment = samples->moment(i);
    steps.push_back({.time_ns = moment.time_ns,
                     .step = moment.step,
                     .examples = examples + moment.examples,
                     .input_wait_ns = input_wait_ns + moment.input_wait_ns,
                     .values = samples->values(i)});
  }
  state_->summaries.add_steps(steps, samples->names());
  if (!steps.empty()) write_device_use();
  samples->clear();
  state_->summaries.flush_if_due();
}

void TrainSession::write_device_use() {
  constexpr int64_t interval_ns = 1'000'000'000;
  const int64_t now = base::now_ns();
  if (devices_seen_ns_ != 0 && now - devices_seen_ns_ < interval_ns) return;
  const distribute::StepShares shares = distribute::shares_of(device_times_, trainer_->device_names());
  if (shares.steps == 0) return;  // all that there were built programs
  devices_seen_ns_ = now;
  device_times_.clear();
  monitor::Summary summary;
  for (const distribute::DeviceShares &device : shares.devices)
    summary.add_scalar("device_use/" + device.device, 1 - device.idle());
  for (const NamedNumber &memory : trainer_->memory_in_use())
    summary.add_scalar(base::concat("memory/", memory.name, "_bytes"), memory.value);
  if (!summary.is_empty()) state_->summaries.add(step(), summary);
}

// Those of a step that has just ended; what cannot be read is told once and left out.
void TrainSession::write_histograms() {
  next_histogram_ = next_step_behind(next_histogram_, state_->config.save_histogram_steps, step());
  monitor::Summary summary;
  double squares = 0;
  for (const graph::VariableSpec &variable : trainer_->model().variables) {
    for (const bool is_gradient : {false, true}) {
      if (is_gradient && (!variable.trainable || state_->strategy()->workers().count > 1)) continue;
      const Result<tensor::Tensor> tensor =
          is_gradient ? trainer_.gradient(variable.name) : trainer_.get_variable(variable.name);
      if (is_gradient && tensor.code() == base::Code::not_found) continue;  // it is not trained
      monitor::Histogram histogram;
      const Status status = tensor.ok() ? histogram.add(*tensor) : tensor.status();
      if (!status.ok()) {
        state_->warn_once(base::concat("a histogram for TensorBoard is missing: ", status.to_string()));
        continue;
      }
      summary.add_histogram(base::concat(is_gradient ? "gradients/" : "weights/", variable.name), histogram);
      if (is_gradient) squares += histogram.sum_of_squares();
    }
  }
  // Where gradients are clipped by it, steps report it themselves.
  const bool is_reported = trainer_->plan().find("report/gradient_norm") != nullptr;
  if (state_->strategy()->workers().count == 1 && !is_reported) summary.add_scalar("gradient_norm", std::sqrt(squares));
  state_->summaries.add(step(), summary);
}

JsonObject TrainSession::summary_settings() const {
  JsonObject settings;
  for (const auto &[name, option] : state_->config.options.object())
    if (const Json *value = option.find("value"); value != nullptr) settings.emplace_back(name, *value);
  Json model = model_settings();
  for (auto &setting : model.object())
    settings.push_back(std::move(setting));
  return settings;
}

Json TrainSession::model_settings() const {
  Json settings;
  settings.set("batch_size", request_.dataset->spec().batch_size);
  settings.set("replicas", state_->strategy()->replicas_in_all());
  const std::optional<graph::TrainSpec> &train = trainer_->model().train;
  if (!train) return settings;
  settings.set("optimizer", train->optimizer.op);
  for (const auto &[name, attribute] : train->optimizer.attributes)
    settings.set("optimizer/" + name, setting_of(attribute));
  return settings;
}

void TrainSession::write_record(const Status &failure) {
  if (!state_->summaries.is_on() || !begun_ || !trainer_.is_open()) return;
  const Status written = base::without_exceptions([&] {
    Json record = statistics_.result(*trainer_, goal_.reason().value_or(EndReason::stopped)).to_json();
    record.set("seconds", 1e-9 * static_cast<double>(base::now_ns() - opened_ns_));
    record.set("first_step", statistics_.first_step());
    if (!failure.ok()) {
      record.set("reason", failure.code() == base::Code::cancelled ? "CANCELLED" : "ERROR");
      record.set("error", failure.to_string());
    }
    record.set("options", state_->config.options);
    record.set("settings", model_settings());
    record.set("environment", environment_of(*state_->strategy(), state_->environment));
    record.set("variables", variables_of(trainer_->model()));
    Json how = trainer_->describe();
    record.set("memory", memory_of(how));
    if (how.is_object()) std::erase_if(how.object(), [](const auto &part) { return part.second.is_array(); });
    record.set("execution", std::move(how));
    state_->summaries.add_record("training", std::move(record));
    return Status();
  });
  if (!written.ok()) state_->logger().warning("the record of the run lacks this training: ", written.to_string());
}

Result<SavedRun> TrainSession::restore() {
  const data::ElementSpec &spec = request_.dataset->spec();
  TUTTI_ASSIGN(const ModelRef model, state_->models.get(Mode::train, spec));
  TUTTI_TRY(checkpoints_.prepare(spec));
  TUTTI_TRY(trainer_.open(request_.has_rate_factor ? with_rate_factor(*model) : *model, passes_.part().spec(),
                          request_.cancel.get()));
  const int64_t left_at = step();
  // Whether or not the newest checkpoint is of use, what was in memory is.
  if (trainer_.is_taken_over()) run_before_ = state_->run_state;
  Result<RestoredRun> read = restore_run(*state_, trainer_);
  if (!read.ok()) {
    if (step() != left_at) run_before_.reset();
    return read.status();
  }
  RestoredRun restored = read.take();
  trainer_.share();
  statistics_.begin(*trainer_, state_->strategy()->replicas_in_all());
  state_->completed_steps.store(step(), std::memory_order_relaxed);
  run_before_ = std::move(restored.run);
  passes_.restore(*run_before_, restored.is_from_checkpoint);
  goal_.restore(*run_before_);
  return std::move(restored.newest);
}

// What all workers must have asked for.
std::vector<std::string> TrainSession::settings() const {
  std::vector<std::string> all;
  const base::Json config = state_->config.to_json();
  for (const auto &[name, value] : config.object())
    all.push_back(base::concat("run option ", name, ": ", value.dump()));
  all.push_back(base::concat("the last step: ", goal_.last_step().value_or(-1)));
  all.push_back(base::concat("the last epoch: ", goal_.end_epoch(), " from epoch ", passes_.epoch()));
  if (!trainer_->model().summaries.empty())
    all.push_back(base::concat("run option save_summary_steps: ", state_->config.save_summary_steps));
  for (std::string &setting : passes_.settings())
    all.push_back(std::move(setting));
  return all;
}

}  // namespace tutti::impl::estimator
