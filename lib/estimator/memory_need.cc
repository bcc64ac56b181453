// SPDX-License-Identifier: Apache-2.0
#include "estimator/memory_need.h"

#include "data/call/device_graph.h"

namespace tutti::impl::estimator {

using base::Result;

namespace {

Result<std::unique_ptr<distribute::MemoryEstimator>> open(EstimatorState &state, const data::Dataset &dataset) {
  TUTTI_ASSIGN(const ModelRef model, state.models.get(Mode::train, dataset.spec()));
  distribute::TrainerOptions options = state.config.trainer_options();
  options.shows_rows = state.shows_rows();
  options.threads_per_replica = state.thread_shares().per_device;
  if (dataset.spec().batch_size > 0) options.typical_rows = dataset.spec().batch_size;
  return distribute::MemoryEstimator::open(state.as_looked_at(*model), state.strategy(), options, dataset.spec(),
                                           data::trailing_device_map(dataset));
}

}  // namespace

Result<distribute::MemoryEstimate> estimate_memory(EstimatorState &state, const data::Dataset &dataset,
                                                   int64_t batch_size) {
  TUTTI_ASSIGN(const auto estimator, open(state, dataset));
  return estimator->estimate(batch_size > 0 ? batch_size : dataset.spec().batch_size);
}

Result<int64_t> find_batch_size(EstimatorState &state, const data::Dataset &dataset, int64_t most) {
  TUTTI_ASSIGN(const auto estimator, open(state, dataset));
  return estimator->largest_batch(most);
}

}  // namespace tutti::impl::estimator
