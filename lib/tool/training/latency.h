// SPDX-License-Identifier: Apache-2.0
//
// How long something takes that is done again and again.
#ifndef TUTTI_TOOL_TRAINING_LATENCY_H_
#define TUTTI_TOOL_TRAINING_LATENCY_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace tutti::tool {

struct Latency {
  int64_t runs = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;  // seconds
};

/// Of times in any order: percentile p is the least of them that at least p percent of all are no longer than.
Latency latency_of(std::vector<double> seconds);

/// Runs it for that many seconds, at least 20 times, after three times that do not count.
Latency measure(double seconds, const std::function<void()> &run);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_LATENCY_H_
