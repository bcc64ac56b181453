// SPDX-License-Identifier: Apache-2.0
//
// NCCL, or RCCL, which has the same interface: <tutti_nccl.h> of each platform includes its header. Opened when devices
// are connected for the first time; a plug-in works without, and then the host combines. Functions have their names of
// the header.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_H_
#define TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_H_

#include <tutti_nccl.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

struct Nccl {
  decltype(&::ncclGetVersion) ncclGetVersion = nullptr;
  decltype(&::ncclGetErrorString) ncclGetErrorString = nullptr;
  decltype(&::ncclGetLastError) ncclGetLastError = nullptr;
  decltype(&::ncclGetUniqueId) ncclGetUniqueId = nullptr;
  decltype(&::ncclCommInitRank) ncclCommInitRank = nullptr;
  decltype(&::ncclCommGetAsyncError) ncclCommGetAsyncError = nullptr;
  decltype(&::ncclCommDestroy) ncclCommDestroy = nullptr;
  decltype(&::ncclCommAbort) ncclCommAbort = nullptr;
  decltype(&::ncclGroupStart) ncclGroupStart = nullptr;
  decltype(&::ncclGroupEnd) ncclGroupEnd = nullptr;
  decltype(&::ncclAllReduce) ncclAllReduce = nullptr;
  decltype(&::ncclReduce) ncclReduce = nullptr;
  decltype(&::ncclBroadcast) ncclBroadcast = nullptr;
  decltype(&::ncclReduceScatter) ncclReduceScatter = nullptr;
  decltype(&::ncclAllGather) ncclAllGather = nullptr;
  // Of 2.14 and later; null where communicators block (nccl_connecting.h). Headers may be older.
  using InitRankConfig = auto(*)(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank, void *config)
                             -> ncclResult_t;
  using Finalize = auto(*)(ncclComm_t communicator) -> ncclResult_t;
  InitRankConfig ncclCommInitRankConfig = nullptr;
  Finalize ncclCommFinalize = nullptr;
  // Of 2.19 and later; null where the library has none, or communicators block.
  using Register = auto(*)(ncclComm_t communicator, void *memory, size_t bytes, void **handle) -> ncclResult_t;
  using Deregister = auto(*)(ncclComm_t communicator, void *handle) -> ncclResult_t;
  Register ncclCommRegister = nullptr;
  Deregister ncclCommDeregister = nullptr;
  using Allocate = auto(*)(void **memory, size_t bytes) -> ncclResult_t;
  using Free = auto(*)(void *memory) -> ncclResult_t;
  Allocate ncclMemAlloc = nullptr;
  Free ncclMemFree = nullptr;
  // Of 2.27 and later. A window is a pointer.
  using RegisterWindow = auto(*)(ncclComm_t communicator, void *memory, size_t bytes, void **window, int flags)
                             -> ncclResult_t;
  using DeregisterWindow = auto(*)(ncclComm_t communicator, void *window) -> ncclResult_t;
  RegisterWindow ncclCommWindowRegister = nullptr;
  DeregisterWindow ncclCommWindowDeregister = nullptr;

  bool has_windows() const {
    return ncclMemAlloc != nullptr && ncclMemFree != nullptr && ncclCommWindowRegister != nullptr &&
           ncclCommWindowDeregister != nullptr;
  }
};

/// What a library says whose communicators do not block while it is at work. Headers before 2.14 have no name for it.
constexpr auto kInProgress = static_cast<ncclResult_t>(7);

/// The functions of a shared library, looked for where the loader looks, then in `folder`; never closed. UNAVAILABLE
/// and what is missing, or that it is older than what the plug-in was built for (nccl_connecting.h).
base::Result<Nccl> open_nccl(const std::string &file, const std::string &folder);

/// Ok, also while something is in progress, or what the library says while `action` ("summing over devices").
base::Status status_of(const Nccl &nccl, ncclResult_t result, std::string_view action);

namespace platform {

/// The functions for the life of the process, or UNAVAILABLE.
base::Result<const Nccl *> nccl();
/// What it is called in messages: "NCCL".
const char *nccl_name();
/// Ok when sums over the same devices have the same bits in every run, else UNAVAILABLE and why not.
base::Status check_sums_repeat();
/// Ok when operations of a library of this version are captured with the streams that they are on, else one sentence
/// why not.
base::Status check_captures(int version);

}  // namespace platform
}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_H_
