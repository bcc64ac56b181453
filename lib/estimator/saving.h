// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint of a training holds, and checkpoints that are asked for outside of sessions.
#ifndef TUTTI_ESTIMATOR_SAVING_H_
#define TUTTI_ESTIMATOR_SAVING_H_

#include <string>

#include "base/cancel.h"
#include "base/status.h"
#include "checkpoint/writer.h"
#include "data/element/element.h"
#include "estimator/estimator_state.h"
#include "estimator/run_state.h"

namespace tutti::impl::estimator {

/// All that a training needs to go on exactly; without the predict graph.
checkpoint::Snapshot snapshot_of(base::Ref<const checkpoint::WeightVersion> version, const RunState &run,
                                 const RunConfig &config, base::Json plan);

/// The graph to predict with, as text, for elements of this spec; empty where the run wants none. An error names the
/// option that asks for none.
base::Result<std::string> prediction_graph(EstimatorState &state, const data::ElementSpec &spec);

/// Writes `directory`/checkpoint-<step>, with the model to predict with for elements of this spec. Between two
/// trainings it holds all that the next one needs to go on exactly; beside a training, or when nothing was trained,
/// the newest weights alone. FAILED_PRECONDITION when there are none. As prediction_graph() where that is an error.
base::Status save(EstimatorState &state, const std::string &directory, const data::ElementSpec &spec,
                  const base::CancelToken *cancel);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_SAVING_H_
