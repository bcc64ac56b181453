// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/runtime/capture_stream.h"

#include <map>
#include <mutex>
#include <vector>

namespace tutti::impl::backend::gpu {

namespace {

struct IdleStreams {
  std::mutex mutex;
  std::map<int32_t, std::vector<gpuStream_t>> by_ordinal;
};

/// Never destroyed: the driver may be gone when the process ends.
IdleStreams &idle_streams() {
  static auto *const made = new IdleStreams;
  return *made;
}

}  // namespace

base::Result<CaptureStream> CaptureStream::take(int32_t ordinal) {
  {
    IdleStreams &idle = idle_streams();
    const std::lock_guard lock(idle.mutex);
    std::vector<gpuStream_t> &streams = idle.by_ordinal[ordinal];
    if (!streams.empty()) {
      const gpuStream_t stream = streams.back();
      streams.pop_back();
      return CaptureStream(ordinal, stream);
    }
  }
  gpuStream_t stream = nullptr;
  TUTTI_TRY(status_of(gpuStreamCreateWithFlags(&stream, gpuStreamNonBlocking), "making a stream"));
  return CaptureStream(ordinal, stream);
}

CaptureStream::~CaptureStream() {
  if (stream_ != nullptr) (void)gpuStreamDestroy(stream_);
}

void CaptureStream::give_back() {
  IdleStreams &idle = idle_streams();
  const std::lock_guard lock(idle.mutex);
  idle.by_ordinal[ordinal_].push_back(std::exchange(stream_, nullptr));
}

}  // namespace tutti::impl::backend::gpu
