// SPDX-License-Identifier: Apache-2.0
//
// Devices, buffers, streams, events and the life of objects, on any backend.
//
// usage: backend_objects_test BACKEND
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "backend/stream_hold.h"
#include "backend_under_test.h"
#include "base/cancel.h"
#include "graph/serialize.h"
#include "testing.h"

namespace backend_objects_test {

using namespace tutti::impl;
using backend::Buffer;
using backend::DeviceRef;
using backend::Event;
using backend::Stream;

namespace {

conformance::BackendUnderTest *tested = nullptr;

void devices_describe_themselves(void **) {
  backend::Backend &backend = tested->device->backend();
  assert_true(backend.device_count() >= 1);
  for (int32_t i = 0; i < backend.device_count(); ++i) {
    const auto description = assert_ok_value(backend.describe_device(i));
    assert_string_equal(description.name.c_str(), (backend.name() + ":" + std::to_string(i)).c_str());
    assert_true(!description.kind.empty());
  }
  assert_error_contains(backend.describe_device(-1), "-1");
  assert_error_contains(backend.open_device(backend.device_count()), backend.name());
  assert_error_contains(backend.open_device(0, "{\"no_such_option\": 1}"), "no_such_option");
}

void buffers_hold_bytes(void **) {
  Buffer buffer = assert_ok_value(tested->device->allocate(1000, 256));
  assert_int_equal(buffer.size_bytes(), 1000);
  assert_int_equal(reinterpret_cast<uintptr_t>(buffer.device_pointer()) % 256, 0);
  std::vector<uint8_t> out(1000), in(1000);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<uint8_t>(i * 7);
  assert_ok(buffer.write(0, out.data(), 1000));
  assert_ok(buffer.fill_zero(10, 20));
  assert_ok(buffer.read(0, in.data(), 1000));
  std::memset(out.data() + 10, 0, 20);
  assert_memory_equal(in.data(), out.data(), 1000);
  if (buffer.host_pointer() != nullptr) assert_memory_equal(buffer.host_pointer(), out.data(), 1000);
  Buffer moved = std::move(buffer);
  assert_true(buffer.empty());
  assert_ok(moved.read(990, in.data(), 10));
}

void ranges_are_checked(void **) {
  Buffer buffer = assert_ok_value(tested->device->allocate(8));
  char bytes[16] = {};
  assert_error_contains(buffer.write(1, bytes, 8), "of a buffer of 8");
  assert_error_contains(buffer.read(-1, bytes, 1), "of a buffer of 8");
  assert_error_contains(buffer.fill_zero(9, 0), "of a buffer of 8");
  assert_error_contains(Buffer().read(0, bytes, 0), "empty");
  assert_error_contains(tested->device->allocate(-1), "-1");
  assert_error_contains(tested->device->allocate(8, 3), "alignment 3");
  assert_error_contains(tested->device->allocate(int64_t{1} << 60), std::to_string(int64_t{1} << 60).c_str());
}

void empty_buffers_are_buffers(void **) {
  Buffer buffer = assert_ok_value(tested->device->allocate(0));
  assert_ok(buffer.write(0, nullptr, 0));
  assert_ok(buffer.read(0, nullptr, 0));
  assert_ok(buffer.fill_zero(0, 0));
}

void streams_follow_events(void **) {
  Stream first = assert_ok_value(tested->device->create_stream()),
         second = assert_ok_value(tested->device->create_stream());
  Event event = assert_ok_value(tested->device->create_event());
  assert_ok(event.synchronize());  // never recorded: done
  Buffer buffer = assert_ok_value(tested->device->allocate(4));
  for (int32_t round = 0; round < 10; ++round) {
    int32_t got = -1;
    assert_ok(buffer.write(0, &round, 4, &first));
    assert_ok(event.record(first));
    assert_ok(second.wait(event));
    assert_ok(buffer.read(0, &got, 4, &second));
    assert_ok(second.synchronize());
    assert_int_equal(got, round);
    assert_ok(event.synchronize());
    assert_true(event.is_done());
  }
  assert_ok(first.synchronize());
}

/// y = -x of 16 numbers.
backend::ExecutableRef compile_negation(backend::Device &device) {
  graph::GraphBuilder b;
  b.set_result("y", b.unary("neg", b.input("x", tensor::DType::f32, {16})));
  const std::string text = graph::to_json_text(assert_ok_value(b.finish_graph()));
  backend::CompileRequest request;
  request.graph_text = &text;
  return assert_ok_value(backend::Executable::compile(device, request));
}

/// Where streams are recorded: each replay runs the program once more, and reaches the events around it.
void recordings_are_done_again(void **) {
  backend::Device &device = *tested->device;
  if (!device.backend().records_streams()) test_skip();
  const backend::ExecutableRef executable = compile_negation(device);
  const Buffer workspace = assert_ok_value(device.allocate(executable->description().workspace_bytes));
  Buffer input = assert_ok_value(device.allocate(64)), output = assert_ok_value(device.allocate(64));
  Stream stream = assert_ok_value(device.create_stream());
  backend::Program program = assert_ok_value(executable->bind(device, {}, workspace.device_pointer()));
  Event begin = assert_ok_value(device.create_timed_event()), end = assert_ok_value(device.create_timed_event());
  const void *inputs[] = {input.device_pointer()};
  void *outputs[] = {output.device_pointer()};
  const backend::RunScalars scalars;
  assert_ok(stream.begin_recording());
  const base::Status timed = begin.record(stream);
  assert_true(timed.ok() || timed.code() == base::Code::unimplemented);
  assert_ok(program.run(0, {inputs, outputs, scalars.data()}, stream));
  if (timed.ok()) assert_ok(end.record(stream));
  backend::Recording recording = assert_ok_value(stream.end_recording());
  for (const float wanted : {3.0F, 5.0F}) {
    float values[16];
    std::fill(std::begin(values), std::end(values), -wanted);
    assert_ok(input.write(0, values, 64));
    assert_ok(program.set_arguments(0, {inputs, outputs, scalars.data()}, stream));
    assert_ok(recording.replay(stream));
    assert_ok(stream.synchronize());
    assert_ok(output.read(0, values, 64));
    assert_true(values[0] == wanted && values[15] == wanted);
    if (timed.ok()) assert_true(assert_ok_value(end.nanoseconds_since(begin)) >= 0);
  }
}

/// Each pass of a program in a recording has its own arguments, and none is lost to what runs before it in the
/// same workspace.
void passes_of_a_recording_have_their_own_arguments(void **) {
  backend::Device &device = *tested->device;
  if (!device.backend().records_streams()) test_skip();
  const backend::ExecutableRef executable = compile_negation(device);
  const Buffer workspace = assert_ok_value(device.allocate(executable->description().workspace_bytes));
  Stream stream = assert_ok_value(device.create_stream());
  constexpr int kPasses = 3;
  backend::Program programs[] = {assert_ok_value(executable->bind(device, {}, workspace.device_pointer())),
                                 assert_ok_value(executable->bind(device, {}, workspace.device_pointer()))};
  const backend::RunScalars scalars;
  Buffer buffers[kPasses + 1][2];  // what goes from each program to the next
  for (auto &pair : buffers) {
    for (Buffer &buffer : pair)
      buffer = assert_ok_value(device.allocate(64));
  }
  const auto with = [&](int pass, int program, auto use) {
    const void *inputs[] = {buffers[pass][program].device_pointer()};
    void *outputs[] = {buffers[pass + 1][program].device_pointer()};
    assert_ok(use(backend::RunArguments{inputs, outputs, scalars.data()}));
  };
  backend::Recording recordings[2];  // in the second the programs find what they were given for the first
  for (backend::Recording &recording : recordings) {
    assert_ok(stream.begin_recording());
    for (int pass = 0; pass < kPasses; ++pass) {
      for (int p = 0; p < 2; ++p)
        with(pass, p, [&](const backend::RunArguments &a) { return programs[p].run(0, a, stream); });
    }
    recording = assert_ok_value(stream.end_recording());
  }
  for (const float wanted : {3.0F, 5.0F}) {
    float values[16];
    for (int p = 0; p < 2; ++p) {
      std::fill(std::begin(values), std::end(values), wanted + static_cast<float>(p));
      assert_ok(buffers[0][p].write(0, values, 64));
      for (int pass = 0; pass < kPasses; ++pass)
        with(pass, p, [&](const backend::RunArguments &a) { return programs[p].set_arguments(pass, a, stream); });
    }
    assert_ok(recordings[wanted == 3 ? 0 : 1].replay(stream));
    assert_ok(stream.synchronize());
    for (int p = 0; p < 2; ++p) {
      assert_ok(buffers[kPasses][p].read(0, values, 64));
      assert_true(values[0] == -wanted - static_cast<float>(p) && values[15] == values[0]);
    }
  }
  const base::Status beyond = programs[0].set_arguments(kPasses, {nullptr, nullptr, scalars.data()}, stream);
  assert_true(beyond.code() == base::Code::out_of_range);
}

/// Waits for the device, which is sure to come.
void await_hold(const backend::StreamHold &hold) {
  const base::Deadline deadline = base::Deadline::after_ms(30000);
  while (!hold.has_come()) {
    assert_false(deadline.passed());
    usleep(200);
  }
}

/// Where streams wait for the host: what is before is done, what is behind is not until the host lets it go.
void a_held_stream_waits_for_the_host(void **) {
  backend::Device &device = *tested->device;
  if (!device.backend().holds_streams()) test_skip();
  Stream stream = assert_ok_value(device.create_stream());
  Buffer memory = assert_ok_value(device.allocate(64));
  assert_ok(memory.fill_zero(0, 64));
  backend::HostMemory before = assert_ok_value(device.allocate_host(64));
  backend::HostMemory behind = assert_ok_value(device.allocate_host(64));
  std::memset(before.data(), 7, 64);
  std::memset(behind.data(), 7, 64);
  backend::StreamHold hold = assert_ok_value(backend::StreamHold::create(device));
  backend::HostMemory verdict = assert_ok_value(device.allocate_host(64));
  std::memset(verdict.data(), 7, 64);
  assert_ok(stream.read(memory.device_pointer(), before.data(), 64));
  const base::Status issued = hold.issue(stream, verdict.data());
  if (issued.code() == base::Code::unimplemented) test_skip();  // launches wait for their end
  assert_ok(issued);
  hold.expect();
  assert_ok(stream.read(memory.device_pointer(), behind.data(), 64));
  await_hold(hold);
  assert_true(before.data()[63] == std::byte{0});
  usleep(20000);
  assert_true(behind.data()[0] == std::byte{7} && behind.data()[63] == std::byte{7});
  assert_true(verdict.data()[0] == std::byte{7});
  hold.let_go(true);
  assert_ok(stream.synchronize());
  assert_true(behind.data()[63] == std::byte{0} && verdict.data()[0] == std::byte{1});
  assert_true(verdict.data()[1] == std::byte{7});
}

/// Each replay comes to it once, and has its own verdict; it may have been let go before.
void a_recording_is_held_in_each_replay(void **) {
  backend::Device &device = *tested->device;
  if (!device.backend().holds_streams() || !device.backend().records_streams()) test_skip();
  const backend::ExecutableRef executable = compile_negation(device);
  const Buffer workspace = assert_ok_value(device.allocate(executable->description().workspace_bytes));
  Buffer memory = assert_ok_value(device.allocate(64)), unused = assert_ok_value(device.allocate(64));
  assert_ok(memory.fill_zero(0, 64));
  Stream stream = assert_ok_value(device.create_stream());
  backend::Program program = assert_ok_value(executable->bind(device, {}, workspace.device_pointer()));
  const void *inputs[] = {memory.device_pointer()};
  void *outputs[] = {unused.device_pointer()};
  const backend::RunScalars scalars;
  backend::StreamHold hold = assert_ok_value(backend::StreamHold::create(device));
  backend::HostMemory verdict = assert_ok_value(device.allocate_host(64));
  assert_ok(stream.begin_recording());
  assert_ok(program.run(0, {inputs, outputs, scalars.data()}, stream));
  const base::Status issued = hold.issue(stream, verdict.data());
  assert_ok(program.run(0, {inputs, outputs, scalars.data()}, stream));
  backend::Recording recording = assert_ok_value(stream.end_recording());
  if (issued.code() == base::Code::unimplemented) test_skip();
  assert_ok(issued);
  Event done = assert_ok_value(device.create_event());
  for (int replay = 0; replay < 20; ++replay) {
    for (int pass = 0; pass < 2; ++pass)
      assert_ok(program.set_arguments(pass, {inputs, outputs, scalars.data()}, stream));
    hold.expect();
    assert_ok(recording.replay(stream));
    assert_ok(done.record(stream));
    if (replay % 3 != 0) {
      await_hold(hold);
      assert_false(done.is_done());
    }
    hold.let_go(replay % 4 == 0);
    if (replay % 2 != 0) continue;
    assert_ok(done.synchronize());
    assert_true(verdict.data()[0] == (replay % 4 == 0 ? std::byte{1} : std::byte{0}));
  }
  assert_ok(stream.synchronize());
}

/// Everything keeps what it came from alive, so the owner may let go in any order.
void any_order_of_release_is_legal(void **) {
  auto program = std::make_unique<backend::Program>();
  Buffer input, output, workspace;
  Stream stream;
  {
    DeviceRef device = assert_ok_value(tested->device->backend().open_device(0));
    backend::ExecutableRef executable = compile_negation(*device);
    const auto &description = executable->description();
    assert_int_equal(description.input_index("x"), 0);
    assert_int_equal(description.output_index("y"), 0);
    assert_int_equal(description.output_index("z"), -1);
    assert_int_equal(description.outputs[0].bytes, 64);
    workspace = assert_ok_value(device->allocate(description.workspace_bytes));
    input = assert_ok_value(device->allocate(64));
    output = assert_ok_value(device->allocate(64));
    stream = assert_ok_value(device->create_stream());
    *program = assert_ok_value(executable->bind(*device, {}, workspace.device_pointer()));
  }
  float values[16];
  for (int i = 0; i < 16; ++i)
    values[i] = static_cast<float>(i);
  assert_ok(input.write(0, values, 64));
  const void *inputs[] = {input.device_pointer()};
  void *outputs[] = {output.device_pointer()};
  const backend::RunScalars scalars;
  assert_ok(program->run(0, {inputs, outputs, scalars.data()}, stream));
  assert_ok(stream.synchronize());
  assert_ok(output.read(0, values, 64));
  assert_true(values[15] == -15);
  assert_error_contains(program->run(1, {inputs, outputs, scalars.data()}, stream), "segment 1");
  program.reset();
}

void bad_graphs_are_refused(void **) {
  for (const char *text : {"", "{", "{}", "[1, 2]", "{\"format\": \"tutti-graph\", \"version\": 99}"}) {
    const std::string graph = text;
    backend::CompileRequest request;
    request.graph_text = &graph;
    assert_false(backend::Executable::compile(*tested->device, request).ok());
  }
}

void memory_is_given_back(void **) {
  backend::Backend &backend = tested->device->backend();
  const int64_t before = backend.bytes_in_use();
  {
    Buffer buffer = assert_ok_value(tested->device->allocate(1 << 20));
    if (backend.has_host_memory()) assert_true(backend.bytes_in_use() >= before + (1 << 20));
  }
  assert_int_equal(backend.bytes_in_use(), before);
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(devices_describe_themselves),
    cmocka_unit_test(buffers_hold_bytes),
    cmocka_unit_test(ranges_are_checked),
    cmocka_unit_test(empty_buffers_are_buffers),
    cmocka_unit_test(streams_follow_events),
    cmocka_unit_test(any_order_of_release_is_legal),
    cmocka_unit_test(bad_graphs_are_refused),
    cmocka_unit_test(memory_is_given_back),
    cmocka_unit_test(recordings_are_done_again),
    cmocka_unit_test(passes_of_a_recording_have_their_own_arguments),
    cmocka_unit_test(a_held_stream_waits_for_the_host),
    cmocka_unit_test(a_recording_is_held_in_each_replay),
};

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  return cmocka_run_group_tests_name("objects", kTests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_objects_test
