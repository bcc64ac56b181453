// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/stage_counters.h"

#include <algorithm>

namespace tutti::impl::data {

using base::Status;

namespace {

// The first calls are all timed, later ones now and then.
constexpr int64_t kAllTimed = 256;
constexpr int64_t kTimedDistance = 8;
constexpr size_t kMostErrors = 8;

}  // namespace

void StageCounters::add_call(int64_t elements, int64_t bytes, int64_t timed_ns) {
  add(calls_, 1);
  add(elements_, elements);
  add(bytes_, bytes);
  if (timed_ns < 0) return;
  add(timed_calls_, 1);
  add(timed_ns_, timed_ns);
}

void StageCounters::add_depth(int64_t waiting) {
  add(depths_, 1);
  add(depth_sum_, waiting);
}

void StageCounters::add_ignored(const Status &status) {
  add(ignored_, 1);
  const std::lock_guard lock(mutex_);
  if (ignored_errors_.size() < kMostErrors) ignored_errors_.push_back(status.to_string());
}

int64_t StageCounters::weight_of(int64_t number) {
  if (number < kAllTimed) return 1;
  return number % kTimedDistance == 0 ? kTimedDistance : 0;
}

StageSums StageCounters::sums(int64_t now_ns) const {
  const auto read = [](const std::atomic<int64_t> &counter) { return counter.load(std::memory_order_relaxed); };
  StageSums sums;
  sums.calls = read(calls_);
  sums.elements = read(elements_);
  sums.failures = read(failures_);
  sums.bytes = read(bytes_);
  sums.time_ns = read(timed_ns_);
  sums.depths = read(depths_);
  sums.depth_sum = read(depth_sum_);
  sums.threads = read(threads_);
  sums.work_ns = read(work_ns_);
  sums.full_ns = read(full_ns_);
  sums.arrival_ns = read(arrival_ns_);
  const int64_t timed = read(timed_calls_);
  if (timed > 0 && sums.calls > timed) {
    sums.time_ns = static_cast<int64_t>(static_cast<double>(sums.time_ns) * static_cast<double>(sums.calls) /
                                        static_cast<double>(timed));
  }
  if (has_begun()) sums.idle_ns = std::max<int64_t>(0, now_ns - read(begin_ns_) - sums.time_ns);
  const std::lock_guard lock(mutex_);
  sums.ignored = read(ignored_);
  sums.ignored_errors = ignored_errors_;
  return sums;
}

void StageSums::add(const StageSums &other) {
  calls += other.calls;
  elements += other.elements;
  failures += other.failures;
  bytes += other.bytes;
  time_ns += other.time_ns;
  depths += other.depths;
  depth_sum += other.depth_sum;
  threads = std::max(threads, other.threads);
  work_ns += other.work_ns;
  full_ns += other.full_ns;
  arrival_ns += other.arrival_ns;
  idle_ns += other.idle_ns;
  ignored += other.ignored;
  for (const std::string &error : other.ignored_errors) {
    if (ignored_errors.size() < kMostErrors) ignored_errors.push_back(error);
  }
}

}  // namespace tutti::impl::data
