// SPDX-License-Identifier: Apache-2.0
#include "estimator/saving.h"

#include <optional>
#include <utility>

#include "estimator/resume_check.h"
#include "graph/serialize.h"

namespace tutti::impl::estimator {

using base::Json;
using base::Ref;
using base::Result;
using base::Status;
using checkpoint::Snapshot;
using checkpoint::WeightVersion;

namespace {

/// What the last session left, unless another process has gone on from there since; none while there is a session.
Result<std::optional<Snapshot>> snapshot_between_sessions(EstimatorState &state) {
  const TrainingPermit permit(state);
  if (!permit.status().ok() || !state.run_state) return std::optional<Snapshot>();
  Ref<WeightVersion> version = state.resume_version;
  Json plan;
  if (state.trainer) {
    const auto turn = state.live.take_turn();
    TUTTI_ASSIGN(version, state.trainer->publish_weights(true));
    plan = plan_json(*state.trainer, *state.strategy());
  }
  if (!version) return std::optional<Snapshot>();
  if (const auto newest = state.weights(""); newest.ok() && (*newest)->step() > version->step()) {
    return std::optional<Snapshot>();
  }
  return std::optional<Snapshot>(snapshot_of(std::move(version), *state.run_state, state.config, std::move(plan)));
}

}  // namespace

Snapshot snapshot_of(Ref<const WeightVersion> version, const RunState &run, const RunConfig &config, Json plan) {
  Snapshot snapshot;
  snapshot.state = std::move(version);
  snapshot.run = run.run_json();
  snapshot.options = config.described();
  snapshot.plan = std::move(plan);
  snapshot.iterator = run.input;
  snapshot.metrics = run.metrics;
  return snapshot;
}

Result<std::string> prediction_graph(EstimatorState &state, const data::ElementSpec &spec) {
  if (state.config.without_predictions) return std::string();
  const Result<ModelRef> model = state.models.get(Mode::predict, spec);
  if (model.ok()) return graph::to_json(**model).dump();
  return model.status().wrap(
      "checkpoints contain the graph for predictions unless the run option without_predictions is set");
}

Status save(EstimatorState &state, const std::string &directory, const data::ElementSpec &spec,
            const base::CancelToken *cancel) {
  TUTTI_ASSIGN(std::optional<Snapshot> complete, snapshot_between_sessions(state));
  Snapshot snapshot;
  if (complete) {
    snapshot = std::move(*complete);
  } else {
    TUTTI_ASSIGN(snapshot.state, state.weights(""));
    snapshot.options = state.config.described();
  }
  TUTTI_ASSIGN(snapshot.graph_text, prediction_graph(state, spec));
  return checkpoint::write_checkpoint(directory, snapshot, cancel).status();
}

}  // namespace tutti::impl::estimator
