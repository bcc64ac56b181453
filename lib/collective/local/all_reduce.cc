// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a local group add up (AllReduce). For n bytes on R ranks, per rank where not said otherwise:
//
//   spread         reads n, writes n / R + n; 2 meetings. Rank r adds up chunk r of all, then everybody copies.
//   to_one         rank 0 reads R * n and writes n, the others read and write n; 2 meetings
//   ring           reads and writes 2 n (R - 1) / R in 2 (R - 1) steps, each from the left neighbour alone (Patarasuk
//                  and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009)
//   hierarchical   the ranks of a node add up into the memory of its first one, these do among themselves as in spread,
//                  and each rank copies from its own; 4 meetings. Only first ranks read the memory of other nodes.
#include <algorithm>
#include <cstring>

#include "collective/local/local_rank.h"
#include "collective/reduction.h"

namespace tutti::impl::collective::local {

using base::Status;

namespace {

/// Share `index` of `shares` of the elements.
std::pair<int64_t, int64_t> chunk_of(int64_t count, int64_t index, int64_t shares) {
  const int64_t blocks = (count + chunk_alignment - 1) / chunk_alignment;
  const auto bound = [&](int64_t i) { return std::min(count, blocks * i / shares * chunk_alignment); };
  return {bound(index), bound(index + 1)};
}

int64_t position_of(const std::vector<int32_t> &ranks, int32_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
}

}  // namespace

void LocalRank::find_node() {
  const std::vector<int32_t> &nodes = shared_->nodes;
  for (int32_t r = 0; r < size(); ++r) {
    const int32_t node = nodes[static_cast<size_t>(r)];
    if (std::find(nodes.begin(), nodes.begin() + r, node) == nodes.begin() + r) leaders_.push_back(r);
    if (node == nodes[static_cast<size_t>(rank_)]) members_.push_back(r);
  }
  member_sources_.resize(members_.size() * static_cast<size_t>(parts()));
  leader_sources_.resize(leaders_.size());
}

void LocalRank::copy_from(int32_t rank, const Operation &operation, const Posted &posted, int64_t begin, int64_t end) {
  copy_to_parts(operation, posted, begin, end, first_part(rank));
}

Status LocalRank::all_reduce(Ticket ticket, const Operation &operation, const Posted &posted) {
  switch (shared_->algorithm) {
    case AllReduce::to_one:
      return all_reduce_to_one(ticket, operation, posted);
    case AllReduce::ring:
      return all_reduce_ring(ticket, operation, posted);
    case AllReduce::hierarchical:
      return all_reduce_hierarchical(ticket, operation, posted);
    case AllReduce::spread:
      break;
  }
  return all_reduce_spread(ticket, operation, posted);
}

Status LocalRank::all_reduce_spread(Ticket ticket, const Operation &operation, const Posted &posted) {
  if (bytes_of(operation) <= scratch_bytes) {
    std::byte *scratch = self().scratch.data();
    reduce_range(operation.dtype, operation.reduction, sources_.data(), contributors(), 0, operation.count, scratch);
    TUTTI_TRY(meet(ticket, 1));
    copy_scratch(operation, posted, scratch);
    return Status();
  }
  const auto [begin, end] = chunk_of(operation.count, rank_, size());
  reduce_range(operation.dtype, operation.reduction, sources_.data(), contributors(), begin, end, first_part(rank_));
  TUTTI_TRY(meet(ticket, 1));
  for (int32_t r = 0; r < size(); ++r) {
    const auto [first, last] = chunk_of(operation.count, r, size());
    copy_from(r, operation, posted, first, last);
  }
  return meet(ticket, 2);
}

Status LocalRank::all_reduce_to_one(Ticket ticket, const Operation &operation, const Posted &posted) {
  if (rank_ == 0) {
    reduce_range(operation.dtype, operation.reduction, sources_.data(), contributors(), 0, operation.count,
                 first_part(0));
  }
  TUTTI_TRY(meet(ticket, 1));
  copy_from(0, operation, posted, 0, operation.count);
  return meet(ticket, 2);
}

/// Chunk c starts at rank c, gathers what each rank adds to it on its way, is whole at rank c - 1 and goes round again.
/// A rank reads its left neighbour's memory alone, one step behind it: chunk r - s of it is written when the right
/// neighbour has read what was there, since the sum came from there.
Status LocalRank::all_reduce_ring(Ticket ticket, const Operation &operation, const Posted &posted) {
  const int32_t ranks = size(), left = (rank_ + ranks - 1) % ranks;
  void *const own = first_part(rank_);
  if (parts() > 1) {
    reduce_range(operation.dtype, operation.reduction, sources_.data() + first_contributor(), parts(), 0,
                 operation.count, own);
  }
  pass(ticket, 1);
  const auto chunk = [&](int32_t behind) {
    return chunk_of(operation.count, (rank_ + 2 * ranks - behind) % ranks, ranks);
  };
  for (int32_t step = 0; step < ranks - 1; ++step) {
    TUTTI_TRY(wait_for_rank(ticket, left, 1 + step));
    const auto [begin, end] = chunk(1 + step);
    void *const both[] = {first_part(left), own};
    reduce_range(operation.dtype, operation.reduction, both, 2, begin, end, own);
    pass(ticket, 2 + step);
  }
  for (int32_t step = 0; step < ranks - 1; ++step) {
    TUTTI_TRY(wait_for_rank(ticket, left, ranks + step));
    const auto [begin, end] = chunk(step);
    copy_from(left, operation, posted, begin, end);
    pass(ticket, ranks + 1 + step);
  }
  copy_from(rank_, operation, posted, 0, operation.count);
  return meet(ticket, 2 * ranks);
}

Status LocalRank::all_reduce_hierarchical(Ticket ticket, const Operation &operation, const Posted &posted) {
  const int32_t leader = members_.front();
  for (size_t m = 0; m < members_.size(); ++m) {
    const auto from = sources_.begin() + static_cast<int64_t>(members_[m]) * parts();
    std::copy_n(from, parts(), member_sources_.begin() + static_cast<int64_t>(m) * parts());
  }
  const auto [begin, end] =
      chunk_of(operation.count, position_of(members_, rank_), static_cast<int64_t>(members_.size()));
  reduce_range(operation.dtype, operation.reduction, member_sources_.data(),
               static_cast<int32_t>(member_sources_.size()), begin, end, first_part(leader));
  TUTTI_TRY(meet(ticket, 1));
  const auto nodes = static_cast<int64_t>(leaders_.size());
  for (size_t n = 0; n < leaders_.size(); ++n)
    leader_sources_[n] = first_part(leaders_[n]);
  if (rank_ == leader) {
    const auto [first, last] = chunk_of(operation.count, position_of(leaders_, rank_), nodes);
    reduce_range(operation.dtype, operation.reduction, leader_sources_.data(), static_cast<int32_t>(nodes), first, last,
                 first_part(rank_));
  }
  TUTTI_TRY(meet(ticket, 2));
  for (size_t n = 0; rank_ == leader && n < leaders_.size(); ++n) {
    const auto [first, last] = chunk_of(operation.count, static_cast<int64_t>(n), nodes);
    copy_from(leaders_[n], operation, posted, first, last);
  }
  TUTTI_TRY(meet(ticket, 3));
  copy_from(leader, operation, posted, 0, operation.count);
  return meet(ticket, 4);
}

}  // namespace tutti::impl::collective::local
