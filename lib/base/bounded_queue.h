// SPDX-License-Identifier: Apache-2.0
//
// A bounded queue between any number of producers and consumers.
//
//   BoundedQueue<Batch> queue(4);
//   producer: TUTTI_TRY(queue.push(std::move(batch), token));  ...  queue.close();        // no more
//   consumer: TUTTI_ASSIGN(std::optional<Batch> batch, queue.pop(token)); if (!batch) end;
//   either:   queue.fail(status);                                   // everybody gets the status, items are dropped
//
// Threads: everything may be called from any thread. Order is first in, first out.
// Invariant: 0 <= size <= capacity; after close() no item enters; after fail() none leaves either. The first of several
// failures wins. Storage is one ring made at construction: no allocation per item.
#ifndef TUTTI_BASE_BOUNDED_QUEUE_H_
#define TUTTI_BASE_BOUNDED_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/cancel.h"
#include "base/status.h"

namespace tutti::impl::base {

template <typename T>
class BoundedQueue {
 public:
  /// Room for `capacity` items, at least one.
  explicit BoundedQueue(size_t capacity)
      : capacity_(capacity < 1 ? 1 : capacity), ring_(std::make_unique<std::optional<T>[]>(capacity_)) {}
  BoundedQueue(const BoundedQueue &) = delete;
  BoundedQueue &operator=(const BoundedQueue &) = delete;

  /// Adds an item, waiting for room. ABORTED when the queue is closed; the status of fail(); CANCELLED or
  /// DEADLINE_EXCEEDED. The item is gone in each of these cases.
  Status push(T item, const CancelToken *token = nullptr, Deadline deadline = Deadline::never()) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || size_ < capacity_; };
    if (!ready()) {
      ++waiting_producers_;
      const Status status = wait_until(has_room_, lock, token, deadline, ready);
      --waiting_producers_;
      TUTTI_TRY(status);
    }
    if (closed_) return failure_.ok() ? aborted("queue is closed") : failure_;
    insert(std::move(item));
    notify_one(lock, has_item_, waiting_consumers_);
    return Status();
  }

  /// Adds an item if there is room now; `item` is moved from only when the result is true.
  bool try_push(T &item) {
    std::unique_lock lock(mutex_);
    if (closed_ || size_ == capacity_) return false;
    insert(std::move(item));
    notify_one(lock, has_item_, waiting_consumers_);
    return true;
  }

  /// The oldest item, waiting for one; nothing when the queue is closed and empty.
  Result<std::optional<T>> pop(const CancelToken *token = nullptr, Deadline deadline = Deadline::never()) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return size_ > 0 || closed_; };
    if (!ready()) {
      ++waiting_consumers_;
      const Status status = wait_until(has_item_, lock, token, deadline, ready);
      --waiting_consumers_;
      TUTTI_TRY(status);
    }
    TUTTI_TRY(failure_);
    if (size_ == 0) return std::optional<T>();
    std::optional<T> item = remove();
    notify_one(lock, has_room_, waiting_producers_);
    return item;
  }

  /// The oldest item if there is one now.
  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    if (size_ == 0) return std::nullopt;
    std::optional<T> item = remove();
    notify_one(lock, has_room_, waiting_producers_);
    return item;
  }

  /// No more items: producers get ABORTED, consumers what is left and then nothing.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    has_item_.notify_all();
    has_room_.notify_all();
  }

  /// Ends with a bad status for producers and consumers; drops the items.
  void fail(Status status) {
    std::unique_ptr<std::optional<T>[]> dropped;  // items die without the lock
    {
      std::lock_guard lock(mutex_);
      if (!failure_.ok() || status.ok()) return;
      failure_ = std::move(status);
      closed_ = true;
      dropped = std::exchange(ring_, nullptr);
      size_ = 0;
    }
    has_item_.notify_all();
    has_room_.notify_all();
  }

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return size_;
  }
  size_t capacity() const { return capacity_; }

 private:
  void insert(T item) {
    size_t at = first_ + size_;
    if (at >= capacity_) at -= capacity_;
    ring_[at].emplace(std::move(item));
    ++size_;
  }
  std::optional<T> remove() {
    std::optional<T> item = std::move(ring_[first_]);
    ring_[first_].reset();
    if (++first_ == capacity_) first_ = 0;
    --size_;
    return item;
  }
  // Unlocks first, so that who wakes does not run into the mutex; a queue nobody waits for makes no system call.
  static void notify_one(std::unique_lock<std::mutex> &lock, std::condition_variable &condition, const int &waiting) {
    const bool wake = waiting > 0;
    lock.unlock();
    if (wake) condition.notify_one();
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable has_item_;
  std::condition_variable has_room_;
  // All guarded by mutex_:
  std::unique_ptr<std::optional<T>[]> ring_;
  size_t first_ = 0;
  size_t size_ = 0;
  int waiting_consumers_ = 0;
  int waiting_producers_ = 0;
  bool closed_ = false;
  Status failure_;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_BOUNDED_QUEUE_H_
