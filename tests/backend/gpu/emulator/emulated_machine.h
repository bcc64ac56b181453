// SPDX-License-Identifier: Apache-2.0
//
// What of the emulated GPU a module of kernels needs that is compiled and loaded at run time: it has no symbols of the
// plug-in, so it gets pointers.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_MACHINE_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_MACHINE_H_

#include <cstdint>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3() = default;
  constexpr dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

struct EmulatedMachine {
  const dim3 *thread, *block, *block_size, *grid_size;  ///< threadIdx, blockIdx, blockDim, gridDim
  void (*wait_for_block)();
  uint64_t (*exchange)(uint64_t value, int source_lane);
  unsigned char *(*dynamic_shared)();
};

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_EMULATED_MACHINE_H_
