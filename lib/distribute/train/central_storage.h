// SPDX-License-Identifier: Apache-2.0
//
// Central storage (Strategy::storage()): the lowering where variables and slots are updated in one place. It is for
// devices that do not share one memory; those that do have one copy of everything anyway.
//
//   accumulate on all ranks ─► sums of the gradients, on rank 0 alone ─► finish, once ─► weights to all ranks
//
// Slots, and with them moving averages, lie with the storage alone; a replica keeps weights to compute with, and its
// gradients. Finish is run by rank 0 or, where the storage is a device apart from all replicas, by that device, to
// which rank 0 copies the sums, and from which it copies the weights (StorageUpdate). A step moves each gradient once
// from every replica to rank 0, and each updated weight once from there to every replica.
//
// An update counts when rank 0 has read what it reports; only then are its weights handed out. Where that fails, the
// storage is right and complete, and the trainer brings the replicas there before the next run.
//
// Internal to this folder; pure functions.
#ifndef TUTTI_DISTRIBUTE_TRAIN_CENTRAL_STORAGE_H_
#define TUTTI_DISTRIBUTE_TRAIN_CENTRAL_STORAGE_H_

#include <vector>

#include "base/status.h"
#include "distribute/plan/state_plan.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/strategy/strategy.h"
#include "distribute/train/train_program_set.h"
#include "distribute/train/trainer.h"

namespace tutti::impl::distribute {

/// How the variables of a training are kept.
struct Keeping {
  bool shared = false;   ///< one copy in memory that all replicas use
  bool central = false;  ///< as above; neither: every replica has a copy of everything and updates it
  bool apart = false;    ///< central, with a device that no replica runs on
};

Keeping keeping_of(const Strategy &strategy, const TrainerOptions &options, int32_t contributors);

/// INVALID_ARGUMENT where the options ask for something that a central update does not have.
base::Status check_central(const TrainerOptions &options);

/// Ranges of weights and report that `finish` writes.
std::vector<UpdatedRange> updated_ranges(const graph::Graph &finish, const StatePlan &plan);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_CENTRAL_STORAGE_H_
