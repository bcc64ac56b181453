// SPDX-License-Identifier: Apache-2.0
#include "estimator/dataset_parts.h"

#include <utility>

namespace tutti::impl::estimator {

using base::Result;
using base::Status;
using data::DatasetRef;
using data::DivideBy;
using data::WorkerPart;
using distribute::WorkerInput;

namespace {

constexpr size_t kMostKnown = 4;

Status check_part(const WorkerPart &part, const distribute::Strategy &strategy) {
  const distribute::Workers &workers = strategy.workers();
  const WorkerInput input = strategy.worker_input();
  if (input == WorkerInput::whole && part.workers > 1) {
    return base::failed_precondition("the dataset is the part of worker ", part.worker, " of ", part.workers, ", but ",
                                     workers.count > 1 ? "with worker_input whole, all workers need the same dataset"
                                                       : "the strategy has one worker, which needs the whole dataset");
  }
  if (part.worker == workers.index && part.workers == workers.count) return Status();
  if (input == WorkerInput::whole) return Status();
  return base::failed_precondition("the dataset is the part of worker ", part.worker, " of ", part.workers,
                                   ", but this is worker ", workers.index, " of ", workers.count);
}

}  // namespace

Result<DatasetRef> part_of(const DatasetRef &dataset, const distribute::Strategy &strategy) {
  if (const WorkerPart *part = data::find_part(*dataset)) {
    TUTTI_TRY(check_part(*part, strategy));
    return dataset;
  }
  const WorkerInput input = strategy.worker_input();
  if (input == WorkerInput::whole || input == WorkerInput::own) return dataset;
  const DivideBy by = input == WorkerInput::file   ? DivideBy::files
                      : input == WorkerInput::data ? DivideBy::elements
                                                   : DivideBy::automatic;
  const Result<DatasetRef> part = divide(dataset, by, strategy.workers().index, strategy.workers().count);
  if (!part.ok()) return part.status().wrap(base::concat("worker_input is ", name(input)));
  return part;
}

std::string describe_part(const WorkerPart &part, const distribute::Strategy &strategy) {
  return base::concat("worker_input ", name(strategy.worker_input()), ": the dataset is divided ", part.how);
}

Result<DatasetRef> DatasetParts::of(const DatasetRef &dataset, const distribute::StrategyRef &strategy,
                                    const base::Logger &logger) {
  const std::lock_guard lock(mutex_);
  for (const Known &known : known_) {
    if (known.whole == dataset && known.strategy == strategy) return known.part;
  }
  TUTTI_ASSIGN(DatasetRef part, part_of(dataset, *strategy));
  if (part == dataset) return part;
  logger.info(describe_part(*part->part(), *strategy));
  known_.push_front({dataset, part, strategy});
  if (known_.size() > kMostKnown) known_.pop_back();
  return part;
}

}  // namespace tutti::impl::estimator
