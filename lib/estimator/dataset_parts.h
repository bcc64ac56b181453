// SPDX-License-Identifier: Apache-2.0
//
// The part of a dataset that this process reads, where the strategy divides datasets among its workers (division.h).
//
//   TUTTI_ASSIGN(data::DatasetRef part, parts.of(dataset, strategy, logger));
//
// What was divided last is remembered, so that caches of a part last as long as those of a dataset, and the log says
// once how it was divided.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_ESTIMATOR_DATASET_PARTS_H_
#define TUTTI_ESTIMATOR_DATASET_PARTS_H_

#include <deque>
#include <mutex>

#include "base/log.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/pipeline/division.h"
#include "distribute/strategy/strategy.h"

namespace tutti::impl::estimator {

/// The dataset itself where the strategy does not divide datasets, and where it is a part already: it is not divided
/// twice. FAILED_PRECONDITION for the part of another worker, and where worker_input asks for what is not possible.
base::Result<data::DatasetRef> part_of(const data::DatasetRef &dataset, const distribute::Strategy &strategy);
/// "worker_input auto: the dataset is divided by files: worker 1 of 3 reads 2 of 7".
std::string describe_part(const data::WorkerPart &part, const distribute::Strategy &strategy);

class DatasetParts {
 public:
  /// part_of(), from memory where it is known.
  base::Result<data::DatasetRef> of(const data::DatasetRef &dataset, const distribute::StrategyRef &strategy,
                                    const base::Logger &logger);

 private:
  struct Known {
    data::DatasetRef whole, part;
    distribute::StrategyRef strategy;
  };
  std::mutex mutex_;
  std::deque<Known> known_;  // guarded by mutex_; the newest first
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_DATASET_PARTS_H_
