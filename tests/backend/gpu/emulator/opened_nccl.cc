// SPDX-License-Identifier: Apache-2.0
//
// The emulated NCCL as a platform's library: its communicators do not block.
#include "backend/gpu/collective/nccl.h"
#include "ordered_fault.h"

namespace tutti::impl::backend::gpu::platform {

using tutti_gpu_emulator::ordered_fault;

namespace {

Nccl functions_that_do_not_block() {
  Nccl nccl;
  nccl.ncclGetVersion = ::ncclGetVersion;
  nccl.ncclGetErrorString = ::ncclGetErrorString;
  nccl.ncclGetLastError = ::ncclGetLastError;
  nccl.ncclGetUniqueId = ::ncclGetUniqueId;
  nccl.ncclCommInitRankConfig = [](ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank, void *config) {
    return ncclCommInitRankConfig(communicator, ranks, id, rank, static_cast<ncclConfig_t *>(config));
  };
  nccl.ncclCommGetAsyncError = ::ncclCommGetAsyncError;
  nccl.ncclCommFinalize = ::ncclCommFinalize;
  nccl.ncclCommDestroy = ::ncclCommDestroy;
  nccl.ncclCommAbort = ::ncclCommAbort;
  nccl.ncclGroupStart = ::ncclGroupStart;
  nccl.ncclGroupEnd = ::ncclGroupEnd;
  nccl.ncclAllReduce = ::ncclAllReduce;
  nccl.ncclReduce = ::ncclReduce;
  nccl.ncclBroadcast = ::ncclBroadcast;
  nccl.ncclReduceScatter = ::ncclReduceScatter;
  nccl.ncclAllGather = ::ncclAllGather;
  nccl.ncclCommRegister = ::ncclCommRegister;
  nccl.ncclCommDeregister = ::ncclCommDeregister;
  nccl.ncclMemAlloc = ::ncclMemAlloc;
  nccl.ncclMemFree = ::ncclMemFree;
  nccl.ncclCommWindowRegister = ::ncclCommWindowRegister;
  nccl.ncclCommWindowDeregister = ::ncclCommWindowDeregister;
  return nccl;
}

}  // namespace

base::Result<const Nccl *> nccl() {
  if (ordered_fault().kind == "missing") return base::unavailable("there is no emulated NCCL");
  static const Nccl functions = functions_that_do_not_block();
  static const Nccl older = [] {
    Nccl without = functions;
    without.ncclCommRegister = nullptr;
    without.ncclCommDeregister = nullptr;
    without.ncclCommWindowRegister = nullptr;
    return without;
  }();
  static const Nccl windowless = [] {
    Nccl without = functions;
    without.ncclCommWindowRegister = nullptr;
    return without;
  }();
  if (ordered_fault().kind == "nowindows") return &windowless;
  return ordered_fault().kind == "older" ? &older : &functions;
}

const char *nccl_name() { return "emulated NCCL"; }

base::Status check_sums_repeat() { return base::Status(); }

base::Status check_captures(int version) {
  return version > 21400 ? base::Status() : base::unimplemented("this emulated NCCL is not captured");
}

}  // namespace tutti::impl::backend::gpu::platform
