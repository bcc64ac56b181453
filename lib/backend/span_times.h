// SPDX-License-Identifier: Apache-2.0
//
// Times of the trace spans that a backend tells of on this thread: one for each kernel of a program that was compiled
// with TUTTI_COMPILE_DEBUG_NAMES, in order. Devices with a clock of their own tell when their stream is synchronized.
//
//   {
//     const SpanTimes times;                      // from here on
//     TUTTI_TRY(program.run(0, arguments, stream));
//     TUTTI_TRY(stream.synchronize());
//     use(times.seconds());
//   }
//
// Threads: belongs to the one that made it, and sees its spans alone. They nest as scopes do.
#ifndef TUTTI_BACKEND_SPAN_TIMES_H_
#define TUTTI_BACKEND_SPAN_TIMES_H_

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tutti::impl::backend {

class SpanTimes {
 public:
  SpanTimes();
  SpanTimes(const SpanTimes &) = delete;
  SpanTimes &operator=(const SpanTimes &) = delete;
  ~SpanTimes();

  const std::vector<double> &seconds() const { return seconds_; }

  /// What watches the calling thread; null = nobody.
  static SpanTimes *watching();
  /// A span begins; its number, never 0.
  uint64_t begin();
  void end(uint64_t span);
  /// A span that has ended. Only kernels count: a program may copy more than its description lists.
  void add(std::string_view category, int64_t duration_ns);

 private:
  using Clock = std::chrono::steady_clock;

  SpanTimes *before_;
  std::vector<double> seconds_;
  std::vector<Clock::time_point> starts_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_SPAN_TIMES_H_
