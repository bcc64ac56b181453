// SPDX-License-Identifier: Apache-2.0
#include "monitor/event_file.h"

#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/temporary_directory.h"
#include "data/format/record.h"
#include "monitor/event_decoder.h"
#include "monitor/summary.h"
#include "testing.h"

namespace tutti::testing::event_file_test {

namespace base = impl::base;
using impl::monitor::Event;
using impl::monitor::EventFile;
using impl::monitor::EventKind;
using impl::monitor::Summary;

constexpr double kNever = 1e9;

static base::Status add_scalar(EventFile &file, int64_t step, std::string_view tag, double value) {
  Summary summary;
  summary.add_scalar(tag, value);
  return file.add({.time_ns = 1'500'000'000 + step, .step = step, .message = summary.bytes()});
}

static std::vector<std::string> names_in(const std::string &folder) {
  return base::list_directory(folder).value_or(std::vector<std::string>());
}

// Byte by byte what TensorFlow writes first.
static void test_framing(void **) {
  std::string message(
      "\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d"
      "brain.Event:2",
      24),
      record;
  impl::data::append_record(message, record);
  const std::string expected = std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12) + message + "\x86\xbf\x57\x7a";
  assert_true(record == expected);
}

static void test_scalars(void **) {
  const TemporaryDirectory folder;
  const std::vector<std::string> tags = {"loss", "Loss", "a/b c/ü", "", std::string("nul\0inside", 10)};
  EventFile file(folder / "deep/er", 0);
  Summary summary;
  for (size_t i = 0; i < tags.size(); ++i)
    summary.add_scalar(tags[i], 0.1 * static_cast<double>(i + 1));
  summary.add_scalar("nan", std::nan(""));
  summary.add_scalar("inf", -std::numeric_limits<double>::infinity());
  summary.add_scalar("bad \xff\xc3(", 1e300);
  assert_ok(file.add({.time_ns = 1'700'000'000'250'000'000, .step = int64_t{1} << 40, .message = summary.bytes()}));
  const std::vector<DecodedEvent> events = decode_event_folder(folder / "deep/er");
  assert_int_equal(events.size(), 2);
  assert_int_equal(events[1].step, int64_t{1} << 40);
  assert_true(events[1].wall_time == 1700000000.25);
  assert_int_equal(events[1].values.size(), tags.size() + 3);
  for (size_t i = 0; i < tags.size(); ++i)
    assert_true(events[1].scalar(tags[i]) == static_cast<float>(0.1 * static_cast<double>(i + 1)));
  assert_true(std::isnan(events[1].scalar("nan")) && events[1].values.contains("nan"));
  assert_true(events[1].scalar("inf") == -std::numeric_limits<double>::infinity());
  assert_true(std::isinf(events[1].scalar("bad \xef\xbf\xbd\xef\xbf\xbd(")));
}

// Each file sorts behind those before it, also those that say they are of the future, and other files.
static void test_names(void **) {
  const TemporaryDirectory folder;
  assert_ok(base::write_file_synced(folder / "events.out.tfevents.9000000000.host", ""));
  assert_ok(base::write_file_synced(folder / "events.out.tfevents.not-a-number", ""));
  std::string last = "events.out.tfevents.9000000000.host";
  for (int i = 0; i < 12; ++i) {
    EventFile file(folder.path(), 0);
    assert_ok(file.start(1));
    std::vector<std::string> names = names_in(folder.path());
    assert_int_equal(names.size(), 3 + i);
    const std::string &newest = names[names.size() - 2];  // behind it the one without a number
    assert_true(newest > last);
    last = newest;
  }
  const TemporaryDirectory fresh;
  EventFile file(fresh.path(), 0);
  assert_ok(file.start(1));
  const std::string name = names_in(fresh.path()).at(0);
  char host[256] = {};
  assert_int_equal(gethostname(host, sizeof host - 1), 0);
  const std::string prefix = "events.out.tfevents.", behind = base::concat(".", host, ".", getpid(), ".");
  assert_true(name.starts_with(prefix) && name.find(behind) == prefix.size() + 10);
}

static void test_cadence(void **) {
  const TemporaryDirectory folder;
  {
    EventFile file(folder.path(), kNever);
    assert_true(names_in(folder.path()).empty());
    assert_ok(add_scalar(file, 1, "x", 1));  // the first one is seen at once
    assert_int_equal(decode_event_folder(folder.path()).size(), 2);
    assert_ok(add_scalar(file, 2, "x", 2));
    assert_ok(file.flush_if_due());
    assert_int_equal(decode_event_folder(folder.path()).size(), 2);
    assert_ok(file.flush());
    assert_int_equal(decode_event_folder(folder.path()).size(), 3);
    // More than is kept is written before its time.
    for (int64_t step = 3; step < 30'000; ++step)
      assert_ok(add_scalar(file, step, "x", 3));
    assert_true(decode_event_folder(folder.path()).size() > 3);
  }
  EventFile file(folder / "quick", 0.05);
  assert_ok(add_scalar(file, 1, "x", 1));
  assert_ok(add_scalar(file, 2, "x", 2));
  assert_int_equal(decode_event_folder(folder / "quick").size(), 2);
  usleep(60'000);
  assert_ok(file.flush_if_due());
  assert_int_equal(decode_event_folder(folder / "quick").size(), 3);
}

static void test_restarts(void **) {
  const TemporaryDirectory folder;
  for (const int64_t resumed : {0, 5, 5, 2}) {
    EventFile file(folder.path(), kNever);
    assert_ok(file.start(resumed + 1));
    for (int64_t step = resumed + 1; step <= resumed + 6; ++step)
      assert_ok(add_scalar(file, step, "x", static_cast<double>(step)));
    assert_ok(file.flush());
  }
  const std::vector<DecodedEvent> events = decode_event_folder(folder.path());
  assert_int_equal(curve(events, "x").size(), 24);
  const std::vector<std::pair<int64_t, double>> expected = {{1, 1}, {2, 2}, {3, 3}, {4, 4},
                                                            {5, 5}, {6, 6}, {7, 7}, {8, 8}};
  assert_true(curve(shown_events(events), "x") == expected);
}

// A write that fails leaves whole records, and all events come when there is room again.
static void test_full_disk(void **) {
  const TemporaryDirectory folder;
  EventFile file(folder.path(), 0);
  base::fail_file_operation(base::FileOperation::open, 1, EACCES);
  assert_error_contains(add_scalar(file, 1, "x", 1), "Permission denied");
  assert_ok(add_scalar(file, 2, "x", 2));
  assert_int_equal(curve(decode_event_folder(folder.path()), "x").size(), 2);
  base::fail_file_operation(base::FileOperation::write, 1, ENOSPC);
  assert_error_contains(add_scalar(file, 3, "x", 3), "No space left on device");
  assert_int_equal(curve(decode_event_folder(folder.path()), "x").size(), 2);
  assert_ok(add_scalar(file, 4, "x", 4));
  const std::vector<std::pair<int64_t, double>> all = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};
  assert_true(curve(decode_event_folder(folder.path()), "x") == all);
}

static void test_memory_while_nothing_can_be_written(void **) {
  const TemporaryDirectory folder;
  assert_ok(base::write_file_synced(folder / "file", ""));
  EventFile file(folder / "file/below", kNever);
  const std::string text(10'000, 'x');
  Summary summary;
  summary.add_text("t", text);
  size_t failures = 0;
  for (int64_t step = 1; step <= 1000; ++step)
    failures += !file.add({.step = step, .message = summary.bytes()}).ok();
  assert_int_equal(failures, 1);  // tried once in so long a time
  assert_ok(base::remove_file(folder / "file"));
  assert_ok(file.flush());
  const size_t kept = decode_event_folder(folder / "file/below").size();
  assert_true(kept > 90 && kept <= EventFile::kMostWaiting / text.size() + 1);
}

static void test_text(void **) {
  const TemporaryDirectory folder;
  EventFile file(folder.path(), 0);
  Summary summary;
  summary.add_text("notes", "**bold** \xff");
  assert_ok(file.add({.step = 3, .message = summary.bytes()}));
  const DecodedEvent event = decode_event_folder(folder.path()).at(1);
  const Fields value = event.values.at("notes");
  const Fields tensor = decode_message(field_of(value, 8)), metadata = decode_message(field_of(value, 9));
  assert_int_equal(integer_of(tensor, 1), 7);  // DT_STRING
  assert_string_equal(field_of(tensor, 8).c_str(), "**bold** \xef\xbf\xbd");
  assert_int_equal(integer_of(decode_message(field_of(decode_message(field_of(tensor, 2)), 2)), 1), 1);
  assert_string_equal(field_of(decode_message(field_of(metadata, 1)), 1).c_str(), "text");
}

static const CMUnitTest tests[] = {
    cmocka_unit_test(test_framing),  cmocka_unit_test(test_scalars),
    cmocka_unit_test(test_names),    cmocka_unit_test(test_cadence),
    cmocka_unit_test(test_restarts), cmocka_unit_test(test_full_disk),
    cmocka_unit_test(test_text),     cmocka_unit_test(test_memory_while_nothing_can_be_written),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::event_file_test
