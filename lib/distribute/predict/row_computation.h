// SPDX-License-Identifier: Apache-2.0
//
// Rows of a call, computed on a lane of a device: with the program for their number, from the caller's memory or from
// the map that devices run, into the outputs of the call. Internal to this folder.
//
// Threads: run() on the thread of the lane; any number of lanes at a time.
#ifndef TUTTI_DISTRIBUTE_PREDICT_ROW_COMPUTATION_H_
#define TUTTI_DISTRIBUTE_PREDICT_ROW_COMPUTATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/trace.h"
#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_call.h"
#include "distribute/predict/predict_programs.h"

namespace tutti::impl::distribute {

class RowComputation {
 public:
  /// All of them outlive it; `tracer` is nullable. The speed of each piece is told to the pool.
  RowComputation(const PredictPrograms &programs, const std::vector<std::string> &output_names, DevicePool &pool,
                 base::Tracer *tracer)
      : programs_(programs),
        output_names_(output_names),
        pool_(pool),
        tracer_(tracer),
        mapped_(static_cast<size_t>(pool.lane_count())) {}

  base::Status run(PredictCall &call, const InputBinding &binding, RowRange rows, int32_t lane);

 private:
  base::Status run(PredictCall &call, const InputBinding &binding, RowRange rows, int64_t computed, int32_t lane);

  const PredictPrograms &programs_;
  const std::vector<std::string> &output_names_;
  DevicePool &pool_;
  base::Tracer *const tracer_;
  std::vector<MappedLane> mapped_;  // by lane, touched by its thread only
};

/// One job of a call: computes rows, then tells the call, and the stream that waits for input meanwhile. After an error
/// the jobs that have not begun compute nothing.
class RowJob {
 public:
  RowJob(RowComputation &computation, std::shared_ptr<PredictCall> call, std::shared_ptr<const InputBinding> binding)
      : computation_(computation), call_(std::move(call)), binding_(std::move(binding)) {}

  /// `jobs`: how many of the call's JobGroup this is.
  void operator()(int32_t lane, RowRange rows, int64_t jobs) const;

 private:
  RowComputation &computation_;
  std::shared_ptr<PredictCall> call_;
  std::shared_ptr<const InputBinding> binding_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_ROW_COMPUTATION_H_
