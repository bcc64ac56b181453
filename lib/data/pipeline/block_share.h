// SPDX-License-Identifier: Apache-2.0
//
// What one of several workers keeps of a dataset: its rows of each batch of all workers, either of the elements that
// the batches will be made of, or of the batches themselves. The batches of all workers, one worker's rows behind the
// other's, are those of the whole dataset, row by row.
//
//   batches of 5, 2 workers     0 1 2 3 4   5 6 7 8 9   10 11
//   worker 0                    0 1 2       5 6 7       10 11
//   worker 1                          3 4         8 9
//
// A walk over a share reads all elements, or by position its own alone where that is possible. It takes them in order,
// whatever the option `deterministic` says. What it saves is where all workers are at the end of a batch, so a walk of
// any worker of any number of workers continues there.
//
// Errors: an element of another worker that fails is that one's concern.
//
// Threads: immutable.
#ifndef TUTTI_DATA_PIPELINE_BLOCK_SHARE_H_
#define TUTTI_DATA_PIPELINE_BLOCK_SHARE_H_

#include <cstdint>

#include "base/status.h"
#include "data/dataset/dataset.h"

namespace tutti::impl::data {

/// Of each `block` elements in a row, the future batch of all workers, those from `first` on, `rows` of them.
struct BlockShare {
  int64_t block = 1;
  int64_t first = 0;
  int64_t rows = 1;  ///< 0 for some where there are more workers than elements in a block
  /// Of a last block with fewer elements nobody has any.
  bool whole_blocks = false;

  /// Worker 0 .. workers-1 one behind the other; numbers of rows differ by at most 1, and the first ones have more.
  static BlockShare of(int64_t block, int32_t worker, int32_t workers, bool whole_blocks = false);
  /// How many of so many elements.
  int64_t of_elements(int64_t elements) const;
};

/// The elements of the share.
DatasetRef keep_elements(const DatasetRef &input, const BlockShare &share);
/// The worker's rows of each batch, which are none where a batch has fewer rows than there are workers.
DatasetRef keep_rows(const DatasetRef &batches, int32_t worker, int32_t workers);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_BLOCK_SHARE_H_
