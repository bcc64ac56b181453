// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/memory/memory_map.h"

#include <iterator>
#include <mutex>

namespace tutti::impl::backend::pjrt {

void MemoryMap::add(DeviceMemory *memory) {
  std::unique_lock lock(mutex_);
  memories_[memory->address()] = memory;
}

void MemoryMap::remove(DeviceMemory *memory) {
  std::unique_lock lock(mutex_);
  memories_.erase(memory->address());
}

base::Result<MemoryPlace> MemoryMap::find(const void *address) const {
  std::shared_lock lock(mutex_);
  const auto after = memories_.upper_bound(address);
  if (after == memories_.begin() || !std::prev(after)->second->contains(address))
    return base::invalid_argument("an address that is in no memory of these devices");
  DeviceMemory *const memory = std::prev(after)->second;
  return MemoryPlace{memory, static_cast<const std::byte *>(address) - memory->address()};
}

void MemoryMap::add_host(const void *memory, int64_t bytes) {
  std::unique_lock lock(mutex_);
  host_[memory] = bytes;
}

void MemoryMap::remove_host(const void *memory) {
  std::unique_lock lock(mutex_);
  host_.erase(memory);
}

bool MemoryMap::is_host(const void *address) const {
  std::shared_lock lock(mutex_);
  const auto after = host_.upper_bound(address);
  if (after == host_.begin()) return false;
  const auto &[first, bytes] = *std::prev(after);
  return static_cast<const std::byte *>(address) - static_cast<const std::byte *>(first) < bytes;
}

}  // namespace tutti::impl::backend::pjrt
