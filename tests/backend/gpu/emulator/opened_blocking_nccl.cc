// SPDX-License-Identifier: Apache-2.0
//
// A library whose communicators block, as RCCL's before ROCm 5.5 do: the emulated NCCL, asked until it is done. The
// call that connects comes back when all ranks have come; the others put their work on the stream and wait for nobody.
// It knows nothing of memory that is registered, nor of communicators that are finalized.
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "backend/gpu/collective/nccl.h"
#include "ordered_fault.h"

namespace tutti::impl::backend::gpu::platform {

using tutti_gpu_emulator::ordered_fault;

namespace {

/// A thread's group of calls.
struct Group {
  int depth = 0;
  std::vector<ncclComm_t *> connecting;
  std::vector<ncclComm_t> called;
};
thread_local Group group;

/// For ever, if need be.
ncclResult_t wait_for(ncclComm_t communicator, int64_t pause_us) {
  for (;;) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ::ncclCommGetAsyncError(communicator, &state);
    if (asked != ncclSuccess) return asked;
    if (state != ncclInProgress) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
}

ncclResult_t connect(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank) {
  const ncclResult_t begun = ::ncclCommInitRank(communicator, ranks, id, rank);
  if (begun != ncclInProgress) return begun;
  group.connecting.push_back(communicator);
  return ncclSuccess;
}

/// All ranks of the group, or none.
ncclResult_t await_connections() {
  const std::vector<ncclComm_t *> slots = std::exchange(group.connecting, {});
  ncclResult_t first = ncclSuccess;
  for (const ncclComm_t *const slot : slots) {
    const ncclResult_t connected = wait_for(*slot, 1000);
    if (first == ncclSuccess) first = connected;
  }
  for (ncclComm_t *const slot : slots) {
    if (first != ncclSuccess) (void)::ncclCommAbort(std::exchange(*slot, nullptr));
  }
  return first;
}

/// What went wrong on the way is heard by who asks for it.
ncclResult_t issued(ncclComm_t communicator, ncclResult_t result) {
  if (result != ncclInProgress) return result;
  group.called.push_back(communicator);
  if (group.depth == 0) (void)wait_for(std::exchange(group.called, {}).front(), 50);
  return ncclSuccess;
}

ncclResult_t start_group() {
  ++group.depth;
  return ncclGroupStart();
}

ncclResult_t end_group() {
  const ncclResult_t ended = ::ncclGroupEnd();
  if (--group.depth > 0 || (ended != ncclSuccess && ended != ncclInProgress)) return ended;
  for (const ncclComm_t communicator : std::exchange(group.called, {}))
    (void)wait_for(communicator, 50);
  return await_connections();
}

ncclResult_t destroy(ncclComm_t communicator) {
  const ncclResult_t finalized = ::ncclCommFinalize(communicator);
  if (finalized != ncclInProgress) return finalized;
  (void)wait_for(communicator, 50);
  return ncclCommDestroy(communicator);
}

Nccl functions_that_block() {
  Nccl nccl;
  nccl.ncclGetVersion = ::ncclGetVersion;
  nccl.ncclGetErrorString = ::ncclGetErrorString;
  nccl.ncclGetLastError = ::ncclGetLastError;
  nccl.ncclGetUniqueId = ::ncclGetUniqueId;
  nccl.ncclCommInitRank = connect;
  nccl.ncclCommGetAsyncError = ::ncclCommGetAsyncError;
  nccl.ncclCommDestroy = destroy;
  nccl.ncclCommAbort = ::ncclCommAbort;
  nccl.ncclGroupStart = start_group;
  nccl.ncclGroupEnd = end_group;
  nccl.ncclAllReduce = [](const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                          ncclComm_t communicator, gpuStream_t stream) {
    return issued(communicator, ::ncclAllReduce(from, to, count, type, reduction, communicator, stream));
  };
  nccl.ncclReduce = [](const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction, int root,
                       ncclComm_t communicator, gpuStream_t stream) {
    return issued(communicator, ::ncclReduce(from, to, count, type, reduction, root, communicator, stream));
  };
  nccl.ncclBroadcast = [](const void *from, void *to, size_t count, ncclDataType_t type, int root,
                          ncclComm_t communicator, gpuStream_t stream) {
    return issued(communicator, ::ncclBroadcast(from, to, count, type, root, communicator, stream));
  };
  nccl.ncclReduceScatter = [](const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                              ncclComm_t communicator, gpuStream_t stream) {
    return issued(communicator, ::ncclReduceScatter(from, to, count, type, reduction, communicator, stream));
  };
  nccl.ncclAllGather = [](const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                          gpuStream_t stream) {
    return issued(communicator, ::ncclAllGather(from, to, count, type, communicator, stream));
  };
  return nccl;
}

}  // namespace

base::Result<const Nccl *> nccl() {
  if (ordered_fault().kind == "missing") return base::unavailable("there is no emulated NCCL");
  static const Nccl functions = functions_that_block();
  return &functions;
}

const char *nccl_name() { return "emulated NCCL"; }

base::Status check_sums_repeat() { return base::Status(); }

base::Status check_captures(int version) {
  return version > 21400 ? base::Status() : base::unimplemented("this emulated NCCL is not captured");
}

}  // namespace tutti::impl::backend::gpu::platform
