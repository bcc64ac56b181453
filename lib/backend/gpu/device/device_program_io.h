// SPDX-License-Identifier: Apache-2.0
//
// What a program does around its kernels: write the run block, copy inputs from where the caller has them and outputs
// to where the caller wants them. The pointers are read on the device, so that a captured graph works for any.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_PROGRAM_IO_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_PROGRAM_IO_H_

#include <tutti_gpu.h>

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// Up to kWords words of the run block, by value in a launch.
struct RunWords {
  static constexpr int32_t kWords = 128;
  uint64_t *block;
  int32_t first, count;
  uint64_t words[kWords];
};

/// Writes block[first, first + count).
gpuError_t launch_write_run_words(const RunWords &words, gpuStream_t stream);

/// Up to kPorts copies between the workspace and pointers in the run block.
struct PortCopies {
  static constexpr int32_t kPorts = 48;
  const uint64_t *block;
  int32_t count;
  bool into_workspace;
  struct Port {
    int32_t word;  ///< of the run block: the caller's pointer, aligned to 64
    void *place;   ///< in the workspace, aligned to 64
    int64_t bytes;
  } ports[kPorts];
};

gpuError_t launch_copy_ports(const PortCopies &copies, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_PROGRAM_IO_H_
