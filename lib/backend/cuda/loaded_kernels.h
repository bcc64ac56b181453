// SPDX-License-Identifier: Apache-2.0
//
// Machine code as kernels, through the runtime: the driver is not linked.
#ifndef TUTTI_BACKEND_CUDA_LOADED_KERNELS_H_
#define TUTTI_BACKEND_CUDA_LOADED_KERNELS_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/run_time_compiler.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

/// The kernels of these names, on the current device already and on any other when they are launched there first.
base::Result<std::vector<std::shared_ptr<const gpu::GeneratedKernel>>> load_kernels(const std::string &image,
                                                                                    std::span<const std::string> names);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_LOADED_KERNELS_H_
