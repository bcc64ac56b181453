// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/collective/nccl.h"
#include "backend/gpu/collective/nccl_connecting.h"
#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::gpu {

using base::Result;

Result<Nccl> open_nccl(const std::string &file, const std::string &folder) {
  TUTTI_ASSIGN(OpenedLibrary library, OpenedLibrary::open(file, folder));
  Nccl nccl;
  library.find(nccl.ncclGetVersion, "ncclGetVersion");
  library.find(nccl.ncclGetErrorString, "ncclGetErrorString");
  library.find(nccl.ncclGetLastError, "ncclGetLastError");
  library.find(nccl.ncclGetUniqueId, "ncclGetUniqueId");
  library.find(nccl.ncclCommGetAsyncError, "ncclCommGetAsyncError");
  library.find(nccl.ncclCommDestroy, "ncclCommDestroy");
  library.find(nccl.ncclCommAbort, "ncclCommAbort");
  library.find(nccl.ncclGroupStart, "ncclGroupStart");
  library.find(nccl.ncclGroupEnd, "ncclGroupEnd");
  library.find(nccl.ncclAllReduce, "ncclAllReduce");
  library.find(nccl.ncclReduce, "ncclReduce");
  library.find(nccl.ncclBroadcast, "ncclBroadcast");
  library.find(nccl.ncclReduceScatter, "ncclReduceScatter");
  library.find(nccl.ncclAllGather, "ncclAllGather");
  find_connecting(library, nccl);
  TUTTI_TRY(library.all_found(file));
  int version = 0;
  TUTTI_TRY(status_of(nccl, nccl.ncclGetVersion(&version), "querying its version"));
  if (version < kLeastNcclVersion) {
    return base::unavailable(file, " has version ", version / 10000, ".", version / 100 % 100, ", 2.",
                             kLeastNcclVersion / 100 % 100, " is needed");
  }
  return nccl;
}

}  // namespace tutti::impl::backend::gpu
