// SPDX-License-Identifier: Apache-2.0
//
// Central storage (central_storage.h) with a device that no replica runs on: it makes the update. The first rank, on
// whose thread all this runs, brings it the sums of the gradients and takes the new weights and the report from it, by
// way of the host's memory.
//
//   TUTTI_TRY(storage.run(contributor, stream, scalars, loss_scale));   // issued; report() is ready behind stream()
//   TUTTI_TRY(storage.hand_over(contributor));                          // the replica has weights and report
//
// Threads: the first replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_STORAGE_UPDATE_H_
#define TUTTI_DISTRIBUTE_TRAIN_STORAGE_UPDATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "distribute/plan/loss_scale.h"
#include "distribute/plan/state_plan.h"
#include "distribute/program/program_cache.h"
#include "distribute/program/workspace.h"
#include "distribute/train/contributor.h"
#include "distribute/train/train_program_set.h"

namespace tutti::impl::distribute {

class StorageUpdate {
 public:
  /// `arenas`: weights, slots and host of the storage. `stored` and `computed_with`: the weights there, and those of
  /// the first replica. All of them outlive it.
  static base::Result<std::unique_ptr<StorageUpdate>> open(const TrainProgramSet &programs, const StatePlan &plan,
                                                           ExecutableCache &executables,
                                                           const backend::DeviceRef &device,
                                                           const ArenaPointers &arenas, const backend::Buffer &stored,
                                                           backend::Buffer &computed_with);
  ~StorageUpdate();

  /// Updates with the sums that the contributor's partials hold when `of_sums` has done what was issued there.
  base::Status run(const Contributor &sums, backend::Stream &of_sums, const backend::RunScalars &scalars,
                   int64_t loss_scale);
  const backend::Buffer &report() const { return report_; }
  backend::Stream &stream() { return stream_; }
  /// When the update is done. Nothing uses the replica's weights meanwhile.
  base::Status hand_over(Contributor &replica);

 private:
  StorageUpdate(const TrainProgramSet &programs, const StatePlan &plan, const backend::Buffer &stored,
                backend::Buffer &computed_with)
      : programs_(programs),
        plan_(plan),
        scale_entry_(plan.find(loss_scale_entry)),
        stored_(stored),
        computed_with_(computed_with) {}
  base::Status bind(ExecutableCache &executables, const backend::DeviceRef &device, ArenaPointers arenas);
  base::Status copy(const backend::Buffer &from, backend::Buffer &to, int64_t offset, int64_t bytes);
  base::Status write_loss_scale(int64_t scale);

  const TrainProgramSet &programs_;
  const StatePlan &plan_;
  const backend::StateEntry *const scale_entry_;
  const backend::Buffer &stored_;
  backend::Buffer &computed_with_;
  backend::Stream stream_;
  backend::Buffer partials_, report_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<ProgramCache> cache_;
  BoundProgram *program_ = nullptr;
  std::vector<std::byte> staging_;  // between two memories that are not the host's
  int64_t written_scale_ = 0;       // what the program reads
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_STORAGE_UPDATE_H_
