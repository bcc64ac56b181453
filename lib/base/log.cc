// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

namespace tutti::impl::base {

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::debug:
      return "DEBUG";
    case Severity::info:
      return "INFO";
    case Severity::warning:
      return "WARNING";
    case Severity::error:
      return "ERROR";
    case Severity::none:
      return "NONE";
  }
  return "UNKNOWN";
}

void Logger::set_sink(Sink sink) {
  std::shared_ptr<const Sink> fresh;
  if (sink) fresh = std::make_shared<const Sink>(std::move(sink));
  // The old sink dies, if nobody runs it, after the lock is gone.
  std::lock_guard lock(mutex_);
  has_sink_.store(fresh != nullptr, std::memory_order_relaxed);
  sink_.swap(fresh);
}

void Logger::write(Severity severity, std::string_view message) const {
  std::shared_ptr<const Sink> sink;
  {
    std::lock_guard lock(mutex_);
    sink = sink_;
  }
  if (sink == nullptr) return;
  try {
    (*sink)(severity, message);
  } catch (const std::exception &) {
    // Logging never changes what the program does.
  }
}

}  // namespace tutti::impl::base
