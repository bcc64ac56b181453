// SPDX-License-Identifier: Apache-2.0
//
// What devices take of GPUs of 1000000 bytes (TUTTI_EMULATED_BYTES): nothing before something needs it, of no GPU that
// is not listed (TUTTI_EMULATED_USES), and no more than there is or than a limit allows, with a sentence that says so.
//
// usage: gpu_memory_test PLUGIN
#include <stdlib.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace gpu_memory_test {

using namespace tutti::impl;
using tensor::DType;

namespace {

constexpr int64_t kBytes = 1000000;
std::string plugin;

std::vector<backend::DeviceRef> open_devices(const std::string &options) {
  const backend::BackendRef opened = assert_ok_value(runtime::open_backend(plugin, options, {}));
  std::vector<backend::DeviceRef> devices;
  for (int32_t index = 0; index < opened->device_count(); ++index) {
    assert_ok(opened->describe_device(index).status());
    devices.push_back(assert_ok_value(opened->open_device(index)));
  }
  return devices;
}

int64_t available(backend::Device &device) { return assert_ok_value(device.available_bytes()); }

/// Runs a program of three elementwise operations.
void run_something(backend::Device &device) {
  graph::GraphBuilder builder;
  builder.set_result("y", builder.op("softmax", {builder.op("relu", {builder.input("x", DType::f32, {4, 8})})}));
  const std::string text = graph::to_json_text(assert_ok_value(builder.finish_graph()));
  backend::CompileRequest request;
  request.graph_text = &text;
  const backend::ExecutableRef executable = assert_ok_value(backend::Executable::compile(device, request));
  const auto &description = executable->description();
  const auto workspace = assert_ok_value(device.allocate(description.workspace_bytes, description.workspace_alignment));
  auto program = assert_ok_value(executable->bind(device, {}, workspace.device_pointer()));
  backend::Buffer x = assert_ok_value(device.allocate(128)), y = assert_ok_value(device.allocate(128));
  backend::Stream stream = assert_ok_value(device.create_stream());
  assert_ok(x.fill_zero(0, 128, &stream));
  const void *const inputs[] = {x.device_pointer()};
  void *const outputs[] = {y.device_pointer()};
  assert_ok(program.run(0, {inputs, outputs, backend::RunScalars().data()}, stream));
  std::vector<float> got(32);
  assert_ok(y.read(0, got.data(), 128, &stream));
  assert_ok(stream.synchronize());
  assert_true(got[0] == 0.125F && got[31] == 0.125F);
}

void nothing_is_taken_before_something_needs_it(void **) {
  for (const char *const options : {"{}", R"({"gpu_memory_fraction": 0.5})", R"({"logical_devices": 8})"}) {
    const auto devices = open_devices(options);
    assert_true(devices.size() >= 4);
    for (const backend::DeviceRef &device : devices) {
      const backend::Stream stream = assert_ok_value(device->create_stream());
      const int64_t all = device->description().memory_bytes;
      assert_int_equal(all, std::string(options).find("0.5") == std::string::npos ? kBytes : kBytes / 2);
      assert_true(available(*device) >= all - all / 20);
    }
  }
}

void what_nothing_needs_any_more_is_given_back(void **) {
  const auto devices = open_devices("{}");
  const int64_t before = available(*devices[0]);
  run_something(*devices[0]);
  assert_int_equal(available(*devices[0]), before);
  {
    const auto buffer = assert_ok_value(devices[0]->allocate(700000));
    assert_int_equal(available(*devices[0]), before - 700000);
    assert_int_equal(available(*devices[1]), before);  // another GPU
  }
  assert_int_equal(available(*devices[0]), before);
}

void a_gpu_that_is_full_is_told(void **) {
  const auto devices = open_devices(R"({"gpus": [1], "logical_devices": 2})");
  const auto first = assert_ok_value(devices[0]->allocate(500000));
  const auto second = assert_ok_value(devices[1]->allocate(300000));
  const auto refused = devices[0]->allocate(300000);
  assert_int_equal(refused.code(), base::Code::resource_exhausted);
  assert_error_contains(
      refused,
      "device emulated:0 needs 300000 more bytes, but only 200000 of its 1000000 bytes are free (500000 "
      "in use by this device)");
  assert_int_equal(available(*devices[0]), 200000);
  assert_ok(devices[0]->allocate(200000).status());
}

void a_limit_of_a_device_is_told(void **) {
  const auto devices = open_devices(R"({"gpus": [1], "logical_devices": 2, "memory_limit_bytes": 400000})");
  assert_int_equal(devices[1]->description().memory_bytes, 400000);
  const auto first = assert_ok_value(devices[0]->allocate(300000));
  const auto refused = devices[0]->allocate(100001);
  assert_int_equal(refused.code(), base::Code::resource_exhausted);
  assert_error_contains(
      refused, "device emulated:0 needs 100001 more bytes, but 300000 of the 400000 bytes of its limit are in use");
  assert_int_equal(available(*devices[0]), 100000);
  assert_ok(devices[0]->allocate(100000).status());
  assert_ok(devices[1]->allocate(400000).status());  // which has a limit of its own
}

void lists_of_gpus_are_checked(void **) {
  const std::pair<const char *, const char *> wrong[] = {{R"({"gpus": []})", "lists no GPU"},
                                                         {R"({"gpus": [4]})", "GPUs 0 to 3"},
                                                         {R"({"gpus": [-1]})", "GPUs 0 to 3"},
                                                         {R"({"gpus": [2, 0, 2]})", "lists 2 twice"}};
  for (const auto &[options, says] : wrong)
    assert_error_contains(runtime::open_backend(plugin, options, {}), says);
}

void only_listed_gpus_are_touched(void **) {
  char path[] = "/tmp/gpu_memory_test.XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assert_int_equal(setenv("TUTTI_EMULATED_USES", path, 1), 0);
  for (const backend::DeviceRef &device : open_devices(R"({"gpus": [3, 1], "gpu_memory_fraction": 0.5})"))
    run_something(*device);
  unsetenv("TUTTI_EMULATED_USES");
  std::ifstream used(path);
  std::multiset<int> gpus;
  for (int gpu = 0; used >> gpu;)
    gpus.insert(gpu);
  assert_true(gpus == (std::multiset<int>{1, 3}));
  std::remove(path);
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (argc != 2) return 2;
  plugin = argv[1];
  const CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_taken_before_something_needs_it),
      cmocka_unit_test(what_nothing_needs_any_more_is_given_back),
      cmocka_unit_test(a_gpu_that_is_full_is_told),
      cmocka_unit_test(a_limit_of_a_device_is_told),
      cmocka_unit_test(lists_of_gpus_are_checked),
      cmocka_unit_test(only_listed_gpus_are_touched),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace gpu_memory_test
