// SPDX-License-Identifier: Apache-2.0
#include "strict_kernels.h"

#include "backend/gpu/device/storage-inl.h"

namespace tutti::testing {
namespace {

namespace gpu = impl::backend::gpu;

__global__ void copy_pack(float *to, const float *from) {
  float pack[4];
  gpu::load_pack<4>(from, 0, pack);
  gpu::store_pack<4>(to, 0, pack);
}

__global__ void as_integer(int32_t *to, const float *from) { *to = static_cast<int32_t>(*from); }

__global__ void pass_on(int32_t *to, bool waits) {
  __shared__ int32_t shared[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = thread + 1;
  if (waits) __syncthreads();
  to[thread] = shared[kBlockThreads - 1 - thread];
  if (waits) __syncthreads();
  shared[thread] = 0;
}

__global__ void add_up_blocks(int32_t *counts) {
  counts[blockIdx.x] = blockIdx.x == 0 ? 1 : counts[blockIdx.x - 1] + 1;
}

__global__ void nothing() {}

}  // namespace

gpuError_t launch_copy_pack(float *to, const float *from, gpuStream_t stream) {
  return gpu_launch(copy_pack, 1, 1, 0, stream, to, from);
}
gpuError_t launch_as_integer(int32_t *to, const float *from, gpuStream_t stream) {
  return gpu_launch(as_integer, 1, 1, 0, stream, to, from);
}
gpuError_t launch_pass_on(int32_t *to, bool waits, gpuStream_t stream) {
  return gpu_launch(pass_on, 1, kBlockThreads, 0, stream, to, waits);
}
gpuError_t launch_add_up_blocks(int32_t *counts, unsigned blocks, gpuStream_t stream) {
  return gpu_launch(add_up_blocks, blocks, 1, 0, stream, counts);
}
gpuError_t launch_nothing(dim3 grid, dim3 block, size_t shared_bytes, gpuStream_t stream) {
  return gpu_launch(nothing, grid, block, shared_bytes, stream);
}

}  // namespace tutti::testing
