// SPDX-License-Identifier: Apache-2.0
//
// Calls of a predict engine that are under way, and a stream that keeps several of them so. Internal to this folder.
//
//   TUTTI_ASSIGN(auto call, calls.start(version, std::move(batch), input, {devices, 0, true}, nullptr));
//   TUTTI_TRY(call->jobs.wait(cancel));       // call->outputs are there
//   auto stream = read_ahead(engine, version, std::move(iterator), input, cancel, 6);
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_STREAM_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/element/element.h"
#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/predict/worker_predict_stream.h"
#include "distribute/weights/loaded_weights.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// One version on all devices. Immutable but for the programs, which belong to the lanes' threads.
struct LoadedVersion {
  int64_t step = 0;
  uint64_t checksum = 0;  ///< with several workers
  std::vector<std::shared_ptr<LoadedWeights>>
      lanes;  ///< as DevicePool counts them: the first ones of all devices first
};

/// One call under way: everything its jobs touch, so that it outlives a caller who leaves early.
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

/// A stream with up to `depth` calls under way or waiting to be taken. It reads ahead on the consumer's thread; results
/// are handed out in order. As soon as the next one is there, reading waits for nothing more: a call that is done
/// interrupts it. `cancel`, nullable, interrupts next().
std::unique_ptr<PredictStream> read_ahead(std::shared_ptr<PredictCalls> calls,
                                          std::shared_ptr<const LoadedVersion> version,
                                          std::unique_ptr<data::Iterator> iterator, PredictInput input,
                                          base::Ref<base::CancelToken> cancel, size_t depth);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_STREAM_H_
