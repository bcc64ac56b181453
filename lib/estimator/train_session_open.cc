// SPDX-License-Identifier: Apache-2.0
//
// Opening a training session: models, trainer, state of the newest checkpoint, goal, saver, hooks, input.
#include <algorithm>
#include <utility>

#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "estimator/resume_check.h"
#include "estimator/saving.h"
#include "estimator/train_session.h"
#include "graph/serialize.h"

namespace tutti::impl::estimator {

using base::Json;
using base::Ref;
using base::Result;
using base::Status;

namespace {

std::vector<Hook> joined(const std::vector<Hook> &standing, const std::vector<Hook> &requested) {
  std::vector<Hook> all = standing;
  all.insert(all.end(), requested.begin(), requested.end());
  return all;
}

std::vector<std::string> value_names(const distribute::Trainer &trainer) {
  std::vector<std::string> names = {"loss", "learning_rate"};
  if (trainer.loss_scale().scale != 0) names.insert(names.end(), {"loss_scale", "skipped_steps"});
  for (const auto &[metric, value] : trainer.model().metrics)
    names.push_back(metric);
  return names;
}

}  // namespace

TrainSession::TrainSession(Ref<EstimatorState> state, TrainRequest request)
    : state_(std::move(state)),
      request_(std::move(request)),
      input_cancel_(base::CancelToken::create_child(request_.cancel)) {}

Result<std::unique_ptr<TrainSession>> TrainSession::open(Ref<EstimatorState> state, TrainRequest request) {
  TUTTI_TRY(check(request));
  TUTTI_TRY(base::check_not_forked());
  TUTTI_TRY(state->begin_training());
  std::unique_ptr<TrainSession> session(new TrainSession(std::move(state), std::move(request)));
  session->permitted_ = true;
  if (const Status status = session->start(); !status.ok()) {
    // What could not start has changed nothing: the next session begins from the checkpoint again.
    session->release(false);
    return status;
  }
  return session;
}

Status TrainSession::start() {
  TUTTI_ASSIGN(hooks_, HookList::make(joined(state_->standing_hooks, request_.hooks)));
  if (saves()) {
    TUTTI_ASSIGN(lock_, ModelDirLock::take(state_->config.model_dir));
    TUTTI_TRY(checkpoint::remove_unfinished(state_->config.model_dir));
  }
  TUTTI_TRY(prepare_trainer());
  if (!request_.variables_only) TUTTI_TRY(set_goal());
  TUTTI_TRY(trainer_->check_workers(settings(), request_.cancel.get()));
  TUTTI_TRY(prepare_hooks());
  if (request_.variables_only) return start_saver();
  TUTTI_TRY(publish());
  if (reason_) {
    state_->logger().info("nothing to train: the model is at step ", step(), " already, max_steps is ",
                          *request_.max_steps);
    return Status();
  }
  TUTTI_TRY(attach_pass());
  TUTTI_TRY(start_saver());
  log_start();
  begun_ = true;
  TUTTI_TRY(send(event_of(EventKind::begin)));
  return saved_step_ == step() ? Status() : save(false);
}

// What all workers must have asked for.
std::vector<std::string> TrainSession::settings() const {
  std::vector<std::string> all;
  const Json config = state_->config.to_json();
  for (const auto &[name, value] : config.object())
    all.push_back(base::concat("run option ", name, ": ", value.dump()));
  all.push_back(base::concat("the last step: ", goal_step_.value_or(-1)));
  all.push_back(base::concat("the last epoch: ", run_.goal_epoch, " from epoch ", run_.epoch));
  if (state_->strategy->input_pipeline().count == 1)
    all.push_back(base::concat("dataset: ", dataset_signature(*request_.dataset)));
  return all;
}

Status TrainSession::prepare_trainer() {
  TUTTI_ASSIGN(const ModelRef model, state_->models.get(Mode::train, request_.dataset->spec()));
  if (state_->config.saves_checkpoints()) {
    TUTTI_ASSIGN(graph_text_, prediction_graph(*state_, request_.dataset->spec()));
  }
  run_.seed = state_->config.seed;
  bool has_state = state_->trainer != nullptr;
  {
    const auto turn = state_->live.take_turn();
    state_->live.set(nullptr, false);
  }
  if (has_state) {
    trainer_ = std::move(state_->trainer);
    run_ = *state_->run_state;
  } else {
    distribute::TrainerOptions options = state_->config.trainer_options();
    options.threads_per_replica = state_->thread_shares().per_device;
    options.completed_steps = &state_->completed_steps;
    options.tracer = state_->environment.tracer;
    options.cancel = request_.cancel.get();
    const int64_t batch_size = request_.dataset->spec().batch_size;
    if (batch_size > 0) options.typical_rows = batch_size;
    TUTTI_ASSIGN(trainer_, distribute::Trainer::open(*model, state_->strategy, options));
  }
  if (!has_state && state_->resume_version && state_->run_state) {
    TUTTI_TRY(take_up(*state_->resume_version, *state_->run_state));
    has_state = true;
  }
  if (!state_->config.model_dir.empty()) TUTTI_TRY(restore_newest(&has_state));
  if (!has_state) TUTTI_TRY(trainer_->initialize());
  if (state_->resume_version && !state_->run_state) TUTTI_TRY(overwrite(*state_->resume_version));
  const auto turn = state_->live.take_turn();
  state_->live.set(trainer_.get(), true);
  state_->live.note_change();
  first_step_ = step();
  efficiency_.set_replicas(state_->strategy->replicas_in_all());
  state_->completed_steps.store(step(), std::memory_order_relaxed);
  counted_examples_ = trainer_->counters().examples;
  return Status();
}

// Weights that the host wrote into a version it had only read.
Status TrainSession::overwrite(const checkpoint::WeightVersion &version) {
  if (version.step() != step()) return Status();
  for (size_t i = 0; i < version.entries().size(); ++i) {
    if (trainer_->model().find_variable(version.entries()[i].name) == nullptr) continue;
    TUTTI_ASSIGN(const tensor::Tensor value, version.read(i));
    TUTTI_TRY(trainer_->set_variable(version.entries()[i].name, value));
  }
  return Status();
}

Status TrainSession::take_up(const checkpoint::WeightVersion &version, const RunState &run) {
  TUTTI_TRY(trainer_->restore(version));
  trainer_->set_batch_counter(run.batch_counter);
  trainer_->set_loss_scale(run.loss_scale);
  for (const auto &[scalar, value] : run.host_scalars)
    TUTTI_TRY(trainer_->set_host_scalar(scalar, value));
  run_ = run;
  return Status();
}

// Takes up the newest checkpoint, unless what is in memory has gone on from it already.
Status TrainSession::restore_newest(bool *has_state) {
  const std::string &directory = state_->config.model_dir;
  TUTTI_ASSIGN(const std::vector<checkpoint::CheckpointName> names, checkpoint::list_checkpoints(directory));
  if (names.empty() || (*has_state && names.back().step < step())) return Status();
  TUTTI_ASSIGN(const checkpoint::Checkpoint newest,
               checkpoint::read_newest_checkpoint(directory, {}, state_->logger()));
  const checkpoint::Manifest &manifest = newest.manifest;
  saved_step_ = manifest.step;
  saved_run_ = manifest.run;
  saved_input_ = manifest.iterator;
  if (*has_state && manifest.step <= step()) return Status();
  const Result<RunState> run = RunState::from_json(manifest.run, manifest.iterator, manifest.metrics);
  Status status = run.status();
  if (status.ok()) status = check_same_model(trainer_->model(), *newest.state);
  if (status.ok()) status = take_up(*newest.state, *run);
  from_checkpoint_ = status.ok();
  if (!status.ok()) return status.wrap(base::concat("cannot continue from checkpoint '", newest.path, "'"));
  *has_state = true;
  if (state_->strategy->input_pipeline().count > 1 && !run_.input.is_null()) {
    state_->logger().warning("the input begins a new pass: the checkpoint knows the position of worker 0 alone");
    run_.input = Json();
    ++run_.epoch;
  }
  if (run_.seed != state_->config.seed) {
    state_->logger().warning("the checkpoint was trained with seed ", run_.seed, ", now the seed is ",
                             state_->config.seed, ": the run cannot be repeated exactly");
    run_.seed = state_->config.seed;
  }
  state_->logger().info("continuing from checkpoint '", newest.path, "'");
  if (const std::string other = plan_difference(manifest.plan, plan_json(*trainer_, *state_->strategy)); !other.empty())
    state_->logger().info(other);
  if (const std::string other = slot_difference(*trainer_, *newest.state); !other.empty())
    state_->logger().warning(other);
  return Status();
}

Status TrainSession::set_goal() {
  const int64_t interrupted = run_.requested_epochs;
  const int64_t interrupted_goal = run_.goal_epoch;
  run_.requested_epochs = 0;
  run_.goal_epoch = 0;
  skips_ended_pass_ = std::exchange(run_.finished, false);
  if (request_.steps) {
    if (*request_.steps > INT64_MAX - step()) return base::invalid_argument("steps is too large: ", *request_.steps);
    goal_step_ = step() + *request_.steps;
  }
  if (request_.max_steps) {
    goal_step_ = *request_.max_steps;
    if (step() >= *goal_step_) reason_ = EndReason::max_steps;
  }
  if (!request_.epochs) return Status();
  run_.requested_epochs = *request_.epochs;
  if (interrupted == *request_.epochs && interrupted_goal > run_.epoch) {
    run_.goal_epoch = interrupted_goal;
    return Status();
  }
  // Whole passes: one that is under way for another reason is left.
  if (!run_.input.is_null()) ++run_.epoch;
  run_.input = Json();
  run_.goal_epoch = run_.epoch + *request_.epochs;
  return Status();
}

Status TrainSession::prepare_hooks() {
  TUTTI_TRY(hooks_.check_values(value_names(*trainer_)));
  TUTTI_TRY(hooks_.restore(run_.hooks));
  for (const auto &[metric, value] : run_.metrics.is_object() ? run_.metrics.object() : base::JsonObject()) {
    TUTTI_ASSIGN(const double number, base::JsonReader(value, metric).as_double());
    values_.push_back({metric, number});
  }
  return Status();
}

Result<std::unique_ptr<data::Iterator>> TrainSession::open_pass() {
  data::IteratorContext context = state_->iterator_context(input_cancel_, run_.epoch);
  state_->warn_once(trainer_->leave_map(*request_.dataset, context));
  return request_.dataset->make_iterator(std::move(context));
}

void TrainSession::begin_new_pass(std::string_view why) {
  state_->logger().warning("the input begins a new pass: ", why);
  run_.input = Json();
  ++run_.epoch;
}

Status TrainSession::attach_pass() {
  pass_examples_ = 0;
  const std::string signature = dataset_signature(*request_.dataset);
  if (!run_.input.is_null()) {
    if (!request_.resume_input) {
      begin_new_pass("resume_input is off");
    } else if (run_.input_signature != signature) {
      begin_new_pass("the dataset is not the one of the checkpoint");
    }
  }
  TUTTI_ASSIGN(auto iterator, open_pass());
  if (!run_.input.is_null()) {
    if (const Status status = iterator->restore(run_.input); !status.ok()) {
      // A feed that could go on there, had nothing been pushed: a run must not become another one without a word. Nor
      // because of what has nothing to do with the place: memory, threads, a server, a cancel.
      const bool is_of_the_place = status.code() != base::Code::resource_exhausted &&
                                   status.code() != base::Code::unavailable && !base::is_interrupt(status);
      if (!is_of_the_place || (from_checkpoint_ && status.code() == base::Code::failed_precondition))
        return status.wrap("the input cannot go on where the checkpoint left it");
      begin_new_pass(status.message());
      TUTTI_ASSIGN(iterator, open_pass());
    }
  }
  run_.input_signature = signature;
  input_ended_ = false;
  // Steps of a pass that was begun before are of the same dataset: whole passes make the rest.
  pass_step_ = step();
  if (!run_.input.is_null() && steps_of_pass() > 0) pass_step_ -= step() % steps_of_pass();
  return trainer_->attach_input(std::move(iterator));
}

Status TrainSession::start_saver() {
  if (!saves()) return Status();
  checkpoint::BackgroundSaver::Options options;
  options.directory = state_->config.model_dir;
  options.keep_max = state_->config.keep_checkpoint_max;
  options.logger = state_->environment.logger;
  options.on_saved = [this](int64_t step, const std::string &path) {
    std::lock_guard lock(saved_mutex_);
    saved_.emplace_back(step, path);
  };
  TUTTI_ASSIGN(saver_, checkpoint::BackgroundSaver::start(std::move(options)));
  return Status();
}

void TrainSession::log_start() {
  const int64_t batch_size = request_.dataset->spec().batch_size;
  const distribute::Strategy &strategy = *state_->strategy;
  const int32_t inputs = strategy.input_pipeline().count, replicas = strategy.replicas_in_all();
  const int64_t sharing = replicas / inputs;
  const std::string of_workers =
      strategy.workers().count == 1 ? "" : base::concat(" of ", strategy.workers().count, " workers");
  state_->logger().info("training from step ", step(), " on ", replicas, replicas == 1 ? " replica" : " replicas",
                        of_workers, ": global batch size ", batch_size * inputs, ", at most ",
                        (batch_size + sharing - 1) / sharing, " rows per replica");
  const base::Json how = trainer_->describe();
  const base::Json *gradients = how.is_object() ? how.find("gradients") : nullptr;
  if (replicas > 1 && gradients != nullptr) {
    state_->logger().info("gradients of ", replicas, " replicas are added up: ", gradients->string());
  }
  // Where the host reaches all memory there is nothing to know.
  if (replicas == 1 || strategy.backend()->has_host_memory() || !how.is_object()) return;
  how_steps_run_ = how.find("steps")->string();
  state_->logger().info("steps: ", how_steps_run_, "; memory of gradients: ", how.find("registration")->string());
}

}  // namespace tutti::impl::estimator
