// SPDX-License-Identifier: Apache-2.0
#include "estimator/restored_run.h"

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "estimator/resume_check.h"

namespace tutti::impl::estimator {

using base::Json;
using base::Result;
using base::Status;
using checkpoint::WeightVersion;
using distribute::Trainer;

namespace {

// Weights that the host wrote into a version it had only read.
Status overwrite(Trainer &trainer, const WeightVersion &version) {
  if (version.step() != trainer.step()) return Status();
  for (size_t i = 0; i < version.entries().size(); ++i) {
    if (trainer.model().find_variable(version.entries()[i].name) == nullptr) continue;
    TUTTI_ASSIGN(const tensor::Tensor value, version.read(i));
    TUTTI_TRY(trainer.set_variable(version.entries()[i].name, value));
  }
  return Status();
}

Status take_up(Trainer &trainer, const WeightVersion &version, const RunState &run) {
  TUTTI_TRY(trainer.restore(version));
  trainer.set_batch_counter(run.batch_counter);
  trainer.set_loss_scale(run.loss_scale);
  trainer.set_step_function_states(run.step_functions);
  for (const auto &[scalar, value] : run.host_scalars)
    TUTTI_TRY(trainer.set_host_scalar(scalar, value));
  return Status();
}

// What is different in this run from the one that wrote the checkpoint.
void adapt(RunState &run, const EstimatorState &state) {
  if (state.strategy()->worker_input() == distribute::WorkerInput::own && state.strategy()->workers().count > 1 &&
      !run.input.is_null()) {
    state.logger().warning("the input begins a new pass: the checkpoint contains only the position of worker 0");
    run.input = Json();
    ++run.epoch;
  }
  if (run.seed != state.config.seed) {
    state.logger().warning("the checkpoint was trained with seed ", run.seed, ", now the seed is ", state.config.seed,
                           ": the run cannot be reproduced exactly");
    run.seed = state.config.seed;
  }
}

Status take_up_checkpoint(EstimatorState &state, Trainer &trainer, const checkpoint::Checkpoint &newest,
                          RunState &run) {
  const checkpoint::Manifest &manifest = newest.manifest;
  Result<RunState> saved = RunState::from_json(manifest.run, manifest.iterator, manifest.metrics);
  Status status = saved.status();
  if (status.ok()) status = check_same_model(trainer.model(), *newest.state);
  if (status.ok()) status = take_up(trainer, *newest.state, *saved);
  if (!status.ok()) return status.wrap(base::concat("cannot continue from checkpoint '", newest.path, "'"));
  run = saved.take();
  adapt(run, state);
  state.logger().info("continuing from checkpoint '", newest.path, "'");
  if (const std::string other = plan_difference(manifest.plan, plan_json(trainer, *state.strategy())); !other.empty())
    state.logger().info(other);
  if (const std::string other = slot_difference(trainer, *newest.state); !other.empty()) state.logger().warning(other);
  return Status();
}

// Takes up the newest checkpoint, unless what is in memory has gone on from it already.
Status restore_newest(EstimatorState &state, Trainer &trainer, bool has_state, RestoredRun &restored) {
  const std::string &directory = state.config.model_dir;
  TUTTI_ASSIGN(const std::vector<checkpoint::CheckpointName> names, checkpoint::list_checkpoints(directory));
  if (names.empty() || (has_state && names.back().step < trainer.step())) return Status();
  TUTTI_ASSIGN(const checkpoint::Checkpoint newest, checkpoint::read_newest_checkpoint(directory, {}, state.logger()));
  const checkpoint::Manifest &manifest = newest.manifest;
  restored.newest = {manifest.step, manifest.run, manifest.iterator};
  if (has_state && manifest.step <= trainer.step()) return Status();
  TUTTI_TRY(take_up_checkpoint(state, trainer, newest, restored.run));
  restored.is_from_checkpoint = true;
  return Status();
}

}  // namespace

Result<RestoredRun> restore_run(EstimatorState &state, SessionTrainer &trainer) {
  RestoredRun restored;
  restored.run.seed = state.config.seed;
  bool has_state = trainer.is_taken_over();
  if (has_state) restored.run = *state.run_state;
  if (!has_state && state.resume_version && state.run_state) {
    TUTTI_TRY(take_up(*trainer, *state.resume_version, *state.run_state));
    restored.run = *state.run_state;
    has_state = true;
  }
  if (!state.config.model_dir.empty()) {
    TUTTI_TRY(restore_newest(state, *trainer, has_state, restored));
    has_state |= restored.is_from_checkpoint;
  }
  if (!has_state) TUTTI_TRY(trainer->initialize());
  if (state.resume_version && !state.run_state) TUTTI_TRY(overwrite(*trainer, *state.resume_version));
  return restored;
}

}  // namespace tutti::impl::estimator
