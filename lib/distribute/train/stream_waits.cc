// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/stream_waits.h"

#include <utility>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status StreamWaits::begin(backend::Device &device, backend::Stream &stream) {
  if (!device.backend().has_timed_events()) return Status();
  if (count_ == waits_.size()) {
    Wait wait;
    TUTTI_ASSIGN(wait.begin, device.create_timed_event());
    TUTTI_ASSIGN(wait.end, device.create_timed_event());
    waits_.push_back(std::move(wait));
  }
  is_open_ = true;
  return waits_[count_].begin.record(stream);
}

Status StreamWaits::end(backend::Stream &stream) {
  return std::exchange(is_open_, false) ? waits_[count_++].end.record(stream) : Status();
}

void StreamWaits::drop() {
  is_open_ = false;
  count_ = 0;
}

Result<int64_t> StreamWaits::sum() const {
  int64_t sum_ns = 0;
  for (size_t i = 0; i < count_; ++i) {
    TUTTI_ASSIGN(const int64_t waited_ns, waits_[i].end.nanoseconds_since(waits_[i].begin));
    sum_ns += waited_ns;
  }
  return sum_ns;
}

Result<int64_t> StreamWaits::take(backend::Device &device, backend::Stream &stream, base::Tracer *tracer) {
  int64_t now_ns = 0;
  if (tracer != nullptr && count_ > 0) {
    if (now_.handle() == nullptr) {
      TUTTI_ASSIGN(now_, device.create_timed_event());
    }
    TUTTI_TRY(now_.record(stream));
    TUTTI_TRY(now_.synchronize());
    now_ns = base::now_ns();
  }
  TUTTI_ASSIGN(const int64_t sum_ns, sum());
  for (size_t i = 0; tracer != nullptr && i < count_; ++i) {
    TUTTI_ASSIGN(const int64_t waited_ns, waits_[i].end.nanoseconds_since(waits_[i].begin));
    TUTTI_ASSIGN(const int64_t age_ns, now_.nanoseconds_since(waits_[i].begin));
    tracer->record("wait", "communication", now_ns - age_ns, waited_ns);
  }
  drop();
  return sum_ns;
}

}  // namespace tutti::impl::distribute
