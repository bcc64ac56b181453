// SPDX-License-Identifier: Apache-2.0
//
// What ran when: spans recorded into one ring per thread and written as Chrome trace JSON (chrome://tracing, Perfetto).
//
//   { TraceSpan span(tracer, "data", "decode"); decode(); }
//   tracer->record(track, "cuda", "matmul", start_ns, duration_ns);      // measured elsewhere, e.g. on a device
//
// Off costs one relaxed load per span. On, a span costs two clock readings and an uncontended lock. A full ring forgets
// its oldest events, and counts them.
//
// Threads: all functions may be called from any thread. Names and categories are kept as pointers: literals, or texts
// from intern(), which live as long as the tracer.
#ifndef TUTTI_BASE_TRACE_H_
#define TUTTI_BASE_TRACE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"

namespace tutti::impl::base {

/// Nanoseconds of the steady clock.
int64_t now_ns();

class Tracer : public Object {
 public:
  /// Rings of `events_per_thread` events.
  explicit Tracer(size_t events_per_thread = 1 << 15);
  ~Tracer() override;

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  /// Starts recording; what was recorded before is forgotten.
  void start();
  void stop() { enabled_.store(false, std::memory_order_relaxed); }

  /// The calling thread's row is called so from now on.
  void name_row(std::string_view name);
  /// A row of the trace other than a thread: a device, a stream. Equal names have one row.
  int32_t add_track(std::string_view name);
  /// A pointer that stays valid, for names made at run time.
  const char *intern(std::string_view text);

  /// A finished span on the calling thread's row.
  void record(const char *category, const char *name, int64_t start_ns, int64_t duration_ns);
  /// A finished span on a row of add_track().
  void record(int32_t track, const char *category, const char *name, int64_t start_ns, int64_t duration_ns);
  /// A value that changes over time (queue length), drawn as a graph.
  void record_value(const char *name, int64_t value);

  /// Everything recorded since start(), as a JSON document sorted by time.
  std::string to_chrome_json() const;
  /// Events that found their ring full.
  int64_t forgotten_count() const;

  struct Span {
    const char *category;
    const char *name;
    int64_t start_ns;
    int64_t duration_ns;
  };
  struct Row {
    std::string name;
    std::vector<Span> spans;      ///< by begin, without values
    int64_t forgotten_count = 0;  ///< of its events, the oldest
  };
  /// The spans recorded since start(); their texts live as long as the tracer.
  std::vector<Row> rows() const;

 private:
  struct Event;
  struct Ring;

  Ring *ring_of_this_thread();
  Ring *add_ring(std::string name, int64_t thread_id);
  void append_event(std::string &out, const Event &event, int32_t track) const;

  const size_t ring_capacity_;
  const uint64_t serial_;  // tells this tracer from an earlier one at the same address
  std::atomic<bool> enabled_{false};
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  int64_t started_ns_ = 0;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::set<std::string, std::less<>> names_;
};

/// Records the time from its making to its end. `tracer` may be null.
class TraceSpan {
 public:
  TraceSpan(Tracer *tracer, const char *category, const char *name)
      : tracer_(tracer != nullptr && tracer->enabled() ? tracer : nullptr), category_(category), name_(name) {
    if (tracer_ != nullptr) start_ns_ = now_ns();
  }
  ~TraceSpan() {
    if (tracer_ != nullptr) tracer_->record(category_, name_, start_ns_, now_ns() - start_ns_);
  }
  TraceSpan(const TraceSpan &) = delete;
  TraceSpan &operator=(const TraceSpan &) = delete;

 private:
  Tracer *tracer_;
  const char *category_;
  const char *name_;
  int64_t start_ns_ = 0;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_TRACE_H_
