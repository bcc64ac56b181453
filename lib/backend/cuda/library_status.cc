// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/dynamic_library.h"

#include <cuda_runtime_api.h>

namespace tutti::impl::backend::cuda {

using base::Status;

namespace {
std::string library_version_text(size_t version) {
  return base::concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}
}  // namespace

std::string version_of(const CublasLt &lt) { return library_version_text(lt.cublasLtGetVersion()); }

std::string version_of(const Cudnn &cudnn) { return library_version_text(cudnn.cudnnGetVersion()); }

Status check_built_for(std::string_view file, size_t cuda_version) {
  constexpr size_t kOwn = CUDART_VERSION / 1000;
  if (cuda_version / 1000 == kOwn) return Status();
  return base::unavailable(file, " is built for CUDA ", cuda_version / 1000, ", and this plug-in for CUDA ", kOwn,
                           ": install the one for CUDA ", kOwn);
}

Status status_of(const CublasLt &lt, cublasStatus_t status, std::string_view action) {
  if (status == CUBLAS_STATUS_SUCCESS) return Status();
  return Status(status == CUBLAS_STATUS_ALLOC_FAILED ? base::Code::resource_exhausted : base::Code::internal,
                base::concat(action, ": cuBLASLt says ", lt.cublasLtGetStatusString(status)));
}

Status status_of(const Cudnn &cudnn, cudnnStatus_t status, std::string_view action) {
  if (status == CUDNN_STATUS_SUCCESS) return Status();
  char details[512] = "";
  cudnn.cudnnGetLastErrorString(details, sizeof(details));
  const bool lacks_memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                            status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  return Status(lacks_memory ? base::Code::resource_exhausted : base::Code::internal,
                base::concat(action, ": cuDNN says ", cudnn.cudnnGetErrorString(status), " (",
                             static_cast<const char *>(details), ")"));
}

}  // namespace tutti::impl::backend::cuda
