// SPDX-License-Identifier: Apache-2.0
//
// From a batch to programs that can run: finds or builds those of all contributors for its shape, and lets their inputs
// and results point to where the batch and what comes of it lie.
//
// While devices combine, nothing is built or allocated: where the batch is of another shape than the last, all ranks
// build before any goes on.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_BATCH_PROGRAMS_H_
#define TUTTI_DISTRIBUTE_TRAIN_BATCH_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/element/element.h"
#include "distribute/input/device_inputs.h"
#include "distribute/input/input_binding.h"
#include "distribute/input/step_feeder.h"
#include "distribute/train/contributors.h"
#include "distribute/train/factor_memory.h"
#include "distribute/train/rank.h"

namespace tutti::impl::distribute {

/// A micro-batch of the step under way.
struct MicroBatch {
  int32_t number = 0;                    ///< in the step
  const data::Element *batch = nullptr;  ///< null: only other workers have it
  int64_t rows = 0;                      ///< of this worker
  size_t position = 0;                   ///< of the program that it runs
  bool is_whole_step = false;            ///< all ranks run it together (TrainProgramSet::spmd)
  bool shows_rows = false;               ///< with those of summaries (TrainProgramSet::showing)
};

class BatchPrograms {
 public:
  BatchPrograms(Rank &rank, Contributors &contributors)
      : rank_(rank), contributors_(contributors), kept_keys_(static_cast<size_t>(rank.programs().accumulation)) {}

  /// Where the replica leaves factors, if there are any. Before the first run.
  void share_factors(FactorMemory &memory) { factors_ = &memory; }
  /// The programs that were prepared last have gone.
  void forget() { last_binding_ = -1; }

  /// The contributors know their rows of it.
  base::Status prepare(const MicroBatch &micro_batch, const StepRows &rows, const InputBinding &binding);
  /// Lets the inputs of what was prepared point to the contributors' rows of micro-batch m.
  base::Status point_to_rows(const StepInput &input, int32_t m, DeviceInputs *copies);
  /// Lets results point to the contributors' rows of the factors, and outputs to where those of micro-batch m are kept.
  void point_to_results(int32_t m);
  /// Lets the inputs of finish programs that are features point to those of the step's batch.
  void point_to_features(const data::Element &batch);

 private:
  base::Status find_programs(Contributor &contributor, const MicroBatch &micro_batch, const InputBinding &binding);
  /// What it may run.
  std::span<const GraphSource> variants_of(const MicroBatch &micro_batch) const;
  /// Those that update, after a step of such rows.
  base::Status find_finish_programs(const StepRows &rows, const InputBinding &binding);
  /// After the workspaces have grown for all of them.
  base::Status bind_programs(Contributor &contributor, const MicroBatch &micro_batch, const InputBinding &binding);
  bool gives_rows(const MicroBatch &micro_batch) const {
    return rank_.programs().keeps_outputs || micro_batch.shows_rows;
  }
  bool has_room_for_rows(const MicroBatch &micro_batch) const {
    return !gives_rows(micro_batch) || kept_keys_[static_cast<size_t>(micro_batch.number)] == batch_key_;
  }
  base::Status reserve_outputs(int32_t m);
  base::Status reserve_factors(const StepRows &rows, const InputBinding &binding);
  /// Finds the factors that are results of a contributor's program, and lets the inputs of its finish program point to
  /// all rows of them.
  void point_to_factors(Contributor &contributor, const InputBinding &binding);
  void point_to_results(Contributor &contributor, int32_t m);

  Rank &rank_;
  Contributors &contributors_;
  FactorMemory *factors_ = nullptr;
  // The whole batch, which is equal on all ranks; the one that the programs were last prepared for; and those that
  // there is room for outputs of, for each micro-batch.
  ShapeKey batch_key_, last_batch_key_;
  std::vector<ShapeKey> kept_keys_;
  int64_t last_binding_ = -1;
  bool shows_rows_ = false;
  std::vector<int64_t> last_rows_;  // of all workers, where there are factors
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_BATCH_PROGRAMS_H_
