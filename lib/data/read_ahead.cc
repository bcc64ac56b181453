// SPDX-License-Identifier: Apache-2.0
#include "data/read_ahead.h"

#include <algorithm>
#include <utility>

namespace tutti::impl::data {

using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;

namespace {

// With so much a block is handed over where nobody knows how long the next read takes; with less, if it is waited for.
constexpr size_t kEnoughBytes = size_t{64} << 10;

}  // namespace

Result<std::unique_ptr<ReadAhead>> ReadAhead::start(std::unique_ptr<ByteSource> &source, size_t front_bytes,
                                                    Ref<CancelToken> token) {
  std::unique_ptr<ReadAhead> ahead(new ReadAhead(*source, front_bytes, std::move(token)));
  // The thread sees the source once the lock is free.
  const std::lock_guard lock(ahead->mutex_);
  TUTTI_ASSIGN(ahead->thread_, base::Thread::start("tutti-read", [self = ahead.get()] { self->work(); }));
  ahead->source_ = std::move(source);
  return ahead;
}

ReadAhead::ReadAhead(const ByteSource &source, size_t front_bytes, Ref<CancelToken> token)
    : file_(source.file()),
      front_bytes_(front_bytes),
      token_(std::move(token)),
      is_shared_(!source.is_compressed() && file_->is_local()),
      next_offset_(source.file_offset()) {
  spare_.reserve(kBlocks + 2);
}

ReadAhead::~ReadAhead() {
  if (!thread_.running()) return;
  token_->cancel();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  thread_.join();
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (read_one(lock)) continue;
    // Half of the ring empty, so that the thread does not wake for every single block.
    room_.wait(lock, [&] { return stopping_ || (has_room() && claimed_ - taken_ <= kBlocks / 2); });
  }
}

bool ReadAhead::read_one(std::unique_lock<std::mutex> &lock) {
  if (!has_room()) return false;
  Slot &slot = slot_of(claimed_++);
  const int64_t offset = next_offset_;
  next_offset_ += static_cast<int64_t>(kBlockBytes);
  slot.block = Block();
  if (!spare_.empty()) {
    slot.block.buffer = std::move(spare_.back());
    spare_.pop_back();
  }
  lock.unlock();
  slot.block.status = fill(slot.block, offset);
  lock.lock();
  slot.is_done = true;
  ended_ = ended_ || slot.block.is_last || !slot.block.status.ok();
  if (consumer_waits_) done_.notify_one();
  return true;
}

Status ReadAhead::fill(Block &block, int64_t offset) {
  block.begin = front_bytes_ + kRoomBytes;
  if (block.buffer == nullptr) {
    TUTTI_ASSIGN(block.buffer, Buffer::allocate(static_cast<int64_t>(block.begin + kBlockBytes)));
  }
  Status status;
  char *const target = static_cast<char *>(block.buffer->data()) + block.begin;
  const size_t enough = is_shared_ ? kBlockBytes : kEnoughBytes;
  while (block.size < kBlockBytes && status.ok() && !block.is_last) {
    if (block.size > 0 && (block.size >= enough || consumer_waits_)) break;
    const Result<size_t> got =
        read(offset + static_cast<int64_t>(block.size), {target + block.size, kBlockBytes - block.size});
    if (!got.ok()) {
      status = got.status();
    } else {
      block.size += *got;
      block.is_last = *got == 0;
    }
  }
  block.most_left = is_shared_ ? std::max<int64_t>(file_->size_bytes() - offset - static_cast<int64_t>(block.size), 0)
                               : source_->most_left();
  // What was read before an interrupt is a block, and the interrupt is over when the next one is wanted.
  return base::is_interrupt(status) && block.size > 0 ? Status() : status;
}

Result<size_t> ReadAhead::read(int64_t offset, std::span<char> target) {
  return is_shared_ ? file_->read_at(offset, target) : source_->read(target);
}

Result<ReadAhead::Block> ReadAhead::next() {
  std::unique_lock lock(mutex_);
  Slot &slot = slot_of(taken_);
  if (slot.is_done && base::is_interrupt(slot.block.status)) {
    slot.is_done = ended_ = false;
    claimed_ = taken_;
    room_.notify_one();
  }
  while (!slot.is_done) {
    if (is_shared_ && read_one(lock)) continue;
    consumer_waits_ = true;
    const Status status =
        base::wait_until(done_, lock, token_.get(), base::Deadline::never(), [&] { return slot.is_done; });
    consumer_waits_ = false;
    TUTTI_TRY(status);
  }
  if (base::is_interrupt(slot.block.status)) return slot.block.status;
  slot.is_done = false;
  Block block = std::move(slot.block);
  ++taken_;
  if (!ended_ && claimed_ - taken_ <= kBlocks / 2) room_.notify_one();
  return block;
}

void ReadAhead::give_back(Ref<Buffer> buffer) {
  if (buffer->size_bytes() != static_cast<int64_t>(front_bytes_ + kRoomBytes + kBlockBytes)) return;
  const std::lock_guard lock(mutex_);
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(buffer));
}

}  // namespace tutti::impl::data
