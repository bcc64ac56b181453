// SPDX-License-Identifier: Apache-2.0
//
// Central storage (central_storage.h): the first rank's weights and report become those of all ranks, behind its
// update. What finish writes goes, in pieces, of which a few are under way at a time.
//
//   handout.plan(weights, contributors);   // once
//   TUTTI_TRY(handout.run());              // by all ranks, at the same place of each step
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_WEIGHT_HANDOUT_H_
#define TUTTI_DISTRIBUTE_TRAIN_WEIGHT_HANDOUT_H_

#include <span>
#include <vector>

#include "base/status.h"
#include "collective/group.h"
#include "distribute/train/contributor.h"
#include "distribute/train/rank.h"
#include "distribute/train/step_clock.h"

namespace tutti::impl::distribute {

class WeightHandout {
 public:
  WeightHandout(Rank &rank, StepClock &clock) : rank_(rank), clock_(clock) {}

  /// Of that arena and the contributors' reports, which are all there; once.
  void plan(void *weights, std::span<const Contributor> contributors);
  /// When it returns, nothing of it is under way any more on any rank's device.
  base::Status run();

 private:
  void add_pieces(const UpdatedRange &range, void *weights, std::span<const Contributor> contributors);
  base::Status hand_out();

  Rank &rank_;
  StepClock &clock_;
  std::vector<collective::Operation> operations_;
  std::vector<std::vector<void *>> buffers_;  // of each
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_WEIGHT_HANDOUT_H_
