// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_program_io.h"

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

__global__ void write_run_words(const RunWords words) {
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < words.count; i += static_cast<int32_t>(blockDim.x))
    words.block[words.first + i] = words.words[i];
}

/// A row of blocks per port; 16 bytes at a time, then the rest.
__global__ void copy_ports(const PortCopies copies) {
  const PortCopies::Port &port = copies.ports[blockIdx.y];
  char *const outside = reinterpret_cast<char *>(copies.block[port.word]);
  char *const inside = static_cast<char *>(port.place);
  char *const to = copies.into_workspace ? inside : outside;
  const char *const from = copies.into_workspace ? outside : inside;
  const int64_t wide = port.bytes / 16;
  for (int64_t i = grid_thread(); i < wide; i += grid_threads())
    reinterpret_cast<Bytes16 *>(to)[i] = reinterpret_cast<const Bytes16 *>(from)[i];
  for (int64_t i = wide * 16 + grid_thread(); i < port.bytes; i += grid_threads())
    to[i] = from[i];
}

}  // namespace

gpuError_t launch_write_run_words(const RunWords &words, gpuStream_t stream) {
  return gpu_launch(write_run_words, 1, kBlockThreads, 0, stream, words);
}

gpuError_t launch_copy_ports(const PortCopies &copies, gpuStream_t stream) {
  int64_t largest = 0;
  for (int32_t i = 0; i < copies.count; ++i)
    largest = copies.ports[i].bytes > largest ? copies.ports[i].bytes : largest;
  if (largest == 0) return gpuSuccess;
  const dim3 grid(blocks_for(largest / 16 + 1), static_cast<unsigned>(copies.count));
  return gpu_launch(copy_ports, grid, kBlockThreads, 0, stream, copies);
}

}  // namespace tutti::impl::backend::gpu
