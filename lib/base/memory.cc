// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace tutti::impl::base {

namespace {

std::atomic<int64_t> allocation_calls{0};
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

void count_allocation(size_t size) {
  allocation_calls.fetch_add(1, std::memory_order_relaxed);
  const auto added = static_cast<int64_t>(size);
  const int64_t now = live_bytes.fetch_add(added, std::memory_order_relaxed) + added;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (peak < now && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

}  // namespace

void AlignedFree::operator()(void *memory) const {
  live_bytes.fetch_sub(static_cast<int64_t>(size_bytes), std::memory_order_relaxed);
  std::free(memory);
}

Result<AlignedMemory> allocate_aligned(size_t size_bytes) {
  const size_t alignment = size_bytes >= kHugeFrom ? kHugePage : kAlignment;
  constexpr size_t kMost = size_t{1} << 47;  // no address space is larger
  void *memory = nullptr;
  if (size_bytes < kMost) memory = std::aligned_alloc(alignment, round_up(size_bytes > 0 ? size_bytes : 1, alignment));
  if (memory == nullptr) return resource_exhausted("out of memory: cannot allocate ", size_bytes, " bytes");
  // Only a wish: without huge pages the memory is as good.
  if (alignment == kHugePage) madvise(memory, round_up(size_bytes, alignment), MADV_HUGEPAGE);
  count_allocation(size_bytes);
  return AlignedMemory(memory, AlignedFree{size_bytes});
}

Result<AlignedMemory> allocate_zeroed(size_t size_bytes) {
  TUTTI_ASSIGN(AlignedMemory memory, allocate_aligned(size_bytes));
  std::memset(memory.get(), 0, size_bytes);
  return memory;
}

AllocationCount allocation_count() {
  return {allocation_calls.load(std::memory_order_relaxed), live_bytes.load(std::memory_order_relaxed),
          peak_bytes.load(std::memory_order_relaxed)};
}

}  // namespace tutti::impl::base
