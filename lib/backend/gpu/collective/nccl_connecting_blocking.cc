// SPDX-License-Identifier: Apache-2.0
//
// Communicators that block: a thread waits in the call that connects them, and may be given up there.
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "backend/gpu/collective/nccl_connecting.h"
#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu {

using base::Status;

/// Of the object and of the thread, which may outlive it.
struct NcclConnecting::State {
  Nccl nccl;
  std::vector<int32_t> ordinals;
  ncclUniqueId id;
  int32_t first_rank = 0, rank_count = 0;
  std::vector<ncclComm_t> communicators;  // of the thread until it is over
  gpuError_t device_error = gpuSuccess;
  ncclResult_t result = ncclSuccess;

  std::mutex mutex;
  bool is_over = false, is_given_up = false;

  void connect();
  void run();
};

/// Allocates nothing: what it throws would end the process.
void NcclConnecting::State::connect() {
  // All are looked at first: in a group of calls those before one that is missing would be connected, and wait for it.
  for (const int32_t ordinal : ordinals) {
    device_error = gpuSetDevice(ordinal);
    if (device_error != gpuSuccess) return;
  }
  result = nccl.ncclGroupStart();
  if (result != ncclSuccess) return;
  for (size_t r = 0; r < ordinals.size() && device_error == gpuSuccess && result == ncclSuccess; ++r) {
    device_error = gpuSetDevice(ordinals[r]);
    if (device_error != gpuSuccess) break;
    result = nccl.ncclCommInitRank(&communicators[r], rank_count, id, first_rank + static_cast<int>(r));
  }
  const ncclResult_t ended = nccl.ncclGroupEnd();
  if (result == ncclSuccess) result = ended;
}

void NcclConnecting::State::run() {
  connect();
  {
    const std::lock_guard lock(mutex);
    is_over = true;
    if (!is_given_up) return;
  }
  for (const ncclComm_t communicator : communicators) {
    // Nobody is there to hear what it says.
    if (communicator != nullptr) (void)nccl.ncclCommAbort(communicator);
  }
}

NcclConnecting::NcclConnecting() : state_(std::make_shared<State>()) {}

NcclConnecting::~NcclConnecting() { give_up(); }

Status NcclConnecting::begin(const Nccl &nccl, std::span<const int32_t> ordinals, const ncclUniqueId &id,
                             int32_t first_rank, int32_t rank_count) {
  forget();
  const auto state = std::make_shared<State>();
  state->nccl = nccl;
  state->ordinals.assign(ordinals.begin(), ordinals.end());
  state->id = id;
  state->first_rank = first_rank;
  state->rank_count = rank_count;
  state->communicators.assign(ordinals.size(), nullptr);
  state_ = state;
  try {
    std::thread([state] { state->run(); }).detach();
  } catch (const std::system_error &error) {
    return base::unavailable("connecting devices: cannot start a thread: ", error.what());
  }
  return Status();
}

ncclComm_t NcclConnecting::communicator(size_t index) const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_over && index < state_->communicators.size() ? state_->communicators[index] : nullptr;
}

Status NcclConnecting::check() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_over) return Status();
  TUTTI_TRY(status_of(state_->device_error, "choosing the device"));
  return status_of(state_->nccl, state_->result, "connecting devices");
}

void NcclConnecting::give_up() {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_over) state_->is_given_up = true;
}

void NcclConnecting::forget() {
  give_up();
  state_ = std::make_shared<State>();
}

const int kLeastNcclVersion = 21300;

void find_connecting(OpenedLibrary &library, Nccl &nccl) { library.find(nccl.ncclCommInitRank, "ncclCommInitRank"); }

}  // namespace tutti::impl::backend::gpu
