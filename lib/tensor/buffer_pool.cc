// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "tensor/buffer.h"

namespace tutti::impl::tensor {

// Belongs to the pool while it is free, and keeps the pool alive while it is in use.
class BufferPool::Block final : public Buffer {
 public:
  Block(void *data, int64_t size_bytes, base::AlignedMemory memory)
      : Buffer(data, size_bytes, Access::read_write), memory_(std::move(memory)) {}

  Ref<Buffer> lend(BufferPool *pool) {
    pool_ = Ref<BufferPool>::share(pool);
    revive();
    return Ref<Buffer>::adopt(this);
  }

  Block *next = nullptr;  // guarded by the pool's mutex

 private:
  void destroy() noexcept override {
    const Ref<BufferPool> pool = std::move(pool_);
    pool->give_back(this);
  }

  base::AlignedMemory memory_;
  Ref<BufferPool> pool_;
};

base::Result<Ref<BufferPool>> BufferPool::create(int64_t block_bytes, int64_t max_blocks) {
  if (block_bytes < 0 || max_blocks < 0) {
    return base::invalid_argument("buffer pool: expected no negative numbers, got blocks of ", block_bytes, " bytes, ",
                                  max_blocks, " of them");
  }
  return Ref<BufferPool>::adopt(new BufferPool(block_bytes, max_blocks));
}

BufferPool::~BufferPool() { trim(); }

base::Result<Ref<Buffer>> BufferPool::acquire(const base::CancelToken *token, base::Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!has_block()) {
    ++waiting_;
    const base::Status status = base::wait_until(came_back_, lock, token, deadline, [this] { return has_block(); });
    --waiting_;
    if (!status.ok()) return status.wrap(base::concat("all ", max_blocks_, " blocks of a buffer pool are in use"));
  }
  return hand_out(lock);
}

base::Result<Ref<Buffer>> BufferPool::try_acquire() {
  std::unique_lock lock(mutex_);
  if (!has_block()) return Ref<Buffer>();
  return hand_out(lock);
}

base::Result<Ref<Buffer>> BufferPool::hand_out(std::unique_lock<std::mutex> &lock) {
  if (free_ != nullptr) {
    Block *block = std::exchange(free_, free_->next);
    --free_count_;
    lock.unlock();
    return block->lend(this);
  }
  ++block_count_;
  lock.unlock();
  base::Result<base::AlignedMemory> memory = base::allocate_aligned(static_cast<size_t>(block_bytes_));
  if (!memory.ok()) {
    lock.lock();
    --block_count_;
    if (waiting_ > 0) came_back_.notify_one();
    return memory.status();
  }
  void *data = memory->get();
  return (new Block(data, block_bytes_, memory.take()))->lend(this);
}

void BufferPool::give_back(Block *block) noexcept {
  std::lock_guard lock(mutex_);
  block->next = std::exchange(free_, block);
  ++free_count_;
  if (waiting_ > 0) came_back_.notify_one();
}

void BufferPool::trim() {
  Block *chain;
  {
    std::lock_guard lock(mutex_);
    chain = std::exchange(free_, nullptr);
    block_count_ -= std::exchange(free_count_, 0);
  }
  while (chain != nullptr)
    delete std::exchange(chain, chain->next);
}

int64_t BufferPool::block_count() const {
  std::lock_guard lock(mutex_);
  return block_count_;
}

int64_t BufferPool::used_count() const {
  std::lock_guard lock(mutex_);
  return block_count_ - free_count_;
}

}  // namespace tutti::impl::tensor
