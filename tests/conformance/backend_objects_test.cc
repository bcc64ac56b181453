// SPDX-License-Identifier: Apache-2.0
//
// Devices, buffers, streams, events and the life of objects, on any backend.
//
// usage: backend_objects_test BACKEND
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "backend_under_test.h"
#include "graph/serialize.h"
#include "testing.h"

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
    assert_ok(program.set_arguments({inputs, outputs, scalars.data()}, stream));
    assert_ok(recording.replay(stream));
    assert_ok(stream.synchronize());
    assert_ok(output.read(0, values, 64));
    assert_true(values[0] == wanted && values[15] == wanted);
    if (timed.ok()) assert_true(assert_ok_value(end.nanoseconds_since(begin)) >= 0);
  }
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
    cmocka_unit_test(devices_describe_themselves), cmocka_unit_test(buffers_hold_bytes),
    cmocka_unit_test(ranges_are_checked),          cmocka_unit_test(empty_buffers_are_buffers),
    cmocka_unit_test(streams_follow_events),       cmocka_unit_test(any_order_of_release_is_legal),
    cmocka_unit_test(bad_graphs_are_refused),      cmocka_unit_test(memory_is_given_back),
    cmocka_unit_test(recordings_are_done_again),
};

}  // namespace

int main(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  return cmocka_run_group_tests_name("objects", kTests, nullptr, nullptr);
}
