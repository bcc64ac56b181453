// SPDX-License-Identifier: Apache-2.0
//
// Kernels at run time on the emulated GPU: the text is handed to the C++ compiler that built the tests, its module is
// loaded into the process.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_HOST_COMPILER_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_HOST_COMPILER_H_

#include <memory>

#include "backend/gpu/generated/run_time_compiler.h"

namespace tutti::impl::backend::gpu {

/// UNAVAILABLE where there is no compiler.
base::Result<std::shared_ptr<const RunTimeCompiler>> open_host_compiler();

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_HOST_COMPILER_H_
