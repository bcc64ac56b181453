// SPDX-License-Identifier: Apache-2.0
//
// In place of cuBLASLt: functions that do on the host, at once, what its header promises: column-major matrices of f32,
// f64 or bf16, transpositions, batches, steps, an addend, a bias, gelu, with its operand, and relu behind the product,
// sums of its factors.
#ifndef TUTTI_TESTS_BACKEND_CUDA_HOST_CUBLASLT_H_
#define TUTTI_TESTS_BACKEND_CUDA_HOST_CUBLASLT_H_

#include <cstdint>
#include <map>
#include <set>

#include "backend/cuda/dynamic_library.h"

namespace tutti::testing {

struct HostCublasLt {
  impl::backend::cuda::CublasLt functions;
  // What it was asked for.
  int descriptors = 0, calls = 0;  ///< descriptors that were not destroyed; products
  cublasComputeType_t compute{};
  cublasLtEpilogue_t epilogue{};  ///< of the last product
  const void *auxiliary = nullptr;
  int64_t auxiliary_leading = 0;
  std::map<int, uint64_t> preferences;
  // What it answers.
  cublasStatus_t heuristic = CUBLAS_STATUS_SUCCESS;
  int algorithms = 1;                                 ///< that it has
  std::set<int> refused_epilogues;                    ///< of products that it has no algorithm for
  double milliseconds = 0;                            ///< that passed in it
  double sums_milliseconds = 0;                       ///< that sums of a factor add to a call
  std::map<uint64_t, double> algorithm_milliseconds;  ///< of one call, by algorithm from 0 on
  std::set<uint64_t> nan_droppers;                    ///< algorithms whose relu makes 0 of a NaN
};

/// The one there is.
HostCublasLt &host_cublaslt();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CUDA_HOST_CUBLASLT_H_
