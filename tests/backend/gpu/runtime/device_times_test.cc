// SPDX-License-Identifier: Apache-2.0
//
// Device times of a program with a trace, on the emulated GPU whose clock goes on by 1000 ns with each launch
// (TUTTI_EMULATED_LAUNCH_NS) and is not the host's; and the ranges that a tool sees (TUTTI_EMULATED_RANGES).
//
// usage: device_times_test PLUGIN
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "backend/span_times.h"
#include "base/text.h"
#include "base/trace.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace device_times_test {

using namespace tutti::impl;
using tensor::DType;

namespace {

constexpr int64_t kLaunchNs = 1000;

struct Told {
  int32_t track;
  std::string category, name;
  int64_t begin_ns, duration_ns;
};

std::string plugin;
std::vector<Told> told;
std::map<std::string, int32_t> tracks;

backend::HostOptions listening() {
  backend::HostOptions options;
  options.trace_track = [](const char *name) {
    return tracks.emplace(name, static_cast<int32_t>(tracks.size())).first->second;
  };
  options.trace_record = [](int32_t track, const char *category, const char *name, int64_t begin, int64_t duration) {
    told.push_back({track, category, name, begin, duration});
  };
  return options;
}

/// y = relu(x), z = softmax(x): two kernels of one launch each, and copies of inputs and outputs, one each.
struct SmallProgram {
  explicit SmallProgram(int32_t flags) {
    told.clear();
    device = assert_ok_value(assert_ok_value(runtime::open_backend(plugin, "{}", listening()))->open_device(0));
    graph::GraphBuilder builder;
    const graph::ValueId x = builder.input("x", DType::f32, {4, 8});
    builder.push_scope("first");
    const graph::ValueId y = builder.op("relu", {x});
    builder.pop_scope();
    builder.set_result("y", y);
    builder.set_result("z", builder.op("softmax", {x}));
    const std::string text = graph::to_json_text(assert_ok_value(builder.finish_graph()));
    backend::CompileRequest request;
    request.graph_text = &text;
    request.flags = flags;
    executable = assert_ok_value(backend::Executable::compile(*device, request));
    const auto &description = executable->description();
    workspace = assert_ok_value(device->allocate(description.workspace_bytes, description.workspace_alignment));
    program = assert_ok_value(executable->bind(*device, {}, workspace.device_pointer()));
    stream = assert_ok_value(device->create_stream());
    for (backend::Buffer &buffer : buffers)
      buffer = assert_ok_value(device->allocate(4 * 8 * 4));
    assert_ok(buffers[0].fill_zero(0, 4 * 8 * 4));
    inputs[0] = buffers[0].device_pointer();
    outputs[0] = buffers[1].device_pointer();
    outputs[1] = buffers[2].device_pointer();
  }

  void run() { assert_ok(program.run(0, {inputs, outputs, scalars.data()}, stream)); }
  /// Two runs between two events, to be done again.
  backend::Recording record(backend::Event &begin, backend::Event &end) {
    assert_ok(stream.begin_recording());
    assert_ok(begin.record(stream));
    run();
    run();
    assert_ok(end.record(stream));
    return assert_ok_value(stream.end_recording());
  }
  void replay(backend::Recording &recording) {
    for (int pass = 0; pass < 2; ++pass)
      assert_ok(program.set_arguments(pass, {inputs, outputs, scalars.data()}, stream));
    assert_ok(recording.replay(stream));
  }

  backend::DeviceRef device;
  backend::ExecutableRef executable;
  backend::Buffer workspace;
  backend::Buffer buffers[3];
  const void *inputs[1];
  void *outputs[2];
  backend::RunScalars scalars;
  backend::Stream stream;
  backend::Program program;
};

/// One after the other by the device's clock, whose steps are launches.
void assert_in_order(int64_t first, int64_t count) {
  for (int64_t i = first; i < first + count; ++i) {
    const Told &span = told[static_cast<size_t>(i)];
    assert_int_equal(span.duration_ns, kLaunchNs);
    if (i == first) continue;
    const Told &before = told[static_cast<size_t>(i - 1)];
    // Both are counted back from one moment, in floats of milliseconds.
    assert_true(span.begin_ns - before.begin_ns >= kLaunchNs - 20);
  }
}

void kernels_are_told_when_the_stream_is_done(void **) {
  SmallProgram small(TUTTI_COMPILE_DEBUG_NAMES);
  small.run();
  assert_int_equal(told.size(), 0);  // nobody has waited
  assert_ok(small.stream.synchronize());
  assert_int_equal(told.size(), 4);
  assert_in_order(0, 4);
  assert_true(told[0].name == "inputs" && told[0].category == "copy");
  assert_true(told[1].name == "first/relu elementwise" || told[2].name == "first/relu elementwise");
  assert_true(told[1].category == "kernel" && told[2].category == "kernel");
  assert_true(told[3].name == "outputs" && told[3].category == "copy");
  const auto row = tracks.find(small.device->name());
  assert_true(row != tracks.end() && told[1].track == row->second);
  // The last ends when the host looked: its clock is the host's then.
  const int64_t end_ns = told[3].begin_ns + told[3].duration_ns;
  assert_true(end_ns <= base::now_ns() + 20);
  small.run();
  assert_ok(small.stream.synchronize());
  assert_int_equal(told.size(), 8);
}

void a_full_ring_is_told_early(void **) {
  SmallProgram small(TUTTI_COMPILE_DEBUG_NAMES);
  constexpr int kRuns = 700;  // 2800 spans
  for (int i = 0; i < kRuns; ++i)
    small.run();
  assert_int_equal(told.size(), 2048);
  assert_ok(small.stream.synchronize());
  assert_int_equal(told.size(), 4 * kRuns);
  assert_in_order(0, 1024);
  assert_in_order(1024, 1024);
  assert_in_order(2048, 4 * kRuns - 2048);
  for (size_t i = 0; i < told.size(); ++i)
    assert_true((told[i].name == "inputs") == (i % 4 == 0));
}

void programs_without_a_trace_tell_nothing(void **) {
  SmallProgram small(0);
  small.run();
  assert_ok(small.stream.synchronize());
  assert_int_equal(told.size(), 0);
}

void span_times_has_the_kernels_of_the_plan(void **) {
  SmallProgram small(TUTTI_COMPILE_DEBUG_NAMES);
  const backend::SpanTimes times;
  small.run();
  assert_ok(small.stream.synchronize());
  assert_int_equal(times.seconds().size(), 2);
  for (const double seconds : times.seconds())
    assert_true(std::abs(seconds - 1e-9 * kLaunchNs) < 1e-12);
  assert_int_equal(told.size(), 0);
}

void timed_events_count_launches(void **) {
  SmallProgram small(0);
  backend::Event begin = assert_ok_value(small.device->create_timed_event());
  backend::Event end = assert_ok_value(small.device->create_timed_event());
  assert_ok(begin.record(small.stream));
  small.run();
  assert_ok(end.record(small.stream));
  assert_ok(small.stream.synchronize());
  // The run block, inputs, two kernels, outputs.
  assert_int_equal(assert_ok_value(end.nanoseconds_since(begin)), 5 * kLaunchNs);
  const backend::Event without = assert_ok_value(small.device->create_event());
  assert_false(end.nanoseconds_since(without).ok());
}

/// Each replay reaches the events of a recording anew.
void timed_events_of_recordings_count_launches(void **) {
  SmallProgram small(0);
  backend::Event begin = assert_ok_value(small.device->create_timed_event());
  backend::Event end = assert_ok_value(small.device->create_timed_event());
  backend::Recording recording = small.record(begin, end);
  for (int i = 0; i < 2; ++i) {
    small.replay(recording);
    assert_false(end.nanoseconds_since(begin).ok());
    assert_ok(small.stream.synchronize());
    // Of each run inputs, two kernels, outputs.
    assert_int_equal(assert_ok_value(end.nanoseconds_since(begin)), 8 * kLaunchNs);
  }
}

/// What the tool saw since the last call.
std::vector<std::string> range_lines() {
  static int64_t seen = 0;
  std::ifstream file(std::getenv("TUTTI_EMULATED_RANGES"));
  file.seekg(seen);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    seen += static_cast<int64_t>(line.size()) + 1;
    lines.push_back(line);
  }
  return lines;
}

void tools_see_segments_and_nodes(void **) {
  (void)range_lines();
  SmallProgram plain(0);
  assert_int_equal(range_lines().size(), 0);  // capturing is not running
  plain.scalars.set(backend::RunScalar::step, 17);
  plain.run();
  std::vector<std::string> lines = range_lines();
  assert_int_equal(lines.size(), 2);
  assert_true(lines[0].starts_with("begin segment 0: ") && lines[0].ends_with(" 17"));
  assert_true(lines[0].find("first/relu") != std::string::npos && lines[0].find("softmax") != std::string::npos);
  assert_string_equal(lines[1].c_str(), "end");
  SmallProgram traced(TUTTI_COMPILE_DEBUG_NAMES);
  traced.run();
  lines = range_lines();
  assert_int_equal(lines.size(), 6);
  assert_true(lines[0].starts_with("begin segment 0"));
  assert_int_equal(std::count(lines.begin(), lines.end(), "begin first/relu elementwise 0"), 1);
  assert_int_equal(std::count(lines.begin(), lines.end(), "end"), 3);
}

void tools_see_launches_of_recordings(void **) {
  SmallProgram small(0);
  backend::Event begin = assert_ok_value(small.device->create_timed_event());
  backend::Event end = assert_ok_value(small.device->create_timed_event());
  (void)range_lines();
  backend::Recording recording = small.record(begin, end);
  assert_int_equal(range_lines().size(), 0);
  for (const int64_t step : {18, 19}) {
    small.scalars.set(backend::RunScalar::step, step);
    small.replay(recording);
    const std::vector<std::string> lines = range_lines();
    assert_int_equal(lines.size(), 2);
    assert_string_equal(lines[0].c_str(), base::concat("begin recorded step ", step).c_str());
    assert_string_equal(lines[1].c_str(), "end");
  }
  assert_ok(small.stream.synchronize());
}

}  // namespace

static int run_all(int argc, char **argv) {
  plugin = argc > 1 ? argv[1] : "";
  const CMUnitTest tests[] = {
      cmocka_unit_test(kernels_are_told_when_the_stream_is_done),
      cmocka_unit_test(a_full_ring_is_told_early),
      cmocka_unit_test(programs_without_a_trace_tell_nothing),
      cmocka_unit_test(span_times_has_the_kernels_of_the_plan),
      cmocka_unit_test(timed_events_count_launches),
      cmocka_unit_test(timed_events_of_recordings_count_launches),
      cmocka_unit_test(tools_see_segments_and_nodes),
      cmocka_unit_test(tools_see_launches_of_recordings),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace device_times_test
