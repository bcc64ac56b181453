// SPDX-License-Identifier: Apache-2.0
#include "collective/staged/staged_group.h"

#include <algorithm>
#include <array>

#include "collective/reduction.h"

namespace tutti::impl::collective::staged {
namespace {

using base::Result;
using base::Status;

/// Memory of the host for one operation at a time.
struct Block {
  backend::HostMemory memory;
  bool is_taken = false;
};

/// An operation between begin() and the end of wait().
struct Staged {
  Operation operation;          // as it was begun
  std::vector<void *> buffers;  // of the operation
  std::vector<void *> copies;   // of the buffers, on the host
  std::byte *gathered = nullptr;
  Block *block = nullptr;
  Ticket inner = -1;  // of the group on the host, once it has begun there
  backend::Event copied;

  int64_t element_bytes() const { return static_cast<int64_t>(tensor::size_bytes(operation.dtype)); }
  int64_t bytes() const { return operation.kind == Kind::barrier ? 0 : operation.count * element_bytes(); }
};

class StagedRank : public Group {
 public:
  StagedRank(std::unique_ptr<Group> inner, backend::DeviceRef device)
      : inner_(std::move(inner)), device_(std::move(device)) {}
  ~StagedRank() override {
    if (copies_.handle() != nullptr) (void)copies_.synchronize();  // nothing reads or writes the blocks any more
  }

  Status open() {
    TUTTI_ASSIGN(copies_, device_->create_stream());
    for (Staged &staged : ring_) {
      staged.buffers.resize(static_cast<size_t>(parts()));
      staged.copies.resize(static_cast<size_t>(parts()));
      TUTTI_ASSIGN(staged.copied, device_->create_event());
    }
    return Status();
  }

  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  int32_t parts() const override { return inner_->parts(); }

  Result<Ticket> begin(const Operation &operation) override;
  Status wait(Ticket ticket) override;
  Status settle() override {
    TUTTI_TRY(begin_on_host(begun_, true));  // in the same order on every rank
    return inner_->settle();
  }
  void abort(const Status &cause) override { inner_->abort(cause); }
  Status error() const override { return inner_->error(); }
  void set_cancel(const base::CancelToken *token) override { inner_->set_cancel(token); }

 private:
  Staged &at(Ticket ticket) { return ring_[static_cast<size_t>(ticket % max_pending_operations)]; }
  bool owns(int32_t contributor) const { return contributor / parts() == rank(); }

  /// Begins on the host what can begin there, in order, until one still waits for its copies.
  Status begin_on_host(Ticket end, bool waits);
  Status complete(Staged &staged);

  Status take_block(Staged &staged);
  Status copy_to_host(Staged &staged);
  Status copy_from_host(Staged &staged);
  /// Calls copy(part, first byte, bytes) for what the operation reads, or writes, of this rank's buffers.
  template <typename Copy>
  Status for_each_read(const Staged &staged, Copy copy) const;
  template <typename Copy>
  Status for_each_written(const Staged &staged, Copy copy) const;

  const std::unique_ptr<Group> inner_;
  const backend::DeviceRef device_;
  std::vector<std::unique_ptr<Block>> blocks_;
  backend::Stream copies_;  // all copies, in order: a block may be taken while it is still being copied from
  std::array<Staged, max_pending_operations> ring_;
  Ticket begun_ = 0, begun_on_host_ = 0, completed_ = 0;
};

template <typename Copy>
Status StagedRank::for_each_read(const Staged &staged, Copy copy) const {
  const Operation &operation = staged.operation;
  if (operation.kind == Kind::barrier) return Status();
  if (operation.kind == Kind::all_gather) {
    for (int32_t i = 0; i < operation.slice_count; ++i) {
      const Slice &slice = operation.slices[i];
      if (!owns(slice.owner)) continue;
      TUTTI_TRY(copy(slice.owner % parts(), slice.begin * staged.element_bytes(),
                     (slice.end - slice.begin) * staged.element_bytes()));
    }
    return Status();
  }
  for (int32_t p = 0; p < parts(); ++p) {
    const bool is_read = operation.kind != Kind::broadcast || operation.root == rank() * parts() + p;
    if (is_read) TUTTI_TRY(copy(p, int64_t{0}, staged.bytes()));
  }
  return Status();
}

template <typename Copy>
Status StagedRank::for_each_written(const Staged &staged, Copy copy) const {
  const Operation &operation = staged.operation;
  switch (operation.kind) {
    case Kind::all_reduce:
    case Kind::broadcast:
      for (int32_t p = 0; p < parts(); ++p) {
        const bool has_it = operation.kind == Kind::broadcast && operation.root == rank() * parts() + p;
        if (!has_it) TUTTI_TRY(copy(p, int64_t{0}, staged.bytes()));
      }
      break;
    case Kind::reduce_scatter:
    case Kind::all_gather:
      for (int32_t i = 0; i < operation.slice_count; ++i) {
        const Slice &slice = operation.slices[i];
        const int64_t first = slice.begin * staged.element_bytes();
        const int64_t bytes = (slice.end - slice.begin) * staged.element_bytes();
        for (int32_t p = 0; p < parts(); ++p) {
          const bool is_own = slice.owner == rank() * parts() + p;
          // A scattered slice is its owner's, a gathered one everybody else's.
          if (is_own == (operation.kind == Kind::reduce_scatter)) TUTTI_TRY(copy(p, first, bytes));
        }
      }
      break;
    case Kind::gather:
    case Kind::barrier:
      break;
  }
  return Status();
}

Result<Ticket> StagedRank::begin(const Operation &operation) {
  TUTTI_TRY(inner_->error());
  TUTTI_TRY(check_operation(operation, contributors()));
  if (begun_ - completed_ >= max_pending_operations) {
    return base::failed_precondition("more than ", max_pending_operations, " collective operations are in flight");
  }
  Staged &staged = at(begun_);
  staged.operation = operation;
  staged.inner = -1;
  if (operation.buffers != nullptr) std::copy_n(operation.buffers, parts(), staged.buffers.begin());
  if (operation.stream != nullptr) TUTTI_TRY(copy_to_host(staged));
  const Ticket ticket = begun_++;
  TUTTI_TRY(begin_on_host(begun_, false));
  return ticket;
}

Status StagedRank::wait(Ticket ticket) {
  if (ticket >= begun_) return base::invalid_argument("operation ", ticket, " of rank ", rank(), " was never started");
  for (; completed_ <= ticket; ++completed_) {
    Staged &staged = at(completed_);
    TUTTI_TRY(begin_on_host(completed_ + 1, true));
    // What has been copied meanwhile, so that other ranks need not wait for it.
    TUTTI_TRY(begin_on_host(begun_, false));
    TUTTI_TRY(complete(staged));
  }
  return Status();
}

Status StagedRank::begin_on_host(Ticket end, bool waits) {
  for (; begun_on_host_ < end; ++begun_on_host_) {
    Staged &staged = at(begun_on_host_);
    Operation operation = staged.operation;
    operation.buffers = operation.buffers == nullptr ? nullptr : staged.buffers.data();
    if (operation.stream != nullptr) {
      if (!waits && !staged.copied.is_done()) return Status();
      if (const Status copied = staged.copied.synchronize(); !copied.ok()) {
        abort(copied);
        return copied;
      }
      operation.stream = nullptr;
      operation.buffers = staged.copies.data();
      operation.gathered = staged.gathered;
    }
    TUTTI_ASSIGN(staged.inner, inner_->begin(operation));
  }
  return Status();
}

Status StagedRank::complete(Staged &staged) {
  TUTTI_TRY(inner_->wait(staged.inner));
  if (staged.operation.stream == nullptr) return Status();
  const Status copied = copy_from_host(staged);
  if (!copied.ok()) abort(copied);
  return copied;
}

/// The smallest block that is free and large enough. A new one takes the place of a free one that is too small.
Status StagedRank::take_block(Staged &staged) {
  staged.block = nullptr;
  const Operation &operation = staged.operation;
  const int64_t each = (staged.bytes() + 63) / 64 * 64;
  const bool gathers = operation.kind == Kind::gather && operation.gathered != nullptr && owns(operation.root);
  const int64_t bytes = each * parts() + (gathers ? staged.bytes() * contributors() : 0);
  std::fill(staged.copies.begin(), staged.copies.end(), nullptr);
  staged.gathered = nullptr;
  if (bytes == 0) return Status();
  Block *small = nullptr;
  for (const auto &block : blocks_) {
    if (block->is_taken) continue;
    Block *&better = block->memory.size_bytes() >= bytes ? staged.block : small;
    if (better == nullptr || block->memory.size_bytes() < better->memory.size_bytes()) better = block.get();
  }
  if (staged.block == nullptr) {
    if (small == nullptr) small = blocks_.emplace_back(std::make_unique<Block>()).get();
    TUTTI_TRY(copies_.synchronize());  // the old memory may still be copied from
    small->memory = backend::HostMemory();
    TUTTI_ASSIGN(small->memory, device_->allocate_host(bytes));
    staged.block = small;
  }
  staged.block->is_taken = true;
  for (size_t p = 0; p < staged.copies.size(); ++p)
    staged.copies[p] = staged.block->memory.data() + static_cast<int64_t>(p) * each;
  if (gathers) staged.gathered = staged.block->memory.data() + parts() * each;
  return Status();
}

Status StagedRank::copy_to_host(Staged &staged) {
  TUTTI_TRY(take_block(staged));
  TUTTI_TRY(staged.copied.record(*staged.operation.stream));
  TUTTI_TRY(copies_.wait(staged.copied));
  TUTTI_TRY(for_each_read(staged, [&](int32_t part, int64_t first, int64_t bytes) {
    const auto p = static_cast<size_t>(part);
    return copies_.read(static_cast<const std::byte *>(staged.buffers[p]) + first,
                        static_cast<std::byte *>(staged.copies[p]) + first, bytes);
  }));
  return staged.copied.record(copies_);
}

Status StagedRank::copy_from_host(Staged &staged) {
  TUTTI_TRY(for_each_written(staged, [&](int32_t part, int64_t first, int64_t bytes) {
    const auto p = static_cast<size_t>(part);
    return copies_.write(static_cast<std::byte *>(staged.buffers[p]) + first,
                         static_cast<const std::byte *>(staged.copies[p]) + first, bytes);
  }));
  if (staged.gathered != nullptr) {
    TUTTI_TRY(copies_.write(staged.operation.gathered, staged.gathered, staged.bytes() * contributors()));
  }
  TUTTI_TRY(staged.copied.record(copies_));
  if (staged.block != nullptr) staged.block->is_taken = false;
  return staged.operation.stream->wait(staged.copied);
}

}  // namespace

Result<std::vector<std::unique_ptr<Group>>> stage(std::vector<std::unique_ptr<Group>> ranks,
                                                  std::span<const backend::DeviceRef> devices) {
  if (ranks.size() != devices.size()) {
    return base::invalid_argument("a group of ", ranks.size(), " ranks on ", devices.size(), " devices");
  }
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!devices[r]->backend().copies_by_address()) {
      return base::unimplemented("backend '", devices[r]->backend().name(),
                                 "' neither has host memory nor copies by address, which a group of ", ranks.size(),
                                 " devices needs");
    }
    auto staged = std::make_unique<StagedRank>(std::move(ranks[r]), devices[r]);
    TUTTI_TRY(staged->open());
    ranks[r] = std::move(staged);
  }
  return ranks;
}

}  // namespace tutti::impl::collective::staged
