// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/dynamic_library.h"

namespace tutti::impl::backend::cuda {

using base::Status;

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
