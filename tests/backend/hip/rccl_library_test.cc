// SPDX-License-Identifier: Apache-2.0
//
// RCCL is opened with all functions that are called of it, and is of the plug-in's runtime; what is missing is named.
// Needs no GPU.
#include "backend/gpu/collective/nccl.h"
#include "backend/gpu/collective/nccl_connecting.h"
#include "backend/hip/same_runtime.h"
#include "testing.h"

using namespace tutti::impl;
using backend::gpu::Nccl;
using backend::gpu::open_nccl;

namespace {

constexpr const char *kFolder = "/opt/rocm/lib";

void all_functions_are_there(void **) {
  const base::Result<Nccl> opened = open_nccl("librccl.so.1", kFolder);
  if (!opened.ok()) {
    print_message("%s\n", opened.status().to_string().c_str());
    test_skip();
  }
  int version = 0;
  assert_int_equal(opened->ncclGetVersion(&version), ncclSuccess);
  assert_true(version >= backend::gpu::kLeastNcclVersion);
  assert_true((opened->ncclCommInitRank != nullptr) != (opened->ncclCommInitRankConfig != nullptr));
  assert_int_equal(opened->ncclCommFinalize != nullptr, opened->ncclCommInitRankConfig != nullptr);
  assert_ok(backend::hip::check_same_runtime(reinterpret_cast<const void *>(opened->ncclGetVersion)));
}

void what_is_missing_is_named(void **) {
  assert_error_contains(open_nccl("libno-such-rccl.so.1", kFolder), "libno-such-rccl.so.1");
  assert_error_contains(open_nccl("libm.so.6", kFolder), "libm.so.6 has no ncclGetVersion");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(all_functions_are_there),
      cmocka_unit_test(what_is_missing_is_named),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
