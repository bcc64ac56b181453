// SPDX-License-Identifier: Apache-2.0
//
// Where the memory of logical devices comes from, and what bounds it: a limit for each of them, a share of the GPU for
// all on it, what the GPU has. What goes beyond is refused, or taken from the host's memory if that is permitted: the
// GPU then reads and writes it over its bus, many times more slowly.
//
// Threads: any; the GPU is the current one.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_GPU_MEMORY_H_
#define TUTTI_BACKEND_GPU_RUNTIME_GPU_MEMORY_H_

#include <tutti/plugin/backend.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// What the logical devices on one GPU may have together.
struct GpuShare {
  int64_t limit = 0;  ///< bytes; 0 = what the GPU has
  std::atomic<int64_t> in_use{0};
};

class GpuMemory {
 public:
  struct Bounds {
    int64_t limit = 0;          ///< of the device; 0 = none
    GpuShare *share = nullptr;  ///< outlives the memory
    bool uses_host = false;
  };

  /// `device`: its name, for messages.
  GpuMemory(std::string device, const Bounds &bounds, const tutti_backend_host *host)
      : device_(std::move(device)), bounds_(bounds), host_(host) {}

  /// RESOURCE_EXHAUSTED names what is needed and what there is.
  base::Result<void *> allocate(int64_t bytes);
  /// The same of memory that the library of connected GPUs makes, where it does (collective_table.h).
  base::Result<void *> allocate_shared(int64_t bytes);
  void release(void *memory, int64_t bytes);
  /// Bytes of the GPU's memory that allocate() may give now; -1 if that cannot be told.
  int64_t available() const;

 private:
  base::Status take(int64_t bytes);
  void give_back(int64_t bytes);
  base::Result<void *> allocate_on_gpu(int64_t bytes);
  base::Result<void *> allocate_on_host(int64_t bytes, const base::Status &refusal);

  const std::string device_;
  const Bounds bounds_;
  const tutti_backend_host *const host_;
  std::atomic<int64_t> in_use_{0};
  std::mutex mutex_;
  std::set<void *> on_host_, shared_;  // guarded by mutex_
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_GPU_MEMORY_H_
