// SPDX-License-Identifier: Apache-2.0
//
// NVRTC as the compiler of kernels at run time. What is compiled needs neither a GPU nor a driver; what is loaded does.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_CUDA_NVRTC_COMPILER_H_
#define TUTTI_BACKEND_CUDA_NVRTC_COMPILER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "backend/gpu/run_time_compiler.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

/// For a compute capability as a number: 90. `is_strict`: warnings are errors, for tests. UNAVAILABLE without NVRTC.
base::Result<std::shared_ptr<const gpu::RunTimeCompiler>> open_nvrtc(int32_t architecture, bool is_strict = false);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_NVRTC_COMPILER_H_
