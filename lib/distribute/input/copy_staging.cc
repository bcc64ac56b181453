// SPDX-License-Identifier: Apache-2.0
#include "distribute/input/copy_staging.h"

#include <cstring>
#include <utility>

#include "base/memory.h"

namespace tutti::impl::distribute {

int64_t CopyStaging::aligned(int64_t bytes) {
  return static_cast<int64_t>(base::round_up(static_cast<size_t>(bytes), base::kAlignment));
}

void CopyStaging::reserve(backend::Device &device, int64_t bytes) {
  taken_ = 0;
  if (!has_memory_ || memory_.size_bytes() >= bytes || !device.backend().copies_by_address()) return;
  memory_ = backend::HostMemory();  // before the larger one, so that both need not fit
  base::Result<backend::HostMemory> memory = device.allocate_host(bytes);
  has_memory_ = memory.ok();
  if (has_memory_) memory_ = std::move(*memory);
}

std::byte *CopyStaging::take(int64_t bytes) {
  if (bytes == 0 || memory_.size_bytes() - taken_ < bytes) return nullptr;
  std::byte *const room = memory_.data() + taken_;
  taken_ += aligned(bytes);
  return room;
}

const void *CopyStaging::stage(const void *rows, int64_t bytes) {
  std::byte *const room = take(bytes);
  if (room == nullptr) return rows;
  std::memcpy(room, rows, static_cast<size_t>(bytes));
  return room;
}

}  // namespace tutti::impl::distribute
