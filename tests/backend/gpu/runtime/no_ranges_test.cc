// SPDX-License-Identifier: Apache-2.0
//
// A build without an interface to tools names no ranges, and says so.
#include "backend/gpu/runtime/ranges.h"

#include "testing.h"

namespace {

namespace gpu = tutti::impl::backend::gpu;

void there_are_none(void **) {
  const gpu::RangeName name = gpu::register_range("segment 0");
  assert_null(name);
  const gpu::Range range(name, 1);
  assert_contains(gpu::describe_ranges(), "is missing: its header was missing in the build");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(there_are_none)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
