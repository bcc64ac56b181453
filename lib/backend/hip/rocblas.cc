// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/rocblas.h"

#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;

namespace {

/// Of ROCm 7, 6 and 5, whose interfaces are one as far as it is used.
constexpr const char *kFiles[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.0"};

Result<Rocblas> load_rocblas() {
  Result<Rocblas> newest = open_rocblas(kFiles[0], "/opt/rocm/lib");
  for (size_t i = 1; !newest.ok() && i < std::size(kFiles); ++i) {
    Result<Rocblas> older = open_rocblas(kFiles[i], "/opt/rocm/lib");
    if (older.ok()) return older;
  }
  return newest;
}

}  // namespace

Result<Rocblas> open_rocblas(const std::string &file, const std::string &folder) {
  TUTTI_ASSIGN(gpu::OpenedLibrary library, gpu::OpenedLibrary::open(file, folder));
  Rocblas made;
  library.find(made.create_handle, "rocblas_create_handle");
  library.find(made.destroy_handle, "rocblas_destroy_handle");
  library.find(made.set_stream, "rocblas_set_stream");
  library.find(made.set_workspace, "rocblas_set_workspace");
  library.find(made.set_atomics_mode, "rocblas_set_atomics_mode");
  library.find(made.start_device_memory_size_query, "rocblas_start_device_memory_size_query");
  library.find(made.stop_device_memory_size_query, "rocblas_stop_device_memory_size_query");
  library.find(made.gemm_strided_batched_ex, "rocblas_gemm_strided_batched_ex");
  library.find(made.status_to_string, "rocblas_status_to_string");
  library.find(made.get_version_string, "rocblas_get_version_string");
  TUTTI_TRY(library.all_found(file));
  return made;
}

Result<const Rocblas *> rocblas() { return gpu::loaded_once<Rocblas, load_rocblas>(); }

Status status_of(const Rocblas &rocblas, rocblas_status status, std::string_view action) {
  // With less memory than it would like it still computes.
  if (status == rocblas_status_success || status == rocblas_status_perf_degraded) return Status();
  return Status(status == rocblas_status_memory_error ? base::Code::resource_exhausted : base::Code::internal,
                base::concat(action, ": rocBLAS says ", rocblas.status_to_string(status)));
}

}  // namespace tutti::impl::backend::hip
