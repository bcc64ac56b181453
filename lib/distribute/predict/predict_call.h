// SPDX-License-Identifier: Apache-2.0
//
// A call of a predict engine that is under way, and who starts one. Internal to this folder.
//
//   TUTTI_ASSIGN(auto call, calls.start(version, std::move(batch), input, {devices, 0, true}, nullptr));
//   TUTTI_TRY(call->jobs.wait(cancel));       // call->outputs are there
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_CALL_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "data/element/element.h"
#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_weights.h"
#include "distribute/predict/worker_predict_stream.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// Everything the jobs of a call touch, so that it outlives a caller who leaves early.
struct PredictCall {
  std::shared_ptr<const LoadedVersion> version;
  data::Element batch;     ///< dtypes and shapes alone where devices map it
  data::Element unmapped;  ///< what goes into the map of the devices, where there is one
  std::shared_ptr<const DeviceMap> map;
  int64_t seed = 0;  ///< of the map
  int64_t rows = 0;
  int64_t usual_rows = 0;  ///< of its parts (row_buckets.h)
  std::vector<tensor::Tensor> outputs;
  JobGroup jobs;
  std::atomic<bool> abandoned{false};
  /// Of a stream: who waits for input is told when the call is done.
  base::Ref<base::CancelToken> reading;
};

/// What a call or a stream reads, and how.
struct PredictInput {
  std::shared_ptr<const InputBinding> binding;
  std::shared_ptr<const DeviceMap> map;  ///< null: elements are batches
  int64_t seed = 0;                      ///< of the map
  std::shared_ptr<InputTurns> turns;     ///< null: every element is predicted here
  int64_t batch_rows = 0;                ///< of a whole batch; 0 = not known
};

/// How many jobs make a call, where these are equal, and the device of the first, where they are fixed.
struct CallParts {
  int32_t count = 1;
  int64_t first_device = 0;
  bool is_alone = false;  ///< no other call of the caller keeps the lanes busy
};

/// Who starts calls. Threads: any.
class PredictCalls {
 public:
  virtual ~PredictCalls() = default;

  /// Starts a call over the rows of `batch`. `reading`, nullable, gets a deadline in the past when the call is done.
  virtual base::Result<std::shared_ptr<PredictCall>> start(std::shared_ptr<const LoadedVersion> version,
                                                           data::Element batch, const PredictInput &input,
                                                           CallParts parts, base::Ref<base::CancelToken> reading) = 0;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_CALL_H_
