// SPDX-License-Identifier: Apache-2.0
//
// A line on standard error that says how far long work is, five times a second; nothing when that is not a terminal.
#ifndef TUTTI_TOOL_CONSOLE_PROGRESS_H_
#define TUTTI_TOOL_CONSOLE_PROGRESS_H_

#include <chrono>
#include <cstdint>

namespace tutti::tool {

class Progress {
 public:
  /// `total` elements; negative = nobody knows.
  explicit Progress(int64_t total);
  /// Wipes the line out.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void at(int64_t elements);
  /// Since the beginning.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  const int64_t total_;
  const bool is_shown_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_ + std::chrono::milliseconds(500);
  bool has_line_ = false;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONSOLE_PROGRESS_H_
