// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <atomic>
#include <thread>
#include <vector>

#include "base/json.h"
#include "testing.h"

namespace trace_test {

using namespace tutti::impl::base;

namespace {

// The events of one phase ("X", "C", "M").
std::vector<Json> events_of(const Tracer &tracer, const std::string &phase) {
  const Json document = assert_ok_value(Json::parse(tracer.to_chrome_json()));
  std::vector<Json> events;
  for (const Json &event : document.find("traceEvents")->array()) {
    if (event.find("ph")->string() == phase) events.push_back(event);
  }
  return events;
}

void off_records_nothing(void **) {
  const Ref<Tracer> tracer = make_ref<Tracer>();
  { TraceSpan span(tracer.get(), "c", "off"); }
  { TraceSpan span(nullptr, "c", "none"); }
  tracer->record_value("v", 1);
  assert_int_equal(events_of(*tracer, "X").size(), 0);
  assert_int_equal(events_of(*tracer, "C").size(), 0);
}

void spans_values_and_tracks(void **) {
  const Ref<Tracer> tracer = make_ref<Tracer>();
  tracer->start();
  const int64_t before = now_ns();
  {
    TraceSpan outer(tracer.get(), "data", "outer");
    TraceSpan inner(tracer.get(), "data", tracer->intern("in\"ner"));
  }
  const int32_t device = tracer->add_track("cuda:0");
  tracer->record(device, "kernel", "matmul", before + 5000, 2500);
  tracer->record(99, "kernel", "nowhere", before, 1);
  tracer->record_value("queue", 3);
  tracer->stop();
  { TraceSpan late(tracer.get(), "data", "late"); }
  const std::vector<Json> spans = events_of(*tracer, "X");
  assert_int_equal(spans.size(), 3);
  bool escaped = false, timed = false;
  for (const Json &span : spans) {
    const JsonReader reader(span, "span");
    escaped |= assert_ok_value(reader.get_string("name")) == "in\"ner";
    if (assert_ok_value(reader.get_string("name")) != "matmul") continue;
    timed = assert_ok_value(reader.get_double("dur")) == 2.5;
    assert_int_equal(assert_ok_value(reader.get_integer("tid")), device);
  }
  assert_true(escaped && timed);
  const std::vector<Json> values = events_of(*tracer, "C");
  assert_int_equal(values.size(), 1);
  assert_int_equal(values[0].find("args")->find("value")->integer(), 3);
  assert_ptr_equal(tracer->intern("same"), tracer->intern("same"));
}

void rows_have_names_and_spans_by_begin(void **) {
  const Ref<Tracer> tracer = make_ref<Tracer>(2);
  tracer->start();
  const int32_t track = tracer->add_track("gpu:0");
  assert_int_equal(tracer->add_track("gpu:0"), track);
  tracer->record(track, "c", "second", 20, 5);
  tracer->record(track, "c", "first", 10, 5);
  tracer->record_value("length", 3);
  tracer->name_row("replica 0");
  std::vector<Tracer::Row> rows = tracer->rows();
  assert_int_equal(rows.size(), 2);
  assert_string_equal(rows[0].name.c_str(), "gpu:0");
  assert_string_equal(rows[0].spans[0].name, "first");
  assert_string_equal(rows[0].spans[1].name, "second");
  assert_int_equal(rows[0].forgotten_count, 0);
  assert_string_equal(rows[1].name.c_str(), "replica 0");
  assert_int_equal(rows[1].spans.size(), 0);  // a value is no span
  tracer->record(track, "c", "third", 30, 5);
  rows = tracer->rows();
  assert_int_equal(rows[0].spans.size(), 2);
  assert_int_equal(rows[0].forgotten_count, 1);
}

void a_full_ring_forgets_the_oldest(void **) {
  const Ref<Tracer> tracer = make_ref<Tracer>(4);
  tracer->start();
  for (int64_t i = 0; i < 10; ++i)
    tracer->record("c", "e", now_ns(), i * 1000);
  assert_int_equal(tracer->forgotten_count(), 6);
  const std::vector<Json> spans = events_of(*tracer, "X");
  assert_int_equal(spans.size(), 4);
  assert_true(assert_ok_value(JsonReader(spans[0], "x").get_double("dur")) == 6.0);
  tracer->start();
  assert_int_equal(tracer->forgotten_count(), 0);
  assert_int_equal(events_of(*tracer, "X").size(), 0);
}

void threads_record_while_one_exports(void **) {
  const Ref<Tracer> tracer = make_ref<Tracer>(256);
  const Ref<Tracer> other = make_ref<Tracer>(256);
  tracer->start();
  other->start();
  std::vector<std::thread> threads;
  std::atomic<bool> done{false};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!done) {
        TraceSpan span(tracer.get(), "c", "a");
        TraceSpan second(other.get(), "c", "b");
      }
    });
  }
  for (int i = 0; i < 20; ++i)
    assert_true(Json::parse(tracer->to_chrome_json()).ok());
  while (events_of(*tracer, "M").size() < 4)
    std::this_thread::yield();
  done = true;
  for (std::thread &thread : threads)
    thread.join();
  for (const Json &event : events_of(*other, "X"))
    assert_true(event.find("name")->string() == "b");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(off_records_nothing),
    cmocka_unit_test(spans_values_and_tracks),
    cmocka_unit_test(rows_have_names_and_spans_by_begin),
    cmocka_unit_test(a_full_ring_forgets_the_oldest),
    cmocka_unit_test(threads_record_while_one_exports),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace trace_test
