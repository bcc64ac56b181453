// SPDX-License-Identifier: Apache-2.0
//
// What a training will take of the devices' memory, and the batches that fit, before it begins.
#ifndef TUTTI_ESTIMATOR_MEMORY_NEED_H_
#define TUTTI_ESTIMATOR_MEMORY_NEED_H_

#include <cstdint>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "distribute/train/memory_estimate.h"
#include "estimator/estimator_state.h"

namespace tutti::impl::estimator {

/// Of training on batches of `batch_size` rows of this dataset; 0 = its own batch size.
base::Result<distribute::MemoryEstimate> estimate_memory(EstimatorState &state, const data::Dataset &dataset,
                                                         int64_t batch_size);

/// See MemoryEstimator::largest_batch().
base::Result<int64_t> find_batch_size(EstimatorState &state, const data::Dataset &dataset, int64_t most);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_MEMORY_NEED_H_
