// SPDX-License-Identifier: Apache-2.0
//
// What the devices of a strategy predict with, but for the weights: where state lies and what is compiled, for each
// kind of them. Internal to this folder.
//
// Threads: immutable but for the executables, which any thread may ask for.
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_PROGRAMS_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_PROGRAMS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/json.h"
#include "base/status.h"
#include "distribute/plan/state_plan.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/program/program_cache.h"
#include "distribute/strategy/device_kinds.h"
#include "distribute/strategy/strategy.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// What the devices of one kind share.
struct KindPrograms {
  StatePlan plan;
  GraphSource source;
  std::optional<GraphSource> prepare;  ///< computes derived entries, when there are any
  std::unique_ptr<ExecutableCache> executables;
  bool rounds_rows = false;  ///< numbers of rows are rounded up (row_buckets.h)
};

class PredictPrograms {
 public:
  /// Opens the strategy's devices. INVALID_ARGUMENT where they cannot do the level together.
  static base::Result<PredictPrograms> make(const graph::Model &model, const Strategy &strategy,
                                            const PredictOptions &options);

  const std::vector<backend::DeviceRef> &devices() const { return devices_; }
  int32_t device_count() const { return static_cast<int32_t>(devices_.size()); }
  const DeviceKinds &kinds() const { return kinds_; }
  const KindPrograms &of(int32_t device) const { return by_kind_[kinds_.of_device[static_cast<size_t>(device)]]; }
  /// No row of the model depends on another.
  bool rows_stand_alone() const { return rows_stand_alone_; }

  /// Of all kinds, so far: how many were compiled, and what they are, for people and tests.
  int64_t built() const;
  base::JsonArray describe() const;

 private:
  std::vector<backend::DeviceRef> devices_;
  DeviceKinds kinds_;
  std::vector<KindPrograms> by_kind_;
  bool rows_stand_alone_ = false;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_PROGRAMS_H_
