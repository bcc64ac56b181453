// SPDX-License-Identifier: Apache-2.0
//
// From a training model and a strategy to everything that is fixed before the first step: contributors, lowering, step
// graphs, state plan and the texts that are compiled. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_TRAIN_PROGRAMS_H_
#define TUTTI_DISTRIBUTE_TRAIN_TRAIN_PROGRAMS_H_

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "distribute/plan/state_plan.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/train/train_program_set.h"
#include "distribute/train/trainer.h"

namespace tutti::impl::distribute {

struct TrainSetup {
  std::vector<backend::DeviceRef> devices;  ///< open, in replica order
  int32_t parts = 1;                        ///< contributors per replica
  bool shared_weights = false;
  backend::DeviceRef storage;  ///< open; makes the updates where programs.updates_apart, else null
  TrainGraphs graphs;
  StatePlan plan;
  TrainProgramSet programs;

  /// Which copy of the weights a replica computes with.
  size_t copy_of(size_t replica) const {
    if (shared_weights) return 0;
    return replica + (storage != nullptr ? 1 : 0);
  }
};

/// "one copy in the host's memory", "on gpu:0, which updates them and gives 2 other devices the new weights in each
/// step", ..., for people.
std::string how_variables_are_kept(const Strategy &strategy, const TrainSetup &setup);

/// For people, too; `group`: how the replicas' group adds them up.
std::string how_gradients_are_added_up(const TrainProgramSet &programs, const std::string &group);
/// Of gradients, by dtype.
base::Json bucket_bytes(const StatePlan &plan);

/// `share`: see Trainer::open.
base::Result<std::unique_ptr<TrainSetup>> set_up_training(const graph::Model &model, const Strategy &strategy,
                                                          const TrainerOptions &options,
                                                          const WeightShare *share = nullptr);

/// Trainer::memory_in_use() of devices.
std::vector<NamedNumber> memory_of(const std::vector<backend::DeviceRef> &devices);
/// Opens the devices of a strategy, in order.
base::Result<std::vector<backend::DeviceRef>> open_devices(const Strategy &strategy);

/// What the backend proposes for the weights that `graph` reads, for `rows` rows (other symbols too).
base::Result<std::vector<backend::LayoutProposal>> propose_layouts(backend::Device &device, const graph::Graph &graph,
                                                                   const std::vector<StateSpec> &state, int64_t rows,
                                                                   backend::Level level, int32_t threads,
                                                                   backend::Precision precision);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_TRAIN_PROGRAMS_H_
