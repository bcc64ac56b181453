// SPDX-License-Identifier: Apache-2.0
//
// MIOpen as a shared library: whole and of the right version, or one sentence.
//
//   opened_miopen_test /path/to/a/library
#include <cstdlib>

#include "backend/hip/miopen.h"
#include "testing.h"

using namespace tutti::impl::backend::hip;

namespace {

const char *stand_in = nullptr;

void a_library_of_the_version_is_opened(void **) {
  (void)unsetenv("TUTTI_HOST_MIOPEN");
  const Miopen opened = assert_ok_value(open_miopen(stand_in, "/nowhere"));
  assert_true(opened.backward_weights.miopenImmediate != nullptr);
  assert_string_equal(assert_ok_value(version_of(opened)).c_str(), "3.7.5");
}

void one_of_another_version_is_refused(void **) {
  (void)setenv("TUTTI_HOST_MIOPEN", "2", 1);
  const auto opened = open_miopen(stand_in, "/nowhere");
  assert_error_contains(opened, " is MIOpen 2.7.5, and this plug-in was built for MIOpen 3");
  assert_true(opened.status().code() == tutti::impl::base::Code::unavailable);
  (void)unsetenv("TUTTI_HOST_MIOPEN");
}

void what_is_missing_is_named(void **) {
  assert_error_contains(open_miopen("libMIOpen-none.so.1", "/nowhere"), "libMIOpen-none.so.1");
  assert_error_contains(open_miopen("libm.so.6", "/nowhere"), "libm.so.6 has no miopenGetVersion");
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  stand_in = argv[1];
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_library_of_the_version_is_opened),
      cmocka_unit_test(one_of_another_version_is_refused),
      cmocka_unit_test(what_is_missing_is_named),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
