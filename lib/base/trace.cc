// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "base/json.h"
#include "base/text.h"

namespace tutti::impl::base {

namespace {

// More threads than this share the last ring.
constexpr size_t kMostRings = 1024;

std::atomic<uint64_t> last_serial{0};

// The ring this thread used last; valid if the serial is that of the tracer that asks.
struct RingOfThread {
  uint64_t serial = 0;
  void *ring = nullptr;
};
thread_local RingOfThread ring_of_thread;

std::string thread_name() {
  std::array<char, 16> text{};
  pthread_getname_np(pthread_self(), text.data(), text.size());
  return text.data();
}

// Microseconds with three decimals, as the format wants.
void append_microseconds(std::string &out, int64_t ns) {
  std::array<char, 40> text;
  const int length = std::snprintf(text.data(), text.size(), "%lld.%03lld", static_cast<long long>(ns / 1000),
                                   static_cast<long long>(ns % 1000));
  out.append(text.data(), static_cast<size_t>(length));
}

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Tracer::Event {
  const char *category;  // null for a value
  const char *name;
  int64_t start_ns;
  int64_t duration_or_value;
};

struct Tracer::Ring {
  mutable std::mutex mutex;
  std::string name;
  int64_t thread_id = -1;  // of the system; -1 for a track
  int32_t track = 0;
  // Guarded by mutex:
  std::vector<Event> events;
  size_t oldest = 0;
  int64_t forgotten = 0;

  void add(const Event &event, size_t capacity) {
    std::lock_guard lock(mutex);
    if (events.size() < capacity) {
      events.push_back(event);
      return;
    }
    events[oldest] = event;
    oldest = oldest + 1 == capacity ? 0 : oldest + 1;
    ++forgotten;
  }
};

Tracer::Tracer(size_t events_per_thread)
    : ring_capacity_(std::max<size_t>(1, events_per_thread)), serial_(++last_serial) {}

Tracer::~Tracer() = default;

void Tracer::start() {
  std::lock_guard lock(mutex_);
  for (auto &ring : rings_) {
    std::lock_guard ring_lock(ring->mutex);
    ring->events.clear();
    ring->oldest = 0;
    ring->forgotten = 0;
  }
  started_ns_ = now_ns();
  enabled_.store(true, std::memory_order_relaxed);
}

Tracer::Ring *Tracer::add_ring(std::string name, int64_t thread_id) {
  if (rings_.size() >= kMostRings) return rings_.back().get();
  auto ring = std::make_unique<Ring>();
  ring->name = std::move(name);
  ring->thread_id = thread_id;
  ring->track = static_cast<int32_t>(rings_.size());
  rings_.push_back(std::move(ring));
  return rings_.back().get();
}

int32_t Tracer::add_track(std::string_view name) {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(rings_.begin(), rings_.end(),
                                  [name](auto &ring) { return ring->thread_id == -1 && ring->name == name; });
  return found != rings_.end() ? (*found)->track : add_ring(std::string(name), -1)->track;
}

void Tracer::name_row(std::string_view name) {
  Ring *const ring = ring_of_this_thread();
  std::lock_guard lock(mutex_);
  ring->name = name;
}

const char *Tracer::intern(std::string_view text) {
  std::lock_guard lock(mutex_);
  const auto found = names_.find(text);
  return (found != names_.end() ? found : names_.emplace(text).first)->c_str();
}

Tracer::Ring *Tracer::ring_of_this_thread() {
  if (ring_of_thread.serial == serial_) [[likely]]
    return static_cast<Ring *>(ring_of_thread.ring);
  const auto id = static_cast<int64_t>(syscall(SYS_gettid));
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(rings_.begin(), rings_.end(), [id](auto &ring) { return ring->thread_id == id; });
  Ring *ring = found != rings_.end() ? found->get() : add_ring(thread_name(), id);
  ring_of_thread = {serial_, ring};
  return ring;
}

void Tracer::record(const char *category, const char *name, int64_t start_ns, int64_t duration_ns) {
  if (!enabled()) return;
  ring_of_this_thread()->add({category, name, start_ns, duration_ns}, ring_capacity_);
}

void Tracer::record(int32_t track, const char *category, const char *name, int64_t start_ns, int64_t duration_ns) {
  if (!enabled()) return;
  Ring *ring;
  {
    std::lock_guard lock(mutex_);
    if (track < 0 || static_cast<size_t>(track) >= rings_.size()) return;
    ring = rings_[static_cast<size_t>(track)].get();
  }
  ring->add({category, name, start_ns, duration_ns}, ring_capacity_);
}

void Tracer::record_value(const char *name, int64_t value) {
  if (!enabled()) return;
  ring_of_this_thread()->add({nullptr, name, now_ns(), value}, ring_capacity_);
}

int64_t Tracer::forgotten_count() const {
  std::lock_guard lock(mutex_);
  int64_t count = 0;
  for (const auto &ring : rings_) {
    std::lock_guard ring_lock(ring->mutex);
    count += ring->forgotten;
  }
  return count;
}

std::vector<Tracer::Row> Tracer::rows() const {
  std::vector<Row> rows;
  std::lock_guard lock(mutex_);
  for (const auto &ring : rings_) {
    std::lock_guard ring_lock(ring->mutex);
    Row row{ring->name, {}, ring->forgotten};
    for (const Event &event : ring->events) {
      if (event.category != nullptr)
        row.spans.push_back({event.category, event.name, event.start_ns, event.duration_or_value});
    }
    std::stable_sort(row.spans.begin(), row.spans.end(),
                     [](const Span &a, const Span &b) { return a.start_ns < b.start_ns; });
    rows.push_back(std::move(row));
  }
  return rows;
}

void Tracer::append_event(std::string &out, const Event &event, int32_t track) const {
  out.append(event.category != nullptr ? "{\"ph\":\"X\",\"pid\":1,\"tid\":" : "{\"ph\":\"C\",\"pid\":1,\"tid\":");
  append_integer(out, track);
  out.append(",\"ts\":");
  append_microseconds(out, std::max<int64_t>(0, event.start_ns - started_ns_));
  out.append(",\"name\":");
  append_json_string(out, event.name);
  if (event.category != nullptr) {
    out.append(",\"cat\":");
    append_json_string(out, event.category);
    out.append(",\"dur\":");
    append_microseconds(out, std::max<int64_t>(0, event.duration_or_value));
  } else {
    out.append(concat(",\"args\":{\"value\":", event.duration_or_value, "}"));
  }
  out.append("},\n");
}

std::string Tracer::to_chrome_json() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<Event, int32_t>> events;
  std::string out = "{\"traceEvents\":[\n";
  for (const auto &ring : rings_) {
    std::lock_guard ring_lock(ring->mutex);
    for (const Event &event : ring->events)
      events.emplace_back(event, ring->track);
    out.append(
        concat("{\"ph\":\"M\",\"pid\":1,\"tid\":", ring->track, ",\"name\":\"thread_name\",\"args\":{\"name\":"));
    append_json_string(out, ring->name);
    out.append("}},\n");
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const auto &a, const auto &b) { return a.first.start_ns < b.first.start_ns; });
  for (const auto &[event, track] : events)
    append_event(out, event, track);
  out.append("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"tutti\"}}\n]}\n");
  return out;
}

}  // namespace tutti::impl::base
