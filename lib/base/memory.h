// SPDX-License-Identifier: Apache-2.0
//
// Aligned memory for tensors and arenas: 64 bytes, or 2 MiB with a wish for huge pages from 4 MiB on. What is allocated
// here is counted, so that tests and reports can tell how much is held. All functions may be called from any thread.
//
// Some freed blocks are kept for the next allocation of their size: the C library gives such large ones back to the
// system, and getting a batch's memory page by page costs several times what filling it does.
#ifndef TUTTI_BASE_MEMORY_H_
#define TUTTI_BASE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace tutti::impl::base {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

/// Blocks from this size on and below kHugeFrom are kept when they are freed, up to so many bytes together.
constexpr size_t kKeptFrom = size_t{128} << 10;
constexpr size_t kMostKeptBytes = size_t{32} << 20;

struct AlignedFree {
  size_t size_bytes = 0;
  void operator()(void *memory) const;
};
/// Owns memory of allocate_aligned().
using AlignedMemory = std::unique_ptr<void, AlignedFree>;

/// `size_bytes` of memory with undefined contents; size 0 gives a pointer too. RESOURCE_EXHAUSTED naming the size.
Result<AlignedMemory> allocate_aligned(size_t size_bytes);
/// The same, filled with zeros.
Result<AlignedMemory> allocate_zeroed(size_t size_bytes);

/// Calls of and bytes from allocate_aligned() and allocate_zeroed().
struct AllocationCount {
  int64_t calls = 0;       // since the process began
  int64_t live_bytes = 0;  // not yet freed
  int64_t peak_bytes = 0;  // the most that lived at once
  int64_t kept_bytes = 0;  // freed, and kept for the next ones: at most kMostKeptBytes
};
AllocationCount allocation_count();

/// Bytes that the process may still allocate without pushing others out, by the system, its control groups and its
/// resource limits. Reads files of the system: not for hot loops.
int64_t available_memory();

/// `size` rounded up to a multiple of `alignment`, a power of two.
constexpr size_t round_up(size_t size, size_t alignment) { return (size + alignment - 1) & ~(alignment - 1); }
/// Up to the next multiple of kAlignment.
constexpr int64_t round_up_aligned(int64_t size) {
  return static_cast<int64_t>(round_up(static_cast<size_t>(size), kAlignment));
}
inline bool is_aligned(const void *memory) { return reinterpret_cast<uintptr_t>(memory) % kAlignment == 0; }

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_MEMORY_H_
