// SPDX-License-Identifier: Apache-2.0
//
// GPUs that cannot be used, and why: on four emulated ones.
//
// usage: gpu_device_test PLUGIN
#include <stdlib.h>

#include <string>

#include "backend/backend.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace gpu_device_test {

using namespace tutti::impl;

namespace {

std::string plugin;

void a_gpu_without_code_is_refused_with_what_there_is(void **) {
  const backend::BackendRef opened = assert_ok_value(runtime::open_backend(plugin, "{}", {}));
  assert_int_equal(opened->device_count(), 4);
  setenv("TUTTI_EMULATED_NO_CODE", "2", 1);
  for (int32_t index = 0; index < 4; ++index) {
    // Every GPU is told of: who lists them sees what there is.
    assert_ok(opened->describe_device(index).status());
    if (index != 2) {
      assert_ok(opened->open_device(index).status());
      continue;
    }
    const auto refused = opened->open_device(index);
    assert_int_equal(refused.status().code(), base::Code::unavailable);
    assert_contains(refused.status().to_string().c_str(),
                    "GPU 2 (emulated) is not supported by this plug-in, which was built for sm_1, sm_2 and later");
  }
  // The others are used where they are chosen.
  assert_ok(assert_ok_value(runtime::open_backend(plugin, R"({"gpus": [3]})", {}))->open_device(0).status());
  unsetenv("TUTTI_EMULATED_NO_CODE");
  assert_ok(opened->open_device(2).status());
}

}  // namespace

static int run_all(int argc, char **argv) {
  plugin = argc > 1 ? argv[1] : "";
  const CMUnitTest tests[] = {cmocka_unit_test(a_gpu_without_code_is_refused_with_what_there_is)};
  return cmocka_run_group_tests_name("gpu_device", tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace gpu_device_test
