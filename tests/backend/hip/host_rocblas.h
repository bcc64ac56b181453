// SPDX-License-Identifier: Apache-2.0
//
// In place of rocBLAS: functions that do on the host, at once, what the header promises. Column-major matrices of f32,
// f64, f16 or bf16, transpositions, batches, an addend.
#ifndef TUTTI_TESTS_BACKEND_HIP_HOST_ROCBLAS_H_
#define TUTTI_TESTS_BACKEND_HIP_HOST_ROCBLAS_H_

#include <cstddef>

#include "backend/hip/rocblas.h"

namespace tutti::testing {

struct HostRocblas {
  impl::backend::hip::Rocblas functions;
  // What it was asked for.
  int handles = 0;              ///< that were not destroyed
  int calls = 0;                ///< products
  int strict_calls = 0;         ///< products while the thread may not load modules though it captures
  bool adds_atomically = true;  ///< as the library does by itself
  size_t workspace = 0;         ///< bytes it was given
  // What it answers.
  bool is_missing = false;
  size_t wanted_bytes = 0;  ///< memory that it says a product needs
  rocblas_status answer = rocblas_status_success;
};

/// The one there is.
HostRocblas &host_rocblas();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_HIP_HOST_ROCBLAS_H_
