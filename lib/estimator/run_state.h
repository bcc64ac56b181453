// SPDX-License-Identifier: Apache-2.0
//
// What a training run must know to go on, besides weights and slots: it stands in the manifest of every checkpoint, and
// in memory between two calls. A value.
//
// It is a function of the steps done alone, not of time, interruptions or the number of replicas.
#ifndef TUTTI_ESTIMATOR_RUN_STATE_H_
#define TUTTI_ESTIMATOR_RUN_STATE_H_

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "distribute/plan/loss_scale.h"
#include "distribute/train/step_functions.h"

namespace tutti::impl::estimator {

struct RunState {
  int64_t seed = 0;
  int64_t epoch = 0;          // completed passes; also the number of the pass that `input` lies in
  int64_t examples = 0;       // rows since the first step of the model
  int64_t batch_counter = 0;  // key of random ops
  distribute::LossScaleState loss_scale;
  /// Position in the pass; null = at its beginning.
  base::Json input;
  /// What the dataset looked like; see dataset_signature().
  std::string input_signature;
  /// Of a call with `epochs` that is not complete: what was asked for, and the pass it ends before. 0 = no such call.
  int64_t requested_epochs = 0;
  int64_t goal_epoch = 0;
  /// The call that was here last reached its goal: it was not interrupted.
  bool finished = true;
  distribute::StepFunctionStates step_functions;
  std::map<std::string, double> host_scalars;
  base::Json hooks;    // HookList::save()
  base::Json metrics;  // of the last step: {"loss": ..., ...}

  /// All but input and metrics, which have their own places in a manifest.
  base::Json run_json() const;
  static base::Result<RunState> from_json(const base::Json &run, const base::Json &input, const base::Json &metrics);
};

/// Kinds, specs and cardinalities of a dataset and its inputs as a short text: equal pipelines have equal ones.
std::string dataset_signature(const data::Dataset &dataset);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_RUN_STATE_H_
