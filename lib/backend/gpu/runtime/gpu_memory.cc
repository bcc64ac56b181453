// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/runtime/gpu_memory.h"

#include <algorithm>

#include "backend/gpu/runtime/collective_table.h"
#include "backend/gpu/runtime/launch_gate.h"
#include "backend/gpu/runtime/runtime.h"
#include "base/text.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// What is left of a limit (0 = none) of which so much is in use.
int64_t left_of(int64_t limit, int64_t in_use) { return limit > 0 ? std::max<int64_t>(limit - in_use, 0) : INT64_MAX; }

}  // namespace

Status GpuMemory::take(int64_t bytes) {
  const int64_t own = in_use_.fetch_add(bytes);
  const int64_t shared = bounds_.share != nullptr ? bounds_.share->in_use.fetch_add(bytes) : 0;
  Status status;
  if (bytes > left_of(bounds_.limit, own)) {
    status = base::resource_exhausted("device ", device_, " needs ", bytes, " more bytes, but ", own, " of the ",
                                      bounds_.limit, " bytes of its limit are in use");
  } else if (bounds_.share != nullptr && bytes > left_of(bounds_.share->limit, shared)) {
    status = base::resource_exhausted("device ", device_, " needs ", bytes, " more bytes, but ", shared, " of the ",
                                      bounds_.share->limit, " bytes allowed on its GPU are in use");
  }
  if (!status.ok()) give_back(bytes);
  return status;
}

void GpuMemory::give_back(int64_t bytes) {
  in_use_.fetch_sub(bytes);
  if (bounds_.share != nullptr) bounds_.share->in_use.fetch_sub(bytes);
}

Result<void *> GpuMemory::allocate_on_gpu(int64_t bytes) {
  TUTTI_TRY(take(bytes));
  void *memory = nullptr;
  const gpuError_t error = gpuMalloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (error == gpuSuccess) return memory;
  const int64_t before = in_use_.load() - bytes;
  give_back(bytes);
  (void)gpuGetLastError();  // it would be reported by the next launch
  if (error != gpuErrorMemoryAllocation) return failure_of(error, "allocating device memory");
  size_t available = 0, total = 0;
  (void)gpuMemGetInfo(&available, &total);
  return base::resource_exhausted("device ", device_, " needs ", bytes, " more bytes, but only ", available, " of its ",
                                  total, " bytes are free (", before, " in use by this device)");
}

Result<void *> GpuMemory::allocate_on_host(int64_t bytes, const Status &refusal) {
  void *memory = nullptr;
  const gpuError_t error = gpuHostAlloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), gpuHostAllocMapped);
  if (error != gpuSuccess) {
    (void)gpuGetLastError();
    return Status(refusal).wrap(base::concat("the host cannot provide ", bytes,
                                             " bytes of page-locked memory for what does not fit into GPU memory"));
  }
  const std::string line = base::concat(refusal.message(), ": host memory is used instead, which is many times slower");
  host_->log(host_->user, kWarning, line.c_str());
  const std::lock_guard lock(mutex_);
  on_host_.insert(memory);
  return memory;
}

Result<void *> GpuMemory::allocate(int64_t bytes) {
  const BetweenLaunches section;
  Result<void *> memory = allocate_on_gpu(bytes);
  if (!bounds_.uses_host || memory.code() != base::Code::resource_exhausted) return memory;
  return allocate_on_host(bytes, memory.status());
}

Result<void *> GpuMemory::allocate_shared(int64_t bytes) {
  const BetweenLaunches section;
  void *memory = nullptr;
  if (take(bytes).ok()) {
    memory = allocate_window(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (memory == nullptr) give_back(bytes);
  }
  if (memory == nullptr) return allocate(bytes);
  const std::lock_guard lock(mutex_);
  shared_.insert(memory);
  return memory;
}

void GpuMemory::release(void *memory, int64_t bytes) {
  const BetweenLaunches section;
  {
    const std::lock_guard lock(mutex_);
    if (shared_.erase(memory) != 0) {
      release_window(memory);
      return give_back(bytes);
    }
    if (on_host_.erase(memory) != 0) {
      (void)gpuFreeHost(memory);
      return;
    }
  }
  (void)gpuFree(memory);
  give_back(bytes);
}

int64_t GpuMemory::available() const {
  size_t available = 0, total = 0;
  if (gpuMemGetInfo(&available, &total) != gpuSuccess) return -1;
  const int64_t shared = bounds_.share != nullptr ? left_of(bounds_.share->limit, bounds_.share->in_use) : INT64_MAX;
  return std::min({static_cast<int64_t>(available), left_of(bounds_.limit, in_use_), shared});
}

}  // namespace tutti::impl::backend::gpu
