// SPDX-License-Identifier: Apache-2.0
//
// All memories of a backend by their addresses: what a device pointer of tutti stands for. Memory of the host that was
// allocated for copies is among them, since programs may read their inputs there, too.
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

  void add_host(const void *memory, int64_t bytes);
  void remove_host(const void *memory);
  /// Is this in memory of the host for copies?
  bool is_host(const void *address) const;

 private:
  mutable std::shared_mutex mutex_;
  // Guarded by mutex_, by first byte:
  std::map<const void *, DeviceMemory *> memories_;
  std::map<const void *, int64_t> host_;
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_MEMORY_MEMORY_MAP_H_
