// SPDX-License-Identifier: Apache-2.0
//
// The programs of a training and how its replicas run them. A value; internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_TRAIN_PROGRAM_SET_H_
#define TUTTI_DISTRIBUTE_TRAIN_TRAIN_PROGRAM_SET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "distribute/plan/loss_scale.h"
#include "distribute/plan/shared_factors.h"
#include "distribute/plan/state_plan.h"
#include "distribute/program/program_cache.h"
#include "distribute/strategy/strategy.h"

namespace tutti::impl::distribute {

/// A range of state that finish writes, in units of 64 bytes: of the arena weights or report.
struct UpdatedRange {
  Arena arena = Arena::weights;
  int64_t offset = 0, bytes = 0;
};

/// What all replicas of a trainer run; fixed when it opens.
struct TrainProgramSet {
  /// What micro-batches run: the first of a step, others, the last where rounds_at_last.
  std::vector<GraphSource> accumulate;
  /// The same with rows of summaries, for runs whose steps somebody looks at; none where the model has none.
  std::vector<GraphSource> showing;
  bool rounds_at_last = false;
  std::vector<GraphSource> finish;  ///< one per slice; none when accumulate_write does everything
  /// The whole step for all contributors at once, of batches that they share evenly (spmd_step.h).
  std::optional<GraphSource> spmd;
  std::vector<graph::SymbolBindings> finish_bindings;
  std::vector<ShapeKey> finish_keys;
  int32_t accumulation = 1;
  int32_t steps_in_flight = 1;  ///< that a device may have been given and that are not judged yet
  int32_t contributors = 1;
  bool every_contributor_finishes = false;  ///< each updates its slice; else the first of each rank updates everything
  bool parts_alternate = false;             ///< those of a replica, at collectives that their programs go on behind
  bool sums_in_finish = false;              ///< of what would be reduced in slices: finish reads all contributors'
  std::vector<SharedFactor> factors;        ///< what finish reads besides state
  bool gathers_factors = false;             ///< contributors leave them in memories of their own
  bool is_central = false;                  ///< one update, whose weights all get (central_storage.h)
  bool updates_apart = false;               ///< it is made by a device that no replica runs on, else by the first one
  std::vector<UpdatedRange> updated;        ///< what all get of it; ascending
  int64_t piece_bytes = 0;                  ///< in pieces of so many bytes at most
  bool keeps_outputs = false;               ///< those of the model, of the last step
  LossScaleOptions loss_scale;
  base::Ref<base::Tracer> tracer;  ///< while it is enabled, kernels and steps are traced; null = never
  Workers workers;
  bool divides_input = false;  ///< every worker has batches of its own; else all have the same

  /// Which of `accumulate` micro-batch m of a step of `count` runs.
  size_t accumulate_position(int32_t m, int32_t count) const {
    if (rounds_at_last && m + 1 == count) return accumulate.size() - 1;
    return m > 0 ? 1 : 0;
  }
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_TRAIN_PROGRAM_SET_H_
