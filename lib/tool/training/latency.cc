// SPDX-License-Identifier: Apache-2.0
#include "tool/training/latency.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace tutti::tool {

namespace {

constexpr int kUncounted = 3;
constexpr size_t kLeastRuns = 20, kMostRuns = 1'000'000;

double percentile(const std::vector<double> &sorted, double percent) {
  const auto rank = static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

}  // namespace

Latency latency_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {static_cast<int64_t>(seconds.size()), sum / static_cast<double>(seconds.size()), percentile(seconds, 50),
          percentile(seconds, 90), percentile(seconds, 99)};
}

Latency measure(double seconds, const std::function<void()> &run) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < kUncounted; ++i)
    run();
  const Clock::time_point begin = Clock::now();
  const auto since = [](Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); };
  std::vector<double> times;
  while (times.size() < kLeastRuns || (since(begin) < seconds && times.size() < kMostRuns)) {
    const Clock::time_point before = Clock::now();
    run();
    times.push_back(since(before));
  }
  return latency_of(std::move(times));
}

}  // namespace tutti::tool
