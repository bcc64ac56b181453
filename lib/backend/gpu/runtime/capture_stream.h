// SPDX-License-Identifier: Apache-2.0
//
// A stream to capture a graph on, from those of earlier captures on this GPU, which stay for as long as the process
// does. No library may count on that: between uses cuDNN's handle has a stream of its own (../cuda/device_handles.h).
//
//   TUTTI_ASSIGN(CaptureStream stream, CaptureStream::take(ordinal));
//   ... capture on stream.get() ...
//   stream.give_back();                       // it is idle; without that it is destroyed
//
// Threads: any; an object is used by one.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_CAPTURE_STREAM_H_
#define TUTTI_BACKEND_GPU_RUNTIME_CAPTURE_STREAM_H_

#include <cstdint>
#include <utility>

#include "backend/gpu/runtime/runtime.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class CaptureStream {
 public:
  /// The GPU is current.
  static base::Result<CaptureStream> take(int32_t ordinal);
  CaptureStream(CaptureStream &&other) noexcept
      : ordinal_(other.ordinal_), stream_(std::exchange(other.stream_, nullptr)) {}
  CaptureStream &operator=(CaptureStream &&) = delete;
  ~CaptureStream();

  gpuStream_t get() const { return stream_; }
  void give_back();

 private:
  CaptureStream(int32_t ordinal, gpuStream_t stream) : ordinal_(ordinal), stream_(stream) {}

  int32_t ordinal_;
  gpuStream_t stream_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_CAPTURE_STREAM_H_
