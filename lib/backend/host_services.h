// SPDX-License-Identifier: Apache-2.0
//
// The host's side of the plug-in boundary: what a backend may ask of the library (memory, log, trace, threads, cancel)
// as the C table of <tutti/plugin/backend.h>, and the error sink that turns a backend's (code, text) into a Status.
#ifndef TUTTI_BACKEND_HOST_SERVICES_H_
#define TUTTI_BACKEND_HOST_SERVICES_H_

#include <tutti/plugin/backend.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/object.h"
#include "base/status.h"
#include "base/trace.h"

namespace tutti::impl::backend {

/// Receives the error of one call. Lives on the stack of the wrapper that makes the call; costs nothing on success.
class ErrorSink {
 public:
  tutti_error_sink *handle() { return reinterpret_cast<tutti_error_sink *>(this); }
  /// The status of a call that returned `code`: ok for 0, else what the backend said. A code without text is reported
  /// as such; a text without a code is ignored.
  base::Status take(int32_t code) { return code == 0 ? base::Status() : failure(code); }

  /// The host table's set_error.
  static void set(tutti_error_sink *sink, int32_t code, const char *message);

 private:
  [[gnu::cold]] base::Status failure(int32_t code);

  int32_t code_ = 0;
  std::string message_;
};

/// For functions of the plug-in interface that say a text: `user` is the std::string that takes it.
void collect_text(void *user, const char *text, uint64_t length);

/// How many bytes backends may hold together, of the host's memory and of devices'. Any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}

  int64_t limit() const { return limit_; }
  int64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  /// False, and nothing is taken, when the bytes do not fit.
  bool take(int64_t bytes);
  void give_back(int64_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> in_use_{0};
};

/// Where a backend's log lines go and how many threads it may use. Copied; the functions are called on any thread.
struct HostOptions {
  /// severity: 0 debug .. 3 error. Null = dropped.
  std::function<void(int32_t severity, const std::string &message)> log;
  /// Trace hooks, as the table says; null = off. trace_into() sets them.
  std::function<uint64_t(const char *name)> trace_begin;
  std::function<void(uint64_t span)> trace_end;
  std::function<int32_t(const char *name)> trace_track;
  std::function<void(int32_t track, const char *category, const char *name, int64_t begin_ns, int64_t duration_ns)>
      trace_record;
  /// What the processes of a job tell each other, as the table says; both null for a process alone.
  std::function<base::Status(std::string_view key, std::string_view value)> shared_put;
  std::function<base::Result<std::string>(std::string_view key, int64_t timeout_ms)> shared_get;
  int32_t thread_budget = 1;
  /// Null = no limit.
  std::shared_ptr<MemoryBudget> memory;
};

/// What backends trace goes to `tracer`: spans of threads to their rows, as category "kernel".
void trace_into(HostOptions &options, base::Ref<base::Tracer> tracer);

/// The table itself. Must outlive the backend instance it was lent to; never moved.
class HostServices {
 public:
  explicit HostServices(HostOptions options);
  HostServices(const HostServices &) = delete;
  HostServices &operator=(const HostServices &) = delete;

  const tutti_backend_host *table() const { return &table_; }
  /// Bytes that the backend holds at the moment.
  int64_t bytes_in_use() const { return bytes_in_use_.load(std::memory_order_relaxed); }
  /// Null = no limit.
  const MemoryBudget *memory_budget() const { return options_.memory.get(); }
  /// For memory that the backend takes from the device, not from the host. False: it does not fit into the budget.
  bool take_device_memory(int64_t bytes) { return options_.memory == nullptr || options_.memory->take(bytes); }
  void give_back_device_memory(int64_t bytes) {
    if (options_.memory != nullptr) options_.memory->give_back(bytes);
  }

 private:
  struct Calls;

  HostOptions options_;
  std::atomic<int64_t> bytes_in_use_{0};
  tutti_backend_host table_{};
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_HOST_SERVICES_H_
