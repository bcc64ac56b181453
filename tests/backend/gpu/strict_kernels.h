// SPDX-License-Identifier: Apache-2.0
//
// Kernels that a real GPU would not, or not always, do right.
#ifndef TUTTI_TESTS_BACKEND_GPU_STRICT_KERNELS_H_
#define TUTTI_TESTS_BACKEND_GPU_STRICT_KERNELS_H_

#include <tutti_gpu.h>

#include <cstdint>

namespace tutti::testing {

/// Four floats in one access.
gpuError_t launch_copy_pack(float *to, const float *from, gpuStream_t stream);
gpuError_t launch_as_integer(int32_t *to, const float *from, gpuStream_t stream);
/// to[i] = kBlockThreads - i by way of shared memory; if `waits`, with the barriers that it needs.
gpuError_t launch_pass_on(int32_t *to, bool waits, gpuStream_t stream);
/// counts[i] = i + 1, of counts[i - 1], which another block writes.
gpuError_t launch_add_up_blocks(int32_t *counts, unsigned blocks, gpuStream_t stream);
gpuError_t launch_nothing(dim3 grid, dim3 block, size_t shared_bytes, gpuStream_t stream);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_GPU_STRICT_KERNELS_H_
