// SPDX-License-Identifier: Apache-2.0
//
// Multi-output fusion on a device, interpreted: every thread runs the program for one element at a time, with registers
// in shared memory.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_FUSED_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_FUSED_H_

#include <tutti_gpu.h>

#include "backend/gpu/device/fused_program.h"

namespace tutti::impl::backend::gpu {

/// No output may lie where an input does.
gpuError_t launch_fused(const FusedProgram &program, const FusedPlaces &places, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_FUSED_H_
