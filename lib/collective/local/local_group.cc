// SPDX-License-Identifier: Apache-2.0
#include "collective/local/local_group.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "collective/local/local_rank.h"
#include "collective/reduction.h"

namespace tutti::impl::collective::local {

using base::Status;

base::Result<Ticket> LocalRank::begin(const Operation &operation) {
  if (shared_->dead.load(std::memory_order_acquire)) return error();
  TUTTI_TRY(check_operation(operation, contributors()));
  TUTTI_TRY(check_on_host(operation));
  const Ticket ticket = self().posted.load(std::memory_order_relaxed);
  if (ticket - completed_ >= max_pending_operations) {
    return base::failed_precondition("more than ", max_pending_operations, " collective operations are in flight");
  }
  if (ticket - max_pending_operations >= done_by_all_) TUTTI_TRY(wait_until_done(ticket - max_pending_operations));
  Posted &slot = self().slot(ticket);
  slot.operation = operation;
  slot.terms = Terms::of(operation);
  if (operation.buffers != nullptr) {
    std::copy(operation.buffers, operation.buffers + parts(), slot.buffers.begin());
  }
  if (is_enclosed(operation, parts()) && contributors() > 1) {
    const auto bytes = static_cast<size_t>(bytes_of(operation));
    for (size_t p = 0; bytes > 0 && p < slot.buffers.size(); ++p)
      std::memcpy(slot.data.data() + p * bytes, slot.buffers[p], bytes);
  }
  shared_->placement.arrive(rank_);
  self().posted.store(ticket + 1, std::memory_order_seq_cst);
  slot.ticket.store(ticket, std::memory_order_seq_cst);
  shared_->notifier.notify();
  return ticket;
}

Status LocalRank::wait(Ticket ticket) {
  if (ticket >= self().posted.load(std::memory_order_relaxed)) {
    return base::invalid_argument("operation ", ticket, " of rank ", rank_, " was never started");
  }
  while (completed_ <= ticket) {
    TUTTI_TRY(complete(completed_));
    ++completed_;
    self().progress.store(completed_ * most_meetings, std::memory_order_seq_cst);
    shared_->notifier.notify();
  }
  return Status();
}

template <typename Reached>
Status LocalRank::wait_for(Ticket ticket, Reached reached) {
  if (shared_->size == 1) return Status();
  const auto is_dead = [&] { return shared_->dead.load(std::memory_order_seq_cst); };
  // Dead is looked at last: who finds the group alive then knows that all came before it died.
  if (shared_->all_reached(reached) && !is_dead()) return Status();
  const base::Deadline deadline = base::Deadline::after_ms(shared_->timeout_ms);
  const auto over = [&] { return shared_->all_reached(reached) || is_dead(); };
  const auto missing = [&](int32_t rank) { return !reached(rank, shared_->ranks[static_cast<size_t>(rank)]); };
  if (!shared_->placement.wait(rank_, over, missing)) shared_->notifier.wait(over, 0, deadline, cancel_);
  std::string listed;
  for (int32_t r = 0; r < shared_->size; ++r) {
    if (missing(r)) listed += (listed.empty() ? "" : ", ") + std::to_string(r);
  }
  if (is_dead()) return shared_->outcome(reached);
  if (listed.empty()) return Status();
  const Status cause = give_up(ticket, listed);
  return shared_->outcome(reached).ok() ? Status() : cause;
}

Status LocalRank::give_up(Ticket ticket, const std::string &missing) {
  const Operation &operation = mine(ticket).operation;
  Status cause = base::check(cancel_);
  if (cause.ok()) {
    cause = base::deadline_exceeded("rank ", rank_, " waited ", shared_->timeout_ms, " ms in ", name(operation.kind),
                                    " '", operation.label, "' for rank ", missing)
                .with_detail("rank", missing);
  }
  shared_->abort(cause);
  return cause;
}

Status LocalRank::wait_for_posts(Ticket ticket) {
  return wait_for(ticket, [=](int32_t, const auto &rank) { return rank.has_posted(ticket); });
}

/// The others may still read what this rank has posted, although this one has what it waited for.
Status LocalRank::wait_until_done(Ticket ticket) {
  const int64_t done = (ticket + 1) * most_meetings;
  TUTTI_TRY(wait_for(ticket, [=](int32_t, const auto &rank) { return rank.progress >= done; }));
  done_by_all_ = shared_->done_by_all();
  return Status();
}

void LocalRank::pass(Ticket ticket, int32_t meeting) {
  self().progress.store(ticket * most_meetings + meeting, std::memory_order_seq_cst);
  shared_->notifier.notify();
}

Status LocalRank::wait_for_rank(Ticket ticket, int32_t rank, int32_t meeting) {
  const int64_t passed = ticket * most_meetings + meeting;
  return wait_for(ticket, [=](int32_t r, const auto &other) { return r != rank || other.progress >= passed; });
}

Status LocalRank::meet(Ticket ticket, int32_t meeting) {
  pass(ticket, meeting);
  const int64_t passed = ticket * most_meetings + meeting;
  return wait_for(ticket, [=](int32_t, const auto &rank) { return rank.progress >= passed; });
}

Status LocalRank::check_agreement(Ticket ticket) {
  const Terms &terms = mine(ticket).terms;
  for (int32_t r = 0; r < shared_->size; ++r) {
    if (shared_->posted(r, ticket).terms == terms) continue;
    const Operation &own = mine(ticket).operation, &other = shared_->posted(r, ticket).operation;
    Status cause =
        base::invalid_argument("rank ", rank_, " called ", name(own.kind), " '", own.label, "' of ", own.count, " ",
                               tensor::name(own.dtype), " elements where rank ", r, " called ", name(other.kind), " '",
                               other.label, "' of ", other.count, " ", tensor::name(other.dtype), " elements");
    shared_->abort(cause);
    return cause;
  }
  return Status();
}

void LocalRank::collect_sources(Ticket ticket) {
  size_t next = 0;
  for (int32_t r = 0; r < shared_->size; ++r) {
    for (void *buffer : shared_->posted(r, ticket).buffers)
      sources_[next++] = buffer;
  }
}

Status LocalRank::alone(const Posted &posted) {
  const Operation &operation = posted.operation;
  if (operation.kind == Kind::gather && operation.count > 0 && operation.gathered != nullptr) {
    std::memcpy(operation.gathered, posted.buffers[0],
                static_cast<size_t>(operation.count) * tensor::size_bytes(operation.dtype));
  }
  return Status();
}

Status LocalRank::complete(Ticket ticket) {
  TUTTI_TRY(wait_for_posts(ticket));
  TUTTI_TRY(check_agreement(ticket));
  const Posted &posted = mine(ticket);
  const Operation &operation = posted.operation;
  if (operation.kind == Kind::barrier || contributors() == 1) return alone(posted);
  if (is_enclosed(operation, parts())) {
    reduce_enclosed(ticket, operation, posted);
    return Status();
  }
  collect_sources(ticket);
  switch (operation.kind) {
    case Kind::all_reduce:
      return all_reduce(ticket, operation, posted);
    case Kind::reduce_scatter:
      reduce_own_slices(operation, posted);
      break;
    case Kind::all_gather:
      gather_slices(operation, posted);
      break;
    case Kind::broadcast: {
      const void *source = sources_[static_cast<size_t>(operation.root)];
      if (operation.root / parts() != rank_ || parts() > 1) {
        copy_to_parts(operation, posted, 0, operation.count, source);
      }
      break;
    }
    case Kind::gather:
      gather_at_root(operation);
      break;
    case Kind::barrier:
      break;
  }
  // The others may still be reading this rank's buffers.
  return meet(ticket, 1);
}

void LocalRank::reduce_own_slices(const Operation &operation, const Posted &posted) {
  for (int32_t i = 0; i < operation.slice_count; ++i) {
    const Slice &slice = operation.slices[i];
    if (!owns(slice)) continue;
    reduce_range(operation.dtype, operation.reduction, sources_.data(), contributors(), slice.begin, slice.end,
                 posted.buffers[static_cast<size_t>(slice.owner % parts())]);
  }
}

void LocalRank::reduce_enclosed(Ticket ticket, const Operation &operation, const Posted &posted) {
  const int64_t bytes = bytes_of(operation);
  for (int32_t c = 0; c < contributors(); ++c) {
    const Posted &other = shared_->posted(c / parts(), ticket);
    // Only read.
    sources_[static_cast<size_t>(c)] = const_cast<std::byte *>(other.data.data()) + (c % parts()) * bytes;
  }
  if (operation.kind == Kind::all_reduce) {
    std::byte *scratch = self().scratch.data();
    reduce_range(operation.dtype, operation.reduction, sources_.data(), contributors(), 0, operation.count, scratch);
    return copy_scratch(operation, posted, scratch);
  }
  reduce_own_slices(operation, posted);
}

void LocalRank::copy_to_parts(const Operation &operation, const Posted &posted, int64_t begin, int64_t end,
                              const void *source) {
  const size_t element = tensor::size_bytes(operation.dtype);
  const size_t offset = static_cast<size_t>(begin) * element, bytes = static_cast<size_t>(end - begin) * element;
  for (void *buffer : posted.buffers) {
    if (buffer != source && bytes > 0) {
      std::memcpy(static_cast<std::byte *>(buffer) + offset, static_cast<const std::byte *>(source) + offset, bytes);
    }
  }
}

void LocalRank::copy_scratch(const Operation &operation, const Posted &posted, const std::byte *scratch) {
  const size_t bytes = static_cast<size_t>(operation.count) * tensor::size_bytes(operation.dtype);
  for (void *buffer : posted.buffers) {
    if (bytes > 0) std::memcpy(buffer, scratch, bytes);
  }
}

void LocalRank::gather_slices(const Operation &operation, const Posted &posted) {
  for (int32_t i = 0; i < operation.slice_count; ++i) {
    const Slice &slice = operation.slices[i];
    copy_to_parts(operation, posted, slice.begin, slice.end, sources_[static_cast<size_t>(slice.owner)]);
  }
}

void LocalRank::gather_at_root(const Operation &operation) {
  if (operation.root / parts() != rank_ || operation.gathered == nullptr) return;
  const size_t bytes = static_cast<size_t>(operation.count) * tensor::size_bytes(operation.dtype);
  auto *destination = static_cast<std::byte *>(operation.gathered);
  for (const void *source : sources_) {
    if (bytes > 0) std::memcpy(destination, source, bytes);
    destination += bytes;
  }
}

base::Result<std::vector<std::unique_ptr<Group>>> LocalGroup::create(int32_t size, int32_t parts,
                                                                     const LocalGroupOptions &options) {
  if (size < 1 || size > 1024 || parts < 1 || parts > 64) {
    return base::invalid_argument("a local group has 1 to 1024 ranks of 1 to 64 parts, got ", size, " of ", parts);
  }
  if (options.all_reduce == AllReduce::hierarchical && options.nodes.size() != static_cast<size_t>(size)) {
    return base::invalid_argument("a hierarchical all_reduce of ", size, " ranks needs the node of each, got ",
                                  options.nodes.size());
  }
  auto shared = std::make_shared<Shared>(size, parts, options);
  std::vector<std::unique_ptr<Group>> ranks;
  for (int32_t r = 0; r < size; ++r)
    ranks.push_back(std::make_unique<LocalRank>(shared, r));
  return ranks;
}

}  // namespace tutti::impl::collective::local
