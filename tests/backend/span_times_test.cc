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

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(spans_are_seen_while_watched),
      cmocka_unit_test(a_span_takes_as_long_as_it_is_open),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
