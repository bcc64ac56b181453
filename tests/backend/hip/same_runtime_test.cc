// SPDX-License-Identifier: Apache-2.0
//
// A library of the plug-in's own HIP runtime passes, one of another is refused, and both files are named. Arguments: a
// library of each. Needs no GPU.
#include "backend/hip/same_runtime.h"

#include <dlfcn.h>

#include <cmath>

#include "testing.h"

using tutti::impl::backend::hip::check_same_runtime;

namespace {

const char *own_path = nullptr, *other_path = nullptr;

const void *version_of(const char *path) {
  void *const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) print_error("%s\n", dlerror());
  assert_non_null(opened);
  const void *const found = dlsym(opened, "library_version");
  assert_non_null(found);
  return found;
}

void a_library_of_the_same_runtime_passes(void **) {
  assert_ok(check_same_runtime(version_of(own_path)));
  assert_ok(check_same_runtime(reinterpret_cast<const void *>(static_cast<double (*)(double)>(&std::cbrt))));
}

void one_of_another_is_refused(void **) {
  const auto status = check_same_runtime(version_of(other_path));
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(tutti::impl::base::Code::unavailable));
  for (const char *name : {other_path, "it needs", "libother_runtime.so", "libamdhip64.so"})
    assert_error_contains(status, name);
}

}  // namespace

int main(int, char **arguments) {
  own_path = arguments[1];
  other_path = arguments[2];
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_library_of_the_same_runtime_passes),
      cmocka_unit_test(one_of_another_is_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
