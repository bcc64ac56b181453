// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/collective/nccl.h"

namespace tutti::impl::backend::gpu {

using base::Status;

Status status_of(const Nccl &nccl, ncclResult_t result, std::string_view action) {
  if (result == ncclSuccess || result == kInProgress) return Status();
  const char *const last = nccl.ncclGetLastError(nullptr);
  const std::string_view details = last == nullptr ? "" : last;
  return Status(base::Code::internal, base::concat(action, ": NCCL says ", nccl.ncclGetErrorString(result),
                                                   details.empty() ? "" : ": ", details));
}

}  // namespace tutti::impl::backend::gpu
