// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/runtime/device_times.h"

#include <cmath>

#include "base/trace.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

constexpr char kMaking[] = "making an event", kRecording[] = "recording an event", kReading[] = "reading device times";

/// With a clock, unlike the events that streams wait for.
Status make_event(gpuEvent_t *event) { return status_of(gpuEventCreateWithFlags(event, 0), kMaking); }

}  // namespace

Result<int64_t> nanoseconds_between(gpuEvent_t begin, gpuEvent_t end) {
  float milliseconds = 0;
  TUTTI_TRY(status_of(gpuEventElapsedTime(&milliseconds, begin, end), kReading));
  return static_cast<int64_t>(std::llround(static_cast<double>(milliseconds) * 1e6));
}

Result<std::unique_ptr<DeviceTimes>> DeviceTimes::create(const tutti_backend_host *host, const std::string &row,
                                                         gpuStream_t stream) {
  std::unique_ptr<DeviceTimes> times(new DeviceTimes(host, row, stream));
  TUTTI_TRY(make_event(&times->now_));
  for (Span &span : times->spans_) {
    TUTTI_TRY(make_event(&span.begin));
    TUTTI_TRY(make_event(&span.end));
  }
  return times;
}

DeviceTimes::~DeviceTimes() {
  const auto destroy = [](gpuEvent_t event) {
    if (event != nullptr) (void)gpuEventDestroy(event);
  };
  destroy(now_);
  for (const Span &span : spans_) {
    destroy(span.begin);
    destroy(span.end);
  }
}

Status DeviceTimes::begin(const std::string &name, const char *category) {
  if (count_ == kSpans) {
    TUTTI_TRY(status_of(gpuStreamSynchronize(stream_), kReading));
    TUTTI_TRY(tell());
  }
  Span &span = spans_[count_];
  span.name = name;
  span.category = category;
  return status_of(gpuEventRecord(span.begin, stream_), kRecording);
}

Status DeviceTimes::end() { return status_of(gpuEventRecord(spans_[count_++].end, stream_), kRecording); }

Status DeviceTimes::tell() {
  if (count_ == 0) return Status();
  // A point on both clocks: nothing else is on the stream, so the event is reached at once.
  TUTTI_TRY(status_of(gpuEventRecord(now_, stream_), kRecording));
  TUTTI_TRY(status_of(gpuEventSynchronize(now_), kReading));
  const int64_t now_ns = base::now_ns();
  for (size_t i = 0; i < count_; ++i) {
    const Span &span = spans_[i];
    TUTTI_ASSIGN(const int64_t duration_ns, nanoseconds_between(span.begin, span.end));
    TUTTI_ASSIGN(const int64_t age_ns, nanoseconds_between(span.begin, now_));
    host_->trace_record(host_->user, track_, span.category, span.name.c_str(), now_ns - age_ns, duration_ns);
  }
  count_ = 0;
  return Status();
}

}  // namespace tutti::impl::backend::gpu
