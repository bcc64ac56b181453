// SPDX-License-Identifier: Apache-2.0
//
// A dataset divided among workers, so that each reads a part of it and batches of all workers make batches of the whole
// dataset. What was written for one process is made again, with the part at the right place:
//
//   by files      text_lines(8 files) ─ shuffle ─ map ─ batch(64)
//                 text_lines(files 1, 4, 7) ─ shuffle ─ map ─ batch(21)               worker 1 of 3
//   by elements   slices ─ shuffle ─ map ─ batch(64)
//                 slices ─ shuffle ─ worker_share(rows 22..42 of 64) ─ map ─ batch(21)
//
// By files, a worker opens only its own files: every workers-th, from its index on. Each element comes exactly once in
// a pass over all workers, in another order than in one process, and the last batches may be smaller. That is possible
// where nothing counts or compares elements of several files: not over a take or a repeat.
//
// By elements, all workers read everything, and each has its rows of each batch (block_share.h): batches are those of
// one process, row by row. The share lies as deep as it can: before the batch and before what maps elements one by one,
// else behind the batch.
//
// Threads: any.
#ifndef TUTTI_DATA_PIPELINE_DIVISION_H_
#define TUTTI_DATA_PIPELINE_DIVISION_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "data/dataset/dataset.h"

namespace tutti::impl::data {

enum class DivideBy {
  automatic,  ///< by files where that is possible and there are as many as workers, else by elements
  files,
  elements,
};

/// "auto", "file", "data".
std::string_view name(DivideBy by);

/// What one worker has of a dataset.
struct WorkerPart {
  DivideBy by = DivideBy::elements;  ///< never automatic
  int32_t worker = 0, workers = 1;
  std::string how;   ///< for people: "by files: worker 1 reads 3 of 8 files"
  DatasetRef whole;  ///< what was divided
};

/// The part of worker 0 .. workers-1, which Dataset::part() describes. Elements must be batches, whose size is that of
/// all workers. FAILED_PRECONDITION with the reason where the dataset cannot be divided as `by` asks.
base::Result<DatasetRef> divide(const DatasetRef &dataset, DivideBy by, int32_t worker, int32_t workers);

/// The part that a dataset is or is made of; null where nobody divided it.
const WorkerPart *find_part(const Dataset &dataset);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_DIVISION_H_
