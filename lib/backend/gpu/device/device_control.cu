// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_control.h"

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Words of W; all sizes and strides are multiples of it.
template <typename W>
__global__ void copy_pieces(const PieceCopy copy) {
  const int64_t words = copy.bytes / static_cast<int64_t>(sizeof(W)), total = words * copy.count;
  for (int64_t i = grid_thread(); i < total; i += grid_threads()) {
    const int64_t piece = i / words, word = i % words;
    W *const to = reinterpret_cast<W *>(static_cast<char *>(copy.to) + piece * copy.to_stride);
    const W *const from = reinterpret_cast<const W *>(static_cast<const char *>(copy.from) + piece * copy.from_stride);
    to[word] = from[word];
  }
}

__global__ void choose(const bool *flag, const char *yes, const char *no, char *to, int64_t bytes) {
  const char *const from = *flag ? yes : no;
  for (int64_t i = grid_thread(); i < bytes; i += grid_threads())
    to[i] = from[i];
}

__global__ void make_gates(const bool *flag, const bool *outer, bool *gates) {
  if (grid_thread() != 0) return;
  const bool is_taken = outer == nullptr || *outer;
  gates[0] = is_taken && *flag;
  gates[1] = is_taken && !*flag;
}

__global__ void store_scalar(const int64_t *scalar, DType dtype, void *to) {
  if (grid_thread() == 0) store_element<int64_t>(dtype, to, 0, *scalar);
}

template <typename W>
gpuError_t launch_pieces(const PieceCopy &copy, gpuStream_t stream) {
  const int64_t words = copy.count * (copy.bytes / static_cast<int64_t>(sizeof(W)));
  return gpu_launch(copy_pieces<W>, blocks_for(words), kBlockThreads, 0, stream, copy);
}

}  // namespace

gpuError_t launch_copy_pieces(const PieceCopy &copy, gpuStream_t stream) {
  if (copy.count == 0 || copy.bytes == 0) return gpuSuccess;
  const uint64_t all = static_cast<uint64_t>(copy.bytes | copy.to_stride | copy.from_stride) |
                       reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from);
  if (all % 16 == 0) return launch_pieces<Bytes16>(copy, stream);
  return all % 4 == 0 ? launch_pieces<uint32_t>(copy, stream) : launch_pieces<char>(copy, stream);
}

gpuError_t launch_choose(const bool *flag, const void *yes, const void *no, void *to, int64_t bytes,
                         gpuStream_t stream) {
  if (bytes == 0) return gpuSuccess;
  return gpu_launch(choose, blocks_for(bytes), kBlockThreads, 0, stream, flag, static_cast<const char *>(yes),
                    static_cast<const char *>(no), static_cast<char *>(to), bytes);
}

gpuError_t launch_make_gates(const bool *flag, const bool *outer, bool *gates, gpuStream_t stream) {
  return gpu_launch(make_gates, 1, 1, 0, stream, flag, outer, gates);
}

gpuError_t launch_store_scalar(const int64_t *scalar, tensor::DType dtype, void *to, gpuStream_t stream) {
  return gpu_launch(store_scalar, 1, 1, 0, stream, scalar, dtype, to);
}

gpuError_t look_for_code() {
  gpuFuncAttributes attributes;
  return gpuFuncGetAttributes(&attributes, reinterpret_cast<const void *>(store_scalar));
}

}  // namespace tutti::impl::backend::gpu
