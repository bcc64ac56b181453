// SPDX-License-Identifier: Apache-2.0
//
// How a product of matrices is cut into work for blocks (device_product-inl.h): the size of tiles, and into how many
// parts the sums are split where there are few tiles and long sums, as in gradients of weights. A function of shapes
// alone, so the order of every sum is too; of their length alone where rows are not to depend on how many there are.
#ifndef TUTTI_BACKEND_GPU_DEVICE_PRODUCT_PLAN_H_
#define TUTTI_BACKEND_GPU_DEVICE_PRODUCT_PLAN_H_

#include <tutti_gpu.h>

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// A tile: threads stand in `down` rows and `across` columns, each has `quads` x `quads` squares of 4 x 4 results.
struct TileShape {
  static constexpr int kAcross = kBlockThreads >= 256 ? 16 : (kBlockThreads >= 64 ? 8 : 4);
  static constexpr int kDown = kBlockThreads / kAcross;

  static constexpr int rows(int quads) { return kDown * 4 * quads; }
  static constexpr int columns(int quads) { return kAcross * 4 * quads; }
  /// Terms of the sums that are in shared memory at a time.
  static constexpr int depth(int quads) { return 16 / quads; }
};
static_assert(TileShape::kDown <= 16 && TileShape::kAcross <= 16);

/// y[m, n] = sum over k, for each of the batches.
struct ProductSize {
  int64_t batches, m, n, k;
  bool is_double;
  /// Is the order of a sum to depend on k alone? Sums are not split then.
  bool is_row_invariant = false;
};

struct ProductPlan {
  int32_t quads = 1;
  int64_t splits = 1;
  int64_t split_depth = 0;  ///< terms of a split; the last may have fewer
  int64_t scratch_bytes = 0;
};

ProductPlan plan_product(const ProductSize &size);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_PRODUCT_PLAN_H_
