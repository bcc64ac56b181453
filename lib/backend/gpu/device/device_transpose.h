// SPDX-License-Identifier: Apache-2.0
//
// The transposition of a dense matrix, which is how a kernel [height, width, channels, filters] becomes one [filters,
// height, width, channels] and back.
//
// Tiles of 32 by 32 go through shared memory, so that both sides are read and written in whole lines.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_TRANSPOSE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_TRANSPOSE_H_

#include <tutti_gpu.h>

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// to[column, row] = from[row, column]; elements of 2, 4 or 8 bytes.
gpuError_t launch_transpose(void *to, const void *from, int64_t rows, int64_t columns, int64_t element_bytes,
                            gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_TRANSPOSE_H_
