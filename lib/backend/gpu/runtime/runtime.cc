// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu {

base::Status failure_of(gpuError_t error, std::string_view action) {
  const base::Code code = error == gpuErrorMemoryAllocation ? base::Code::resource_exhausted : base::Code::internal;
  return base::Status(code, base::concat(action, ": ", gpuGetErrorString(error), " (", gpuGetErrorName(error), ")"));
}

}  // namespace tutti::impl::backend::gpu
