// SPDX-License-Identifier: Apache-2.0
//
// What gpu/ asks of a platform beyond <tutti_gpu.h>. Each platform defines these once, in its own folder.
//
// Threads: any.
#ifndef TUTTI_BACKEND_GPU_GENERATED_PLATFORM_H_
#define TUTTI_BACKEND_GPU_GENERATED_PLATFORM_H_

#include <tutti_gpu.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/gpu/generated/library_plan_cache.h"
#include "backend/gpu/generated/run_time_compiler.h"
#include "backend/gpu/library/library.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu::platform {

/// The backend's name: "cuda", "hip".
const char *name();

/// Ok, or one sentence why no device can be used: no driver, a driver that is too old, no device.
base::Status check();

/// What its kernels are compiled for, for people: "sm_80, sm_90, sm_120 and later".
const char *architectures();

/// What a physical device is.
struct DeviceFacts {
  std::string kind;         ///< equal for devices that run each other's executables: "cuda sm_90"
  std::string description;  ///< for people: "NVIDIA H200, compute capability 9.0, 132 multiprocessors, CUDA 13.0 ..."
  int64_t memory_bytes = 0;
  bool multiplies_bf16 = false;  ///< are products of bf16 faster than those of f32?
  bool multiplies_f16 = false;   ///< of f16?
};
base::Result<DeviceFacts> describe(int32_t ordinal);

/// What the platform's kernels come from, by name: a version, or "is missing: ..." with one sentence. Libraries are
/// opened now at the latest; no device is.
std::vector<std::pair<std::string, std::string>> describe_libraries();

/// Kernels that the platform's libraries have for a device; null where there are none. What they compile may be kept in
/// `kept`. The device is current.
base::Result<std::unique_ptr<Library>> open_library(int32_t ordinal, std::shared_ptr<const LibraryPlanCache> kept);

/// Are kernels compiled at run time where nobody says whether?
bool generates_kernels();

/// The compiler of kernels for a device. UNAVAILABLE: one sentence that says what is missing. The device is current.
base::Result<std::shared_ptr<const RunTimeCompiler>> open_compiler(int32_t ordinal);

/// Puts others in place of nodes that take the platform long to launch; the graph does the same. Before it is made
/// ready.
void simplify(gpuGraph_t graph);

}  // namespace tutti::impl::backend::gpu::platform

#endif  // TUTTI_BACKEND_GPU_GENERATED_PLATFORM_H_
