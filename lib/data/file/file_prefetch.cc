// SPDX-License-Identifier: Apache-2.0
#include "data/file/file_prefetch.h"

#include <algorithm>
#include <utility>

#include "base/exceptions.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;

namespace {

// With so much a block is handed over where nobody knows how long the next read takes; with less, if it is waited for.
constexpr size_t kEnoughBytes = size_t{64} << 10;
// Of framed records a block has as many as make up kEnoughBytes; where more would be needed, framing does not pay.
constexpr int kMostFramed = 16;
// Memory of framed blocks is a multiple of this, so that it serves other records too.
constexpr size_t kMemoryStep = size_t{64} << 10;

}  // namespace

Result<std::unique_ptr<FilePrefetch>> FilePrefetch::start(std::unique_ptr<ByteSource> &source, size_t front_bytes,
                                                          Ref<CancelToken> token) {
  std::unique_ptr<FilePrefetch> ahead(new FilePrefetch(*source, front_bytes, std::move(token)));
  // The thread sees the source once the lock is free.
  const std::lock_guard lock(ahead->mutex_);
  TUTTI_ASSIGN(ahead->thread_, base::Thread::start("tutti-read", [self = ahead.get()] { self->work(); }));
  ahead->source_ = std::move(source);
  return ahead;
}

FilePrefetch::FilePrefetch(const ByteSource &source, size_t front_bytes, Ref<CancelToken> token)
    : file_(source.file()),
      front_bytes_(front_bytes),
      token_(std::move(token)),
      is_shared_(!source.is_compressed() && file_->is_local()),
      next_offset_(source.file_offset()) {
  spare_.reserve(kBlocks + 2);
}

FilePrefetch::~FilePrefetch() {
  if (!thread_.running()) return;
  token_->cancel();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  thread_.join();
}

void FilePrefetch::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    bool has_read = false;
    const Status thrown = base::without_exceptions([&] {
      has_read = read_one(lock);
      return Status();
    });
    if (!thrown.ok()) give_up(thrown);
    if (has_read) continue;
    // Half of the ring empty, so that the thread does not wake for every single block.
    room_.wait(lock, [&] { return stopping_ || (has_room() && claimed_ - taken_ <= kBlocks / 2); });
  }
}

// Before a block was claimed: the consumer finds the reason in its place.
void FilePrefetch::give_up(const Status &reason) {
  Block block;
  block.status = reason;
  ended_ = true;
  slot_of(claimed_++) = {std::move(block), true};
  if (consumer_waits_) done_.notify_one();
}

bool FilePrefetch::read_one(std::unique_lock<std::mutex> &lock) {
  if (!has_room()) return false;
  const size_t size = next_size();
  const int64_t offset = std::exchange(next_offset_, next_offset_ + static_cast<int64_t>(size));
  const int64_t number = claimed_++, epoch = epoch_;
  Block block;
  block.begin = front_bytes_ + kRoomBytes;
  block.buffer = take_spare(block.begin + size);
  lock.unlock();
  block.status = base::without_exceptions([&] { return fill(block, offset, size); });
  lock.lock();
  if (epoch != epoch_) {
    keep_spare(std::move(block.buffer));
    return true;
  }
  ended_ = ended_ || block.is_last || !block.status.ok();
  slot_of(number) = {std::move(block), true};
  if (consumer_waits_) done_.notify_one();
  return true;
}

size_t FilePrefetch::next_size() {
  size_t size = 0;
  for (int records = 0; framing_ && size < kEnoughBytes; ++records) {
    std::array<char, Framing::kMostHeaderBytes> header;
    const int64_t offset = next_offset_ + static_cast<int64_t>(size);
    const Result<size_t> got = file_->read_whole(offset, {header.data(), framing_->header_bytes});
    const bool is_whole = got.ok() && *got == framing_->header_bytes;
    const size_t record = is_whole ? framing_->record_bytes({header.data(), *got}) : 0;
    const bool is_there = record <= static_cast<size_t>(std::max<int64_t>(file_->size_bytes() - offset, 0));
    if (record == 0 || record > kMostFramedBytes || !is_there || records == kMostFramed) {
      framing_.reset();
    } else {
      size += record;
    }
  }
  return size > 0 ? size : kBlockBytes;
}

void FilePrefetch::frame(int64_t offset, const Framing &framing) {
  const std::lock_guard lock(mutex_);
  ++epoch_;
  for (; taken_ < claimed_; ++taken_) {
    Slot &slot = slot_of(taken_);
    if (slot.is_done) keep_spare(std::move(slot.block.buffer));
    slot = Slot();
  }
  next_offset_ = offset;
  framing_ = framing;
  ended_ = false;
  room_.notify_one();
}

Status FilePrefetch::fill(Block &block, int64_t offset, size_t size) {
  if (block.buffer == nullptr) {
    const size_t bytes = size == kBlockBytes ? size : (size + kMemoryStep - 1) / kMemoryStep * kMemoryStep;
    TUTTI_ASSIGN(block.buffer, Buffer::allocate(static_cast<int64_t>(block.begin + bytes)));
  }
  Status status;
  char *const target = static_cast<char *>(block.buffer->data()) + block.begin;
  const size_t enough = is_shared_ ? size : kEnoughBytes;
  while (block.size < size && status.ok() && !block.is_last) {
    if (block.size > 0 && (block.size >= enough || consumer_waits_)) break;
    const Result<size_t> got =
        read(offset + static_cast<int64_t>(block.size), {target + block.size, size - block.size});
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

Result<size_t> FilePrefetch::read(int64_t offset, std::span<char> target) {
  return is_shared_ ? file_->read_at(offset, target) : source_->read(target);
}

Result<FilePrefetch::Block> FilePrefetch::next() {
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

void FilePrefetch::give_back(Ref<Buffer> buffer) {
  const std::lock_guard lock(mutex_);
  keep_spare(std::move(buffer));
}

void FilePrefetch::keep_spare(Ref<Buffer> buffer) {
  if (buffer == nullptr) return;
  // The oldest one is of a size that is not read any more.
  if (spare_.size() == spare_.capacity()) spare_.erase(spare_.begin());
  spare_.push_back(std::move(buffer));
}

Ref<Buffer> FilePrefetch::take_spare(size_t bytes) {
  for (size_t i = spare_.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(spare_[i]->size_bytes());
    if (size < bytes || size > 2 * bytes) continue;
    Ref<Buffer> taken = std::move(spare_[i]);
    spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(i));
    return taken;
  }
  return {};
}

}  // namespace tutti::impl::data
