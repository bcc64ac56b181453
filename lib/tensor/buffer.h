// SPDX-License-Identifier: Apache-2.0
//
// Host memory, shared by counting: allocated here (aligned to 64 bytes), borrowed from elsewhere with a function that
// gives it back, a slice of another buffer, or a block of a pool.
//
//   TUTTI_ASSIGN(Ref<Buffer> buffer, Buffer::allocate(bytes));
//   Ref<Buffer> lent = Buffer::borrow(pointer, bytes, [owner] { owner->done(); }, Buffer::Access::read_only);
//
// Threads: counting is safe; contents are the users' affair: who writes must be the only one who looks.
// Invariants: data() is not null unless size is 0 and the memory is borrowed; a release function runs exactly once, on
// the thread that drops the last reference, slices included.
#ifndef TUTTI_TENSOR_BUFFER_H_
#define TUTTI_TENSOR_BUFFER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/cancel.h"
#include "base/object.h"
#include "base/status.h"

namespace tutti::impl::tensor {

using base::Ref;

class Buffer : public base::Object {
 public:
  enum class Access { read_write, read_only };

  /// Undefined contents. INVALID_ARGUMENT for a negative size, RESOURCE_EXHAUSTED naming the size.
  static base::Result<Ref<Buffer>> allocate(int64_t size_bytes);
  /// Filled with zeros.
  static base::Result<Ref<Buffer>> allocate_zeroed(int64_t size_bytes);
  /// Somebody else's memory until `release` is called; an empty function for memory that outlives everything.
  static Ref<Buffer> borrow(void *data, int64_t size_bytes, std::function<void()> release,
                            Access access = Access::read_write);
  /// Part of `parent`, which it keeps alive. OUT_OF_RANGE unless 0 <= offset, size and offset + size <= parent's size.
  static base::Result<Ref<Buffer>> slice(Ref<Buffer> parent, int64_t offset_bytes, int64_t size_bytes);

  void *data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }
  bool read_only() const { return access_ == Access::read_only; }

 protected:
  Buffer(void *data, int64_t size_bytes, Access access) : data_(data), size_bytes_(size_bytes), access_(access) {}

 private:
  void *const data_;
  const int64_t size_bytes_;
  const Access access_;
};

/// Blocks of one size that come back when nobody holds them: in the steady state acquire() allocates nothing. Blocks
/// keep the pool alive, so it may be dropped at any time.
/// Threads: all functions may be called from any thread.
class BufferPool : public base::Object {
 public:
  /// At most `max_blocks` at once; 0 means no limit. INVALID_ARGUMENT for negative numbers.
  static base::Result<Ref<BufferPool>> create(int64_t block_bytes, int64_t max_blocks = 0);
  ~BufferPool() override;

  /// A block with undefined contents, waiting for one to come back when the limit is reached.
  base::Result<Ref<Buffer>> acquire(const base::CancelToken *token = nullptr,
                                    base::Deadline deadline = base::Deadline::never());
  /// A block now, or null when the limit is reached.
  base::Result<Ref<Buffer>> try_acquire();

  int64_t block_bytes() const { return block_bytes_; }
  /// Blocks that exist, in use or not.
  int64_t block_count() const;
  /// Blocks in use.
  int64_t used_count() const;
  /// Frees the blocks not in use.
  void trim();

 private:
  class Block;

  BufferPool(int64_t block_bytes, int64_t max_blocks) : block_bytes_(block_bytes), max_blocks_(max_blocks) {}
  bool has_block() const { return free_ != nullptr || max_blocks_ == 0 || block_count_ < max_blocks_; }
  base::Result<Ref<Buffer>> hand_out(std::unique_lock<std::mutex> &lock);
  void give_back(Block *block) noexcept;

  const int64_t block_bytes_;
  const int64_t max_blocks_;
  mutable std::mutex mutex_;
  std::condition_variable came_back_;
  // Guarded by mutex_:
  Block *free_ = nullptr;
  int64_t free_count_ = 0;
  int64_t block_count_ = 0;
  int waiting_ = 0;
};

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_BUFFER_H_
