// SPDX-License-Identifier: Apache-2.0
//
// A cuDNN for another CUDA (other_cudnn.c, where the loader looks first) is not used, and one sentence says why.
#include "backend/cuda/dynamic_library.h"
#include "testing.h"

namespace {

void a_cudnn_for_another_cuda_is_named(void **) {
  const auto opened = tutti::impl::backend::cuda::cudnn();
  assert_error_contains(opened.status(), "libcudnn.so.9 is built for CUDA 11, and this plug-in for CUDA 1");
  assert_true(opened.status().code() == tutti::impl::base::Code::unavailable);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(a_cudnn_for_another_cuda_is_named)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
