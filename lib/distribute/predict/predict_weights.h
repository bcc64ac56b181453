// SPDX-License-Identifier: Apache-2.0
//
// Versions of weights on the devices that predict: the one that calls take now, while those under way keep theirs.
// Internal to this folder.
//
//   TUTTI_TRY(weights.set(version));                  // packs it for each device, then swaps atomically
//   TUTTI_ASSIGN(const auto loaded, weights.current());
//
// Threads: any. The programs of a version belong to the threads of its lanes.
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_WEIGHTS_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_WEIGHTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_programs.h"
#include "distribute/weights/loaded_weights.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// One version on all devices. Immutable but for the programs, which belong to the lanes' threads.
struct LoadedVersion {
  int64_t step = 0;
  uint64_t checksum = 0;  ///< with several workers
  std::vector<std::shared_ptr<LoadedWeights>>
      lanes;  ///< as DevicePool counts them: the first ones of all devices first
};

class PredictWeights {
 public:
  /// All of them outlive it. `programs_kept`: bound programs that each lane keeps. `with_checksum`: other workers must
  /// have the same weights.
  PredictWeights(const graph::Model &model, const PredictPrograms &programs, DevicePool &pool, size_t programs_kept,
                 bool with_checksum)
      : model_(model), programs_(programs), pool_(pool), programs_kept_(programs_kept), with_checksum_(with_checksum) {}

  /// PredictEngine::set_weights().
  base::Status set(const base::Ref<checkpoint::WeightVersion> &version);
  /// FAILED_PRECONDITION before the first set().
  base::Result<std::shared_ptr<const LoadedVersion>> current() const;
  /// Versions packed, each counted once per device.
  int64_t packed() const { return packed_.load(); }

 private:
  base::Status load(const checkpoint::WeightVersion &version, LoadedVersion &loaded);
  base::Status compute_derived_on_devices(const LoadedVersion &version);

  const graph::Model &model_;
  const PredictPrograms &programs_;
  DevicePool &pool_;
  const size_t programs_kept_;
  const bool with_checksum_;
  std::atomic<int64_t> packed_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const LoadedVersion> current_;  // guarded by mutex_
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_WEIGHTS_H_
