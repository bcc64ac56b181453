// SPDX-License-Identifier: Apache-2.0
#include "backend/span_times.h"

#include <utility>

namespace tutti::impl::backend {

namespace {

constinit thread_local SpanTimes *current = nullptr;

}  // namespace

SpanTimes::SpanTimes() : before_(std::exchange(current, this)) {}

SpanTimes::~SpanTimes() { current = before_; }

SpanTimes *SpanTimes::watching() { return current; }

uint64_t SpanTimes::begin() {
  seconds_.push_back(0);
  starts_.push_back(Clock::now());
  return seconds_.size();
}

void SpanTimes::end(uint64_t span) {
  if (span == 0 || span > seconds_.size()) return;
  seconds_[span - 1] = std::chrono::duration<double>(Clock::now() - starts_[span - 1]).count();
}

void SpanTimes::add(std::string_view category, int64_t duration_ns) {
  if (category != "kernel") return;
  seconds_.push_back(static_cast<double>(duration_ns) * 1e-9);
  starts_.emplace_back();
}

}  // namespace tutti::impl::backend
