// SPDX-License-Identifier: Apache-2.0
#include "backend/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace tutti::impl::backend {
namespace {

int64_t round_up(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

bool alive_together(const MemoryBlock &a, const MemoryBlock &b) { return a.first <= b.last && b.first <= a.last; }

int64_t most_alive(std::span<const MemoryBlock> blocks, int64_t alignment) {
  std::map<int32_t, int64_t> change;
  for (const MemoryBlock &block : blocks) {
    change[block.first] += round_up(block.bytes, alignment);
    change[block.last + 1] -= round_up(block.bytes, alignment);
  }
  int64_t alive = 0, most = 0;
  for (const auto &[step, bytes] : change)
    most = std::max(most, alive += bytes);
  return most;
}

struct Placed {
  int64_t offset;
  int64_t end;
};

/// Start of the smallest gap between `taken` (sorted by offset) that holds `bytes`, else the end of all.
int64_t best_fit(const std::vector<Placed> &taken, int64_t bytes) {
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), end = 0;
  for (const Placed &block : taken) {
    const int64_t gap = block.offset - end;
    if (gap >= bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, block.end);
  }
  return best >= 0 ? best : end;
}

}  // namespace

MemoryPlan plan_memory(std::span<const MemoryBlock> blocks, int64_t alignment) {
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  plan.lower_bound_bytes = most_alive(blocks, alignment);

  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  std::vector<size_t> placed;  // sorted by offset
  std::vector<Placed> taken;
  for (size_t index : order) {
    const MemoryBlock &block = blocks[index];
    if (block.bytes == 0) continue;
    const int64_t bytes = round_up(block.bytes, alignment);
    taken.clear();
    for (size_t other : placed) {
      if (!alive_together(block, blocks[other])) continue;
      taken.push_back({plan.offsets[other], plan.offsets[other] + round_up(blocks[other].bytes, alignment)});
    }
    const int64_t offset = best_fit(taken, bytes);
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](int64_t value, size_t other) { return value < plan.offsets[other]; }),
                  index);
  }
  return plan;
}

}  // namespace tutti::impl::backend
