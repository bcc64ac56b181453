// SPDX-License-Identifier: Apache-2.0
#include "estimator/session_checkpoints.h"

#include <utility>

#include "checkpoint/writer.h"
#include "estimator/resume_check.h"
#include "estimator/saving.h"

namespace tutti::impl::estimator {

using base::Ref;
using base::Status;

Status SessionCheckpoints::lock() {
  if (!saves()) return Status();
  TUTTI_ASSIGN(lock_, ModelDirLock::take(state_.config.model_dir));
  return checkpoint::remove_unfinished(state_.config.model_dir);
}

Status SessionCheckpoints::prepare(const data::ElementSpec &spec) {
  if (!state_.config.saves_checkpoints()) return Status();
  TUTTI_ASSIGN(graph_text_, prediction_graph(state_, spec));
  return Status();
}

Status SessionCheckpoints::start(SavedRun newest) {
  if (!saves()) return Status();
  newest_ = std::move(newest);
  checkpoint::BackgroundSaver::Options options;
  options.directory = state_.config.model_dir;
  options.keep_max = state_.config.keep_checkpoint_max;
  options.logger = state_.environment.logger;
  options.on_saved = [this](int64_t step, const std::string &path) {
    std::lock_guard lock(mutex_);
    arrived_.push_back({step, path});
  };
  TUTTI_ASSIGN(saver_, checkpoint::BackgroundSaver::start(std::move(options)));
  return Status();
}

bool SessionCheckpoints::has(int64_t step, const RunState &run) const {
  return step == newest_.step && run.run_json() == newest_.run && run.input == newest_.input;
}

Status SessionCheckpoints::save(SessionTrainer &trainer, const RunState &run, const base::CancelToken *cancel) {
  TUTTI_ASSIGN(Ref<checkpoint::WeightVersion> version, trainer.publish(true));
  checkpoint::Snapshot snapshot =
      snapshot_of(std::move(version), run, state_.config, plan_json(*trainer, *state_.strategy()));
  snapshot.graph_text = graph_text_;
  TUTTI_TRY(saver_->save(std::move(snapshot), cancel));
  newest_ = {trainer->step(), run.run_json(), run.input};
  return Status();
}

std::vector<checkpoint::CheckpointName> SessionCheckpoints::take_arrived() {
  std::vector<checkpoint::CheckpointName> arrived;
  {
    std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
  }
  // The last one is written again when only its run state has changed since.
  std::erase_if(arrived, [&](const checkpoint::CheckpointName &checkpoint) {
    return std::exchange(announced_step_, checkpoint.step) == checkpoint.step;
  });
  return arrived;
}

Status SessionCheckpoints::close(const base::CancelToken *cancel) {
  if (!saver_) return Status();
  const Status status = saver_->close(cancel);
  saver_.reset();
  return status;
}

}  // namespace tutti::impl::estimator
