// SPDX-License-Identifier: Apache-2.0
//
// All memories of a backend by their addresses: what a device pointer of tutti stands for.
//
// Threads: may be used from any thread. A memory outlives whoever has found it.
#ifndef TUTTI_BACKEND_PJRT_MEMORY_MEMORY_MAP_H_
#define TUTTI_BACKEND_PJRT_MEMORY_MEMORY_MAP_H_

#include <map>
#include <shared_mutex>

#include "backend/pjrt/memory/device_memory.h"

namespace tutti::impl::backend::pjrt {

/// A memory and an offset in it.
struct MemoryPlace {
  DeviceMemory *memory = nullptr;
  int64_t offset = 0;
};

class MemoryMap {
 public:
  void add(DeviceMemory *memory);
  void remove(DeviceMemory *memory);
  /// INVALID_ARGUMENT for an address that is of none.
  base::Result<MemoryPlace> find(const void *address) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<const void *, DeviceMemory *> memories_;  // guarded by mutex_; by first byte
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_MEMORY_MEMORY_MAP_H_
