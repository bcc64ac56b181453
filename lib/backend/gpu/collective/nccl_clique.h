// SPDX-License-Identifier: Apache-2.0
//
// GPUs connected by NCCL: a communicator for each rank of this process, which has all ranks or shares them with other
// processes. Communicators do not block: NCCL carries a call out in a thread of its own, and the caller asks whether it
// has (poll). So a rank that never comes cannot keep another in a call, and everything can be aborted. Where they do
// block, nccl_connecting.h says what keeps it so. Ranks of calls are those of this process, counted from 0.
//
// Threads: the calls of one rank come from one thread at a time; abort() from any, also while ranks are in their calls.
#ifndef TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_CLIQUE_H_
#define TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_CLIQUE_H_

#include <tutti/plugin/backend.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/gpu/collective/nccl.h"
#include "backend/gpu/collective/nccl_connecting.h"
#include "backend/gpu/runtime/launch_gate.h"
#include "base/cancel.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class NcclClique {
 public:
  /// GPU of each rank; all different. DEADLINE_EXCEEDED after `timeout_ms`, negative = never. `log` hears what goes
  /// wrong while communicators end; borrowed for the life of the clique.
  static base::Result<std::unique_ptr<NcclClique>> connect(const Nccl &nccl, std::span<const int32_t> ordinals,
                                                           int64_t timeout_ms, const tutti_backend_host *log);
  /// The ranks from `first_rank` on of a clique of `rank_count`, which have the same id in all processes. Waits for
  /// nobody: poll() tells when a rank is connected.
  static base::Result<std::unique_ptr<NcclClique>> join(const Nccl &nccl, std::span<const int32_t> ordinals,
                                                        const ncclUniqueId &id, int32_t first_rank, int32_t rank_count,
                                                        const tutti_backend_host *log);
  /// Ends the communicators; the streams have done what was enqueued, unless it was aborted.
  ~NcclClique();
  NcclClique(const NcclClique &) = delete;
  NcclClique &operator=(const NcclClique &) = delete;

  /// As tutti_collective_table says.
  base::Status enqueue(int32_t rank, const tutti_collective &operation, gpuStream_t stream);
  base::Result<bool> poll(int32_t rank);
  bool register_memory(int32_t rank, void *memory, size_t bytes);
  base::Status register_windows(void *const *memory, size_t bytes);
  void deregister_memory(int32_t rank);
  /// Ok: streams of operations may be captured from here on, and graphs end before the clique. Else why not.
  base::Status begin_captures();
  void abort();

  const tutti_backend_host *host() const { return host_; }

 private:
  struct Rank {
    int32_t ordinal = 0;
    ncclComm_t communicator = nullptr;  // null until there is one
    std::atomic<bool> in_call{false};
    std::vector<void *> registrations;
    void *window = nullptr;             // NCCL writes it when the registration is done
    std::atomic<bool> has_left{false};  // its windows may end
  };
  class Call;
  struct Ending;

  NcclClique(const Nccl &nccl, size_t size, const tutti_backend_host *host);
  /// No other process has ranks.
  bool is_whole() const { return rank_count_ == ranks_.size(); }
  base::Status initialize(base::Deadline deadline);
  base::Status begin(const ncclUniqueId &id);
  /// Until no communicator is busy.
  base::Status await_all(std::string_view action, base::Deadline deadline);
  base::Result<bool> is_idle(Rank &rank, std::string_view action) const;
  /// Its communicator, or null: its connection is still being made.
  ncclComm_t take(Rank &rank) const;
  base::Status finalize();
  /// For each communicator in one group of calls.
  template <typename Function>
  base::Status for_all(std::string_view action, Function function);
  base::Status open_windows(void *const *memory, size_t bytes);
  base::Status close_windows();
  base::Status reconnect();
  using End = auto(*)(ncclComm_t communicator) -> ncclResult_t;
  /// All ranks are done, or it aborts.
  void disconnect();
  /// Begins to end them by the function.
  std::shared_ptr<Ending> begin_ending(const std::vector<Rank *> &ranks, End function) const;
  /// Waits for that, or warns that it takes too long.
  void await(Ending &ending, std::string_view action) const;
  void await_aborting();
  base::Status issue(const Rank &rank, int32_t number, const tutti_collective &operation, gpuStream_t stream) const;
  base::Status issue_slices(const Rank &rank, const tutti_collective &operation, gpuStream_t stream) const;
  void warn(const base::Status &status) const;

  const Nccl &nccl_;
  const tutti_backend_host *const host_;
  std::vector<Rank> ranks_;
  std::unique_ptr<LaunchGate::Launches> launches_;  // null where this process has one rank
  NcclConnecting connecting_;
  int32_t first_rank_ = 0;
  size_t rank_count_ = 0;  // of all processes
  int64_t timeout_ms_ = -1;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> has_captures_{false};
  std::mutex aborting_mutex_;
  std::shared_ptr<Ending> aborting_;  // guarded by aborting_mutex_; null unless somebody is to wait for it
  std::atomic<size_t> ranks_left_{0};
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_COLLECTIVE_NCCL_CLIQUE_H_
