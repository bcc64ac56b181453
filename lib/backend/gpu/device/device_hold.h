// SPDX-License-Identifier: Apache-2.0
//
// A point of a stream at which the device waits for the host (hold of tutti_stream_table). One thread of the device
// reads memory of the host until it may go on; no call of the host is needed for that, so none can stand in its way.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_HOLD_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_HOLD_H_

#include <tutti_gpu.h>

#include <cstdint>

namespace tutti::impl::backend::gpu {

gpuError_t launch_hold(uint32_t *words, uint8_t *verdict, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_HOLD_H_
