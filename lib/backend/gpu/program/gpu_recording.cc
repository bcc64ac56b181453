// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/program/gpu_recording.h"

#include <stdlib.h>

#include <atomic>
#include <memory>
#include <string_view>

#include "backend/gpu/device/device_hold.h"
#include "backend/gpu/generated/platform.h"
#include "backend/gpu/program/gpu_device.h"
#include "backend/gpu/runtime/launch_gate.h"
#include "backend/gpu/runtime/ranges.h"
#include "backend/plugin_side.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// CUDA and HIP wait for each launch, if they are asked to.
bool launches_block_from_environment() {
  for (const char *const name : {"CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING"}) {
    const char *const value = secure_getenv(name);
    if (value != nullptr && std::string_view(value) != "0" && *value != '\0') return true;
  }
  return false;
}

/// What a tutti_recording handle points to.
struct GpuRecording {
  GpuDevice *device = nullptr;
  gpuGraphExec_t graph = nullptr;
  RangeName range = nullptr;

  static GpuRecording &of(tutti_recording *handle) { return *reinterpret_cast<GpuRecording *>(handle); }
};

}  // namespace

Status begin_capture(gpuStream_t stream) {
  // Relaxed: the first launch of a kernel loads its module, which is no part of the work that is captured.
  return status_of(gpuStreamBeginCapture(stream, gpuStreamCaptureModeRelaxed), "capturing a program");
}

Result<gpuGraphExec_t> end_capture(gpuStream_t stream) {
  struct CapturedGraph {
    gpuGraph_t graph = nullptr;
    ~CapturedGraph() {
      if (graph != nullptr) (void)gpuGraphDestroy(graph);
    }
  } captured;
  const Status ended = status_of(gpuStreamEndCapture(stream, &captured.graph), "capturing a program");
  gpuGraphExec_t executable = nullptr;
  Status made = ended;
  if (ended.ok()) platform::simplify(captured.graph);
  if (ended.ok()) made = status_of(gpuGraphInstantiate(&executable, captured.graph, 0), "making a graph ready");
  if (made.ok()) return executable;
  (void)gpuGetLastError();  // a library that launches next would take it for its own
  return made;
}

int32_t record_begin(tutti_stream *stream, tutti_error_sink *sink) {
  static std::atomic<int64_t> recordings{0};
  GpuStream &self = GpuStream::of(stream);
  return guarded(self.device->host(), sink, [&]() -> Status {
    TUTTI_TRY(self.device->make_current());
    TUTTI_TRY(begin_capture(self.stream));
    self.is_recording = true;
    self.recording = recordings.fetch_add(1) + 1;
    return Status();
  });
}

int32_t record_end(tutti_stream *stream, tutti_recording **recording, tutti_error_sink *sink) {
  GpuStream &self = GpuStream::of(stream);
  return guarded(self.device->host(), sink, [&]() -> Status {
    self.is_recording = false;
    const BetweenLaunches section;
    TUTTI_TRY(self.device->make_current());
    auto made = std::make_unique<GpuRecording>();
    made->device = self.device;
    made->range = register_range("recorded step");
    TUTTI_ASSIGN(made->graph, end_capture(self.stream));
    // The first launch of a graph would take memory for it.
    const Status ready = status_of(gpuGraphUpload(made->graph, self.stream), "making a graph ready");
    if (!ready.ok()) (void)gpuGraphExecDestroy(made->graph);
    TUTTI_TRY(ready);
    *recording = reinterpret_cast<tutti_recording *>(made.release());
    return Status();
  });
}

int32_t replay(tutti_recording *recording, tutti_stream *stream, tutti_error_sink *sink) {
  const GpuRecording &self = GpuRecording::of(recording);
  return guarded(self.device->host(), sink, [&]() -> Status {
    TUTTI_TRY(self.device->make_current());
    const GpuStream &target = GpuStream::of(stream);
    const Range range(self.range, target.step);
    return status_of(gpuGraphLaunch(self.graph, target.stream), "launching a recording");
  });
}

void recording_release(tutti_recording *recording) {
  if (recording == nullptr) return;
  const BetweenLaunches section;
  GpuRecording &self = GpuRecording::of(recording);
  (void)self.device->make_current();
  (void)gpuGraphExecDestroy(self.graph);
  delete &self;
}

int32_t hold(tutti_stream *stream, void *words, void *verdict, tutti_error_sink *sink) {
  GpuStream &self = GpuStream::of(stream);
  return guarded(self.device->host(), sink, [&]() -> Status {
    if (launches_block_from_environment())
      return base::unimplemented(
          "CUDA_LAUNCH_BLOCKING or HIP_LAUNCH_BLOCKING is set: streams cannot wait for the host");
    TUTTI_TRY(self.device->make_current());
    return status_of(launch_hold(static_cast<uint32_t *>(words), static_cast<uint8_t *>(verdict), self.stream),
                     "holding a stream");
  });
}

}  // namespace tutti::impl::backend::gpu
