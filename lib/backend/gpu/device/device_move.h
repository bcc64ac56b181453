// SPDX-License-Identifier: Apache-2.0
//
// Moving elements without computing: their type does not matter, only their size. Every kernel writes its result in
// order, so writes are coalesced; runs that stay together are moved in words of up to 16 bytes. Where the axis that the
// source has last is not the one the result has last, squares of 32 x 32 words pass through shared memory (Ruetsch,
// Micikevicius: "Optimizing matrix transpose in CUDA", 2009), so that reads are coalesced too.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_MOVE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_MOVE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/divider.h"

namespace tutti::impl::backend::gpu {

constexpr int32_t kMoveAxes = 8;

/// to[i] = from[where strides lead], for a dense result of `dims`.
struct StridedRead {
  void *to;
  const void *from;       ///< element of the first index
  int64_t element_bytes;  ///< 1, 2, 4, 8 or 16
  int32_t rank;
  int64_t dims[kMoveAxes];
  int64_t strides[kMoveAxes];  ///< of the source, in elements; 0 repeats
};
gpuError_t launch_strided_read(const StridedRead &read, gpuStream_t stream);

/// A dense result of `dims` that is `fill` but for the elements of a dense source: along each axis number i of `counts`
/// stands at low + i * step.
struct Placement {
  void *to;
  const void *from;
  int64_t element_bytes;  ///< 1, 2, 4, 8 or 16
  uint64_t fill;          ///< an element of fill_bytes, again and again
  int64_t fill_bytes;
  int32_t rank;
  int64_t dims[kMoveAxes], low[kMoveAxes], step[kMoveAxes], counts[kMoveAxes];
};
gpuError_t launch_placement(const Placement &placement, gpuStream_t stream);

/// Rows of the result are made of a row of each piece, one after the other.
struct Concatenation {
  static constexpr int32_t kPieces = 32;
  struct Piece {
    const void *from;
    int64_t bytes;   ///< of its row
    int64_t offset;  ///< in the result's row
  };

  void *to;
  int64_t rows, row_bytes;
  int32_t count;
  Piece pieces[kPieces];
};
gpuError_t launch_concatenation(const Concatenation &concatenation, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_MOVE_H_
