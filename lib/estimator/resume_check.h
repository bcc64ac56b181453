// SPDX-License-Identifier: Apache-2.0
//
// Does a checkpoint fit what is to go on from it? Another plan (other devices, replicas, backend) does; another model
// does not.
#ifndef TUTTI_ESTIMATOR_RESUME_CHECK_H_
#define TUTTI_ESTIMATOR_RESUME_CHECK_H_

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "distribute/strategy/strategy.h"
#include "distribute/train/trainer.h"

namespace tutti::impl::estimator {

/// FAILED_PRECONDITION naming the first variable that the one has and the other lacks, or that differs in dtype or
/// shape, and how many more there are.
base::Status check_same_model(const graph::Model &model, const checkpoint::WeightVersion &version);

/// What the optimizer will not find, or will not use; empty when its slots are those of the checkpoint.
std::string slot_difference(const distribute::Trainer &trainer, const checkpoint::WeightVersion &version);

/// What stands in a manifest about how training ran.
base::Json plan_json(const distribute::Trainer &trainer, const distribute::Strategy &strategy);

/// Says how the present plan differs from that of a manifest; empty when it does not.
std::string plan_difference(const base::Json &saved, const base::Json &present);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_RESUME_CHECK_H_
