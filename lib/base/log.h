// SPDX-License-Identifier: Apache-2.0
//
// Log lines go to the sink of a logger, one logger per context; the library itself writes nothing to stdout
// or stderr, unless a program or its user asks for it. Without a sink lines are dropped.
//
//   logger->info("batch size ", 64, " = ", 4, " replicas x ", 16);
//
// Threads: all functions may be called from any thread. The sink runs on the thread that logs, with no lock held, and
// concurrently with itself. After set_sink() returns, a line that was on its way may still reach the old sink, which
// stays alive until then.
#ifndef TUTTI_BASE_LOG_H_
#define TUTTI_BASE_LOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/object.h"
#include "base/text.h"

namespace tutti::impl::base {

/// How much a line matters; ordered. The numbers are part of the C ABI.
enum class Severity : int32_t { debug = 1, info = 2, warning = 3, error = 4, none = 5 };

/// "INFO", "WARNING", ...
std::string_view name(Severity severity);

class Logger : public Object {
 public:
  using Sink = std::function<void(Severity, std::string_view message)>;

  /// Replaces the sink; an empty function drops all lines.
  void set_sink(Sink sink);
  /// Lines below this are not even formatted. Info at first; none drops everything.
  void set_threshold(Severity threshold) { threshold_.store(threshold, std::memory_order_relaxed); }
  bool enabled(Severity severity) const {
    return severity >= threshold_.load(std::memory_order_relaxed) && has_sink_.load(std::memory_order_relaxed);
  }
  /// Hands one line to the sink, whatever it throws is swallowed.
  void write(Severity severity, std::string_view message) const;

  /// Writes the concatenated pieces if the severity is enabled.
  template <typename... Pieces>
  void log(Severity severity, const Pieces &...pieces) const {
    if (enabled(severity)) write(severity, concat(pieces...));
  }
  template <typename... Pieces>
  void debug(const Pieces &...pieces) const {
    log(Severity::debug, pieces...);
  }
  template <typename... Pieces>
  void info(const Pieces &...pieces) const {
    log(Severity::info, pieces...);
  }
  template <typename... Pieces>
  void warning(const Pieces &...pieces) const {
    log(Severity::warning, pieces...);
  }
  template <typename... Pieces>
  void error(const Pieces &...pieces) const {
    log(Severity::error, pieces...);
  }

 private:
  std::atomic<Severity> threshold_{Severity::info};
  std::atomic<bool> has_sink_{false};
  mutable std::mutex mutex_;
  std::shared_ptr<const Sink> sink_;  // guarded by mutex_
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_LOG_H_
