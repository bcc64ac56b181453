// SPDX-License-Identifier: Apache-2.0
//
// Copies and sums that the executor itself needs, on the kernels of device_elementwise.h.
#ifndef TUTTI_BACKEND_GPU_ELEMENTWISE_H_
#define TUTTI_BACKEND_GPU_ELEMENTWISE_H_

#include <cstdint>

#include "backend/gpu/kernel.h"

namespace tutti::impl::backend::gpu {

/// Output 0 becomes input 0, byte by byte; they may be the same memory.
Kernel copy_kernel(int64_t bytes);

/// Output 0 becomes input 0 + input 1; they may be the same memory.
base::Result<Kernel> accumulate_kernel(tensor::DType dtype, int64_t elements);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_ELEMENTWISE_H_
