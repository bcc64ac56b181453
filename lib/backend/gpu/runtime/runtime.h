// SPDX-License-Identifier: Apache-2.0
//
// The platform's runtime, and its errors as statuses.
//
//   TUTTI_TRY(status_of(gpuMalloc(&memory, bytes), "allocating memory"));
#ifndef TUTTI_BACKEND_GPU_RUNTIME_RUNTIME_H_
#define TUTTI_BACKEND_GPU_RUNTIME_RUNTIME_H_

#include <tutti_gpu.h>

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// Severities of tutti_backend_host::log.
constexpr int32_t kInfo = 1, kWarning = 2;

/// Ok, or what the runtime said while `action` ("allocating memory").
base::Status failure_of(gpuError_t error, std::string_view action);

inline base::Status status_of(gpuError_t error, std::string_view action) {
  return error == gpuSuccess ? base::Status() : failure_of(error, action);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_RUNTIME_H_
