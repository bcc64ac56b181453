// SPDX-License-Identifier: Apache-2.0
#include "backend/stream_hold.h"

#include <new>

#include "backend/backend.h"

namespace tutti::impl::backend {

using base::Result;
using base::Status;

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

Result<StreamHold> StreamHold::create(Device &device) {
  if (!device.backend().holds_streams())
    return base::unimplemented("backend '", device.backend().name(), "' does not let streams wait for the host");
  TUTTI_ASSIGN(HostMemory memory, device.allocate_host(64));
  return StreamHold(std::move(memory));
}

StreamHold::StreamHold(HostMemory memory) : memory_(std::move(memory)) {
  for (int word = 0; word < 3; ++word)
    new (&words()[word]) std::atomic<uint32_t>(0);
}

}  // namespace tutti::impl::backend
