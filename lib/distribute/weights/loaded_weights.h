// SPDX-License-Identifier: Apache-2.0
//
// A weight version in a device's own layout, with the programs that are bound to it. Internal to this folder. Loading
// on any thread; the programs belong to the device's thread.
#ifndef TUTTI_DISTRIBUTE_WEIGHTS_LOADED_WEIGHTS_H_
#define TUTTI_DISTRIBUTE_WEIGHTS_LOADED_WEIGHTS_H_

#include <memory>
#include <string_view>
#include <vector>

#include "base/trace.h"
#include "checkpoint/weight_version.h"
#include "distribute/plan/state_plan.h"
#include "distribute/program/program_cache.h"
#include "distribute/program/staged_io.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// Memory of a device.
struct WeightBuffers {
  backend::Buffer weights, partials, report, host;
};

/// One device with the weights it computes with.
struct LoadedWeights {
  LoadedWeights() = default;
  LoadedWeights(const LoadedWeights &) = delete;
  LoadedWeights &operator=(const LoadedWeights &) = delete;
  /// Waits for the stream: what a call has issued before it failed may still use the memory.
  ~LoadedWeights();

  backend::DeviceRef device;
  backend::Stream stream;
  std::shared_ptr<WeightBuffers> buffers;
  ArenaPointers arenas{};                ///< of the buffers
  std::unique_ptr<Workspace> workspace;  ///< of all programs here: they run one after the other
  std::unique_ptr<ProgramCache> programs, finish_programs;
  std::unique_ptr<StagedIo> io;  ///< what `programs` run with
  bool is_traced = false;        ///< `programs` have spans around their kernels
};

/// Gives `programs` spans around their kernels while `tracer` (nullable) is enabled, and names the calling thread's row
/// of the trace, such as "predictions 0 on gpu:0". Before they are prepared, on the device's thread.
void follow_trace(LoadedWeights &loaded, base::Tracer *tracer, std::string_view work, int32_t lane);

/// The version has every weight of the plan with its dtype and dims, else an error naming the variable, and what in the
/// model takes it.
base::Status check_weights(const StatePlan &plan, const graph::Model &model, const checkpoint::WeightVersion &version);

/// Packs the version's weights for `device`.
base::Result<std::shared_ptr<LoadedWeights>> load_weights(const StatePlan &plan, const graph::Model &model,
                                                          const checkpoint::WeightVersion &version,
                                                          const backend::DeviceRef &device,
                                                          ExecutableCache &executables, size_t cache_capacity);

/// Another lane of the same device: its own stream, programs and ports, the same weights. For programs that only read
/// them.
base::Result<std::shared_ptr<LoadedWeights>> make_lane(const LoadedWeights &first, ExecutableCache &executables,
                                                       size_t cache_capacity);

/// Fills the derived entries (PredictGraph::prepare). On the device's thread, before any program reads them.
base::Status compute_derived(const GraphSource &prepare, ExecutableCache &executables, LoadedWeights &loaded);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WEIGHTS_LOADED_WEIGHTS_H_
