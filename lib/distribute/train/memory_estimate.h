// SPDX-License-Identifier: Apache-2.0
//
// What training takes of the devices' memory, before any of it is allocated: the state plan says what weights, slots
// and gradients take, the compiled programs what is between them. What drivers and libraries take for themselves is not
// in it.
//
//   TUTTI_ASSIGN(auto estimator, MemoryEstimator::open(model, strategy, options, dataset->spec()));
//   TUTTI_ASSIGN(MemoryEstimate estimate, estimator->estimate(256));
//   TUTTI_ASSIGN(int64_t rows, estimator->largest_batch(4096));
//
// Threads: one at a time.
#ifndef TUTTI_DISTRIBUTE_TRAIN_MEMORY_ESTIMATE_H_
#define TUTTI_DISTRIBUTE_TRAIN_MEMORY_ESTIMATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/element/element.h"
#include "distribute/strategy/strategy.h"
#include "distribute/train/trainer.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// Bytes of one device.
struct DeviceMemory {
  std::string device;
  int64_t weights = 0;
  int64_t slots = 0;
  int64_t gradients = 0;  ///< and what is reported of a step
  int64_t workspace = 0;  ///< intermediate results
  int64_t input = 0;      ///< batches, where the device cannot read the host's memory, and a map that makes them there
  int64_t outputs = 0;    ///< of the last step, where they are kept
  std::string memory;     ///< devices with equal ones share it
  int64_t available = 0;  ///< of that memory, beside what is in use now

  int64_t total() const { return weights + slots + gradients + workspace + input + outputs; }
};

struct MemoryEstimate {
  int64_t batch_size = 0;
  std::vector<DeviceMemory> devices;  ///< in replica order; behind them a storage that is none of the replicas'
  int64_t budget = INT64_MAX;         ///< what the memory budget leaves for all devices
  /// What the library of the devices says of each program that was compiled for it; most say nothing.
  base::JsonArray programs;

  int64_t total() const;
  /// What is left where there is least, negative: what lacks; and where that is.
  struct Room {
    int64_t bytes = 0;
    std::string memory;
  };
  Room room() const;
  /// {"batch_size", "devices": [{"device", "weights", ..., "total", "memory", "available"}, ...], "total", "fits"};
  /// "programs" where there are any.
  base::Json to_json() const;
};

class MemoryEstimator {
 public:
  virtual ~MemoryEstimator() = default;

  /// Batches are of `spec`, whose dimensions but for the rows must be known. `device_map`: the map that makes them and
  /// is left to devices which can do it (data::trailing_device_map()), or null.
  static base::Result<std::unique_ptr<MemoryEstimator>> open(const graph::Model &train_model,
                                                             const StrategyRef &strategy, const TrainerOptions &options,
                                                             const data::ElementSpec &spec,
                                                             const data::Dataset *device_map = nullptr);

  /// For batches of so many rows over all devices. Compiles programs; the first time for a size takes as long as at the
  /// first step of a training.
  virtual base::Result<MemoryEstimate> estimate(int64_t batch_size) = 0;
  /// The largest batch from 1 to `most` rows that fits: a batch larger by more than a thirty-second does not.
  /// RESOURCE_EXHAUSTED when one row does not fit.
  virtual base::Result<int64_t> largest_batch(int64_t most) = 0;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_MEMORY_ESTIMATE_H_
