// SPDX-License-Identifier: Apache-2.0
//
// NCCL is opened with all functions that are called of it, or one sentence says what is missing. Needs no GPU.
#include <string_view>

#include "backend/gpu/collective/nccl.h"
#include "testing.h"

using namespace tutti::impl;
using backend::gpu::Nccl;
using backend::gpu::open_nccl;

namespace {

constexpr const char *kFolder = TUTTI_GPU_TOOLKIT "/lib64";

void all_functions_are_there(void **) {
  const base::Result<Nccl> opened = open_nccl("libnccl.so.2", kFolder);
  if (!opened.ok()) {
    print_message("%s\n", opened.status().to_string().c_str());
    test_skip();
  }
  int version = 0;
  assert_int_equal(opened->ncclGetVersion(&version), ncclSuccess);
  assert_true(version >= NCCL_VERSION(2, 14, 0));
  assert_non_null(opened->ncclCommAbort);
  assert_non_null(opened->ncclAllGather);
}

void what_is_missing_is_named(void **) {
  assert_error_contains(open_nccl("libno-such-nccl.so.2", kFolder), "libno-such-nccl.so.2");
  assert_error_contains(open_nccl("libm.so.6", kFolder), "libm.so.6 has no ncclGetVersion");
}

void results_are_statuses(void **) {
  Nccl nccl;
  nccl.ncclGetErrorString = [](ncclResult_t) { return "no"; };
  nccl.ncclGetLastError = [](ncclComm_t) { return "cable is out"; };
  assert_ok(backend::gpu::status_of(nccl, ncclSuccess, "adding"));
  assert_ok(backend::gpu::status_of(nccl, ncclInProgress, "adding"));
  assert_error_contains(backend::gpu::status_of(nccl, ncclSystemError, "adding"), "adding: NCCL says no: cable is out");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(all_functions_are_there),
      cmocka_unit_test(what_is_missing_is_named),
      cmocka_unit_test(results_are_statuses),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
