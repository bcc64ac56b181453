// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/product_plan.h"

#include <algorithm>

namespace tutti::impl::backend::gpu {
namespace {

/// Blocks that fill a GPU: two for each of some 128 processors. Small blocks (an emulated GPU) need few.
constexpr int64_t kFillingTiles = kBlockThreads >= 256 ? 256 : 8;
/// A split has at least so many terms, or adding the parts costs more than it saves.
constexpr int64_t kLeastSplitDepth = 128;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t tiles(const ProductSize &size, int quads) {
  return size.batches * ceil_div(size.m, TileShape::rows(quads)) * ceil_div(size.n, TileShape::columns(quads));
}

ProductPlan split(const ProductSize &size, int quads) {
  ProductPlan plan;
  plan.quads = quads;
  const int64_t blocks = std::max<int64_t>(tiles(size, quads), 1);
  const int64_t most = size.is_row_invariant ? 1 : size.k / kLeastSplitDepth;
  const int64_t wanted = std::min(ceil_div(kFillingTiles, blocks), most);
  plan.split_depth =
      ceil_div(ceil_div(size.k, std::max<int64_t>(wanted, 1)), TileShape::depth(1)) * TileShape::depth(1);
  plan.splits = plan.split_depth == 0 ? 1 : ceil_div(size.k, plan.split_depth);
  if (plan.splits > 1)
    plan.scratch_bytes = plan.splits * size.batches * size.m * size.n *
                         static_cast<int64_t>(size.is_double ? sizeof(double) : sizeof(float));
  return plan;
}

/// May tiles be large in some shapes? Zeros behind a sum make +0 of a -0, so both tiles have to have some, or neither.
bool may_be_large(const ProductSize &size) {
  return !size.is_double && (!size.is_row_invariant || size.k % TileShape::depth(1) == 0);
}

}  // namespace

ProductPlan plan_product(const ProductSize &size) {
  if (may_be_large(size)) {
    // Four times the results per thread need half the reads of shared memory per result, if the tiles are full.
    const ProductPlan large = split(size, 2);
    const int64_t large_tiles = tiles(size, 2);
    if (large_tiles * large.splits >= kFillingTiles * 3 / 4 && large_tiles * 16 <= tiles(size, 1) * 5) return large;
  }
  return split(size, 1);
}

}  // namespace tutti::impl::backend::gpu
