// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_transpose.h"

namespace tutti::impl::backend::gpu {
namespace {

constexpr int kTile = 32;

/// One block for each tile; the column that is never used keeps threads of a warp on different banks.
template <typename T>
__global__ void transpose(T *to, const T *from, int64_t rows, int64_t columns, int64_t tiles_across) {
  __shared__ T tile[kTile][kTile + 1];
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) / tiles_across * kTile;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) % tiles_across * kTile;
  const int threads = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile; i += threads) {
    const int64_t row = first_row + i / kTile, column = first_column + i % kTile;
    if (row < rows && column < columns) tile[i / kTile][i % kTile] = from[row * columns + column];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile; i += threads) {
    const int64_t column = first_column + i / kTile, row = first_row + i % kTile;
    if (row < rows && column < columns) to[column * rows + row] = tile[i % kTile][i / kTile];
  }
}

template <typename T>
gpuError_t launch(void *to, const void *from, int64_t rows, int64_t columns, gpuStream_t stream) {
  const int64_t across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  return gpu_launch(transpose<T>, static_cast<unsigned>(across * down), kBlockThreads, 0, stream, static_cast<T *>(to),
                    static_cast<const T *>(from), rows, columns, across);
}

}  // namespace

gpuError_t launch_transpose(void *to, const void *from, int64_t rows, int64_t columns, int64_t element_bytes,
                            gpuStream_t stream) {
  if (rows == 0 || columns == 0) return gpuSuccess;
  switch (element_bytes) {
    case 2:
      return launch<uint16_t>(to, from, rows, columns, stream);
    case 4:
      return launch<uint32_t>(to, from, rows, columns, stream);
    case 8:
      return launch<uint64_t>(to, from, rows, columns, stream);
    default:
      return gpuErrorInvalidValue;
  }
}

}  // namespace tutti::impl::backend::gpu
