// SPDX-License-Identifier: Apache-2.0
#include "monitor/profile_planes.h"

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "monitor/event_decoder.h"
#include "testing.h"

namespace tutti::testing::profile_planes_test {

using impl::monitor::profile_planes;
using Row = impl::base::Tracer::Row;

struct DecodedEvent {
  std::string name, shown_name;
  int64_t offset_ps, duration_ps;
  std::map<std::string, std::string> texts;
  std::map<std::string, int64_t> numbers;
};
struct DecodedLine {
  int64_t timestamp_ns;
  std::vector<DecodedEvent> events;
};
struct DecodedPlane {
  std::map<int64_t, Fields> events, stats;  // metadata by id
  std::map<std::string, DecodedLine> lines;
};

static std::map<int64_t, Fields> metadata_of(const Fields &plane, int32_t field) {
  std::map<int64_t, Fields> all;
  for (const auto &[number, value] : plane) {
    if (number != field) continue;
    const Fields entry = decode_message(value), metadata = decode_message(field_of(entry, 2));
    assert_int_equal(integer_of(entry, 1), integer_of(metadata, 1));
    assert_true(all.emplace(integer_of(entry, 1), metadata).second);
  }
  return all;
}

static DecodedEvent decode_event(const DecodedPlane &plane, const Fields &fields) {
  const Fields &metadata = plane.events.at(integer_of(fields, 1));
  DecodedEvent event{
      field_of(metadata, 2), field_of(metadata, 4), integer_of(fields, 2), integer_of(fields, 3), {}, {}};
  for (const auto &[number, value] : fields) {
    if (number != 4) continue;
    const Fields stat = decode_message(value);
    const std::string name = field_of(plane.stats.at(integer_of(stat, 1)), 2);
    const bool is_text = !field_of(stat, 5).empty();
    if (is_text) event.texts[name] = field_of(stat, 5);
    if (!is_text) event.numbers[name] = integer_of(stat, 4);
  }
  return event;
}

static std::map<std::string, DecodedPlane> decode(const std::string &bytes) {
  std::map<std::string, DecodedPlane> planes;
  for (const auto &[number, value] : decode_message(bytes)) {
    if (number != 1) continue;
    const Fields fields = decode_message(value);
    DecodedPlane plane{metadata_of(fields, 4), metadata_of(fields, 5), {}};
    for (const auto &[field, line_bytes] : fields) {
      if (field != 3) continue;
      const Fields line = decode_message(line_bytes);
      DecodedLine &decoded = plane.lines[field_of(line, 2)];
      decoded.timestamp_ns = integer_of(line, 3);
      for (const auto &[part, event] : line)
        if (part == 4) decoded.events.push_back(decode_event(plane, decode_message(event)));
    }
    assert_true(planes.emplace(field_of(fields, 2), plane).second);
  }
  return planes;
}

static void test_a_processor(void **) {
  const Row row{"cpu:0",
                {{"step", "step", 1000, 500},
                 {"wait", "input", 1010, 20},
                 {"kernel", "gradient/dense/matmul_1 simd:gemm", 1100, 30},
                 {"step", "step", 1500, 400},
                 {"wait", "communication", 1600, 5}},
                0};
  const auto planes = decode(profile_planes(std::vector<Row>{row, {"silent", {}, 0}}, -7'000'000));
  assert_int_equal(planes.size(), 1);
  const DecodedPlane &host = planes.at("/host:CPU");
  assert_int_equal(host.lines.size(), 1);
  const DecodedLine &line = host.lines.at("cpu:0");
  assert_int_equal(line.timestamp_ns, 7'001'000);
  assert_int_equal(line.events.size(), 5);
  const DecodedEvent &step = line.events[3], &kernel = line.events[2];
  assert_string_equal(step.name.c_str(), "train");
  assert_int_equal(step.offset_ps, 500'000);
  assert_int_equal(step.duration_ps, 400'000);
  assert_int_equal(step.numbers.at("step_num"), 2);
  assert_int_equal(step.numbers.at("_r"), 1);
  assert_string_equal(kernel.name.c_str(), "gradient/dense/matmul_1:matmul");
  assert_string_equal(kernel.shown_name.c_str(), "gradient/dense/matmul_1 simd:gemm");
  assert_true(kernel.numbers.empty() && kernel.texts.empty());
  assert_string_equal(line.events[1].name.c_str(), "IteratorGetNext:IteratorGetNext");
  assert_string_equal(line.events[1].shown_name.c_str(), "wait for input");
  assert_string_equal(line.events[4].name.c_str(), "wait for communication");
}

// Each kernel is tied to the step that its replica was in.
static void test_a_device_beside_its_replica(void **) {
  const Row replica{"replica 0 on gpu:0", {{"step", "step", 100, 50}, {"step", "step", 200, 50}}, 0};
  const Row device{"gpu:0",
                   {{"copy", "to device", 90, 5},
                    {"kernel", "dense/matmul gemm", 110, 20},
                    {"kernel", "dense/matmul gemm", 170, 20},
                    {"kernel", "dense/add_2", 210, 20}},
                   0};
  const Row other{"gpu:1", {{"kernel", "x", 1, 1}}, 0};  // of no replica
  const auto planes = decode(profile_planes(std::vector<Row>{device, other, replica}, 0));
  assert_int_equal(planes.size(), 2);
  const DecodedLine &line = planes.at("/device:GPU:0").lines.at("gpu:0");
  assert_int_equal(line.events.size(), 4);
  assert_true(line.events[0].numbers.empty() && line.events[0].texts.empty());
  assert_string_equal(line.events[3].texts.at("tf_op").c_str(), "dense/add_2:add");
  std::map<int64_t, int64_t> launches;
  const DecodedPlane &host = planes.at("/host:CPU");
  assert_int_equal(host.lines.size(), 2);
  int64_t last_ps = 0;
  for (const DecodedEvent &event : host.lines.at("replica 0 on gpu:0").events) {
    assert_true(event.offset_ps >= last_ps);
    last_ps = event.offset_ps;
    if (event.name == "launch") launches[event.numbers.at("correlation_id")] = event.offset_ps;
  }
  assert_int_equal(launches.size(), 3);
  const auto launched = [&](size_t i) { return launches.at(line.events[i].numbers.at("correlation_id")); };
  assert_int_equal(launched(1), 109'000);  // the first span of all begins at 1
  assert_int_equal(launched(2), 148'000);  // within the end of the step before
  assert_int_equal(launched(3), 209'000);
}

static void test_names_that_are_not_utf8(void **) {
  const Row row{"a\xff", {{"kernel", "b\xfe c", 1, 1}}, 0};
  const auto planes = decode(profile_planes(std::vector<Row>{row}, 0));
  assert_string_equal(planes.at("/host:CPU").lines.at("a\xEF\xBF\xBD").events[0].name.c_str(),
                      "b\xEF\xBF\xBD:b\xEF\xBF\xBD");
}

static void test_each_profile_has_a_folder(void **) {
  const TemporaryDirectory folder;
  std::string last;
  for (int32_t i = 0; i < 3; ++i) {
    const std::string path = impl::monitor::profile_planes_path(folder.path());
    assert_true(path != last && path.starts_with(folder.path() + "/plugins/profile/") && path.ends_with(".xplane.pb"));
    assert_ok(impl::base::make_directories(path.substr(0, path.rfind('/'))));
    assert_ok(impl::base::write_file_atomically(path, ""));
    last = path;
  }
}

static const CMUnitTest tests[] = {
    cmocka_unit_test(test_a_processor),
    cmocka_unit_test(test_a_device_beside_its_replica),
    cmocka_unit_test(test_names_that_are_not_utf8),
    cmocka_unit_test(test_each_profile_has_a_folder),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::profile_planes_test
