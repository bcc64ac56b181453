// SPDX-License-Identifier: Apache-2.0
//
// Static memory planning: gives every block of a program an offset in one workspace such that blocks that are alive at
// the same time do not overlap. Offline best fit: large blocks first, each into the smallest gap that holds it.
//
//   std::vector<MemoryBlock> blocks = {{.bytes = 4096, .first = 0, .last = 3}, {.bytes = 64, .first = 2, .last = 9}};
//   MemoryPlan plan = plan_memory(blocks);       // plan.offsets[i], plan.bytes, plan.lower_bound_bytes
//
// Deterministic: the same blocks give the same plan. Cost O(blocks²) in the worst case. Used by backends at compile
// time.
#ifndef TUTTI_BACKEND_MEMORY_PLAN_H_
#define TUTTI_BACKEND_MEMORY_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tutti::impl::backend {

/// Memory that is needed from step `first` to step `last`, both included.
struct MemoryBlock {
  int64_t bytes = 0;  ///< 0 is legal and gets offset 0
  int32_t first = 0;
  int32_t last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< one per block, multiples of the alignment
  int64_t bytes = 0;             ///< size of the workspace
  /// The most bytes alive at any step: no plan can be smaller.
  int64_t lower_bound_bytes = 0;
};

/// Every offset and size is rounded up to `alignment`, a power of two.
MemoryPlan plan_memory(std::span<const MemoryBlock> blocks, int64_t alignment = 64);

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_MEMORY_PLAN_H_
