// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

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

/// Freed blocks, newest last. Nobody waits for it: who finds it taken asks the system.
class KeptBlocks {
 public:
  static constexpr size_t kMostBlocks = 16;

  /// A block of exactly this size, null when there is none.
  void *take(size_t size) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return nullptr;
    for (size_t i = count_; i-- > 0;) {
      if (blocks_[i].size != size) continue;
      void *memory = blocks_[i].memory;
      drop(i);
      return memory;
    }
    return nullptr;
  }

  /// Keeps a block, in place of older ones when there is no room; gives those that are then to be freed.
  size_t keep(void *memory, size_t size, void *(&freed)[kMostBlocks + 1]) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    freed[0] = memory;
    if (!lock || !kKeepsBlocks) return 1;
    size_t count = 0;
    while (count_ == kMostBlocks || bytes() + size > kMostKeptBytes) {
      freed[count++] = blocks_[0].memory;
      drop(0);
    }
    blocks_[count_++] = {memory, size};
    bytes_.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
    return count;
  }

  size_t bytes() const { return static_cast<size_t>(bytes_.load(std::memory_order_relaxed)); }

 private:
  static constexpr bool kKeepsBlocks = TUTTI_KEEPS_BLOCKS;
  struct Block {
    void *memory = nullptr;
    size_t size = 0;
  };

  void drop(size_t index) {
    bytes_.fetch_sub(static_cast<int64_t>(blocks_[index].size), std::memory_order_relaxed);
    --count_;
    for (size_t i = index; i < count_; ++i)
      blocks_[i] = blocks_[i + 1];
  }

  std::mutex mutex_;
  Block blocks_[kMostBlocks];
  size_t count_ = 0;
  std::atomic<int64_t> bytes_{0};
};
constinit KeptBlocks kept_blocks;

bool is_kept(size_t size_bytes) { return size_bytes >= kKeptFrom && size_bytes < kHugeFrom; }

/// Smaller blocks are taken unaligned, with room to align them: the C library's aligned allocation cuts pieces off
/// larger ones and costs several times as much. Where such a block begins is kept in front of it.
constexpr size_t kPaddedBelow = size_t{16} << 10;

bool is_padded(size_t size_bytes) { return size_bytes < kPaddedBelow; }

void *allocate_padded(size_t size) {
  constexpr size_t kRoom = sizeof(void *) + kAlignment;
  char *const start = static_cast<char *>(std::malloc(size + kRoom));
  if (start == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(start) + sizeof(void *);
  char *const aligned = start + (round_up(address, kAlignment) - reinterpret_cast<uintptr_t>(start));
  std::memcpy(aligned - sizeof(void *), &start, sizeof(void *));
  return aligned;
}

void free_padded(void *memory) {
  void *start = nullptr;
  std::memcpy(&start, static_cast<char *>(memory) - sizeof(void *), sizeof(void *));
  std::free(start);
}

}  // namespace

void AlignedFree::operator()(void *memory) const {
  live_bytes.fetch_sub(static_cast<int64_t>(size_bytes), std::memory_order_relaxed);
  if (is_padded(size_bytes)) return free_padded(memory);
  if (!is_kept(size_bytes)) return std::free(memory);
  void *freed[KeptBlocks::kMostBlocks + 1];
  const size_t count = kept_blocks.keep(memory, round_up(size_bytes, kAlignment), freed);
  for (size_t i = 0; i < count; ++i)
    std::free(freed[i]);
}

Result<AlignedMemory> allocate_aligned(size_t size_bytes) {
  const size_t alignment = size_bytes >= kHugeFrom ? kHugePage : kAlignment;
  constexpr size_t kMost = size_t{1} << 47;  // no address space is larger
  if (size_bytes >= kMost) return resource_exhausted("out of memory: cannot allocate ", size_bytes, " bytes");
  const size_t storage = round_up(size_bytes > 0 ? size_bytes : 1, alignment);
  void *memory = is_kept(size_bytes) ? kept_blocks.take(storage) : nullptr;
  if (memory == nullptr) {
    memory = is_padded(size_bytes) ? allocate_padded(size_bytes) : std::aligned_alloc(alignment, storage);
  }
  if (memory == nullptr)
    return resource_exhausted("out of memory: cannot allocate ", size_bytes, " bytes").with_domain("errno", ENOMEM);
  // Only a wish: without huge pages the memory is as good.
  if (alignment == kHugePage) madvise(memory, storage, MADV_HUGEPAGE);
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
          peak_bytes.load(std::memory_order_relaxed), static_cast<int64_t>(kept_blocks.bytes())};
}

}  // namespace tutti::impl::base
