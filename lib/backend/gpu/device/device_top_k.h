// SPDX-License-Identifier: Apache-2.0
//
// The k largest elements of each row, largest first, equal ones by their index; NaN is above all, -0 is 0. No atomics.
//
// Few of a short row: a group of threads has the row, a thread looks for the largest of its elements again only when
// that one was taken. Else a block has a row: it finds the least key that is taken by its digits from the highest on
// (radix select: Alabi, Blanchard, Gordon, Steinbach: "Fast k-selection algorithms for graphics processing units",
// JEA 17, 2012), gathers the k elements, sorts tiles of them in shared memory and merges these in scratch memory. Rows
// that fit a tile are sorted whole.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_TOP_K_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_TOP_K_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

struct TopKWork {
  /// What a block sorts in shared memory.
  static constexpr int64_t kTile = 4 * kBlockThreads;

  tensor::DType dtype;    ///< a number
  int64_t element_bytes;  ///< of it
  int64_t rows;
  int64_t length;  ///< of a row, below 2^31
  int64_t k;       ///< 1 .. length
  const void *x;
  void *values;
  int64_t *indices;
  void *scratch;  ///< scratch_bytes(), aligned to 8

  /// Does a group of threads take the largest of a row one after the other?
  bool takes_one_by_one() const;
  unsigned blocks() const;
  int64_t scratch_bytes() const;
};

gpuError_t launch_top_k(const TopKWork &work, gpuStream_t stream);

/// dx, zeros before, gets dy where the indices say. Elements have 2, 4 or 8 bytes.
struct TopKGradient {
  int64_t rows, length, k, element_bytes;
  const void *dy;
  const int64_t *indices;
  void *dx;
};

gpuError_t launch_top_k_gradient(const TopKGradient &gradient, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_TOP_K_H_
