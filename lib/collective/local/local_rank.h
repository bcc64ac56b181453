// SPDX-License-Identifier: Apache-2.0
//
// One rank of a local group, and what all ranks share. Internal to this folder.
//
// Threads: a LocalRank is used by one thread at a time; Shared by all of them.
#ifndef TUTTI_COLLECTIVE_LOCAL_LOCAL_RANK_H_
#define TUTTI_COLLECTIVE_LOCAL_LOCAL_RANK_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/notifier.h"
#include "base/thread.h"
#include "collective/local/local_group.h"
#include "collective/local/rank_placement.h"

namespace tutti::impl::collective::local {

constexpr int64_t scratch_bytes = 4096;
// Reductions of so few bytes are published with their data: then nobody reads another rank's buffers, and one meeting
// is enough.
constexpr int64_t enclosed_bytes = 1024;
constexpr int64_t chunk_alignment = 16;  // elements; keeps slices of different ranks on different cache lines
// Places in an operation that ranks tell each other to have passed, at most.
constexpr int64_t most_meetings = 4096;

/// What has to be equal on all ranks.
struct Terms {
  int64_t count = 0;
  int32_t root = 0, slice_count = 0;
  uint8_t kind = 0, reduction = 0, dtype = 0;

  static Terms of(const Operation &operation) {
    return {operation.count,
            operation.root,
            operation.slice_count,
            static_cast<uint8_t>(operation.kind),
            static_cast<uint8_t>(operation.reduction),
            static_cast<uint8_t>(operation.dtype)};
  }
  friend bool operator==(const Terms &, const Terms &) = default;
};

/// A rank's published operation. What others wait for and what they read then begins in one cache line, with room for
/// some data: each line that they fetch from this rank's core costs as long as many a short operation.
struct Posted {
  alignas(64) std::atomic<int64_t> ticket{-1};  // of the operation that the rest is of; stored last
  Terms terms;
  std::array<std::byte, enclosed_bytes> data;  // of all parts, one after the other, when they are enclosed
  std::vector<void *> buffers;
  Operation operation;  // others read it for messages alone
};
static_assert(offsetof(Posted, data) <= 32 && offsetof(Posted, data) % sizeof(double) == 0);

inline int64_t bytes_of(const Operation &operation) {
  return operation.count * static_cast<int64_t>(tensor::size_bytes(operation.dtype));
}

inline bool is_enclosed(const Operation &operation, int32_t parts) {
  const bool reduces = operation.kind == Kind::all_reduce || operation.kind == Kind::reduce_scatter;
  return reduces && bytes_of(operation) * parts <= enclosed_bytes;
}

/// How far a rank is: operations begun, and how far it is with reading other ranks' buffers: operation * most_meetings
/// + meetings passed in it.
struct Reach {
  int64_t posted = 0, progress = 0;

  bool has_posted(Ticket ticket) const { return posted > ticket; }
};

struct alignas(64) RankState {
  std::atomic<int64_t> posted{0};  // before the slot says so
  alignas(64) std::atomic<int64_t> progress{0};
  alignas(64) std::array<Posted, max_pending_operations> ring;
  alignas(64) std::array<std::byte, scratch_bytes> scratch;

  Posted &slot(Ticket ticket) { return ring[static_cast<size_t>(ticket % max_pending_operations)]; }
  const Posted &slot(Ticket ticket) const { return ring[static_cast<size_t>(ticket % max_pending_operations)]; }
  bool has_posted(Ticket ticket) const { return slot(ticket).ticket.load(std::memory_order_seq_cst) >= ticket; }
};

/// What all ranks of a group share.
class Shared {
 public:
  Shared(int32_t size, int32_t parts, const LocalGroupOptions &options)
      : size(size),
        parts(parts),
        timeout_ms(options.timeout_ms),
        algorithm(options.all_reduce),
        nodes(options.nodes),
        ranks(static_cast<size_t>(size)),
        last_reach(static_cast<size_t>(size)),
        placement(size, size <= base::available_cores() ? options.spin_us : 0) {
    for (RankState &rank : ranks) {
      for (Posted &posted : rank.ring)
        posted.buffers.resize(static_cast<size_t>(parts));
    }
  }

  const Posted &posted(int32_t rank, Ticket ticket) const { return ranks[static_cast<size_t>(rank)].slot(ticket); }

  void abort(const base::Status &cause) {
    {
      std::lock_guard lock(error_mutex);
      if (!error.ok()) return;
      error = cause.wrap(base::Code::aborted, "the group was aborted");
      dead.store(true, std::memory_order_seq_cst);
      for (size_t r = 0; r < ranks.size(); ++r)
        last_reach[r] = {ranks[r].posted, ranks[r].progress};
    }
    notifier.notify();
  }
  base::Status read_error() const {
    if (!dead.load(std::memory_order_acquire)) return base::Status();
    std::lock_guard lock(error_mutex);
    return error;
  }

  /// Whether all ranks have come so far. `reached` takes a rank, and its Reach or what has the fields of one.
  template <typename Reached>
  bool all_reached(Reached reached) const {
    return all_of(ranks, reached);
  }
  /// How many operations every rank is done with.
  int64_t done_by_all() const {
    int64_t least = INT64_MAX;
    for (const RankState &rank : ranks)
      least = std::min<int64_t>(least, rank.progress);
    return least / most_meetings;
  }
  /// Of a group that has died: Ok where all ranks had come so far before, else why it is dead. What this tells one
  /// rank, it tells all: a rank that saw all come while the group lived is among those that had.
  template <typename Reached>
  base::Status outcome(Reached reached) const {
    std::lock_guard lock(error_mutex);
    return all_of(last_reach, reached) ? base::Status() : error;
  }

  const int32_t size;
  const int32_t parts;
  const int64_t timeout_ms;
  const AllReduce algorithm;
  const std::vector<int32_t> nodes;  // of each rank, for AllReduce::hierarchical
  std::vector<RankState> ranks;
  std::vector<Reach> last_reach;  // when the group died; guarded by error_mutex
  RankPlacement placement;
  base::Notifier notifier;
  std::atomic<bool> dead{false};

 private:
  template <typename States, typename Reached>
  static bool all_of(const States &states, Reached reached) {
    for (size_t r = 0; r < states.size(); ++r) {
      if (!reached(static_cast<int32_t>(r), states[r])) return false;
    }
    return true;
  }

  mutable std::mutex error_mutex;
  base::Status error;  // guarded by error_mutex, set once before dead
};

class LocalRank : public Group {
 public:
  LocalRank(std::shared_ptr<Shared> shared, int32_t rank)
      : shared_(std::move(shared)),
        rank_(rank),
        sources_(static_cast<size_t>(shared_->size) * static_cast<size_t>(shared_->parts)) {
    if (shared_->algorithm == AllReduce::hierarchical) find_node();
  }

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return shared_->size; }
  int32_t parts() const override { return shared_->parts; }

  base::Result<Ticket> begin(const Operation &operation) override;
  base::Status wait(Ticket ticket) override;
  bool would_wait(Ticket ticket) const override {
    return !shared_->all_reached([=](int32_t, const auto &rank) { return rank.has_posted(ticket); });
  }
  void abort(const base::Status &cause) override { shared_->abort(cause); }
  base::Status error() const override { return shared_->read_error(); }
  void set_cancel(const base::CancelToken *token) override { cancel_ = token; }

 private:
  RankState &self() { return shared_->ranks[static_cast<size_t>(rank_)]; }
  const Posted &mine(Ticket ticket) const { return shared_->posted(rank_, ticket); }
  int32_t first_contributor() const { return rank_ * parts(); }
  bool owns(const Slice &slice) const { return slice.owner / parts() == rank_; }

  base::Status complete(Ticket ticket);
  /// Nothing to combine: one contributor, or no data.
  base::Status alone(const Posted &posted);
  base::Status check_agreement(Ticket ticket);
  void collect_sources(Ticket ticket);
  base::Status wait_for_posts(Ticket ticket);
  /// Until every rank is done with the operation: its slot may be another's.
  base::Status wait_until_done(Ticket ticket);
  /// Passes a meeting of this operation: 1, 2, ... Others may wait for that.
  void pass(Ticket ticket, int32_t meeting);
  /// Waits until `rank` has passed it.
  base::Status wait_for_rank(Ticket ticket, int32_t rank, int32_t meeting);
  /// Passes it, and waits until all ranks have.
  base::Status meet(Ticket ticket, int32_t meeting);
  template <typename Reached>
  base::Status wait_for(Ticket ticket, Reached reached);
  [[gnu::cold]] base::Status give_up(Ticket ticket, const std::string &missing);

  void reduce_own_slices(const Operation &operation, const Posted &posted);
  void reduce_enclosed(Ticket ticket, const Operation &operation, const Posted &posted);
  void copy_scratch(const Operation &operation, const Posted &posted, const std::byte *scratch);
  void find_node();
  void *first_part(int32_t rank) const { return sources_[static_cast<size_t>(rank * parts())]; }
  void copy_to_parts(const Operation &operation, const Posted &posted, int64_t begin, int64_t end, const void *source);
  // The algorithms (all_reduce.cc): every one ends in a meeting, so that all ranks pass or none.
  base::Status all_reduce(Ticket ticket, const Operation &operation, const Posted &posted);
  base::Status all_reduce_spread(Ticket ticket, const Operation &operation, const Posted &posted);
  base::Status all_reduce_to_one(Ticket ticket, const Operation &operation, const Posted &posted);
  base::Status all_reduce_ring(Ticket ticket, const Operation &operation, const Posted &posted);
  base::Status all_reduce_hierarchical(Ticket ticket, const Operation &operation, const Posted &posted);
  /// Copies what a rank has in its first part to all parts of this one.
  void copy_from(int32_t rank, const Operation &operation, const Posted &posted, int64_t begin, int64_t end);
  void gather_slices(const Operation &operation, const Posted &posted);
  void gather_at_root(const Operation &operation);

  std::shared_ptr<Shared> shared_;
  int32_t rank_;
  int64_t completed_ = 0;
  int64_t done_by_all_ = 0;  // when it was last looked at; each look costs as much as a message to each of the others
  const base::CancelToken *cancel_ = nullptr;
  std::vector<void *> sources_;  // every contributor's buffer of the operation being completed

  // AllReduce::hierarchical: the ranks of this node, its leader in front; the leaders; room for the buffers of either.
  std::vector<int32_t> members_, leaders_;
  std::vector<void *> member_sources_, leader_sources_;
};

}  // namespace tutti::impl::collective::local

#endif  // TUTTI_COLLECTIVE_LOCAL_LOCAL_RANK_H_
