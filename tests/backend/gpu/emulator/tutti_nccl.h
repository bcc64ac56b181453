// SPDX-License-Identifier: Apache-2.0
//
// The part of NCCL's interface that lib/backend/gpu/ uses, for emulated GPUs. TUTTI_EMULATED_GPUS says how many there
// are (1).
//
// Ranks may be those of several processes, which find each other by the unique id. Nobody hears of one that ends.
//
// What it is strict about:
//  * Calls are carried out later: each is in progress until it was asked about twice, the first of a communicator until
//    all ranks have made theirs. A communicator that is used meanwhile refuses.
//  * An operation is done when all ranks have it and somebody waits: streams are as late as ever.
//  * Sums are added in an order that depends on the element, as in a ring; never 0, 1, 2, ... for all.
//  * What was aborted leaves memory that is not a number.
//  * A stream of another device, and a communicator that ends before its operations, end the process with a sentence.
//    So do memory that is freed while it is registered, a communicator that ends with some, and an operation on memory
//    that not all ranks have registered, at the same place there, or that goes beyond it.
//
//  * An operation that is captured is there when all ranks have captured it, and not the first of a communicator. Each
//    launch does it once more, and meets launches of that very capture alone. A communicator that ends while a graph
//    has its operations ends the process with a sentence, and one that is aborted waits for the graphs to end.
//
// With the environment's TUTTI_EMULATED_NCCL_JOURNAL each call adds a line to that file: "all_reduce 4096" (bytes of a
// rank), "captured 4096", "register 4096", "deregister 0", "window 4096", "window_end 0"; so do operation N when all
// ranks have done it, "done N", and the host when it synchronizes with a stream or waits for an event,
// "stream_synchronize 0" and "event_synchronize 0"; and a graph of N nodes that is launched, "graph_launch N".
//
// Faults, from the environment's TUTTI_EMULATED_NCCL when it is asked: "missing" (there is no such library), "refuse"
// (connecting fails), "busy" (connecting never ends), "stall R N" (operation N of rank R, counted from 0, never arrives
// at its device), "error R N" (and the library says so), "late R N" (it arrives, but is not done there before it is
// ended: others have gone on), "older" (a library that does not register memory), "nowindows" (nor makes windows to
// it), "newer" (a library of another version), "early" (of one whose operations are not captured), "uncapturable R N"
// (rank R captures N operations and no more), "slow R N" (of ranks in several processes: each operation of rank R
// arrives N milliseconds later, and all streams of a process that is told so go on though nobody waits for them), "lag
// R N" (each operation of rank R is launched N milliseconds later), "noid" (it cannot listen for other processes),
// "windowless" (it makes none between these GPUs), "badwindow" (making them fails, and the communicators are of no use
// any more), "unregistered" (registering memory is of no use, says the library).
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_TUTTI_NCCL_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_TUTTI_NCCL_H_

#include <tutti_gpu.h>

#include <cstddef>

using ncclComm_t = struct EmulatedCommunicator *;

enum ncclResult_t {
  ncclSuccess = 0,
  ncclSystemError = 2,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclRedOp_t { ncclSum = 0, ncclMax = 2, ncclMin = 3 };
enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};
struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER \
  { 1 }

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t communicator);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
/// As that of a library whose communicators block, but for the waiting (opened_blocking_nccl.cc): what it makes has all
/// connections before the first call.
ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error);
ncclResult_t ncclCommFinalize(ncclComm_t communicator);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t ncclCommAbort(ncclComm_t communicator);
ncclResult_t ncclCommRegister(ncclComm_t communicator, void *memory, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(ncclComm_t communicator, void *handle);
ncclResult_t ncclMemAlloc(void **memory, size_t bytes);
ncclResult_t ncclMemFree(void *memory);
ncclResult_t ncclCommWindowRegister(ncclComm_t communicator, void *memory, size_t bytes, void **window, int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t communicator, void *window);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t communicator, gpuStream_t stream);
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction, int root,
                        ncclComm_t communicator, gpuStream_t stream);
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, gpuStream_t stream);
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t communicator, gpuStream_t stream);
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           gpuStream_t stream);

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_TUTTI_NCCL_H_
