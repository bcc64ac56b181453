// SPDX-License-Identifier: Apache-2.0
//
// rocBLAS, opened on first use: the plug-in works without it, more slowly.
//
//   TUTTI_ASSIGN(const Rocblas *rocblas, rocblas());             // or one sentence that says what is missing
//   TUTTI_TRY(status_of(*rocblas, rocblas->create_handle(&handle), "opening rocBLAS"));
//
// Threads: all functions may be called from any thread; calls with one handle are made one at a time.
#ifndef TUTTI_BACKEND_HIP_ROCBLAS_H_
#define TUTTI_BACKEND_HIP_ROCBLAS_H_

#include <rocblas/rocblas.h>
#include <tutti_gpu.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::hip {

/// Without the prefix of the header's names, of which some are macros.
struct Rocblas {
  // Its declaration warns of another default to come.
  using SetAtomicsMode = auto(*)(rocblas_handle handle, rocblas_atomics_mode mode) -> rocblas_status;

  decltype(&::rocblas_create_handle) create_handle = nullptr;
  decltype(&::rocblas_destroy_handle) destroy_handle = nullptr;
  decltype(&::rocblas_set_stream) set_stream = nullptr;
  decltype(&::rocblas_set_workspace) set_workspace = nullptr;
  SetAtomicsMode set_atomics_mode = nullptr;
  decltype(&::rocblas_start_device_memory_size_query) start_device_memory_size_query = nullptr;
  decltype(&::rocblas_stop_device_memory_size_query) stop_device_memory_size_query = nullptr;
  decltype(&::rocblas_gemm_strided_batched_ex) gemm_strided_batched_ex = nullptr;
  decltype(&::rocblas_status_to_string) status_to_string = nullptr;
  decltype(&::rocblas_get_version_string) get_version_string = nullptr;
};

/// The functions of a shared library, looked for where the loader looks, then in `folder`; never closed. UNAVAILABLE
/// and what is missing.
base::Result<Rocblas> open_rocblas(const std::string &file, const std::string &folder);

/// The functions for the life of the process, or UNAVAILABLE.
base::Result<const Rocblas *> rocblas();

/// Ok, or what the library says while `action` ("multiplying matrices").
base::Status status_of(const Rocblas &rocblas, rocblas_status status, std::string_view action);

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_ROCBLAS_H_
