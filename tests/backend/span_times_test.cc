// SPDX-License-Identifier: Apache-2.0
//
// Times of spans: those of one's own thread, in order, and only while somebody watches.
#include "backend/span_times.h"

#include <thread>

#include "backend/host_services.h"
#include "testing.h"

namespace {

using tutti::impl::backend::HostServices;
using tutti::impl::backend::SpanTimes;
using tutti::impl::base::Tracer;

/// A span as a backend makes one.
void span(const tutti_backend_host &host) {
  const uint64_t number = host.trace_begin(host.user, "kernel");
  host.trace_end(host.user, number);
}

void spans_are_seen_while_watched(void **) {
  int told = 0;
  tutti::impl::backend::HostOptions options;
  options.trace_begin = [&](const char *) { return static_cast<uint64_t>(++told); };
  const HostServices services(options);
  const tutti_backend_host &host = *services.table();
  span(host);
  assert_int_equal(told, 1);
  {
    const SpanTimes outer;
    span(host);
    span(host);
    {
      const SpanTimes inner;
      span(host);
      assert_int_equal(inner.seconds().size(), 1);
    }
    assert_int_equal(outer.seconds().size(), 2);
    assert_true(outer.seconds()[0] >= 0 && outer.seconds()[1] >= 0);
    std::thread([&] { span(host); }).join();
    assert_int_equal(outer.seconds().size(), 2);
    assert_int_equal(told, 2);
  }
  span(host);
  assert_int_equal(told, 3);
  assert_null(SpanTimes::watching());
}

void a_span_takes_as_long_as_it_is_open(void **) {
  const HostServices services({});
  const tutti_backend_host &host = *services.table();
  const SpanTimes times;
  const uint64_t long_one = host.trace_begin(host.user, "long");
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const uint64_t short_one = host.trace_begin(host.user, "short");
  host.trace_end(host.user, short_one);
  host.trace_end(host.user, long_one);
  host.trace_end(host.user, 77);
  assert_int_equal(times.seconds().size(), 2);
  assert_true(times.seconds()[0] >= 5e-3);
  assert_true(times.seconds()[1] < times.seconds()[0]);
}

void spans_with_times_of_a_device_count_where_they_are_told(void **) {
  int told = 0;
  tutti::impl::backend::HostOptions options;
  options.trace_record = [&](int32_t, const char *, const char *, int64_t, int64_t) { ++told; };
  const HostServices services(options);
  const tutti_backend_host &host = *services.table();
  assert_int_equal(host.trace_track(host.user, "gpu:0"), -1);  // nobody has tracks
  {
    const SpanTimes times;
    host.trace_record(host.user, 0, "kernel", "a", 5000, 3000);
    host.trace_record(host.user, 0, "copy", "b", 8000, 1000);
    assert_int_equal(times.seconds().size(), 1);
    assert_true(times.seconds()[0] > 2.9e-6 && times.seconds()[0] < 3.1e-6);
  }
  assert_int_equal(told, 0);
  host.trace_record(host.user, 0, "kernel", "a", 5000, 3000);
  assert_int_equal(told, 1);
}

void a_tracer_has_rows_of_threads_and_devices(void **) {
  const auto tracer = tutti::impl::base::make_ref<Tracer>();
  tutti::impl::backend::HostOptions options;
  tutti::impl::backend::trace_into(options, tracer);
  const HostServices services(options);
  const tutti_backend_host &host = *services.table();
  const int32_t track = host.trace_track(host.user, "gpu:0");
  assert_int_equal(host.trace_track(host.user, "gpu:0"), track);
  assert_int_equal(host.trace_begin(host.user, "off"), 0);
  host.trace_record(host.user, track, "kernel", "off", 1, 1);
  tracer->start();
  const uint64_t outer = host.trace_begin(host.user, "outer");
  span(host);
  host.trace_end(host.user, outer);
  host.trace_end(host.user, outer);  // has ended
  host.trace_record(host.user, track, "copy", "late", 70, 7);
  host.trace_record(host.user, track, "kernel", "early", 50, 9);
  tracer->stop();
  for (const Tracer::Row &row : tracer->rows()) {
    assert_int_equal(row.spans.size(), 2);
    const bool is_device = row.name == "gpu:0";
    assert_string_equal(row.spans[0].name, is_device ? "early" : "outer");
    assert_string_equal(row.spans[1].name, is_device ? "late" : "kernel");
    assert_string_equal(row.spans[1].category, is_device ? "copy" : "kernel");
    if (is_device) assert_int_equal(row.spans[0].duration_ns, 9);
  }
  assert_int_equal(tracer->rows().size(), 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(spans_are_seen_while_watched),
      cmocka_unit_test(a_span_takes_as_long_as_it_is_open),
      cmocka_unit_test(spans_with_times_of_a_device_count_where_they_are_told),
      cmocka_unit_test(a_tracer_has_rows_of_threads_and_devices),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
