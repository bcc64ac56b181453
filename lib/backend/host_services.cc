// SPDX-License-Identifier: Apache-2.0
#include "backend/host_services.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "backend/span_times.h"
#include "base/cancel.h"
#include "base/exceptions.h"
#include "base/memory.h"

namespace tutti::impl::backend {

void collect_text(void *user, const char *text, uint64_t length) {
  static_cast<std::string *>(user)->assign(text, length);
}

void ErrorSink::set(tutti_error_sink *sink, int32_t code, const char *message) {
  auto *self = reinterpret_cast<ErrorSink *>(sink);
  if (self == nullptr || self->code_ != 0) return;
  self->code_ = code;
  self->message_ = message == nullptr ? "" : message;
}

base::Status ErrorSink::failure(int32_t code) {
  if (message_.empty()) message_ = "the backend gave no reason";
  return base::Status(base::code_from_number(code), std::move(message_));
}

bool MemoryBudget::take(int64_t bytes) {
  int64_t before = in_use();
  do {
    if (bytes > limit_ - before) return false;
  } while (!in_use_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

// Arenas are read with strides of whole rows: from here on they are on huge pages, where a row more is no walk more.
constexpr uint64_t kHugeArena = base::kHugePage / 2;

// The C functions of the table; `user` is the HostServices.
struct HostServices::Calls {
  static HostServices &self(void *user) { return *static_cast<HostServices *>(user); }

  static void *allocate(void *user, uint64_t bytes, uint64_t alignment) {
    // Nothing that large exists; some allocators end the process when asked.
    if (bytes > uint64_t{1} << 46) return nullptr;
    MemoryBudget *budget = self(user).options_.memory.get();
    if (budget != nullptr && !budget->take(static_cast<int64_t>(bytes))) return nullptr;
    const bool is_huge = bytes >= kHugeArena;
    const uint64_t step = std::max<uint64_t>(alignment, is_huge ? base::kHugePage : sizeof(void *));
    void *memory = std::aligned_alloc(step, base::round_up(std::max<uint64_t>(bytes, 1), step));
    if (memory != nullptr && is_huge) madvise(memory, bytes, MADV_HUGEPAGE);
    if (memory != nullptr) self(user).bytes_in_use_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    if (memory == nullptr && budget != nullptr) budget->give_back(static_cast<int64_t>(bytes));
    return memory;
  }

  static void release(void *user, void *memory, uint64_t bytes) {
    if (memory == nullptr) return;
    self(user).bytes_in_use_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    if (MemoryBudget *budget = self(user).options_.memory.get()) budget->give_back(static_cast<int64_t>(bytes));
    std::free(memory);
  }

  static void log(void *user, int32_t severity, const char *message) {
    const auto &write = self(user).options_.log;
    if (write) write(severity, message);
  }

  static uint64_t trace_begin(void *user, const char *name) {
    if (SpanTimes *times = SpanTimes::watching()) return times->begin();
    const auto &begin = self(user).options_.trace_begin;
    return begin ? begin(name) : 0;
  }

  static void trace_end(void *user, uint64_t span) {
    if (SpanTimes *times = SpanTimes::watching()) return times->end(span);
    const auto &end = self(user).options_.trace_end;
    if (span != 0 && end) end(span);
  }

  static int32_t trace_track(void *user, const char *name) {
    const auto &track = self(user).options_.trace_track;
    return track ? track(name) : -1;
  }

  static void trace_record(void *user, int32_t track, const char *category, const char *name, int64_t begin_ns,
                           int64_t duration_ns) {
    if (SpanTimes *times = SpanTimes::watching()) return times->add(category, duration_ns);
    const auto &record = self(user).options_.trace_record;
    if (record) record(track, category, name, begin_ns, duration_ns);
  }

  static int32_t thread_budget(void *user) { return self(user).options_.thread_budget; }

  static int32_t shared_put(void *user, const char *key, uint64_t key_length, const char *value, uint64_t value_length,
                            tutti_text_writer write, void *write_user) {
    const base::Status status = base::without_exceptions([&] {
      return self(user).options_.shared_put({key, key_length}, {value, value_length});
    });
    return answer(status, status.message(), write, write_user);
  }

  static int32_t shared_get(void *user, const char *key, uint64_t key_length, int64_t timeout_ms,
                            tutti_text_writer write, void *write_user) {
    std::string value;
    const base::Status status = base::without_exceptions([&]() -> base::Status {
      TUTTI_ASSIGN(value, self(user).options_.shared_get({key, key_length}, timeout_ms));
      return base::Status();
    });
    return answer(status, status.ok() ? value : status.message(), write, write_user);
  }

  static int32_t answer(const base::Status &status, const std::string &text, tutti_text_writer write, void *user) {
    if (write != nullptr) write(user, text.data(), text.size());
    return static_cast<int32_t>(status.code());
  }

  static int32_t is_cancelled(void *, const void *cancel) {
    return base::check(static_cast<const base::CancelToken *>(cancel)).ok() ? 0 : 1;
  }
};

HostServices::HostServices(HostOptions options) : options_(std::move(options)) {
  table_.struct_size = sizeof(table_);
  table_.user = this;
  table_.allocate = Calls::allocate;
  table_.release = Calls::release;
  table_.log = Calls::log;
  table_.trace_begin = Calls::trace_begin;
  table_.trace_end = Calls::trace_end;
  table_.thread_budget = Calls::thread_budget;
  table_.is_cancelled = Calls::is_cancelled;
  table_.set_error = ErrorSink::set;
  table_.trace_track = Calls::trace_track;
  table_.trace_record = Calls::trace_record;
  if (!options_.shared_put || !options_.shared_get) return;
  table_.shared_put = Calls::shared_put;
  table_.shared_get = Calls::shared_get;
}

namespace {

struct OpenSpan {
  const char *name;
  int64_t begin_ns;
};
/// Of the calling thread, the innermost last. A span's number is its depth; deeper ones are left out.
constinit thread_local std::array<OpenSpan, 16> open_spans{};
constinit thread_local uint64_t open_span_count = 0;

}  // namespace

void trace_into(HostOptions &options, base::Ref<base::Tracer> tracer) {
  options.trace_begin = [tracer](const char *name) -> uint64_t {
    if (!tracer->enabled() || open_span_count == open_spans.size()) return 0;
    open_spans[open_span_count] = {tracer->intern(name), base::now_ns()};
    return ++open_span_count;
  };
  options.trace_end = [tracer](uint64_t span) {
    const int64_t now_ns = base::now_ns();
    if (span > open_span_count) return;
    const OpenSpan &open = open_spans[span - 1];
    tracer->record("kernel", open.name, open.begin_ns, now_ns - open.begin_ns);
    open_span_count = span - 1;
  };
  options.trace_track = [tracer](const char *name) { return tracer->add_track(name); };
  options.trace_record = [tracer](int32_t track, const char *category, const char *name, int64_t begin_ns,
                                  int64_t duration_ns) {
    if (!tracer->enabled()) return;
    tracer->record(track, tracer->intern(category), tracer->intern(name), begin_ns, duration_ns);
  };
}

}  // namespace tutti::impl::backend
