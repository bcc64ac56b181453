// SPDX-License-Identifier: Apache-2.0
//
// The weights of a trainer as another one uses them: the same bytes on the same devices, laid out as the first one's
// plan says. Slots, gradients and reports stay each trainer's own. A value; internal to this folder.
//
//   TUTTI_ASSIGN(auto trainer, Trainer::open(model, strategy, options));
//   const WeightShare share = trainer->share_weights("generator");
//   TUTTI_ASSIGN(auto other, Trainer::open(other_model, strategy, options, &share));
//
// Threads: only one of the trainers runs at a time.
#ifndef TUTTI_DISTRIBUTE_WEIGHTS_WEIGHT_SHARE_H_
#define TUTTI_DISTRIBUTE_WEIGHTS_WEIGHT_SHARE_H_

#include <string>
#include <vector>

#include "backend/executable.h"
#include "distribute/plan/state_plan.h"
#include "distribute/weights/weight_store.h"

namespace tutti::impl::distribute {

struct WeightShare {
  std::string name;                              ///< of who takes it: its slots are scoped_slot()
  std::vector<StateSpec> variables;              ///< all of them, in the order of the plan
  std::vector<backend::LayoutProposal> layouts;  ///< of those that are not row-major
  WeightStore::Weights memory;
};

/// What `plan` and `store` have.
WeightShare share_of(const StatePlan &plan, const WeightStore &store, std::string name);

/// The state of a training that uses the weights of `share` in place of its own.
std::vector<StateSpec> with_shared_weights(std::vector<StateSpec> state, const WeightShare &share);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WEIGHTS_WEIGHT_SHARE_H_
