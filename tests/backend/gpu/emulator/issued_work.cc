// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/emulated_streams.h"
#include "backend/gpu/program/gpu_device.h"
#include "streams.h"

extern "C" __attribute__((visibility("default"))) void tutti_emulated_issue(tutti_stream *handle,
                                                                            const std::function<bool()> &work) {
  using namespace tutti_gpu_emulator;
  const std::lock_guard guard(work_lock());
  const gpuStream_t stream = tutti::impl::backend::gpu::GpuStream::of(handle).stream;
  issue(stream, work);
  keep_going(stream->lane);
}
