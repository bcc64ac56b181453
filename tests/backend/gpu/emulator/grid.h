// SPDX-License-Identifier: Apache-2.0
//
// A kernel of the emulated GPU: the threads of a block run one after the other on one stack until one of them meets a
// barrier: from there on it has that stack for itself, and the rest of the threads run on another. Every second launch
// goes through blocks and threads backwards, so that what lacks a barrier, or reads what another block of the launch
// writes, does not always find it there.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_GRID_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_GRID_H_

#include <tutti_gpu.h>

#include <cstddef>
#include <functional>

namespace tutti_gpu_emulator {

/// Calls `thread` for every thread of every block. One grid at a time: under work_lock() (streams.h).
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &thread);

}  // namespace tutti_gpu_emulator

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_GRID_H_
