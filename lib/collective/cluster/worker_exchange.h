// SPDX-License-Identifier: Apache-2.0
//
// Collective operations between the workers of a cluster, over memory of the host: the part of a cluster group that
// knows nothing of replicas. Sums run over the workers 0, 1, 2, ... for each element, so all get the same bits, run to
// run, whatever the timing.
//
// Cost for W workers of a reduction of n bytes: up to kEnclosedBytes one message to each other worker. Above, a message
// of kHeadMessageBytes, then worker w adds up its W-th of the elements and sends it round: 2 n (W - 1) / W bytes out
// and in for each worker, in three steps (reduce-scatter and all-gather; Thakur, Rabenseifner, Gropp, "Optimization of
// Collective Communication Operations in MPICH", 2005).
//
// Threads: one. Allocates nothing once it knows the sizes.
#ifndef TUTTI_COLLECTIVE_CLUSTER_WORKER_EXCHANGE_H_
#define TUTTI_COLLECTIVE_CLUSTER_WORKER_EXCHANGE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/engine.h"
#include "collective/group.h"

namespace tutti::impl::collective::cluster {

/// What a worker says of its next operation; equal on all workers.
struct Head {
  int64_t number = 0;
  int32_t kind = 0;  ///< Kind, or kSettle, or kAnnounced + Kind
  int32_t reduction = 0, dtype = 0, slice_count = 0, root = 0, sources = 0;
  int64_t count = 0;
  std::array<char, 56> label{};  ///< cut; for messages

  static constexpr int32_t kSettle = 100, kAnnounced = 200;
  std::string describe() const;
};

class WorkerExchange {
 public:
  static constexpr size_t kHeadMessageBytes = 256;
  static constexpr size_t kEnclosedBytes = kHeadMessageBytes - sizeof(Head);

  /// `mesh` may be null for one worker alone. `names`: of the workers, for messages. `is_dead`: the group has been
  /// given up on this worker.
  WorkerExchange(Mesh *mesh, int32_t worker, std::span<const std::string> names, int64_t timeout_ms,
                 const std::atomic<bool> &is_dead);

  /// Tells the others what comes next and checks that they say the same. Up to kEnclosedBytes of `data` go along; those
  /// of the others are at enclosed() then.
  base::Status agree(const Head &head, std::span<const std::byte> data);
  const std::byte *enclosed(int32_t worker) const;

  /// `sources`: the buffers of this worker, in order of contributors; the result is in the first. After agree() without
  /// data.
  base::Status all_reduce(tensor::DType dtype, Reduction reduction, std::span<void *const> sources, int64_t count);
  /// Each slice from its owner; `buffers`: of this worker's contributors, the first takes what comes.
  base::Status all_gather(const Operation &operation, std::span<void *const> buffers);
  base::Status broadcast(const Operation &operation, std::span<void *const> buffers);
  base::Status gather(const Operation &operation, std::span<void *const> buffers, void *gathered);
  /// All workers pass it or none does, unless worker 0 ends in the middle of it, or hangs for as long. After agree().
  base::Status settle();

 private:
  int32_t workers() const { return static_cast<int32_t>(names_.size()); }
  void clear();
  void send(int32_t to, const void *bytes, int64_t length);
  void receive(int32_t from, void *bytes, int64_t length);
  /// `longer_ms`: than any operation.
  base::Status run(bool uninterrupted = false, int64_t longer_ms = 0);
  std::pair<int64_t, int64_t> chunk_of(int64_t count, int32_t worker) const;
  base::Status check_heads(const Head &head) const;

  Mesh *const mesh_;
  const int32_t worker_;
  const std::span<const std::string> names_;
  const int64_t timeout_ms_;
  const std::atomic<bool> &is_dead_;
  Head head_;
  std::vector<std::array<std::byte, kHeadMessageBytes>> heads_;  // of all workers
  std::vector<std::byte> scratch_;
  std::vector<void *> sources_;
  std::vector<tutti_message> sends_, receives_;
};

}  // namespace tutti::impl::collective::cluster

#endif  // TUTTI_COLLECTIVE_CLUSTER_WORKER_EXCHANGE_H_
