// SPDX-License-Identifier: Apache-2.0
//
// The thread's mode is relaxed as long as a guard of it lives, and then what it was; others' are left alone.
#include "backend/gpu/runtime/relaxed_capture.h"

#include <thread>

#include "testing.h"

namespace relaxed_capture_test {

using tutti::impl::backend::gpu::RelaxedCapture;

namespace {

bool is_relaxed() {
  gpuStreamCaptureMode mode{};
  assert_int_equal(gpuThreadExchangeStreamCaptureMode(&mode), gpuSuccess);
  const gpuStreamCaptureMode found = mode;
  assert_int_equal(gpuThreadExchangeStreamCaptureMode(&mode), gpuSuccess);
  return found == gpuStreamCaptureModeRelaxed;
}

void a_guard_relaxes_and_restores(void **) {
  assert_false(is_relaxed());
  {
    const RelaxedCapture outer;
    assert_true(is_relaxed());
    {
      const RelaxedCapture inner;
      assert_true(is_relaxed());
    }
    assert_true(is_relaxed());
  }
  assert_false(is_relaxed());
}

void it_is_of_one_thread(void **) {
  const RelaxedCapture guard;
  bool is_other_relaxed = true;
  std::thread([&] { is_other_relaxed = is_relaxed(); }).join();
  assert_false(is_other_relaxed);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_guard_relaxes_and_restores),
      cmocka_unit_test(it_is_of_one_thread),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace relaxed_capture_test
