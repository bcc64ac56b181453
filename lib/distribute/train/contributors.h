// SPDX-License-Identifier: Apache-2.0
//
// The contributors of a replica: their memory and the caches of their programs.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_CONTRIBUTORS_H_
#define TUTTI_DISTRIBUTE_TRAIN_CONTRIBUTORS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/state_table.h"
#include "base/status.h"
#include "distribute/program/program_cache.h"
#include "distribute/program/workspace.h"
#include "distribute/train/contributor.h"
#include "distribute/train/rank.h"

namespace tutti::impl::distribute {

class Contributors {
 public:
  explicit Contributors(Rank &rank) : rank_(rank), scale_entry_(rank.plan().find(loss_scale_entry)) {}

  /// Makes `parts` of them, each with arguments for so many steps in flight. `arenas`: weights, slots and host of the
  /// device; each adds its own partials and report.
  base::Status open(ExecutableCache &executables, const ArenaPointers &arenas, int32_t parts, size_t cache_capacity,
                    int32_t steps_in_flight);

  size_t size() const { return contributors_.size(); }
  std::span<Contributor> all() { return contributors_; }
  Contributor &front() { return contributors_.front(); }
  /// Whether it runs a finish program.
  bool finishes(const Contributor &contributor) const {
    const TrainProgramSet &programs = rank_.programs();
    if (programs.finish.empty() || programs.updates_apart || !rank_.updates()) return false;
    return programs.every_contributor_finishes || &contributor == &contributors_.front();
  }

  /// Partials of each, in order.
  std::vector<void *> partials() const;
  /// Those of all contributors of the group, which finish programs read (sums_in_finish).
  void see_partials(std::span<void *const> partials);
  /// Their places in a new group.
  void join_group();
  /// Of batches; they are bound anew before they run.
  void forget_programs();
  /// Offers the gradients to the group, which works on them in place.
  void register_partials();

  void set_seed(int64_t seed);
  /// Whether programs have a trace. Those there are go.
  void set_traced(bool traced);
  int64_t programs_built() const;

  /// The step of this number is the one under way.
  void begin_step(int64_t step) { turn_ = step % steps_in_flight_; }
  /// Which of the steps that may be in flight is under way.
  size_t turn() const { return static_cast<size_t>(turn_); }
  /// What a contributor runs micro-batch m of the step under way with.
  Contributor::Arguments &arguments(Contributor &contributor, int32_t m) const {
    return contributor.arguments[static_cast<size_t>(turn_ * rank_.programs().accumulation + m)];
  }
  /// Tells the programs with which scale the step runs, where it is another than the last one's.
  base::Status write_loss_scale(int64_t scale);
  /// What was written last.
  int64_t loss_scale() const { return written_scale_; }
  base::Status clear_accumulated();

  /// Of the last step: a scalar of the first one's report; bytes of the partials of one; outputs, in order, which need
  /// keeps_outputs.
  base::Result<double> report_value(const backend::StateEntry &entry) const;
  base::Result<tensor::Tensor> report_tensor(const backend::StateEntry &entry) const;
  base::Status read_partials(int32_t part, int64_t offset, int64_t bytes, void *destination) const;
  std::vector<const KeptOutputs *> kept_outputs() const;

 private:
  base::Status add(ExecutableCache &executables, ArenaPointers arenas, size_t cache_capacity);
  base::Status allocate(Contributor &contributor, ArenaPointers &arenas);

  Rank &rank_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // one, or where parts alternate one for each
  std::vector<Contributor> contributors_;
  int64_t steps_in_flight_ = 1;
  int64_t turn_ = 0;
  const backend::StateEntry *const scale_entry_;
  int64_t written_scale_ = 0;  // what the programs read
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_CONTRIBUTORS_H_
