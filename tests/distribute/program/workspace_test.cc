// SPDX-License-Identifier: Apache-2.0
//
// A workspace that grows: never two at a time, not before the device is done with the old one, and what is left where
// there is no memory.
#include "distribute/program/workspace.h"

#include <cmath>
#include <string>
#include <vector>

#include "backend/lazy_backend.h"
#include "backend/reference/reference_backend.h"
#include "distribute/program/program_cache.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "testing.h"

namespace tutti::testing::workspace_test {
namespace {

namespace backend = impl::backend;
using impl::distribute::Workspace;

/// Memory that is asked for, and whether there is any.
struct Asked {
  std::vector<uint64_t> bytes;
  uint64_t most = UINT64_MAX;

  LazySettings settings() {
    LazySettings settings;
    settings.has_host_memory = false;
    settings.has_memory = [this](uint64_t wanted) {
      bytes.push_back(wanted);
      return wanted <= most;
    };
    return settings;
  }
};

backend::DeviceRef open_device(Asked &asked) { return assert_ok_value(open_lazy_devices(1, asked.settings())).front(); }

void it_grows_to_the_largest_need(void **) {
  Asked asked;
  const backend::DeviceRef device = open_device(asked);
  backend::Stream stream = assert_ok_value(device->create_stream());
  Workspace workspace(device, stream);
  assert_null(workspace.pointer());
  assert_ok(workspace.reserve(0, 1));  // programs that need nothing are bound to something
  assert_non_null(workspace.pointer());
  assert_ok(workspace.reserve(1000, 64));
  const int64_t generation = workspace.generation();
  assert_ok(workspace.reserve(700, 64));
  assert_ok(workspace.reserve(1000, 16));
  assert_int_equal(workspace.generation(), generation);
  assert_ok(workspace.reserve(8, 4096));
  assert_true(workspace.generation() > generation);
  assert_int_equal(reinterpret_cast<uintptr_t>(workspace.pointer()) % 4096, 0);
  assert_ok(workspace.reserve(1000, 4096));
  assert_true(asked.bytes == (std::vector<uint64_t>{64, 1000, 1000}));
}

void the_old_one_goes_first(void **) {
  backend::HostOptions host;
  host.memory = std::make_shared<backend::MemoryBudget>(1000);
  const auto opened = assert_ok_value(backend::Backend::create(backend::reference::entry, "{}", host));
  const backend::DeviceRef device = assert_ok_value(opened->open_device(0));
  backend::Stream stream = assert_ok_value(device->create_stream());
  Workspace workspace(device, stream);
  assert_ok(workspace.reserve(640, 64));
  assert_ok(workspace.reserve(960, 64));
  assert_error_contains(workspace.reserve(1024, 64),
                        "needs 1024 more bytes, but 0 bytes of the memory budget of 1000 bytes are in use");
  assert_int_equal(host.memory->in_use(), 960);
  assert_non_null(workspace.pointer());
  const int64_t generation = workspace.generation();
  assert_ok(workspace.reserve(960, 64));
  assert_int_equal(workspace.generation(), generation);
}

void what_is_gone_is_said(void **) {
  Asked asked;
  const backend::DeviceRef device = open_device(asked);
  backend::Stream stream = assert_ok_value(device->create_stream());
  Workspace workspace(device, stream);
  assert_ok(workspace.reserve(600, 64));
  asked.most = 500;  // others have taken it
  const impl::base::Status status = workspace.reserve(700, 64);
  assert_int_equal(status.code(), impl::base::Code::resource_exhausted);
  assert_error_contains(status, "the workspace of 600 bytes was released and cannot be allocated again");
  assert_null(workspace.pointer());
  assert_ok(workspace.reserve(400, 64));
  assert_int_equal(asked.bytes.back(), 400);
  assert_non_null(workspace.pointer());
}

void the_stream_is_waited_for(void **) {
  Asked asked;
  const backend::DeviceRef device = open_device(asked);
  backend::Stream stream = assert_ok_value(device->create_stream());
  Workspace workspace(device, stream);
  assert_ok(workspace.reserve(100, 64));
  backend::Buffer other = assert_ok_value(device->allocate(4));
  assert_ok(other.write(0, "abc", 4, &stream));
  assert_ok(workspace.reserve(100, 64));
  assert_int_equal(LazyBackend::done(), 0);  // nothing moves
  assert_ok(workspace.reserve(101, 64));
  assert_int_equal(LazyBackend::done(), 1);
}

/// exp(x) / sum(exp(x)) over rows of eight, which passes through the workspace.
impl::distribute::GraphSource softmax_source() {
  const auto rows = impl::graph::Dim::symbol(std::string(impl::graph::kBatchSymbol));
  impl::graph::GraphBuilder builder;
  const auto e = builder.op("exp", {builder.input("x", impl::tensor::DType::f32, {rows, impl::graph::Dim(8)})});
  builder.set_result("y", builder.op("softmax", {builder.op("log", {e})}));
  impl::distribute::GraphSource source;
  source.text = impl::graph::to_json_text(assert_ok_value(builder.finish_graph()));
  return source;
}

/// Programs of two caches on one stream: they are bound once, when the memory for both is there, and again where it
/// has moved.
void caches_share_a_workspace(void **) {
  using impl::distribute::BoundProgram, impl::distribute::ProgramCache, impl::distribute::ShapeKey;
  const auto opened = assert_ok_value(backend::Backend::create(backend::reference::entry, "{}", {}));
  const backend::DeviceRef device = assert_ok_value(opened->open_device(0));
  backend::Stream stream = assert_ok_value(device->create_stream());
  impl::distribute::ExecutableCache executables(8);
  Workspace workspace(device, stream);
  ProgramCache first(executables, device, workspace, 2), second(executables, device, workspace, 2);
  const impl::distribute::GraphSource source = softmax_source(), *const sources[] = {&source};
  BoundProgram *of_first = nullptr, *of_second = nullptr;
  const auto find = [&](ProgramCache &cache, int64_t rows) {
    assert_ok(cache.find(sources, ShapeKey{rows}, [&] {
      return impl::graph::SymbolBindings{{std::string(impl::graph::kBatchSymbol), rows}};
    }));
  };
  const auto run = [&](BoundProgram &program, int64_t rows) {
    std::vector<float> x(static_cast<size_t>(rows * 8), 1.5F), y(x.size());
    const void *const inputs[] = {x.data()};
    void *const outputs[] = {y.data()};
    assert_ok(program.program.run(0, {inputs, outputs, backend::RunScalars().data()}, stream));
    assert_ok(stream.synchronize());
    for (const float value : y)
      assert_true(std::fabs(value - 0.125F) < 1e-6F);
  };
  find(first, 3);
  const void *const before = workspace.pointer();
  find(second, 300);
  const int64_t grown = workspace.generation();
  assert_ok(first.bind({&of_first, 1}));
  assert_ok(second.bind({&of_second, 1}));
  assert_true(of_first->description().workspace_bytes > 0);
  assert_true(before != nullptr && workspace.generation() == grown);
  assert_true(of_first->generation == grown && of_second->generation == grown);
  for (int i = 0; i < 2; ++i)
    run(*of_first, 3), run(*of_second, 300);
  find(first, 3000);
  assert_ok(first.bind({&of_first, 1}));
  assert_ok(second.bind({&of_second, 1}));
  run(*of_first, 3000), run(*of_second, 300);
  assert_ok(second.bind({&of_second, 1}));
  assert_int_equal(first.built(), 2);   // each shape once
  assert_int_equal(second.built(), 2);  // and once more after the memory has moved
  assert_true(first.is_current({3000}) && !first.is_current({3}));
}

}  // namespace
static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(it_grows_to_the_largest_need), cmocka_unit_test(the_old_one_goes_first),
      cmocka_unit_test(what_is_gone_is_said),         cmocka_unit_test(the_stream_is_waited_for),
      cmocka_unit_test(caches_share_a_workspace),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::workspace_test
