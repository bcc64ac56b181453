// SPDX-License-Identifier: Apache-2.0
//
// How communicators come to be: begun without waiting for anybody, and asked for until they are there. Of two sources
// the build takes one: nccl_connecting.cc where the header has communicators that do not block (2.14), whose library
// connects in threads of its own; nccl_connecting_blocking.cc where it has none, as RCCL before ROCm 5.5.
//
// In the latter a call that connects comes back when all ranks have come, which may be never. A thread of this object
// makes it. Nothing ends such a call: when it is given up, the thread goes on in it, with all that it needs, and aborts
// the communicators that it gets should the other ranks come after all; else it stays, asleep or asking the network,
// until the process ends. Operations are issued by their callers: RCCL has made all connections by then, so they come
// back without the other ranks.
//
// Threads: communicator() and check() may be called from any thread, begin() by one while nobody else calls.
#ifndef TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_CONNECTING_H_
#define TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_CONNECTING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "backend/gpu/collective/nccl.h"
#include "backend/gpu/runtime/opened_library.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class NcclConnecting {
 public:
  NcclConnecting();
  /// As give_up().
  ~NcclConnecting();
  NcclConnecting(const NcclConnecting &) = delete;
  NcclConnecting &operator=(const NcclConnecting &) = delete;

  /// The ranks from `first_rank` on of a clique of `rank_count`, on these GPUs. Waits for nobody.
  base::Status begin(const Nccl &nccl, std::span<const int32_t> ordinals, const ncclUniqueId &id, int32_t first_rank,
                     int32_t rank_count);
  /// Of the rank `index` of this process: the caller's to end. Null while it is not there; with a library that does not
  /// block it may be there and not be connected yet.
  ncclComm_t communicator(size_t index) const;
  /// What went wrong with ranks that are not there.
  base::Status check() const;
  /// What is not there yet will not be asked for any more.
  void give_up();
  /// What is there has been ended.
  void forget();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What the library must be at least: 21400 is 2.14.0.
extern const int kLeastNcclVersion;
/// The functions that connect and, where communicators do not block, what came later.
void find_connecting(OpenedLibrary &library, Nccl &nccl);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_CONNECTING_H_
