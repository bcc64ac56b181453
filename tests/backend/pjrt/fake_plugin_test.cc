// SPDX-License-Identifier: Apache-2.0
//
// The backend pjrt on a plug-in that computes nothing and misbehaves (fake_plugin.h): whatever fails is an error with
// the plug-in's words, whatever does not end has a deadline, and nothing is left behind.
//
// usage: fake_plugin_test TUTTI_PJRT FAKE_PLUGIN
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "backend/graph_executor.h"
#include "backend/pjrt/fake_plugin.h"
#include "graph/builder.h"
#include "runtime/plugin_loader.h"
#include "testing.h"

namespace {

using namespace tutti::impl;
using backend::BackendRef;
using tensor::DType;
using tensor::Tensor;

std::string backend_path, plugin_path;
decltype(fake_pjrt_live_objects) *live_objects = nullptr;
decltype(fake_pjrt_take_calls) *take_calls = nullptr;

void misbehave(const std::string &how) { setenv("TUTTI_FAKE_PJRT", how.c_str(), 1); }

base::Result<BackendRef> open(const backend::HostOptions &host = {}) {
  const std::string options = "{\"pjrt_plugin\": \"" + plugin_path + "\", \"wait_seconds\": 1}";
  return runtime::load_plugin(backend_path, options, host, backend::build_id());
}

/// A gather, so that there are data to check, behind a product.
base::Result<graph::Graph> small_graph() {
  graph::GraphBuilder builder;
  const auto x = builder.input("x", DType::f32, {graph::Dim(3), graph::Dim(4)});
  const auto index = builder.input("index", DType::i32, {graph::Dim(2)});
  const auto product = builder.op("matmul", {x, x}, {{"transpose_b", true}});
  builder.set_result("y", builder.op("gather", {product, index}));
  return builder.finish_graph();
}

/// Opens the backend, compiles and runs. What it gives is the first error.
base::Status whole_life() {
  TUTTI_ASSIGN(const BackendRef opened, open());
  TUTTI_ASSIGN(const backend::DeviceDescription description, opened->describe_device(0));
  (void)description;
  TUTTI_ASSIGN(const backend::DeviceRef device, opened->open_device(1));
  TUTTI_ASSIGN(const graph::Graph graph, small_graph());
  TUTTI_ASSIGN(const backend::GraphExecutorRef executor, backend::GraphExecutor::create(device, graph));
  TUTTI_ASSIGN(const Tensor x, Tensor::zeros(DType::f32, *tensor::Shape::make(std::vector<int64_t>{3, 4})));
  TUTTI_ASSIGN(const Tensor index, Tensor::zeros(DType::i32, *tensor::Shape::make(std::vector<int64_t>{2})));
  std::vector<Tensor> inputs;
  for (const std::string &name : executor->input_names())
    inputs.push_back(name == "x" ? x : index);
  for (int run = 0; run < 2; ++run)
    TUTTI_TRY(executor->run(inputs).status());
  return base::Status();
}

void every_call_may_fail(void **) {
  misbehave("");
  take_calls();
  assert_ok(whole_life());
  const int64_t count = take_calls();
  assert_true(count > 20);
  int64_t failures = 0;
  for (int64_t n = 1; n <= count; ++n) {
    misbehave("fail=" + std::to_string(n));
    take_calls();
    const base::Status status = whole_life();
    misbehave("");
    // What only describes (texts, sizes) may be missing; all else is told, in the plug-in's words.
    if (!status.ok()) {
      ++failures;
      const std::string text = status.to_string();
      const bool is_told = text.find("no memory left") != std::string::npos;
      if (!is_told) fail_msg("call %lld failed: %s", static_cast<long long>(n), text.c_str());
    }
    assert_int_equal(live_objects(), 0);
  }
  assert_true(failures > count / 3);
}

void what_never_ends_is_given_up(void **) {
  misbehave("never");
  const base::Status status = whole_life();
  misbehave("");
  assert_int_equal(status.code(), base::Code::deadline_exceeded);
  assert_true(status.to_string().find("the device has not finished in 1 seconds") != std::string::npos);
}

void nonsense_is_survived(void **) {
  misbehave("lies");
  assert_ok(whole_life());
  const BackendRef opened = *open();
  const backend::DeviceDescription description = *opened->describe_device(0);
  misbehave("");
  assert_int_equal(description.memory_bytes, 0);
}

// A plug-in that asks for what other processes tell gets it from the host, and the host's words where it cannot.
void values_are_shared_by_the_host(void **) {
  misbehave("worker=0");
  assert_true(open().status().to_string().find("there is no way to the other process") != std::string::npos);
  std::map<std::string, std::string, std::less<>> values = {{"number/1", "one"}};
  backend::HostOptions host;
  host.shared_put = [&](std::string_view key, std::string_view value) {
    values[std::string(key)] = value;
    return base::Status();
  };
  host.shared_get = [&](std::string_view key, int64_t timeout_ms) -> base::Result<std::string> {
    const auto found = values.find(key);
    if (found != values.end()) return found->second;
    return base::not_found("no ", key, " in ", timeout_ms, " ms");
  };
  assert_ok(open(host).status());
  assert_string_equal(values["number/0"].c_str(), "zero");
  values.erase("number/1");
  assert_true(open(host).status().to_string().find("no number/1 in 20000 ms") != std::string::npos);
  host.shared_put = [](std::string_view, std::string_view) -> base::Status { throw std::bad_alloc(); };
  assert_true(open(host).status().to_string().find("out of memory") != std::string::npos);
  misbehave("");
  assert_int_equal(live_objects(), 0);
}

void devices_are_numbered(void **) {
  const BackendRef opened = *open();
  assert_int_equal(opened->device_count(), 2);
  assert_string_equal((*opened->describe_device(1)).name.c_str(), "pjrt:1");
  assert_true((*opened->describe_device(0)).memory_bytes == int64_t{1} << 30);
  assert_true(opened->open_device(2).code() == base::Code::not_found);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 1;
  backend_path = argv[1], plugin_path = argv[2];
  void *const library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 1;
  live_objects = reinterpret_cast<decltype(live_objects)>(dlsym(library, "fake_pjrt_live_objects"));
  take_calls = reinterpret_cast<decltype(take_calls)>(dlsym(library, "fake_pjrt_take_calls"));
  const CMUnitTest tests[] = {
      cmocka_unit_test(devices_are_numbered),        cmocka_unit_test(every_call_may_fail),
      cmocka_unit_test(nonsense_is_survived),        cmocka_unit_test(values_are_shared_by_the_host),
      cmocka_unit_test(what_never_ends_is_given_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
