// SPDX-License-Identifier: Apache-2.0
//
// HIP (AMD's GPUs) as a platform of gpu/.
#include "backend/gpu/generated/platform.h"

#include <unistd.h>

#include <algorithm>

#include "backend/gpu/generated/rtc_compiler.h"
#include "backend/gpu/runtime/runtime.h"
#include "backend/hip/hip_library.h"
#include "base/text.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {

/// "gfx90a" of "gfx90a:sramecc+:xnack-".
std::string architecture_of(const hipDeviceProp_t &properties) {
  const std::string name = properties.gcnArchName;
  return name.substr(0, name.find(':'));
}

Result<hipDeviceProp_t> properties_of(int32_t ordinal) {
  hipDeviceProp_t properties;
  TUTTI_TRY(status_of(hipGetDeviceProperties(&properties, ordinal), "asking what a device is"));
  return properties;
}

}  // namespace

const char *name() { return "hip"; }

Status check() {
  int count = 0;
  const hipError_t error = hipGetDeviceCount(&count);
  if (error == hipSuccess && count > 0) return Status();
  (void)hipGetLastError();  // it would be reported by the next launch
  if (access("/dev/kfd", F_OK) != 0)
    return base::unavailable("there is no AMD driver: the kernel module amdgpu makes /dev/kfd, which is missing");
  if (access("/dev/kfd", R_OK | W_OK) != 0)
    return base::unavailable(
        "AMD GPUs are not accessible: this user may not open /dev/kfd; members of the group 'render' may");
  if (error == hipSuccess || error == hipErrorNoDevice)
    return base::unavailable("there is no AMD GPU, or the environment variable HIP_VISIBLE_DEVICES hides it");
  return base::unavailable("HIP cannot be used: ", hipGetErrorString(error), " (", hipGetErrorName(error), ")");
}

const char *architectures() { return TUTTI_HIP_ARCHITECTURES; }

Result<DeviceFacts> describe(int32_t ordinal) {
  TUTTI_ASSIGN(const hipDeviceProp_t properties, properties_of(ordinal));
  DeviceFacts facts;
  const std::string architecture = architecture_of(properties);
  facts.kind = "hip " + architecture;
  facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  facts.multiplies_bf16 = facts.multiplies_f16 =
      true;  // by the kernels of gpu/, which compute in f32 and read half as much
  facts.description =
      base::concat(static_cast<const char *>(properties.name), ", ", architecture, ", ", properties.multiProcessorCount,
                   " compute units, ", facts.memory_bytes >> 20, " MiB");
  return facts;
}

std::vector<std::pair<std::string, std::string>> describe_libraries() {
  int version = 0;
  if (hipRuntimeGetVersion(&version) != hipSuccess) return {};
  return {{"HIP", base::concat(version / 10000000, ".", version / 100000 % 100)}};
}

Result<std::unique_ptr<Library>> open_library(int32_t ordinal, std::shared_ptr<const LibraryPlanCache>) {
  TUTTI_ASSIGN(const hipDeviceProp_t properties, properties_of(ordinal));
  const std::string architecture = architecture_of(properties);
  const std::vector<std::string> compiled = base::split(TUTTI_HIP_ARCHITECTURES, ' ');
  // The runtime of early releases ends the process when it is asked for code that it does not have.
  if (std::find(compiled.begin(), compiled.end(), architecture) == compiled.end())
    return base::unavailable("GPU ", ordinal, " (hip ", architecture,
                             ") is not supported by this plug-in, which was built for ", architectures());
  return hip::open_library(ordinal);
}

bool generates_kernels() { return true; }

Result<std::shared_ptr<const RunTimeCompiler>> open_compiler(int32_t ordinal) {
  TUTTI_ASSIGN(const hipDeviceProp_t properties, properties_of(ordinal));
  return open_rtc_compiler(properties.gcnArchName);
}

void simplify(gpuGraph_t) {}

}  // namespace tutti::impl::backend::gpu::platform
