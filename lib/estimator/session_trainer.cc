// SPDX-License-Identifier: Apache-2.0
#include "estimator/session_trainer.h"

#include <utility>

#include "distribute/plan/step_graphs.h"
#include "graph/rate_factor.h"

namespace tutti::impl::estimator {

using base::Ref;
using base::Result;
using base::Status;

Status SessionTrainer::open(const graph::Model &model, const data::ElementSpec &input,
                            const base::CancelToken *cancel) {
  unshare();
  if (state_.trainer && graph::has_rate_factor(state_.trainer->model()) != graph::has_rate_factor(model))
    TUTTI_TRY(replace_trainer());
  is_taken_over_ = state_.trainer != nullptr;
  if (is_taken_over_) {
    trainer_ = std::move(state_.trainer);
    return Status();
  }
  TUTTI_TRY(open_trainer(model, input, cancel));
  for (const StepFunctionSource &source : state_.step_functions) {
    TUTTI_ASSIGN(const distribute::StepFunction function, build_step_function(source, model, input));
    TUTTI_TRY(trainer_->add_step_function(function));
  }
  return Status();
}

// What it has is what the next one begins with.
Status SessionTrainer::replace_trainer() {
  TUTTI_ASSIGN(state_.resume_version, state_.trainer->publish_weights(true));
  state_.trainer.reset();
  return Status();
}

Status SessionTrainer::open_trainer(const graph::Model &written, const data::ElementSpec &input,
                                    const base::CancelToken *cancel) {
  distribute::TrainerOptions options = state_.config.trainer_options();
  options.threads_per_replica = state_.thread_shares().per_device;
  options.completed_steps = &state_.completed_steps;
  options.tracer = state_.environment.tracer;
  options.shows_rows = state_.shows_rows();
  options.cancel = cancel;
  if (input.batch_size > 0) options.typical_rows = input.batch_size;
  const graph::Model model = state_.as_looked_at(written);
  Result<std::unique_ptr<distribute::Trainer>> opened = distribute::Trainer::open(model, state_.strategy(), options);
  if (const distribute::StrategyRef one = state_.whole_batches(); one && distribute::is_of_pieces(opened.status())) {
    options.threads_per_replica = one->threads_per_replica();
    auto whole = distribute::Trainer::open(model, one, options);
    if (whole.ok()) {
      state_.use_whole_batches();
      opened = std::move(whole);
    }
  }
  TUTTI_ASSIGN(trainer_, std::move(opened));
  return Status();
}

void SessionTrainer::share() {
  const auto turn = state_.live.take_turn();
  state_.live.set(trainer_.get(), true);
  state_.live.note_change();
}

Result<distribute::RunReport> SessionTrainer::run(int64_t steps, const base::CancelToken *cancel) {
  const auto turn = state_.live.take_turn();
  state_.live.note_change();
  return trainer_->run(steps, cancel);
}

Result<distribute::StepFunctionReport> SessionTrainer::run_step_function(std::string_view function,
                                                                         std::vector<tensor::Tensor> batch,
                                                                         const base::CancelToken *cancel) {
  const auto turn = state_.live.take_turn();
  state_.live.note_change();
  return trainer_->run_step_function(function, std::move(batch), cancel);
}

Result<std::vector<std::vector<std::byte>>> SessionTrainer::exchange_with_workers(std::span<const std::byte> own,
                                                                                  const base::CancelToken *cancel) {
  const auto turn = state_.live.take_turn();
  return trainer_->exchange_with_workers(own, cancel);
}

Status SessionTrainer::stop_workers(const base::CancelToken *cancel) {
  const auto turn = state_.live.take_turn();
  return trainer_->stop_workers(cancel);
}

Result<Ref<checkpoint::WeightVersion>> SessionTrainer::publish(bool with_slots) {
  const auto turn = state_.live.take_turn();
  TUTTI_ASSIGN(Ref<checkpoint::WeightVersion> version, trainer_->publish_weights(with_slots));
  state_.publish(version);
  return version;
}

Result<tensor::Tensor> SessionTrainer::get_variable(std::string_view variable) {
  const auto turn = state_.live.take_turn();
  return trainer_->get_variable(variable);
}

Status SessionTrainer::set_variable(std::string_view variable, const tensor::Tensor &value) {
  const auto turn = state_.live.take_turn();
  state_.live.note_change();
  return trainer_->set_variable(variable, value);
}

Result<tensor::Tensor> SessionTrainer::gradient(std::string_view variable) {
  const auto turn = state_.live.take_turn();
  return trainer_->gradient(variable);
}

void SessionTrainer::save(RunState &run) const {
  run.batch_counter = trainer_->batch_counter();
  run.loss_scale = trainer_->loss_scale();
  run.step_functions = trainer_->step_function_states();
  for (const graph::HostScalarSpec &scalar : trainer_->model().host_scalars) {
    if (scalar.name == graph::kRateFactor) continue;  // a hook remembers it
    if (const Result<double> value = trainer_->host_scalar(scalar.name); value.ok())
      run.host_scalars[scalar.name] = *value;
  }
}

void SessionTrainer::leave(RunState run) {
  state_.run_state = std::move(run);
  const auto turn = state_.live.take_turn();
  state_.live.set(trainer_.get(), false);
  state_.trainer = std::move(trainer_);
  state_.resume_version.reset();
}

void SessionTrainer::unshare() {
  const auto turn = state_.live.take_turn();
  state_.live.set(nullptr, false);
}

// The reader lets go of the dataset: who feeds it must not wait for it.
void SessionTrainer::close() {
  if (state_.trainer) (void)state_.trainer->attach_input(nullptr).ok();
  trainer_.reset();
}

}  // namespace tutti::impl::estimator
