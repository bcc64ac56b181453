// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPU as a platform of lib/backend/gpu/.
#include "backend/gpu/generated/platform.h"

#include "backend/gpu/program/gpu_backend.h"
#include "emulated_library.h"
#include "host_compiler.h"
#include "streams.h"

namespace tutti::impl::backend::gpu::platform {

const char *name() { return "emulated"; }

base::Status check() { return base::Status(); }

const char *architectures() { return "sm_1, sm_2 and later"; }

base::Result<DeviceFacts> describe(int32_t) {
  const auto bytes = static_cast<int64_t>(tutti_gpu_emulator::memory_bytes());
  return DeviceFacts{"emulated", "GPU emulated on the host", bytes, true, true};
}

std::vector<std::pair<std::string, std::string>> describe_libraries() { return {{"emulator", "1.2.3"}}; }

base::Result<std::unique_ptr<Library>> open_library(int32_t, std::shared_ptr<const LibraryPlanCache>) {
  return open_emulated_library();
}

/// The usual tests are of the interpreter: compilers take seconds.
bool generates_kernels() { return false; }

base::Result<std::shared_ptr<const RunTimeCompiler>> open_compiler(int32_t) { return open_host_compiler(); }

void simplify(gpuGraph_t) {}

}  // namespace tutti::impl::backend::gpu::platform

extern "C" __attribute__((visibility("default"))) const tutti_backend_api *tutti_backend_entry(uint32_t version) {
  return tutti::impl::backend::gpu::entry(version);
}
