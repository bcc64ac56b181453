// SPDX-License-Identifier: Apache-2.0
//
// The positions of an array of indices, ordered by index and, where indices are equal, by position: a stable radix sort
// (Satish, Harris, Garland: "Designing efficient sorting algorithms for manycore GPUs", IPDPS 2009). It needs no
// atomics, so its result is a function of the indices alone. Few indices are sorted by one block in one launch, more by
// three launches for every five bits: count, add up, place.
//
//   const IndexSort sort = IndexSort::of(count, length);
//   const int64_t offset = request.reserve_scratch(sort.scratch_bytes());
//   launch_index_sort(sort, indices, scratch, stream);
//   sort.keys(scratch)[i], sort.order(scratch)[i]     // i-th in order: the index and where it stands
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_INDEX_SORT_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_INDEX_SORT_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device_gather.h"

namespace tutti::impl::backend::gpu {

struct IndexSort {
  static constexpr int32_t kDigitBits = 5, kDigits = 1 << kDigitBits;
  /// Elements of a thread where there are several blocks.
  static constexpr int64_t kItems = 8;
  static constexpr int64_t kTile = kItems * kBlockThreads;
  /// What one block sorts alone.
  static constexpr int64_t kMostInBlock = 4 * kTile;

  int64_t count = 0;   ///< below 2^31
  int64_t length = 0;  ///< indices below 0 or from here on are sorted as `length`, which is below 2^31
  int32_t passes = 0;

  static IndexSort of(int64_t count, int64_t length);
  int64_t tiles() const { return (count + kTile - 1) / kTile; }
  int64_t scratch_bytes() const { return (4 * count + kDigits * tiles()) * static_cast<int64_t>(sizeof(uint32_t)); }
  /// Sorted, after launch_index_sort().
  uint32_t *keys(void *scratch) const { return static_cast<uint32_t *>(scratch) + (passes % 2) * 2 * count; }
  uint32_t *order(void *scratch) const { return keys(scratch) + count; }
};

/// Indices out of range are reported.
gpuError_t launch_index_sort(const IndexSort &sort, const GatherIndices &indices, void *scratch, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_INDEX_SORT_H_
