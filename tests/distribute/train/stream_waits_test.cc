// SPDX-License-Identifier: Apache-2.0
//
// How long a stream has waited, on a backend whose clock these tests set.
#include "distribute/train/stream_waits.h"

#include <tutti/plugin/backend.h>
#include <tutti/status.h>

#include "backend/reference/reference_backend.h"
#include "testing.h"

namespace tutti::testing::stream_waits_test {
namespace {

namespace backend = impl::backend;
namespace base = impl::base;
using impl::distribute::StreamWaits;

/// The device's, which runs only when a test says so.
struct Clock {
  int64_t now_ns = 0;
  int64_t events_made = 0, most_events = INT64_MAX;
};
Clock device_clock;

struct TimedEvent {
  int64_t reached_ns = -1;
};
TimedEvent &of(tutti_event *event) { return *reinterpret_cast<TimedEvent *>(event); }

int32_t create_timed(tutti_device *, tutti_event **event, tutti_error_sink *) {
  if (device_clock.events_made == device_clock.most_events) return TUTTI_RESOURCE_EXHAUSTED;
  ++device_clock.events_made;
  *event = reinterpret_cast<tutti_event *>(new TimedEvent);
  return TUTTI_OK;
}
void release(tutti_event *event) { delete &of(event); }
int32_t record(tutti_event *event, tutti_stream *, tutti_error_sink *) {
  of(event).reached_ns = device_clock.now_ns;
  return TUTTI_OK;
}
int32_t elapsed(tutti_event *begin, tutti_event *end, int64_t *nanoseconds, tutti_error_sink *) {
  if (of(begin).reached_ns < 0 || of(end).reached_ns < 0) return TUTTI_FAILED_PRECONDITION;
  *nanoseconds = of(end).reached_ns - of(begin).reached_ns;
  return TUTTI_OK;
}

const tutti_backend_api *timed_entry(uint32_t version) {
  static tutti_backend_api api = *backend::reference::entry(version);
  static tutti_stream_table streams = *backend::reference::entry(version)->stream;
  streams.event_create = create_timed;
  streams.event_release = release;
  streams.event_record = record;
  streams.event_create_timed = create_timed;
  streams.event_elapsed = elapsed;
  api.stream = &streams;
  return &api;
}

struct Fixture {
  explicit Fixture(tutti_backend_entry_function entry = timed_entry) {
    device_clock = Clock();
    device = assert_ok_value(assert_ok_value(backend::Backend::create(entry, "{}", {}))->open_device(0));
    stream = assert_ok_value(device->create_stream());
  }
  void wait(int64_t ns) {
    assert_ok(waits.begin(*device, stream));
    device_clock.now_ns += ns;
    assert_ok(waits.end(stream));
  }
  void compute(int64_t ns) { device_clock.now_ns += ns; }
  int64_t take(base::Tracer *tracer = nullptr) { return assert_ok_value(waits.take(*device, stream, tracer)); }

  backend::DeviceRef device;
  backend::Stream stream;
  StreamWaits waits;
};

void waits_are_summed_and_computing_is_not(void **) {
  Fixture f;
  assert_int_equal(f.take(), 0);
  f.compute(1000);
  f.wait(30);
  f.compute(500);
  f.wait(4);
  f.compute(70);
  assert_int_equal(f.take(), 34);
  assert_int_equal(f.take(), 0);  // they are told once
}

void events_are_kept(void **) {
  Fixture f;
  for (int64_t step = 1; step <= 5; ++step) {
    for (int64_t n = 0; n < 3; ++n)
      f.wait(step);
    assert_int_equal(f.take(), 3 * step);
    assert_int_equal(device_clock.events_made, 6);
  }
  f.wait(9);  // fewer than before: the others do not count
  assert_int_equal(f.take(), 9);
}

/// As of a recording: each replay reaches the same events anew.
void waits_of_recordings_are_read_and_stay(void **) {
  Fixture f;
  StreamWaits recorded;
  for (const int64_t waited_ns : {20, 300}) {
    recorded.drop();
    assert_ok(recorded.begin(*f.device, f.stream));
    device_clock.now_ns += waited_ns;
    assert_ok(recorded.end(f.stream));
    assert_int_equal(assert_ok_value(recorded.sum()), waited_ns);
    assert_int_equal(assert_ok_value(recorded.sum()), waited_ns);
  }
}

void a_step_that_is_given_up_leaves_nothing(void **) {
  Fixture f;
  f.wait(100);
  assert_ok(f.waits.begin(*f.device, f.stream));
  f.waits.drop();
  assert_ok(f.waits.end(f.stream));  // of a wait that was dropped
  f.wait(7);
  assert_int_equal(f.take(), 7);
  assert_ok(f.waits.begin(*f.device, f.stream));
  f.compute(1000);
  assert_int_equal(f.take(), 0);  // one that never ended
  assert_ok(f.waits.end(f.stream));
  assert_int_equal(f.take(), 0);
}

void traces_show_where_on_the_hosts_clock(void **) {
  Fixture f;
  const auto tracer = base::make_ref<base::Tracer>();
  tracer->start();
  f.compute(1000);
  f.wait(30);
  f.compute(500);
  f.wait(4);
  f.compute(70);
  const int64_t begin_ns = base::now_ns();
  assert_int_equal(f.take(tracer.get()), 34);
  const int64_t end_ns = base::now_ns();
  const std::vector<base::Tracer::Row> rows = tracer->rows();
  assert_int_equal(rows.size(), 1);
  const std::vector<base::Tracer::Span> &spans = rows[0].spans;
  assert_int_equal(spans.size(), 2);
  // 604 and 74 ns before the clocks were read.
  assert_in_range(spans[0].start_ns + 604, begin_ns, end_ns);
  assert_int_equal(spans[1].start_ns - spans[0].start_ns, 530);
  assert_int_equal(spans[0].duration_ns, 30);
  assert_int_equal(spans[1].duration_ns, 4);
  for (const base::Tracer::Span &span : spans) {
    assert_string_equal(span.category, "wait");
    assert_string_equal(span.name, "communication");
  }
  assert_int_equal(f.take(tracer.get()), 0);
  assert_int_equal(tracer->rows()[0].spans.size(), 2);
  assert_int_equal(device_clock.events_made, 5);  // and one for the clocks
}

void without_timed_events_nothing_counts(void **) {
  Fixture f(backend::reference::entry);
  assert_false(f.device->backend().has_timed_events());
  const auto tracer = base::make_ref<base::Tracer>();
  tracer->start();
  f.wait(30);
  assert_int_equal(f.take(tracer.get()), 0);
  assert_int_equal(device_clock.events_made, 0);
}

void errors_of_events_come_out(void **) {
  Fixture f;
  f.wait(5);
  device_clock.most_events = 3;  // half a pair
  assert_int_equal(f.waits.begin(*f.device, f.stream).code(), base::Code::resource_exhausted);
  assert_ok(f.waits.end(f.stream));
  assert_int_equal(f.take(), 5);
  f.wait(6);  // with the pair that there is
  assert_int_equal(f.take(), 6);
}

}  // namespace
static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(waits_of_recordings_are_read_and_stay),
      cmocka_unit_test(waits_are_summed_and_computing_is_not),
      cmocka_unit_test(events_are_kept),
      cmocka_unit_test(a_step_that_is_given_up_leaves_nothing),
      cmocka_unit_test(traces_show_where_on_the_hosts_clock),
      cmocka_unit_test(without_timed_events_nothing_counts),
      cmocka_unit_test(errors_of_events_come_out),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::stream_waits_test
