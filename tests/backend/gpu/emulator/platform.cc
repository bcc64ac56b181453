// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPU as a platform of lib/backend/gpu/.
#include "backend/gpu/platform.h"

#include "backend/gpu/gpu_backend.h"

namespace tutti::impl::backend::gpu::platform {

const char *name() { return "emulated"; }

base::Status check() { return base::Status(); }

base::Result<DeviceFacts> describe(int32_t) {
  size_t available = 0, total = 0;
  TUTTI_TRY(status_of(gpuMemGetInfo(&available, &total), "asking for memory"));
  return DeviceFacts{"emulated", "GPU emulated on the host", static_cast<int64_t>(total)};
}

base::Result<std::unique_ptr<Library>> open_library(int32_t) { return std::unique_ptr<Library>(); }

}  // namespace tutti::impl::backend::gpu::platform

extern "C" __attribute__((visibility("default"))) const tutti_backend_api *tutti_backend_entry(uint32_t version) {
  return tutti::impl::backend::gpu::entry(version);
}
