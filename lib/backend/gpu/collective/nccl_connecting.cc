// SPDX-License-Identifier: Apache-2.0
//
// Communicators that do not block: the library connects them while others do other things.
#include "backend/gpu/collective/nccl_connecting.h"

#include <vector>

#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu {

using base::Status;

struct NcclConnecting::State {
  std::vector<ncclComm_t> communicators;
};

NcclConnecting::NcclConnecting() : state_(std::make_shared<State>()) {}
NcclConnecting::~NcclConnecting() = default;

Status NcclConnecting::begin(const Nccl &nccl, std::span<const int32_t> ordinals, const ncclUniqueId &id,
                             int32_t first_rank, int32_t rank_count) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::vector<ncclComm_t> &communicators = state_->communicators;
  communicators.assign(ordinals.size(), nullptr);
  TUTTI_TRY(status_of(nccl, nccl.ncclGroupStart(), "connecting devices"));
  Status first;
  for (size_t r = 0; r < ordinals.size() && first.ok(); ++r) {
    first = status_of(gpuSetDevice(ordinals[r]), "choosing the device");
    if (!first.ok()) break;
    first = status_of(
        nccl, nccl.ncclCommInitRankConfig(&communicators[r], rank_count, id, first_rank + static_cast<int>(r), &config),
        "connecting devices");
  }
  const Status ended = status_of(nccl, nccl.ncclGroupEnd(), "connecting devices");
  return first.ok() ? ended : first;
}

ncclComm_t NcclConnecting::communicator(size_t index) const {
  return index < state_->communicators.size() ? state_->communicators[index] : nullptr;
}

Status NcclConnecting::check() const { return Status(); }

void NcclConnecting::give_up() {}

void NcclConnecting::forget() { state_->communicators.clear(); }

const int kLeastNcclVersion = 21400;

void find_connecting(OpenedLibrary &library, Nccl &nccl) {
  library.find(nccl.ncclCommInitRankConfig, "ncclCommInitRankConfig");
  library.find(nccl.ncclCommFinalize, "ncclCommFinalize");
  library.find_optional(nccl.ncclCommRegister, "ncclCommRegister");
  library.find_optional(nccl.ncclCommDeregister, "ncclCommDeregister");
  library.find_optional(nccl.ncclMemAlloc, "ncclMemAlloc");
  library.find_optional(nccl.ncclMemFree, "ncclMemFree");
  library.find_optional(nccl.ncclCommWindowRegister, "ncclCommWindowRegister");
  library.find_optional(nccl.ncclCommWindowDeregister, "ncclCommWindowDeregister");
}

}  // namespace tutti::impl::backend::gpu
